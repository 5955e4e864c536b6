"""The environment decides between one process and many, and half a configuration is refused by name."""

import ctypes
import os
from functools import partial

import pytest
from django.core.exceptions import ImproperlyConfigured

from prefmh_web.settings import environment
from tests.support.installations import Program, in_folder
from tests.support.servers import without_ours

# Of Linux: <linux/prctl.h> and <linux/capability.h>.
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1
KEY = "0123456789abcdefghijklmnopqrstuvwxyz" * 2
SERVER = {
    "DATABASE_URL": "postgresql://prefmh:secret-word@db.example:5433/prefmh",
    "REDIS_URL": "redis://redis.example:6379/2",
    "SECRET_KEY": KEY,
    "SITE_URL": "https://prefmh.example",
    "TRUSTED_PROXY_TLS_HEADER": "X-Forwarded-Proto",
}


@pytest.fixture
def read(monkeypatch):
    """Return a call that reads the variables of an environment that has only these of ours."""
    for name in set(os.environ) - set(without_ours(os.environ)):
        monkeypatch.delenv(name)

    def read_from(variables):
        with monkeypatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            return environment.read()

    return read_from


def test_a_full_set_is_the_server_mode(read):
    found = read(SERVER)
    assert [found.database[name] for name in ("HOST", "PORT", "NAME")] == ["db.example", 5433, "prefmh"]
    assert found.broker_url == found.redis_url == "redis://redis.example:6379/2"
    assert found.hosts[-1] == "prefmh.example"
    assert found.hsts > 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"REDIS_URL": ""}, "REDIS_URL is not.*Set REDIS_URL="),
        ({"DATABASE_URL": ""}, "DATABASE_URL is not.*Set DATABASE_URL="),
        ({"DATABASE_URL": "sqlite:///db"}, "DATABASE_URL must start with.*postgresql://"),
        ({"DATABASE_URL": "postgresql://db.example"}, "DATABASE_URL must name a database"),
        ({"REDIS_URL": "localhost:6379"}, "REDIS_URL must start with.*redis://"),
        ({"CELERY_BROKER_URL": "sqs://"}, "CELERY_BROKER_URL must start with"),
        ({"DATABASE_POOL_SIZE": "many"}, "DATABASE_POOL_SIZE must be a whole number"),
        ({"DATABASE_POOL_SIZE": "1000000"}, "DATABASE_POOL_SIZE must be a whole number, at most 1000"),
        ({"REDIS_URL": "redis://redis.example:6379/zero"}, "REDIS_URL must end in the number of a database"),
        (
            {"REDIS_TIMEOUT_SECONDS": "0"},
            "REDIS_TIMEOUT_SECONDS must be a number of seconds above 0",
        ),
        ({"REDIS_TIMEOUT_SECONDS": "1e18"}, "REDIS_TIMEOUT_SECONDS must be a number of seconds.*86400"),
        ({"BROKER_TIMEOUT_SECONDS": "long"}, "BROKER_TIMEOUT_SECONDS must be a number of seconds"),
        ({"SECRET_KEY": ""}, "SECRET_KEY must be set.*token_urlsafe"),
        ({"SECRET_KEY": "short"}, "SECRET_KEY must be set to at least 50"),
        ({"SITE_URL": ""}, "SITE_URL must be the address"),
        ({"SITE_URL": "prefmh.example"}, "SITE_URL must be an address"),
        ({"SITE_URL": "https://x.example/path"}, "SITE_URL must be an address"),
        ({"TRUSTED_PROXY_TLS_HEADER": ""}, "Set TRUSTED_PROXY_TLS_HEADER"),
        ({"RATE_LIMITS": "joins=5/minute"}, "has no rate “joins”; there are sign-in-name-here, "),
        ({"RATE_LIMITS": "join"}, "must look like"),
        ({"RATE_LIMITS": "join=many"}, "RATE_LIMITS must hold rates such as join=5000/minute, not"),
        ({"RATE_LIMITS": "join=0/minute"}, "not “0/minute”"),
        ({"RATE_LIMITS": "join=1/minute;2/hour"}, "not “1/minute;2/hour”"),
        ({"RATE_LIMITS": "join=-5/minute"}, "not “-5/minute”"),
        ({"LOG_LEVEL": "loud"}, "LOG_LEVEL must be one of"),
        ({"METRICS_ALLOW": "10.0.0.0/8, everybody"}, "METRICS_ALLOW must hold"),
        ({"ENDPOINT_ALLOW_PRIVATE": "True"}, "ENDPOINT_ALLOW_PRIVATE must hold"),
        ({"REDIS_URL": "redis://:secret-word@host:port/0"}, "REDIS_URL must be an address.*number as its port"),
        ({"DATABASE_URL": "postgresql://[::1"}, "DATABASE_URL must be an address"),
        ({"SITE_URL": "https://x.example:port"}, "SITE_URL must be an address"),
        ({"SITE_URL": "https://anna:secret-word@x.example"}, "SITE_URL must be an address"),
        ({"SITE_URL": "https://a b.example"}, "SITE_URL must be an address"),
        ({"SITE_URL": "https://x.example/#part"}, "SITE_URL must be an address"),
        ({"TRUSTED_PROXY_TLS_HEADER": "HTTP_X_FORWARDED_PROTO"}, "TRUSTED_PROXY_TLS_HEADER must be the name"),
        ({"RATE_LIMITS": "join=5/minute|6/hour"}, "not “5/minute|6/hour”"),
        ({"ALLOWED_HOSTS": "a.example, https://b.example"}, "ALLOWED_HOSTS must hold names.*'https://b.example'"),
        ({"ALLOWED_HOSTS": "a.example:8000"}, "ALLOWED_HOSTS must hold names"),
        ({"ENDPOINT_ALLOWED_HOSTS": "a.example/v1"}, "ENDPOINT_ALLOWED_HOSTS must hold names"),
        ({"ENDPOINT_ALLOWED_HOSTS": "a.example:port"}, "ENDPOINT_ALLOWED_HOSTS must hold names"),
        ({"ENDPOINT_KEYS": "secret-word"}, "ENDPOINT_KEYS must look like"),
        ({"ENDPOINT_KEYS": "KEY=https://secret-word/v1"}, "ENDPOINT_KEYS must hold names of hosts"),
        ({"DEBUG": "true"}, "DEBUG must be one of '0' or '1'"),
    ],
)
def test_half_a_configuration_and_other_values_are_refused_by_name_with_the_fix(read, changes, message):
    with pytest.raises(ImproperlyConfigured, match=message) as refusal:
        _ = read(SERVER | changes).database
    assert "secret-word" not in str(refusal.value)
    assert KEY not in str(refusal.value)


@pytest.fixture
def program(tmp_path) -> Program:
    return Program(tmp_path, {**without_ours(os.environ), **SERVER, "PREFMH_DATA": str(tmp_path)})


def test_the_deployment_check_has_nothing_to_say(program, tmp_path):
    done = program.run("manage.py", "check", "--deploy", "--fail-level", "WARNING")
    assert "no issues" in done.stdout + done.stderr
    # No key is ever made up for several processes.
    assert not (tmp_path / "secret-key").exists()


def test_a_database_that_is_away_is_named_without_a_traceback(program):
    program.environment["DATABASE_URL"] = "postgresql://prefmh:secret-word@127.0.0.1:1/prefmh"
    done = program.run("manage.py", "migrate", check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("The database in DATABASE_URL cannot be used: connection failed")
    assert "secret-word" not in done.stderr


def test_a_broken_embedded_database_is_named_without_a_traceback(tmp_path):
    program = Program(tmp_path, in_folder(tmp_path))
    (tmp_path / "prefmh.sqlite3").write_bytes(b"no database" * 1_000)
    for command in ("migrate", "doctor"):
        done = program.run("manage.py", command, check=False)
        assert done.returncode == 1
        assert "put a backup in its place" in done.stdout + done.stderr
        assert "Traceback" not in done.stderr


def test_the_embedded_server_does_not_serve_a_shared_database(program):
    done = program.run("manage.py", "serve", "--port", "28999", check=False)
    assert done.returncode != 0
    assert "DATABASE_URL is set" in done.stderr
    assert "Traceback" not in done.stderr


def test_programs_that_score_are_read_with_their_arguments(read):
    given = {"SCORERS": ' comet=/opt/python score.py --names "a,b" , beauty = run ', "SCORER_TIMEOUT_SECONDS": "2.5"}
    found = read(given)
    assert found.scorers == {"comet": ("/opt/python", "score.py", "--names", "a,b"), "beauty": ("run",)}
    assert found.scorer_timeout_seconds == 2.5
    assert read({}).scorers == {}


def test_a_folder_that_cannot_be_made_is_named_without_a_traceback(program):
    program.environment["PREFMH_DATA"] = "/dev/null/data"
    done = program.run("manage.py", "check", check=False)
    assert done.returncode == 1
    assert "PREFMH_DATA must be a folder" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("variables", "there"), [(SERVER, ""), ({}, ""), ({}, "incoming")])
def test_a_folder_that_may_not_be_written_is_named_without_a_traceback(tmp_path, variables, there):
    (tmp_path / "data" / there).mkdir(parents=True)
    (tmp_path / "data").chmod(0o500)
    program = Program(tmp_path, {**without_ours(os.environ), **variables, "PREFMH_DATA": str(tmp_path / "data")})
    # Root may write everywhere until it gives that up; nobody else has it.
    give_up = partial(ctypes.CDLL(None).prctl, PR_CAPBSET_DROP, CAP_DAC_OVERRIDE)
    done = program.run("manage.py", "check", check=False, preexec_fn=give_up)
    assert done.returncode == 1
    assert "PREFMH_DATA must be a folder that can be made and written: " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "given", ["comet", "comet=", "=run", "a=x,a=y", "a=x,,b=y", "a=x,", "a='x", 'a=x "y', "my scorer=x", "1=x", "a=x,b"]
)
def test_programs_that_cannot_be_read_are_refused_by_name_and_not_shown(read, given):
    with pytest.raises(ImproperlyConfigured, match=r"SCORERS (must|has)") as refused:
        read({"SCORERS": given.replace("x", "secret-key")})
    assert "secret-key" not in str(refused.value)

"""The environment decides between one process and many, and half a configuration is refused by name."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from prefmh_web.settings import environment
from prefmh_web.settings.rates import RATES
from tests.support.server_stack import without_ours

ROOT = Path(__file__).resolve().parents[2]
KEY = "0123456789abcdefghijklmnopqrstuvwxyz" * 2
SERVER = {
    "DATABASE_URL": "postgresql://prefmh:secret-word@db.example:5433/prefmh",
    "REDIS_URL": "redis://redis.example:6379/2",
    "SECRET_KEY": KEY,
    "SITE_URL": "https://prefmh.example",
    "TRUSTED_PROXY_TLS_HEADER": "X-Forwarded-Proto",
}


def test_nothing_set_is_the_embedded_mode():
    assert environment.engines({}) == environment.Engines(None, None, None)
    assert environment.secret_key({}) is None
    assert not environment.site({}).is_https


def test_a_full_set_is_the_server_mode():
    engines = environment.engines(SERVER)
    assert (engines.database["HOST"], engines.database["PORT"], engines.database["NAME"]) == (
        "db.example", 5433, "prefmh",
    )  # fmt: skip
    assert engines.broker_url == engines.redis_url == "redis://redis.example:6379/2"
    assert environment.site(SERVER).allowed_hosts[-1] == "prefmh.example"
    assert environment.site(SERVER).hsts_seconds > 0


def test_rabbitmq_may_be_the_broker():
    engines = environment.engines(SERVER | {"CELERY_BROKER_URL": "amqp://guest:guest@rabbit:5672//"})
    assert engines.broker_url.startswith("amqp://")
    assert engines.redis_url.startswith("redis://")


def test_a_pool_keeps_the_connections_or_django_does():
    pooled = environment.engines(SERVER | {"DATABASE_POOL_SIZE": "7"}).database
    assert (pooled["OPTIONS"]["pool"]["max_size"], pooled["CONN_MAX_AGE"]) == (7, 0)
    alone = environment.engines(SERVER).database
    assert ("pool" in alone.get("OPTIONS", {}), alone["CONN_MAX_AGE"]) == (False, None)


@pytest.mark.parametrize(
    ("read", "changes", "message"),
    [
        (environment.engines, {"REDIS_URL": ""}, "REDIS_URL is not.*Set REDIS_URL="),
        (environment.engines, {"DATABASE_URL": ""}, "DATABASE_URL is not.*Set DATABASE_URL="),
        (environment.engines, {"DATABASE_URL": "sqlite:///db"}, "DATABASE_URL must start with.*postgresql://"),
        (environment.engines, {"DATABASE_URL": "postgresql://db.example"}, "DATABASE_URL must name a database"),
        (environment.engines, {"REDIS_URL": "localhost:6379"}, "REDIS_URL must start with.*redis://"),
        (environment.engines, {"CELERY_BROKER_URL": "sqs://"}, "CELERY_BROKER_URL must start with"),
        (environment.engines, {"DATABASE_POOL_SIZE": "many"}, "DATABASE_POOL_SIZE must be a whole number"),
        (environment.secret_key, {"SECRET_KEY": ""}, "SECRET_KEY must be set.*token_urlsafe"),
        (environment.secret_key, {"SECRET_KEY": "short"}, "SECRET_KEY must be set to at least 50"),
        (environment.site, {"SITE_URL": ""}, "SITE_URL must say"),
        (environment.site, {"SITE_URL": "prefmh.example"}, "SITE_URL must be an address"),
        (environment.site, {"SITE_URL": "https://x.example/path"}, "SITE_URL must be an address"),
        (environment.site, {"TRUSTED_PROXY_TLS_HEADER": ""}, "TRUSTED_PROXY_TLS_HEADER must name"),
    ],
)
def test_half_a_configuration_is_refused_by_name_with_the_mend(read, changes, message):
    with pytest.raises(ImproperlyConfigured, match=message) as refusal:
        read(SERVER | changes)
    assert "secret-word" not in str(refusal.value)


def test_other_values_are_refused_by_name():
    with pytest.raises(ImproperlyConfigured, match="LOG_LEVEL must be one of"):
        environment.log_level("INFO", {"LOG_LEVEL": "loud"})
    with pytest.raises(ImproperlyConfigured, match="METRICS_ALLOW must hold"):
        environment.networks("METRICS_ALLOW", {"METRICS_ALLOW": "10.0.0.0/8, everybody"})


def test_rates_are_replaced_by_name():
    given = {"RATE_LIMITS": "join=5000/minute, forms=20/10 second"}
    assert environment.rates("RATE_LIMITS", RATES, given) == {"join": "5000/minute", "forms": "20/10 second"}
    assert environment.rates("RATE_LIMITS", RATES, {}) == {}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("joins=5/minute", "knows sign-in-name-here, .*“joins” is none of them"),
        ("join", "must look like"),
        ("join=many", "RATE_LIMITS must hold rates such as join=5000/minute; “many” is none"),
        ("join=0/minute", "“0/minute” is none"),
        ("join=1/minute;2/hour", "“1/minute;2/hour” is none"),
        ("join=-5/minute", "“-5/minute” is none"),
    ],
)
def test_a_rate_that_is_none_is_refused_by_name(given, message):
    with pytest.raises(ImproperlyConfigured, match=message):
        environment.rates("RATE_LIMITS", RATES, {"RATE_LIMITS": given})


def manage(folder: Path, *command: str, **changes: str) -> subprocess.CompletedProcess:
    settings = {**without_ours(os.environ), **SERVER, **changes, "PREFMH_DATA": str(folder)}
    return subprocess.run(
        [sys.executable, "manage.py", *command], cwd=ROOT, env=settings, capture_output=True, text=True, check=False
    )


def test_the_deployment_check_has_nothing_to_say(tmp_path):
    done = manage(tmp_path, "check", "--deploy", "--fail-level", "WARNING")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no issues" in done.stdout + done.stderr
    # No key is ever made up for several processes.
    assert not (tmp_path / "secret-key").exists()


def test_a_command_says_what_is_missing(tmp_path):
    done = manage(tmp_path, "check", REDIS_URL="")
    assert done.returncode != 0
    assert "REDIS_URL" in done.stderr.splitlines()[-1]


def test_the_embedded_server_does_not_serve_a_shared_database(tmp_path):
    done = manage(tmp_path, "serve", "--port", "28999")
    assert done.returncode != 0
    assert "DATABASE_URL is set" in done.stderr
    assert "Traceback" not in done.stderr

"""What `docker/compose.yaml` says is what runs: each service's own command, environment and health check."""

import os
import re
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml

from tests.support.ports import port_from
from tests.support.processes import ROOT, Process, wait_for
from tests.support.server_stack import without_ours

COMPOSE = ROOT / "docker/compose.yaml"
OURS = ("web", "worker", "files", "gpu", "beat")
SECRETS = {"SECRET_KEY": secrets.token_urlsafe(50), "SITE_URL": "http://localhost", "POSTGRES_PASSWORD": "word"}
_VARIABLE = re.compile(r"\$\{(\w+)(?::([-?])([^}]*))?\}")


class Missing(Exception):  # noqa: N818 - reads as the sentence it starts
    """A variable that the file demands is not set."""


def filled(value, given: dict[str, str]):
    """Return a part of the file with its variables filled in as compose does."""
    if isinstance(value, dict):
        return {name: filled(part, given) for name, part in value.items()}
    if isinstance(value, list):
        return [filled(part, given) for part in value]
    return _VARIABLE.sub(lambda found: _value(found, given), value) if isinstance(value, str) else value


def _value(found: re.Match, given: dict[str, str]) -> str:
    name, kind, text = found.groups()
    if given.get(name):
        return given[name]
    if kind == "?":
        raise Missing(name)
    return text or ""


def services(given: dict[str, str] = SECRETS) -> dict[str, dict]:
    return filled(yaml.safe_load(COMPOSE.read_text()), given)["services"]


@pytest.mark.parametrize("name", SECRETS)
def test_each_secret_is_demanded_by_name(name):
    with pytest.raises(Missing, match=name):
        services({other: value for other, value in SECRETS.items() if other != name})


def test_no_service_runs_as_root_or_without_a_health_check():
    users = {"postgres": "postgres", "redis": "redis", "proxy": "nginx"}
    for name, service in services().items():
        assert "healthcheck" in service or name == "migrate", name
        assert not service.get("privileged"), name
        if name in users:
            assert service["user"] == users[name]
        else:
            assert service["build"]["dockerfile"].startswith("docker/Dockerfile")
    for dockerfile in ("Dockerfile", "Dockerfile.gpu"):
        text = (ROOT / "docker" / dockerfile).read_text()
        assert re.findall(r"^USER (\w+)", text.partition("AS proxy")[0], re.MULTILINE)[-1] == "prefmh"
        assert "PASSWORD" not in text


def test_only_the_proxy_is_reachable_and_only_from_this_host():
    published = {name: service["ports"] for name, service in services().items() if "ports" in service}
    assert published == {"proxy": ["127.0.0.1:8080:8080"]}


def test_docker_itself_accepts_the_file():
    if subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode:
        pytest.skip("needs the compose plugin of Docker")
    command = ["docker", "compose", "--file", str(COMPOSE), "--profile", "gpu", "config", "--quiet"]
    done = subprocess.run(command, env={**os.environ, **SECRETS}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


class Service:
    """A service of the file as a plain process, with hosts, ports and folders of this machine."""

    def __init__(self, name: str, described: dict, here: dict[str, str], folder: Path) -> None:
        self._here = {**here, "/tmp/heartbeat": str(folder / f"{name}.heartbeat")}
        wanted = {key: self._moved(value) for key, value in described["environment"].items()}
        environment = {**without_ours(os.environ), **wanted, "PREFMH_DATA": str(folder / "data")}
        # What the image sets.
        environment |= {"STATIC_ROOT": str(folder / "static"), "DJANGO_SETTINGS_MODULE": "prefmh_web.settings"}
        self.environment = environment
        self.check = described.get("healthcheck", {}).get("test")
        self.process = Process(name, self._moved_command(described["command"]), environment, folder)

    def is_healthy(self) -> bool:
        kind, *command = self.check
        if kind == "CMD-SHELL":
            command = ["/bin/sh", "-c", command[0].replace("$$", "$")]
        command = self._moved_command(command)
        return subprocess.run(command, env=self.environment, capture_output=True, check=False).returncode == 0

    def run(self) -> None:
        self.process.start()
        assert self.process.wait() == 0, self.process.log()

    def _moved_command(self, command: list[str]) -> list[str]:
        program, *rest = [self._moved(part) for part in command]
        # Of this environment, as the image's PATH finds it there.
        found = shutil.which(program, path=str(Path(sys.executable).parent)) or program
        return [found, *rest]

    def _moved(self, text: str) -> str:
        for there, here in self._here.items():
            text = text.replace(there, here)
        return text


@pytest.fixture(scope="module")
def running(installation, tmp_path_factory) -> Iterator[tuple[dict[str, Service], str]]:
    """Everything the file starts from our image, and the address of its web process."""
    folder, port = tmp_path_factory.mktemp("compose"), port_from(31_000)
    database = installation.postgres.create("composed")
    here = {
        "postgresql://prefmh:word@postgres:5432/prefmh": database,
        "redis://redis:6379/0": installation.redis.url.removesuffix("/0") + "/1",
        "0.0.0.0": "127.0.0.1",
        "8000": str(port),
    }
    collect = [sys.executable, "manage.py", "collectstatic", "--no-input", "--verbosity", "0"]
    build = {**without_ours(os.environ), "STATIC_ROOT": str(folder / "static"), "PREFMH_DATA": str(folder / "build")}
    subprocess.run(collect, cwd=ROOT, env=build, check=True)
    described = services()
    Service("migrate", described["migrate"], here, folder).run()
    found = {name: Service(name, described[name], here, folder) for name in OURS}
    for service in found.values():
        service.process.start()
    yield found, f"http://127.0.0.1:{port}"
    for service in found.values():
        service.process.kill()


def test_every_command_of_the_file_runs_and_is_found_healthy(running):
    for name, service in running[0].items():
        wait_for(service.is_healthy, f"{name} healthy: {shlex.join(service.check)}")
        service.process.assert_runs()


def test_pages_name_static_files_that_may_be_kept_for_ever(running):
    site = running[1]
    wait_for(lambda: running[0]["web"].is_healthy(), "web healthy")
    page = httpx.get(f"{site}/accounts/sign-in/").text
    names = re.findall(r'(?:href|src)="(/static/[^"]+)"', page)
    assert names
    for name in names:
        assert re.search(r"\.[0-9a-f]{12}\.", name), name
        answer = httpx.get(site + name)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]


def test_nginx_serves_pages_and_sockets_and_keeps_metrics_inside(running, tmp_path):
    if not (nginx := shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")):
        pytest.skip("needs nginx (Debian: apt-get install nginx-light)")
    port = port_from(31_500)
    wait_for(lambda: running[0]["web"].is_healthy(), "web healthy")
    static = Path(running[0]["web"].environment["STATIC_ROOT"])
    configuration = (ROOT / "docker/nginx.conf").read_text()
    for there, here in {
        "/tmp/": f"{tmp_path}/",
        "web:8000": running[1].removeprefix("http://"),
        "listen 8080": f"listen 127.0.0.1:{port}",
        "/srv/static": str(static),
    }.items():
        assert there in configuration
        configuration = configuration.replace(there, here)
    (tmp_path / "nginx.conf").write_text(configuration)
    server = subprocess.Popen([nginx, "-c", str(tmp_path / "nginx.conf"), "-g", "daemon off; user root;"])
    try:
        site = f"http://127.0.0.1:{port}"
        wait_for(lambda: httpx.get(f"{site}/readyz").is_success, "nginx in front of the web process")
        assert httpx.get(f"{site}/metrics").status_code == 404
        assert httpx.get(f"{site}/nginx-health").text == "alive\n"
        [style, *_] = re.findall(r'href="(/static/[^"]+\.css)"', httpx.get(f"{site}/accounts/sign-in/").text)
        assert "immutable" in httpx.get(site + style).headers["cache-control"]
    finally:
        server.send_signal(signal.SIGQUIT)
        server.wait()

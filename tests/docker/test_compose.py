"""What `docker/compose.yaml` says is what runs: each service's own command, environment and health check."""

import contextlib
import os
import re
import secrets
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml

from prefmh_web.settings import environment
from tests.support.installations import ROOT, Process, Program, nginx_before, wait_for
from tests.support.models import port_from
from tests.support.servers import without_ours

COMPOSE, DOCKERFILE = ROOT / "docker/compose.yaml", ROOT / "docker/Dockerfile"
OUR_IMAGE = "prefmh:local"
OURS = ("web", "worker", "judges", "files", "gpu", "beat")
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
    users = {"postgres": "postgres", "redis": "redis", "proxy": "nginx", "vllm": "nobody"}
    for name, service in services().items():
        assert "healthcheck" in service or name == "migrate", name
        assert not service.get("privileged"), name
        if name in users:
            assert service["user"] == users[name]
        else:
            assert service["image"] in (OUR_IMAGE, "prefmh-gpu:local")
    for stage in ("app", "gpu"):
        assert re.findall(r"^USER (\w+)", stages()[stage], re.MULTILINE)[-1] == "prefmh"
    assert "PASSWORD" not in DOCKERFILE.read_text()


def stages() -> dict[str, str]:
    """Return the Dockerfile's stages by name."""
    parts = re.split(r"^FROM \S+ AS (\w+)$", DOCKERFILE.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_each_image_is_built_once_from_a_stage_that_is_there():
    built = {name: service["build"] for name, service in services().items() if "build" in service}
    images = [services()[name]["image"] for name in built]
    # Compose builds them all at once, and of two builds that want the same name one fails.
    assert sorted(images) == sorted(set(images))
    for build in built.values():
        assert (COMPOSE.parent / build["context"] / build["dockerfile"]).samefile(DOCKERFILE)
        assert build["target"] in stages()
    # The others start when there is an image, which somebody builds that they wait for.
    [builder] = [name for name in built if services()[name]["image"] == OUR_IMAGE]
    waiting = {name for name, service in services().items() if service.get("image") == OUR_IMAGE} - {builder}
    assert waiting == set(OURS) - {"gpu"}
    for name in (*waiting, "gpu"):
        assert services()[name]["depends_on"][builder]["condition"] == "service_completed_successfully"


def test_every_variable_that_compose_hands_on_is_one_that_is_read():
    described = environment.__doc__
    for name in OURS:
        for variable in services()[name]["environment"]:
            assert re.search(rf"^    {variable} ", described, re.MULTILINE), variable


def test_keys_of_model_servers_reach_those_who_call_them_and_nobody_else():
    with_keys = {name for name, service in services().items() if "env_file" in service}
    assert with_keys == {"web", "judges"}
    assert services()["web"]["env_file"] == [{"path": "keys.env", "required": False}]
    assert "docker/keys.env" in (ROOT / ".gitignore").read_text().split()


def test_only_the_proxy_is_reachable_and_only_from_this_host():
    published = {name: service["ports"] for name, service in services().items() if "ports" in service}
    assert published == {"proxy": ["127.0.0.1:8080:8080"]}


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
    build = {**without_ours(os.environ), "STATIC_ROOT": str(folder / "static"), "PREFMH_DATA": str(folder / "build")}
    Program(folder, build).run("manage.py", "collectstatic", "--no-input", "--verbosity", "0")
    described = services()
    Service("migrate", described["migrate"], here, folder).run()
    found = {name: Service(name, described[name], here, folder) for name in OURS}
    with contextlib.ExitStack() as ends:
        for service in found.values():
            service.process.start()
            ends.callback(service.process.kill)
        yield found, f"http://127.0.0.1:{port}"


def test_every_command_of_the_file_runs_and_is_found_healthy(running):
    for name, service in running[0].items():
        wait_for(service.is_healthy, f"{name} healthy: {shlex.join(service.check)}")
        service.process.assert_runs()


def test_nginx_serves_pages_and_sockets_and_keeps_metrics_inside(running, tmp_path):
    wait_for(lambda: running[0]["web"].is_healthy(), "web healthy")
    static = Path(running[0]["web"].environment["STATIC_ROOT"])
    with nginx_before([running[1].removeprefix("http://")], tmp_path, static) as proxy:
        site = proxy.url
        assert httpx.get(f"{site}/metrics").status_code == 404
        assert httpx.get(f"{site}/nginx-health").text == "alive\n"
        [style, *_] = re.findall(r'href="(/static/[^"]+\.css)"', httpx.get(f"{site}/accounts/sign-in/").text)
        assert "immutable" in httpx.get(site + style).headers["cache-control"]

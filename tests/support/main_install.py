"""The README's main command in an environment of its own: it needs what it installs, and installs what it needs.

    python -m tests.support.main_install

Runs `uv run manage.py demo` with an empty environment and an empty record, opens the printed links, prints the size of
what was installed, and fails where a library of the tests is among it. Standard library only: it is the first thing
that `.ci/run` does on a bare machine.
"""

import os
import re
import signal
import socket
import subprocess
import tempfile
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def main() -> None:
    """Install, serve, look at the pages, stop.

    Raises:
        RuntimeError: something is installed that only the tests or an extra need, or the demo does not start.
    """
    with tempfile.TemporaryDirectory(prefix="prefmh-main-install-") as folder:
        own = {"UV_PROJECT_ENVIRONMENT": f"{folder}/venv", "PREFMH_DATA": f"{folder}/data"}
        _look_at_the_demo({**os.environ, **own})
        if surplus := _installed(Path(folder, "venv")) & set(_asked_for_by_name()):
            raise RuntimeError(f"uv run manage.py demo installs what the program does not need: {sorted(surplus)}")
        size = sum(path.lstat().st_size for path in Path(folder, "venv").rglob("*"))
        print(f"uv run manage.py demo: {size / 1e6:.0f} MB installed, and its pages are there")


def _look_at_the_demo(environment: dict[str, str]) -> None:
    command = ["uv", "run", "--quiet", "manage.py", "demo", "--port", str(_free_port())]
    demo = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        printed = list(_lines_until(demo, "Serving"))
        links = re.findall(r"http://\S+", "".join(printed))
        if len(links) != 4:
            raise RuntimeError(f"the demo did not start: {''.join(printed)}")
        for link in links:
            _page(link)
    finally:
        # The group: `uv run` starts the program as its child.
        os.killpg(demo.pid, signal.SIGTERM)
        demo.communicate(timeout=30)


def _lines_until(demo: subprocess.Popen, last: str) -> Iterator[str]:
    for line in demo.stdout:
        yield line
        if line.startswith(last):
            return


def _page(link: str) -> None:
    """Ask for a page.

    Raises:
        urllib.error.URLError: it is not there.
    """
    urllib.request.urlopen(link, timeout=10).close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _installed(environment: Path) -> set[str]:
    found = environment.glob("lib/python*/site-packages/*.dist-info")
    return {_plain(path.name.partition("-")[0]) for path in found}


def _asked_for_by_name() -> Iterator[str]:
    """Yield what the extras and the group of the developers name, apart from what the program names too."""
    package = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = package["project"]
    needed = {_plain(_NAME.match(each)[0]) for each in project["dependencies"]}
    extras = project["optional-dependencies"].values()
    named = [*package["dependency-groups"]["dev"], *(each for extra in extras for each in extra)]
    for each in named:
        if (name := _plain(_NAME.match(each)[0])) not in needed:
            yield name


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    main()

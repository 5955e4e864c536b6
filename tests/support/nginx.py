"""nginx as docker/nginx.conf sets it up, in front of web processes on this machine."""

from __future__ import annotations

import contextlib
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support import needs
from tests.support.ports import port_from
from tests.support.processes import is_ready, wait_for

CONFIGURATION = Path(__file__).parents[2] / "docker/nginx.conf"


@dataclass(frozen=True)
class Proxy:
    """Where it listens, and the file with all that it says."""

    url: str
    log: Path


@contextlib.contextmanager
def nginx_before(servers: Sequence[str], folder: Path, static: Path | None = None) -> Iterator[Proxy]:
    """Serve in front of web processes until the block ends.

    Args:
        servers: host and port of each.
        folder: for its files and its log.
        static: collected static files; None to leave them to the web processes.
    """
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    needs.demand(nginx, "needs nginx (Debian: apt-get install nginx-light)")
    port, log = port_from(31_500), folder / "nginx.log"
    (folder / "nginx.conf").write_text(_configuration(servers, folder, static, port))
    command = [nginx, "-c", str(folder / "nginx.conf"), "-g", "daemon off; user root;"]
    with log.open("w") as said:
        server = subprocess.Popen(command, stdout=said, stderr=said)
        try:
            proxy = Proxy(f"http://127.0.0.1:{port}", log)
            wait_for(lambda: is_ready(proxy.url), "nginx in front of the web process")
            yield proxy
        finally:
            server.send_signal(signal.SIGQUIT)
            server.wait()


def _configuration(servers: Sequence[str], folder: Path, static: Path | None, port: int) -> str:
    text = CONFIGURATION.read_text()
    [server] = re.findall(r"server web:8000 resolve (.*);", text)
    changes = {
        "/tmp/": f"{folder}/",
        # Here is no name server of Docker's, and Debian's nginx is too old to ask one again and again.
        f"server web:8000 resolve {server};": "\n".join(f"server {each} {server};" for each in servers),
        "listen 8080": f"listen 127.0.0.1:{port}",
        "/srv/static": str(static),
    }
    if static is None:
        changes["location /static/ {"] = "location /nowhere/ {"
    for there, here in changes.items():
        assert there in text, there
        text = text.replace(there, here)
    return text

"""What a server process writes while people come, wrongly and rightly: no invitation, no person, no way to sign in."""

import contextlib
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote

import pytest

from tests.security.test_hostile_connections import ask, exchange, upgrade
from tests.support.installations import ROOT, wait_for
from tests.support.models import port_from

# Of the form that invitations have; no such campaign is there, which a log must not depend on.
TOKEN = "Kq3xV9-bT_sWmZ2cLr7YtQ"
UVICORN = ["-m", "uvicorn", "prefmh_web.asgi:application", "--lifespan", "off", "--access-log", "--log-level"]
SERVERS = {
    "serve, JSON": (["manage.py", "serve", "--port"], {"LOG_FORMAT": "json", "LOG_LEVEL": "DEBUG"}),
    "serve, DEBUG": (["manage.py", "serve", "--port"], {"DEBUG": "1"}),
    "uvicorn, trace": ([*UVICORN, "trace", "--port"], {}),
}
PATHS = [
    "/join/{}/",
    "/join/{}",
    "/join/{}/vote/",
    "//join/{}/",
    "/JOIN/{}/",
    "/jion/{}/",
    "/join/{}%00/",
    "/join/%20{}/vote",
    "/join/{}/nothing/here",
    "/ws/join/{}/",
    "/{}",
    "/accounts/sign-in/?next=/join/{}/",
    "/nothing/?next=%2Fjoin%2F{}%2F",
    "/campaigns/1/files/{}",
    "/static/{}",
    "/join/{}/?a=" + "b" * 3000,
    # Of a person whom a platform has sent.
    "/join/{}/?PROLIFIC_PID=ID-OF-ANNA&STUDY_ID=ID-OF-STUDY&SESSION_ID=ID-OF-VISIT",
    "/join/{}?PROLIFIC_PID=ID-OF-ANNA",
    "/nothing/?next=%2Fjoin%2F{}%2F%3FPROLIFIC_PID%3DID-OF-ANNA%26SESSION_ID%3DID-OF-VISIT",
]
PERSON = "ID-OF-"
METHODS = ["GET", "POST", "OPTIONS"]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> tuple[Path, str]:
    """A data folder with a researcher, and the path that signs them in."""
    data, run = tmp_path_factory.mktemp("data"), [sys.executable, "manage.py"]
    environment = {**os.environ, "PREFMH_DATA": str(data)}
    subprocess.run([*run, "migrate", "--verbosity", "0"], cwd=ROOT, env=environment, check=True)
    made = subprocess.run(
        [*run, "researcher", "ada", "--link"], cwd=ROOT, env=environment, check=True, capture_output=True, text=True
    )
    return data, re.search(r"/accounts/\S+", made.stdout)[0]


@contextlib.contextmanager
def serving(data: Path, log: Path, command: list[str], variables: dict[str, str]) -> Iterator[SimpleNamespace]:
    """Run a server on a data folder; yield its address."""
    environment = {**os.environ, "PREFMH_DATA": str(data), **variables}
    port = port_from(26_000)
    site = SimpleNamespace(url=f"http://127.0.0.1:{port}")
    with log.open("w") as file:
        process = subprocess.Popen([sys.executable, *command, str(port)], cwd=ROOT, env=environment, stderr=file)
    try:
        wait_for(lambda: answers(site), "the server answers")
        yield site
    finally:
        process.terminate()
        process.wait(20)


def answers(site: SimpleNamespace) -> bool:
    with contextlib.suppress(OSError):
        return ask(site, "/healthz") == 200
    return False


@pytest.mark.parametrize("server", SERVERS)
def test_no_line_of_a_log_holds_an_invitation_or_a_link_that_signs_in(site, tmp_path, server):
    (data, sign_in), log = site, tmp_path / "log"
    with serving(data, log, *SERVERS[server]) as served:
        # Nobody's cookie, and a page elsewhere that says where it was.
        headers = {b"Cookie": f"prefmh_session={TOKEN}abcdefghij", b"Referer": f"https://evil.example/join/{TOKEN}/"}
        headers = {name: value.encode() for name, value in headers.items()}
        statuses = {ask(served, path.format(TOKEN), method, headers) for method in METHODS for path in PATHS}
        for method in METHODS:
            statuses.add(ask(served, sign_in, method))
            ask(served, sign_in[:-3] + "AAA", method)
            ask(served, f"/accounts/sign-in/?next={quote(sign_in)}", method)
        for path in (f"/ws/join/{TOKEN}/", f"/ws/jion/{TOKEN}/", f"/join/{TOKEN}/"):
            upgrade(served, path)
            upgrade(served, path, origin="http://evil.example")
        exchange(served.url, f"GET /join/{TOKEN}/ HTTP/1.1\nHost: {TOKEN}.evil.example")
        exchange(served.url, f"GET /join/{TOKEN}/ HTTP/9")
    written = log.read_text()
    # The negative control: there is something to keep quiet about, and it is told.
    assert {404, 405} <= statuses
    assert "Method Not Allowed" in written
    assert "Not Found" in written
    key = sign_in.partition("sesame=")[2]
    secrets = (TOKEN, PERSON, key, key[:-3])
    assert [line for line in written.splitlines() if any(secret in line for secret in secrets)] == []
    # With DEBUG Django itself fails on posts to addresses without their last slash, to tell developers of it.
    assert 500 not in statuses or server == "serve, DEBUG"


def test_a_failure_tells_no_secret_whoever_handles_its_record():
    """A handler, a formatter and a logger of somebody else's; an error whose message and whose cause name the token."""
    lines: list[str] = []

    class Elsewhere(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(logging.Formatter("%(message)s %(args)s").format(record))

    logger, handler = logging.getLogger("somebody.elses"), Elsewhere()
    logger.addHandler(handler)
    try:
        try:
            raise ValueError(f"no route for /ws/join/{TOKEN}/")
        except ValueError:
            logger.exception("%s asked for %s", "somebody", f"/join/{TOKEN}/", stack_info=True)
        logger.error({"path": f"/join/{TOKEN}/", "query": "sesame=AAAA1234"})
        logger.error("kept: campaign %(campaign)s", {"campaign": 3, "token": TOKEN})
    finally:
        logger.removeHandler(handler)
    text = "\n".join(lines)
    assert TOKEN not in text
    assert "AAAA1234" not in text
    # The negative control: what is no secret is kept.
    assert "ValueError: no route for /ws/join/" in text
    assert "kept: campaign 3" in text

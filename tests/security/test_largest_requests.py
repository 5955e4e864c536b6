"""The largest and the worst input of each address: it costs at most a second of processor time and 64 MB."""

import json
import re
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction

from prefmh_web.accounts.models import ApiToken
from prefmh_web.transport.bodies import DEFAULT_BYTES
from tests.security.addresses import all_addresses
from tests.security.world import browser_of
from tests.setup.documents import LEAST

MOST_S, MOST_BYTES = 1.0, 64 * 2**20
# Where markdown-it, a CSV's reader or a regular expression has most to do.
LINES = "\n".join(map(str, range(200_000)))
WORDS = ("*a_" * 400_000, "a," * 600_000, LINES)
DEEP = 100_000
KEY = "k" * 100_000
SETUPS = {
    "a key as long as the file": f'? "{KEY}"\n' + ":\n" + "  - 1\n" * 30_000,
    "long keys": "".join(f'{" " * depth}"{"k" * 299}":\n' for depth in range(28)) + f"{' ' * 28}[{'1, ' * 19_000}]",
    "values without end": "a:\n" + "  - 1\n" * 300_000,
    "unknown keys": LEAST + "".join(f"nam{number}: 1\n" for number in range(9_000)),
    "wrong values": LEAST + "judges:\n" + "  - question: 1\n" * 9_000,
    "deep": "a: " + "[" * DEEP,
    "anchors": "a: &a [1]\nb: [" + "*a, " * 30_000 + "]",
    "long text": LEAST + f"instructions: {'*a_' * 2_000_000}\n",
    "no text": "\x00" * 160_000,
}  # fmt: skip


@pytest.fixture(autouse=True)
def undone(world):
    """Each attack finds the world as it was."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def most_memory() -> int:
    """Return the most bytes that this process has held."""
    [kib] = re.findall(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(kib) * 1024


@contextmanager
def bounded(what: str):
    """Demand that the block takes no more than a request may."""
    # The most memory ever held is counted from here on.
    Path("/proc/self/clear_refs").write_text("5")
    memory, begun = most_memory(), time.process_time()
    yield
    seconds = time.process_time() - begun
    grown = most_memory() - memory
    assert seconds < MOST_S, (what, seconds)
    assert grown < MOST_BYTES, (what, grown)


def forms(page: str) -> list[dict[str, str]]:
    """Return, for each kind of words, a form with all fields of a page and a body as large as it may be."""
    names = sorted(set(re.findall(r'<(?:input|textarea|select)[^>]*\bname="([^"]+)"', page))) or ["name"]
    room = (DEFAULT_BYTES - 20_000) // 3 // len(names)
    return [dict.fromkeys(names, words[:room]) for words in WORDS]


@pytest.mark.parametrize("address", all_addresses(), ids=lambda address: address.name)
def test_forms_and_bodies(world, address):
    path, browser = address.path(world.names), browser_of(world.victim)
    if address.name == "voting:vote":
        browser = world.voter
    page = browser.get(path)
    for data in forms("" if page.streaming else page.content.decode("latin1")):
        with bounded(f"{address.name} {next(iter(data.values()))[:5]}"):
            browser.post(path, data)
    with bounded(f"{address.name} many"):
        browser.post(path, {f"field{number}": "*a_" * 300 for number in range(1000)})


@pytest.mark.parametrize("address", [each for each in all_addresses() if each.name.startswith("api:")], ids=str)
def test_bodies_of_programs(world, address):
    browser, path = browser_of(None), address.path(world.names)
    plain = ApiToken.make(world.victim, address.name, ApiToken.Scope.RUN)
    bodies = {
        "deep": "[" * (DEFAULT_BYTES - 1),
        "flat": json.dumps({f"key {number}": number for number in range(40_000)}),
        **(SETUPS if address.name == "api:check" else {}),
    }
    for name, body in bodies.items():
        with bounded(f"{address.name} {name}"):
            answer = browser.post(
                path, body, content_type="application/json", headers={"Authorization": f"Bearer {plain}"}
            )
        assert answer.status_code < 500, (address.name, name)


@pytest.mark.parametrize("name", SETUPS)
def test_setup_files(world, name):
    browser, file = browser_of(world.victim), SimpleUploadedFile("campaign.yaml", SETUPS[name].encode())
    with bounded(name):
        answer = browser.post("/campaigns/import/", {"file": file})
    assert answer.status_code == 200
    assert len(answer.content) < 2**20

"""The largest and the worst input of each address: it costs at most a second of processor time and 64 MB.

Every page of ours has the strict Content-Security-Policy, and nothing in it that the policy would stop.
"""

import json
import re
import time
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction

from prefmh_web.accounts.models import ApiToken
from prefmh_web.transport import rate_limits
from prefmh_web.transport.bodies import DEFAULT_BYTES
from tests.drafts.configs import LEAST
from tests.security.world import all_addresses, browser_of

MAX_S, MAX_BYTES = 1.0, 64 * 2**20
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


def max_memory() -> int:
    """Return the most bytes that this process has held."""
    [kib] = re.findall(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(kib) * 1024


@contextmanager
def bounded(what: str):
    """Demand that the block takes no more than a request may."""
    # The most memory ever held is counted from here on.
    Path("/proc/self/clear_refs").write_text("5")
    memory, begun = max_memory(), time.process_time()
    yield
    seconds = time.process_time() - begun
    grown = max_memory() - memory
    assert seconds < MAX_S, (what, seconds)
    assert grown < MAX_BYTES, (what, grown)


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
        **(SETUPS if address.name == "api:create" else {}),
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


class Inline(HTMLParser):
    """Collects what runs or styles from within the page itself."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._in_script = False

    def handle_starttag(self, tag, attrs):
        names = dict(attrs)
        # JSON in a page is data, which no browser runs.
        self._in_script = tag == "script" and names.get("type") != "application/json"
        if tag == "style" or (self._in_script and "src" not in names):
            self.found.append(f"<{tag}>")
        self.found += [f"{tag} {name}" for name in names if name == "style" or name.startswith(("on", "hx-on"))]
        self.found += [f"{tag} {value}" for value in names.values() if str(value).strip().startswith("javascript:")]

    def handle_data(self, data):
        if self._in_script and data.strip():
            self.found.append("<script> with a body")
        self._in_script = False


def inline_in(page: str) -> list[str]:
    parser = Inline()
    parser.feed(page)
    return parser.found


@pytest.mark.parametrize("planted", ["<script>1</script>", "<p style='color:red'>", "<b onclick=1>", "<style></style>"])
def test_what_is_inline_is_found(planted):
    """The negative control."""
    assert inline_in(f"<html><body>{planted}</body></html>")


def assert_strict(answer) -> None:
    directives = dict(part.strip().partition(" ")[::2] for part in answer["Content-Security-Policy"].split(";"))
    assert directives["default-src"] == "'self'"
    assert "unsafe" not in answer["Content-Security-Policy"]
    assert (directives["object-src"], directives["base-uri"]) == ("'none'", "'none'")
    assert (directives["frame-ancestors"], directives["form-action"]) == ("'none'", "'self'")
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Referrer-Policy"] == "same-origin"
    if answer["Content-Type"].startswith("text/html"):
        assert inline_in(answer.content.decode()) == []


def test_every_address_has_the_policy(world):
    victim = browser_of(world.victim)
    for address in all_addresses():
        path = address.path(world.names | {"token": world.token})
        for client in (world.voter if address.name.startswith("voting:") else victim, browser_of(None)):
            rate_limits.forget()
            assert_strict(client.get(path))


@pytest.mark.parametrize("status", ["draft", "running", "paused"])
def test_a_campaigns_page_has_it_in_every_state(world, status):
    campaign = {"draft": world.draft, "running": world.campaign, "paused": world.watched}[status]
    if status == "paused":
        browser_of(world.victim).post(f"/campaigns/{campaign.pk}/pause/")
    page = browser_of(world.victim).get(campaign.get_absolute_url())
    assert f'data-status="{status}"' in page.content.decode()
    assert_strict(page)


@pytest.mark.parametrize(
    ("path", "status"), [("/no-such-page/", 404), ("/join/guessed/", 404), ("/pairs/{}/first/", 403), ("/metrics", 403)]
)
def test_pages_that_refuse_have_it(world, path, status):
    answer = browser_of(None).get(path.format(world.pair.key))
    assert answer.status_code == status
    assert_strict(answer)


def test_the_page_that_slows_down_has_it(world, settings):
    settings.RATE_LIMITS = {"sign-in-address": "1/minute"}
    browser = browser_of(None)
    answers = [browser.post("/accounts/sign-in/", {"username": "x", "password": "y"}) for _ in range(2)]
    assert answers[-1].status_code == 429
    assert_strict(answers[-1])

"""Every page of ours has the strict Content-Security-Policy, and nothing in it that the policy would stop."""

from html.parser import HTMLParser

import pytest

from prefmh_web.transport import rate_limits
from tests.security.addresses import all_addresses
from tests.security.world import browser_of


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

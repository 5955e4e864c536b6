"""The whole way of a participant by keyboard alone: no mouse, the focus always visible, and never lost.

A campaign is set up and previewed by keyboard alone; and a press right after typing is not lost.
"""

import re
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from prefmh_web.accounts.models import sign_in_path
from prefmh_web.campaigns.models import Campaign, Event, Vote
from prefmh_web.participants.models import AttentionCheck, Participation
from tests.participants.test_stages import PAIRS
from tests.support.campaigns import invitation_path, make_config
from tests.support.installations import lease_on, press_and_wait
from tests.support.people import CODES_OF_ALL, WHOLE, prolific, recruited_campaign

pytestmark = pytest.mark.browser
CONFIG = make_config(judges=[{"question": "Which is darker?", "votes": 1}], chains=4, steps=30)
VOTES_PER_PERSON, MAX_TABS = 12, 25
_A_LOOK_MS = 400
# What has the focus: its place on the page, and how it is marked; nothing if that is the page itself.
_FOCUSED = """() => {
    const found = document.activeElement;
    if (!found || found === document.body || found === document.documentElement) return null;
    const box = found.getBoundingClientRect(), style = getComputedStyle(found);
    const whole = [...document.querySelectorAll("*")];
    return {
        words: (found.getAttribute("aria-label") || found.labels?.[0]?.textContent || found.textContent || "").trim(),
        name: found.tagName.toLowerCase(),
        value: found.value ?? "",
        type: found.type ?? "",
        index: whole.indexOf(found),
        inView: box.bottom > 0 && box.top < innerHeight && box.width > 0 && box.height > 0,
        isMarked: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0 || style.boxShadow !== "none",
    };
}"""


class Keyboard:
    """Somebody at a keyboard. Each Tab is looked at: where the focus is, and whether it can be seen."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.lost: list[str] = []

    def focused(self) -> dict | None:
        return self.page.evaluate(_FOCUSED)

    def tab(self) -> dict | None:
        before = self.focused()
        self.page.keyboard.press("Tab")
        after = self.focused()
        if after is not None:
            told = f"{after['name']} “{after['words'][:30]}” on {self.page.url}"
            if not (after["isMarked"] and after["inView"]):
                self.lost.append(f"not to be seen: {told}")
            if before is not None and after["index"] <= before["index"]:
                self.lost.append(f"out of order: {told}")
        return after

    def tab_to(self, words: str, name: str | None = None) -> None:
        """Press Tab until the focus is on something of these words."""
        seen = []
        for _ in range(MAX_TABS):
            found = self.tab()
            seen.append(found and found["words"][:40])
            if found and re.search(words, found["words"]) and name in (None, found["name"]):
                return
        raise AssertionError(f"no way to “{words}” on {self.page.url}: {seen}")

    def press(self, words: str, *, then: str) -> None:
        """Go to a button or link and press Enter, up to the page that has this text."""
        self.tab_to(words)
        self.page.keyboard.press("Enter")
        self.page.get_by_text(then).first.wait_for()


@pytest.fixture
def keyboard(open_page, researcher):
    protocol = WHOLE | {"practice": PAIRS[:1], "check_share": 0.5, "checks_may_fail": 1}
    options = {"protocol": protocol, "codes": CODES_OF_ALL | {"completed": "C0MPLETE"}, "return_address": ""}
    study = recruited_campaign(
        researcher, votes_per_person=VOTES_PER_PERSON, consent="Do you agree?", config=CONFIG, **options
    )
    return Keyboard(open_page(f"{invitation_path(study)}?{urlencode(prolific('anna'))}"))


def check_told(page: Page) -> str | None:
    """Return the side that an attention check tells, if one is shown."""
    told = re.search(r"choose (object \d)", page.locator("#question").text_content() or "")
    return told and told[1]


def pass_the_stages(keyboard: Keyboard) -> None:
    page = keyboard.page
    keyboard.press("I agree: start", then="What are you?")
    keyboard.tab_to("student")
    page.keyboard.press("Space")
    keyboard.tab_to("How old are you")
    page.keyboard.type("30")
    keyboard.tab_to("1|2|3", "input")
    page.keyboard.press("ArrowRight")
    keyboard.press("Continue", then="both")
    keyboard.press("I have read this", then="Practice: pair 1")
    keyboard.press("Object 2: A bright day.", then="Night is darker.")
    keyboard.press("Continue", then="What do you read?")
    keyboard.tab_to("both|one", "input")
    page.keyboard.press("ArrowDown")
    if not page.get_by_label("both").is_checked():
        page.keyboard.press("ArrowDown")
    keyboard.press("Check my answers", then="Which is darker?")


def answer_with_single_keys(keyboard: Keyboard) -> None:
    """Answer until a check was met and some votes are given."""
    while Vote.objects.count() < 2 or not AttentionCheck.objects.filter(answered_at__isnull=False).exists():
        told = check_told(keyboard.page)
        press_and_wait(keyboard.page, told[-1] if told else "ArrowLeft")


def answer_with_tab_and_enter(keyboard: Keyboard) -> None:
    """Turn single keys off, and answer with Tab and Enter: the focus waits at the question of the next pair."""
    page = keyboard.page
    keyboard.tab_to("Vote with single keys")
    page.keyboard.press("Space")
    before = lease_on(page)
    page.keyboard.press("ArrowLeft")
    page.wait_for_timeout(_A_LOOK_MS)
    assert lease_on(page) == before
    page.keyboard.press("Home")
    for side in ("object 1", "object 2"):
        side = (check_told(page) or side).capitalize()
        # From the box at the bottom of the page back to its beginning, as a browser goes round.
        while (keyboard.focused() or {}).get("words", "").partition(":")[0] != side:
            page.keyboard.press("Tab")
        assert keyboard.focused()["isMarked"]
        press_and_wait(page, "Enter")
        expect(page.locator("#question")).to_be_focused()


def report_a_problem(keyboard: Keyboard) -> None:
    page = keyboard.page
    while check_told(page):
        keyboard.tab_to(f"{check_told(page).capitalize()}:")
        press_and_wait(page, "Enter")
    keyboard.press("Report a problem", then="What is wrong with this pair?")
    keyboard.tab_to("One of them is not shown")
    page.keyboard.press("ArrowDown")
    keyboard.tab_to("In your own words")
    page.keyboard.type("I looked away.")
    keyboard.press("Report and skip", then="Which is darker?")
    assert Event.objects.get(kind="reported").data["text"] == "I looked away."


def vote_to_the_end(keyboard: Keyboard) -> None:
    page = keyboard.page
    while page.locator("input[name=lease]").count():
        keyboard.tab_to(f"{(check_told(page) or 'object 1').capitalize()}:")
        press_and_wait(page, "Enter")
        assert keyboard.focused(), "after an answer, the focus is nowhere"


def test_the_whole_way_by_keyboard_alone(keyboard):
    page = keyboard.page
    pass_the_stages(keyboard)
    answer_with_single_keys(keyboard)
    answer_with_tab_and_enter(keyboard)
    report_a_problem(keyboard)
    vote_to_the_end(keyboard)
    keyboard.press("Continue", then="Anything else?")
    keyboard.tab_to("Anything else")
    page.keyboard.type("It was fine.")
    keyboard.press("Continue", then="Your part is complete")
    # The code can be taken along.
    keyboard.press("Copy the code", then="Copied")
    assert page.evaluate("getSelection().toString()") == "C0MPLETE"
    assert Participation.objects.get().outcome == "completed"
    assert not keyboard.lost


_PAIRS = 6


def test_a_setup_and_its_preview_by_keyboard_alone(open_page, researcher):
    page = open_page(sign_in_path(researcher))
    keyboard = Keyboard(page)
    keyboard.press("New campaign", then="What is compared")
    keyboard.tab_to("Name of the campaign")
    page.keyboard.type("By keyboard")
    # A card is chosen with an arrow.
    keyboard.tab_to("Your own list", "input")
    page.keyboard.press("ArrowUp")
    keyboard.tab_to("Question")
    page.keyboard.type("Which is calmer?")
    keyboard.tab_to("Which object stands first", "summary")
    page.keyboard.press("Enter")
    keyboard.tab_to("Which object is shown first", "select")
    keyboard.press("^Create$", then="After the start, only the name")
    assert Campaign.objects.get().config_data["space"]["kind"] == "images"
    page.locator("#first-pair").get_by_text("Which is calmer?").wait_for()
    page.locator("#first-pair img").nth(1).wait_for()
    # On a busy machine the pictures come later than their places.
    page.wait_for_function("document.querySelector('#first-pair .reading')?.getBoundingClientRect().height > 100")

    keyboard.press("Vote as a participant would", then="Nothing is stored")
    # The button that begins has the focus already.
    page.keyboard.press("Enter")
    for number in range(_PAIRS):
        page.get_by_text(f"You: {number} vote").wait_for()
        # Until its scripts are there, the page hears no key.
        page.wait_for_load_state()
        page.keyboard.press(("ArrowLeft", "2")[number % 2])
    page.get_by_text("Your part is complete").wait_for()
    keyboard.press("Begin again", then="Which of the two?")
    keyboard.press("Back to the setup", then="Setup of By keyboard")
    assert not keyboard.lost


def test_a_press_on_create_right_after_typing_is_not_lost(open_page, researcher):
    """What the votes come to is worked out again between press and release; the button stays where it is."""
    page = open_page(sign_in_path(researcher), viewport={"width": 1280, "height": 4000})
    page.goto("/campaigns/new/")
    page.locator("#votes-estimate .cost").wait_for()
    create = page.get_by_role("button", name="Create")
    create.scroll_into_view_if_needed()
    page.locator("[name=steps]").fill("")
    with page.expect_response(lambda response: "/estimate/" in response.url):
        create.hover()
        page.mouse.down()
        box = create.bounding_box()
    page.wait_for_timeout(200)
    assert create.bounding_box() == box
    page.mouse.up()
    # Nothing is known of no steps, and now the page may say so.
    page.locator("#votes-estimate .cost").wait_for(state="detached")

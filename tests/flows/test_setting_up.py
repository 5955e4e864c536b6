"""A study is set up as a new user would: on at most four screens, with at most twenty fields touched. All else stays as
it is, and is right: the campaign starts, and somebody whom Prolific sends comes through all stages to the code.
"""

import re
from urllib.parse import urlencode, urlsplit

import pytest
from playwright.sync_api import Page, expect

from prefmh_web.accounts.models import sign_in_path
from prefmh_web.campaigns.models import Campaign, Vote
from prefmh_web.participants.models import Participation
from tests.support.campaigns import TEXTS, invitation_path
from tests.support.installations import press_and_wait
from tests.support.people import prolific

pytestmark = pytest.mark.browser
MAX_SCREENS, MAX_FIELDS = 4, 20
VOTES_PER_PERSON, CODE = 3, "C0MPLETE"
# An attention check says what to choose; a fail would end the part.
MAX_ANSWERS = 20


class Desk:
    """A researcher's browser, which counts the screens that are seen and the fields that are touched."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.fields: set[tuple[str, str]] = set()
        self.screens: list[str] = []

    def arrives(self, heading: str) -> None:
        self.page.get_by_role("heading", name=heading, exact=True, level=1).wait_for()
        where = re.sub(r"\d+", "N", urlsplit(self.page.url).path)
        if where not in self.screens:
            self.screens.append(where)

    def touches(self, selector: str):
        field = self.page.locator(selector)
        expect(field).to_be_visible()
        self.fields.add((self.screens[-1], selector))
        return field

    def fill(self, name: str, text: str) -> None:
        self.touches(f"[name='{name}']").fill(text)

    def goes_on(self, button: str) -> None:
        self.page.get_by_role("button", name=button).click()


def set_up(desk: Desk, file) -> None:
    """Go from the list of campaigns to a running one."""
    desk.page.get_by_role("link", name="New campaign").click()
    desk.arrives("New campaign")
    desk.fill("name", "Openings")
    desk.touches("[name='space.catalog.file']").set_input_files(file)
    desk.fill("judges.0.question", "Which one would you rather read on?")
    desk.fill("instructions", "Read both and choose by feeling.")
    desk.goes_on("Next: the people")

    desk.arrives("Participants")
    desk.touches("[name=recruiter]").select_option("prolific")
    desk.fill("votes_per_person", str(VOTES_PER_PERSON))
    desk.goes_on("Begin with a text of consent to fill in")
    consent = desk.touches("[name=consent]")
    expect(consent).to_have_value(re.compile("Taking part in this study"))
    expect(desk.page.locator("[name=recruiter]")).to_have_value("prolific")
    consent.fill(re.sub(r"\[[^\]]+\]", "10", consent.input_value()))
    desk.page.get_by_text("Completion codes, pay, and the address to return to").click()
    desk.fill("codes.completed", CODE)
    desk.goes_on("Next: practice and checks")

    desk.arrives("Protocol")
    for number, (dark, bright) in enumerate((("A dark night.", "A bright day."), ("A black cat.", "A white dog."))):
        desk.page.locator("button[name=add][value=practice]").click()
        desk.fill(f"practice.{number}.first", dark)
        desk.fill(f"practice.{number}.second", bright)
        desk.fill(f"practice.{number}.if_wrong", "Most people would read on in the dark.")
    desk.page.get_by_text("How often, and gold pairs of your own").click()
    desk.fill("check_share", "5")
    desk.fill("repeat_share", "5")
    desk.goes_on("Next: to the start")

    desk.arrives("Openings")
    desk.page.locator("#start:not([disabled])").wait_for()
    desk.page.locator("#first-pair").get_by_text("Which one would you rather read on?").wait_for()
    desk.goes_on("Start")
    desk.page.get_by_text("Paste this link into Prolific").wait_for()


def answer(page: Page) -> None:
    """Answer what is shown: a check as it says, everything else with the first one."""
    told = re.search(r"choose object (\d)", page.locator("#question").text_content() or "")
    press_and_wait(page, told[1] if told else "1")


def take_part(page: Page, campaign: Campaign) -> None:
    """Come from Prolific, and go through everything to the end."""
    page.goto(f"{invitation_path(campaign)}?{urlencode(prolific('5f8c2a1b3d4e5f8c2a1b3d4e'))}")
    page.get_by_text("Taking part in this study").wait_for()
    page.get_by_text("Read both and choose by feeling.").wait_for()
    page.get_by_role("button", name="I agree: start").click()
    for number in (1, 2):
        page.get_by_text(f"Practice: pair {number} of 2").wait_for()
        page.locator("button.option").first.click()
        page.get_by_text("That is right.").wait_for()
        page.get_by_role("button", name="Next pair" if number == 1 else "Continue").click()
    page.locator("#question").wait_for()
    for _ in range(MAX_ANSWERS):
        if not page.locator("input[name=lease]").count():
            break
        answer(page)
    page.get_by_text("Your part is complete").wait_for()
    assert page.get_by_text(CODE, exact=True).is_visible()
    # With the code in hand there is nothing to count any more, and nothing to withdraw from.
    expect(page.locator("progress, .withdraw:visible")).to_have_count(0)


def test_a_study_with_consent_practice_checks_and_codes_on_four_screens(open_page, researcher, tmp_path, eventually):
    file = tmp_path / "openings.csv"
    file.write_text(TEXTS)
    desk = Desk(open_page(sign_in_path(researcher)))
    set_up(desk, file)
    assert len(desk.screens) <= MAX_SCREENS, desk.screens
    assert len(desk.fields) <= MAX_FIELDS, desk.fields
    # The negative control: each screen and field was counted.
    assert (len(desk.screens), len(desk.fields)) == (4, 16)

    campaign = Campaign.objects.get()
    protocol = campaign.config.study.protocol
    assert (len(protocol.practice), protocol.check_share, protocol.repeat_share) == (2, 0.05, 0.05)
    assert eventually(lambda: Campaign.objects.get().is_running)
    take_part(open_page(), campaign)
    assert Participation.objects.get().outcome == "completed"
    assert Vote.objects.count() == VOTES_PER_PERSON

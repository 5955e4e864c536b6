"""A budget as a researcher meets it: refused with what is missing, set, and spent to the last answer."""

import re
from urllib.parse import urlencode

import pytest

from prefmh_web.accounts.links import sign_in_path
from prefmh_web.campaigns.models import Campaign, Lease
from prefmh_web.console.forms.recruitment import HOW
from prefmh_web.participants.models import Outcome, Participation
from tests.flows.test_budget import TEXTS
from tests.support.recruited import CODES, prolific
from tests.support.stack import invitation_path, make_draft, make_recipe

pytestmark = pytest.mark.browser
BUDGET = "Budget, in answers"
RECIPE = make_recipe(
    space={"kind": "catalog", "objects": "texts", "neighbours": 5},
    kernel={"kind": "neighbours"},
    judges=[{"question": "Which is darker?", "budget": 1}],
    chains=2,
    steps=3,
)


def enter(page, fields: dict[str, str]) -> None:
    """Fill fields in by the beginnings of their labels, and save."""
    for label, text in fields.items():
        page.get_by_label(re.compile(f"^{label}")).fill(text)
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Saved.").wait_for()


def test_a_budget_that_is_too_small_is_refused_and_one_that_fits_is_spent(chromium, live_site, researcher, eventually):
    draft = make_draft(researcher, file=TEXTS, recipe=RECIPE)
    path, desk = draft.get_absolute_url(), chromium.new_context(base_url=live_site.url).new_page()
    desk.goto(sign_in_path(researcher))
    desk.goto(f"{path}participants/")
    desk.get_by_label("Where do people come from?").select_option("prolific")
    desk.get_by_text("Limits, budget and what a place costs").click()
    desk.get_by_text("Codes and pay if a part ends in another way").click()
    for outcome in (Outcome.COMPLETED, Outcome.NOTHING_LEFT):
        code = desk.get_by_label(f"Completion code, if a part ends {HOW[outcome]}", exact=True)
        code.fill(CODES[outcome])
    enter(desk, {"Places": "2", "Pay for a place": "1.50", "Currency": "£", BUDGET: "5"})
    desk.get_by_text("It must be 6 or more.").wait_for()
    desk.goto(path)
    desk.get_by_role("button", name="Start").click()
    desk.get_by_text("The budget of 5 answers is too small").wait_for()
    desk.goto(f"{path}participants/")
    enter(desk, {BUDGET: "6"})
    desk.goto(path)
    desk.get_by_text("At most 2 places × £1.50 = £3.00").wait_for()
    desk.get_by_role("button", name="Start").click()
    assert eventually(lambda: Campaign.objects.get().is_running)

    people = []
    for name in ("anna", "ben"):
        page = chromium.new_context(base_url=live_site.url).new_page()
        page.goto(f"{invitation_path(draft)}?{urlencode(prolific(name))}")
        page.get_by_role("button", name="Start").click()
        people.append(page)
    for turn in range(60):
        if all(page.locator("code.completion").count() for page in people):
            break
        people[turn % 2].keyboard.press("ArrowLeft")
        people[turn % 2].wait_for_timeout(400)
    for page in people:
        page.locator("code.completion").wait_for()
    assert eventually(lambda: Campaign.objects.get().status == Campaign.Status.FINISHED)
    assert eventually(lambda: not Participation.objects.filter(code="").exists())
    assert not Lease.objects.filter(ended_at=None).exists()
    desk.goto(path)
    desk.get_by_text("6 of 6 answers are spent (6 votes, 0 of them late; 0 trials).").wait_for()

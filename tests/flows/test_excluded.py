"""A part that is ended by hand while a pair is on the screen, as both people and the researcher see it in Chromium."""

from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from prefmh_web.accounts.links import sign_in_path
from prefmh_web.campaigns.models import Annotator, Campaign, Lease, Vote
from tests.flows.test_browser import open_page as open_page
from tests.support.campaigns import (
    CODES,
    assert_record_is_whole,
    assert_replay_passes,
    export_to,
    invitation_path,
    make_recipe,
    prolific,
    recruited_campaign,
    table,
)
from tests.support.installations import lease_on, press_and_wait

pytestmark = pytest.mark.browser
# Of two judges with N = 1: while one question is out, the other cannot be asked, as a vote against would settle both.
JUDGES = [{"question": question, "budget": 1} for question in ("Which is darker?", "Which is better?")]
HAS_PAIR = "() => document.querySelector('input[name=lease]')"


def arrive(open_page, study, name: str) -> Page:
    page = open_page(f"{invitation_path(study)}?{urlencode(prolific(name))}")
    page.get_by_role("button", name="Start").click()
    page.wait_for_url("**/vote/")
    return page


def end_part(page: Page, study, number: int) -> None:
    """What the researcher does on the page of a person."""
    page.goto(f"{study.get_absolute_url()}people/{number}/")
    page.get_by_text("End this person’s part").click()
    page.get_by_label("The reason in your words").fill("They asked to stop.")
    page.get_by_label("yes, in full").check()
    page.get_by_role("button", name="End the part").click()
    page.get_by_text(f"The part of person {number} is ended.").wait_for()


def test_the_pair_on_their_screen_goes_to_somebody_else(open_page, researcher, tmp_path):
    recipe = make_recipe(judges=JUDGES, chains=1, steps=8)
    study = recruited_campaign(researcher, codes=CODES | {"ended": "ENDED1"}, recipe=recipe)
    anna = arrive(open_page, study, "anna")
    for _ in range(2):
        press_and_wait(anna, "ArrowLeft")
    key, person = lease_on(anna), Annotator.objects.get()
    counted = list(Vote.objects.values_list("key", "number", "chosen_side"))
    ben = arrive(open_page, study, "ben")
    expect(ben.get_by_text("Waiting for the next pair")).to_be_visible()

    end_part(open_page(sign_in_path(researcher)), study, person.pk)
    # Their page tells it by itself, with the code.
    expect(anna.get_by_text("The researcher has ended your part. Your votes are kept.")).to_be_visible()
    expect(anna.get_by_text("ENDED1", exact=True)).to_be_visible()
    # And so does that of the other one.
    ben.wait_for_function(HAS_PAIR)
    left, asked = Lease.objects.get(key=key), Lease.objects.get(key=lease_on(ben))
    assert (asked.comparison_id, asked.judge_id) == (left.comparison_id, left.judge_id)
    assert not Vote.objects.filter(key=key).exists()
    assert list(Vote.objects.values_list("key", "number", "chosen_side")) == counted

    while ben.locator("input[name=lease]").count():
        press_and_wait(ben, "ArrowRight")
    study.refresh_from_db()
    assert study.status == Campaign.Status.FINISHED
    assert_record_is_whole(study)
    export = export_to(study, tmp_path)
    assert_replay_passes(export)
    told = [(row["annotator"], row["kind"]) for row in table(export, "events.csv")]
    assert told == [("", "started"), (str(person.pk), "participation-ended"), ("", "seed-told")]
    ended = [row["ending"] for row in table(export, "leases.csv") if row["annotator"] == str(person.pk)]
    assert ended == ["voted", "voted", "skipped"]

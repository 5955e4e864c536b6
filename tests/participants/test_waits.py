"""Waiting costs the participant nothing: after the declared time comes the paid end."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from prefmh_web.annotate.tasks import settle_parts
from prefmh_web.participants.models import Participation
from tests.security.world import browser_of
from tests.support.campaigns import (
    CODES,
    arrive,
    invitation_path,
    make_config,
    page_of,
    pair_of,
    payments_of,
    prolific,
    recruited_campaign,
    screen_of,
    vote,
)

ONE_CHAIN = {"config": make_config(judges=[{"question": "Which is darker?", "votes": 1}], chains=1, steps=30)}
SHORT = {"wait_minutes": 5}


def waiting_person(study, votes: int = 3):
    """Return the browsers of somebody who waits, and of somebody who holds the only pair."""
    anna, ben = arrive(study, prolific("anna")), arrive(study, prolific("ben"))
    vote(anna, study, times=votes)
    assert pair_of(ben, study)
    return anna, ben


def part_of(person: str) -> Participation:
    return Participation.objects.get(participant__external_id=person)


def let_wait(person: str, minutes: int) -> None:
    since = timezone.now() - timedelta(minutes=minutes)
    assert Participation.objects.filter(participant__external_id=person).update(waits_since=since)


def test_after_the_declared_wait_the_part_ends_paid_and_nobody_is_asked_on(researcher):
    study = recruited_campaign(researcher, protocol=SHORT, **ONE_CHAIN)
    anna, ben = waiting_person(study)
    assert screen_of(anna, study).standing == "waiting"
    let_wait("anna", 4)
    assert screen_of(anna, study).standing == "waiting"
    let_wait("anna", 6)
    page = page_of(anna, study, "vote/")
    assert "There is nothing left to compare" in page
    assert CODES["nothing-left"] in page
    vote(ben, study)
    assert pair_of(anna, study) is None
    assert CODES["nothing-left"] in page_of(anna, study, "vote/")
    [row, _] = payments_of(browser_of(study.owner), study)
    assert (row["outcome"], row["paid"], row["votes"]) == ("nothing-left", "in full", "3")


@pytest.mark.parametrize(
    ("recruiter", "protocol", "said"),
    [
        ("prolific", {}, "You wait 5 minutes at most"),
        (
            "prolific",
            {"wait_minutes": 20, "wait_is_paid": True},
            "20 minutes at most; then your part ends here. The time",
        ),
        ("prolific", {"wait_minutes": 0}, ""),
        ("open", {}, ""),
    ],
)
def test_who_waits_reads_that_others_are_needed_and_how_long_at_most(researcher, recruiter, protocol, said):
    study = recruited_campaign(researcher, recruiter, protocol=protocol, **ONE_CHAIN)
    anna, ben = Client(), Client()
    for browser, name in ((anna, "anna"), (ben, "ben")):
        browser.get(invitation_path(study), prolific(name) if recruiter == "prolific" else {})
        browser.post(invitation_path(study))
    assert pair_of(ben, study)
    page = page_of(anna, study, "vote/")
    assert "needs votes of other people first" in page
    assert said in page
    assert ("at most; then" in page) == bool(said)


def test_the_sweep_ends_the_part_of_somebody_whose_page_is_gone_and_of_nobody_with_a_pair(researcher):
    study = recruited_campaign(researcher, protocol=SHORT, **ONE_CHAIN)
    anna, ben = waiting_person(study)
    screen_of(anna, study)
    settle_parts()
    assert part_of("anna").outcome == ""
    let_wait("anna", 6)
    # Who has a pair on the screen has it, whatever was noted before.
    let_wait("ben", 6)
    settle_parts()
    assert (part_of("anna").outcome, part_of("anna").code) == ("nothing-left", CODES["nothing-left"])
    assert part_of("ben").outcome == ""
    vote(ben, study, times=2)
    assert part_of("ben").waits_since is None


def test_who_has_a_pair_again_begins_to_wait_anew(researcher):
    study = recruited_campaign(researcher, protocol=SHORT, **ONE_CHAIN)
    anna, ben = waiting_person(study)
    screen_of(anna, study)
    let_wait("anna", 4)
    vote(ben, study)
    assert pair_of(anna, study)
    assert part_of("anna").waits_since is None


def test_where_no_wait_is_declared_nobody_is_sent_away(researcher):
    study = recruited_campaign(researcher, protocol={"wait_minutes": 0}, **ONE_CHAIN)
    anna, _ = waiting_person(study, votes=1)
    assert screen_of(anna, study).standing == "waiting"
    let_wait("anna", 1000)
    settle_parts()
    assert screen_of(anna, study).standing == "waiting"
    assert part_of("anna").outcome == ""

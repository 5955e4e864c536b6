"""Waiting costs the participant nothing: repeats meanwhile, and after the declared time the paid end."""

from datetime import timedelta

import pytest
from django.utils import timezone

from prefmh_web.annotate.screens import response_in, screen_after
from prefmh_web.annotate.tasks import settle_parts
from prefmh_web.campaigns.engine import reading
from prefmh_web.campaigns.models import Annotator, Vote
from prefmh_web.participants.models import Check, Participation
from tests.participants.test_checks import answer_repeat, screen_of
from tests.participants.test_stages import page_of
from tests.security.world import browser_of
from tests.support.record import assert_replay_passes, export_to, table
from tests.support.recruited import CODES, arrive, pair_of, payments_of, prolific, recruited_campaign, vote
from tests.support.stack import make_recipe

ONE_CHAIN = {"recipe": make_recipe(judges=[{"question": "Which is darker?", "budget": 1}], chains=1, steps=30)}
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


def test_who_waits_is_shown_earlier_pairs_up_to_the_declared_share_and_none_is_a_vote(researcher, tmp_path):
    study = recruited_campaign(researcher, protocol={"waiting_share": 0.25}, **ONE_CHAIN)
    anna, ben = waiting_person(study, votes=4)
    answer_repeat(anna, study, alike=True)
    # One of five is a repeat; one more would be two of six.
    assert screen_of(anna, study).standing == "waiting"
    assert Vote.objects.count() == 4
    vote(ben, study)
    assert pair_of(anna, study)
    export = export_to(study, tmp_path)
    assert_replay_passes(export)
    [row] = table(export, "checks.csv")
    assert (row["kind"], row["after_votes"], row["agreed"], row["passed"]) == ("repeat", "4", "1", "")
    assert len(table(export, "votes.csv")) == 5


def test_a_repeat_that_somebody_sees_while_they_wait_is_answered_before_a_pair_that_has_become_free(researcher):
    study = recruited_campaign(researcher, protocol={"waiting_share": 0.5, **SHORT}, **ONE_CHAIN)
    anna, ben = waiting_person(study)
    repeat = screen_of(anna, study).visit.check
    let_wait("anna", 6)
    settle_parts()
    # Nothing is cut off, and another page shows the same one.
    vote(ben, study)
    phone = arrive(study, prolific("anna", session="s2"))
    assert screen_of(phone, study).visit.check == repeat
    answer_repeat(phone, study, alike=False)
    assert pair_of(phone, study)
    part = part_of("anna")
    assert (part.outcome, part.waits_since) == ("", None)


def test_by_socket_who_answers_and_has_nothing_left_to_vote_on_sees_a_repeat_at_once(researcher):
    study = recruited_campaign(researcher, protocol={"waiting_share": 0.5}, **ONE_CHAIN)
    waiting_person(study)
    annotator = Annotator.objects.order_by("pk").first()
    for _ in range(2):
        shown = screen_after(response_in({"choice": "continue"}), reading.person(annotator.pk))
        key = str(shown.visit.check.key)
        shown = screen_after(response_in({"choice": "left", "lease": key}), reading.person(annotator.pk))
    assert shown.standing == "waiting"
    assert Check.objects.count() == 2


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


@pytest.mark.parametrize("protocol", [{}, {"waiting_share": 0.5}])
def test_where_no_wait_is_declared_nobody_is_sent_away(researcher, protocol):
    study = recruited_campaign(researcher, protocol=protocol, **ONE_CHAIN)
    anna, _ = waiting_person(study, votes=1)
    assert screen_of(anna, study).standing == "waiting"
    let_wait("anna", 1000)
    settle_parts()
    assert screen_of(anna, study).standing == "waiting"
    assert part_of("anna").outcome == ""

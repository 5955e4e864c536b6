"""Places, and the time that is given: taken, held, given back, and never one too many.

Active minutes as a limit: no further pair once they are reached; the pair on the screen may be answered.
"""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connections
from django.db.models import F
from django.test import Client
from django.utils import timezone

from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.models import Annotator, Campaign, Lease, Vote
from prefmh_web.participants import completion, limits, stages
from prefmh_web.participants.models import Participation
from prefmh_web.voting import presence
from prefmh_web.voting.tasks import settle_parts
from tests.participants.test_consent import TEXT, answer, come
from tests.participants.test_stages import PAIRS, PRACTICE, chosen, come_back, read
from tests.security.world import browser_of
from tests.support.campaigns import (
    CODES_OF_ALL,
    arrive,
    go_on,
    invitation_path,
    page_of,
    pair_of,
    payments_of,
    prolific,
    recruited_campaign,
    vote,
)

GROUPS = {
    "questions": [{"name": "role", "text": "What are you?", "options": ["student", "other"], "places": {"student": 1}}]
}


def outcomes() -> list[str]:
    return list(Participation.objects.order_by("pk").values_list("outcome", flat=True))


def later(minutes: int) -> None:
    """Let time pass for everybody who is in the study."""
    gone = timedelta(minutes=minutes)
    for person in Annotator.objects.all():
        seen = person.online_until and person.online_until - gone
        Annotator.objects.filter(pk=person.pk).update(joined_at=person.joined_at - gone, online_until=seen)
    for part in Participation.objects.all():
        Participation.objects.filter(pk=part.pk).update(seen_at=part.seen_at - gone)
    for lease in Lease.objects.all():
        Lease.objects.filter(pk=lease.pk).update(issued_at=lease.issued_at - gone)


def test_who_finds_no_place_is_told_so_before_all_else_and_nothing_is_stored(researcher):
    study = recruited_campaign(researcher, places=1, consent=TEXT)
    first = come(study, "anna")
    answer(first, study, "agree")
    assert pair_of(first, study)
    second = come(study, "ben")
    for page in (second.get(invitation_path(study)), second.post(invitation_path(study))):
        assert page.status_code == 403
        assert "All places of this study are taken" in page.content.decode()
        assert TEXT not in page.content.decode()
    assert outcomes() == [""]
    # Who has a place comes back to it from another device.
    assert pair_of(arrive(study, prolific("anna")), study)
    # Who holds a place keeps it, and a vote is never refused for it.
    vote(first, study)
    assert Vote.objects.count() == 1


def test_an_end_without_pay_gives_the_place_back_and_one_with_pay_does_not(researcher):
    study = recruited_campaign(researcher, places=2, votes_each=1, pay={"withdrawn": "nothing"})
    first, second = arrive(study, prolific("anna")), arrive(study, prolific("ben"))
    vote(first, study)
    page_of(first, study, "vote/")
    page_of(second, study, "vote/")
    completion.withdraw(Participation.objects.last().annotator)
    third, fourth = arrive(study, prolific("cleo")), arrive(study, prolific("dora"))
    assert pair_of(third, study)
    page_of(fourth, study, "vote/")
    assert outcomes() == ["completed", "withdrawn", "", "full"]


def test_places_of_a_group_are_counted_by_themselves(researcher):
    study = recruited_campaign(researcher, protocol=GROUPS)
    for number, role in enumerate(("student", "other", "student", "other")):
        browser = arrive(study, prolific(f"person-{number}"))
        page_of(browser, study)
        go_on(browser, study, {"stage": "questions", "answer-role": role})
    assert outcomes() == ["", "", "full", ""]


def test_a_place_is_taken_before_practice_and_given_back_by_who_does_not_understand(researcher):
    study = recruited_campaign(researcher, places=1, protocol=PRACTICE | {"tries": 1}, codes=CODES_OF_ALL)
    first, second = arrive(study, prolific("anna")), arrive(study, prolific("ben"))
    assert "Practice" in page_of(first, study)
    # Nobody practises for nothing.
    assert "FULL" in page_of(second, study)
    go_on(first, study, *(fields for number in range(len(PAIRS)) for fields in (chosen("first", number), read(number))))
    assert outcomes() == ["", "full"]
    # The place is the one that they have; a second one is not needed.
    placed_at = Participation.objects.first().placed_at
    assert placed_at
    go_on(first, study, {"stage": "comprehension", "answer-check_0": "no", "answer-try": "0"})
    third = arrive(study, prolific("cleo"))
    assert "Practice" in page_of(third, study)
    assert outcomes() == ["not-understood", "full", ""]


def test_who_is_away_in_the_middle_of_practice_needs_a_free_place(researcher):
    study = recruited_campaign(researcher, places=1, absent_minutes=30, protocol=PRACTICE, codes=CODES_OF_ALL)
    first = arrive(study, prolific("anna"))
    go_on(first, study, chosen("first"))
    later(31)
    settle_parts()
    assert Participation.objects.get().placed_at is None
    second = arrive(study, prolific("ben"))
    assert "Practice" in page_of(second, study)
    assert "FULL" in page_of(first, study)
    assert outcomes() == ["full", ""]


def test_who_reads_when_the_campaign_is_finished_need_not_practise(researcher):
    study = recruited_campaign(researcher, places=1, protocol=PRACTICE | {"instructions": "Read."}, codes=CODES_OF_ALL)
    first, second = arrive(study, prolific("anna")), arrive(study, prolific("ben"))
    assert "Read." in page_of(first, study)
    assert "Read." in page_of(second, study)
    Campaign.objects.update(status=Campaign.Status.FINISHED)
    assert "N0THING" in page_of(first, study)
    # No more are paid than there are places.
    assert "FULL" in page_of(second, study)
    assert outcomes() == ["nothing-left", "full"]


@pytest.mark.parametrize("protocol", [{}, PRACTICE])
@pytest.mark.django_db(transaction=True)
def test_with_many_at_once_no_place_is_taken_twice(researcher, protocol):
    study = recruited_campaign(researcher, places=3, protocol=protocol)
    browsers = [arrive(study, prolific(f"person-{number}")) for number in range(12)]

    def open_page(browser: Client) -> None:
        page_of(browser, study, "vote/")
        connections.close_all()

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(open_page, browsers))
    assert limits.held(study, study.config.study).count() == 3
    assert sorted(outcomes()) == [""] * 3 + ["full"] * 9


def test_who_is_away_for_long_loses_the_place_and_has_it_again_while_one_is_free(researcher):
    study = recruited_campaign(researcher, places=1, absent_minutes=30, codes=CODES_OF_ALL)
    first = arrive(study, prolific("anna"))
    vote(first, study)
    later(29)
    settle_parts()
    assert Participation.objects.get().placed_at
    later(2)
    settle_parts()
    assert Participation.objects.get().placed_at is None
    assert 'id="question"' in come_back(study)
    assert Participation.objects.get().placed_at
    later(31)
    settle_parts()
    second = arrive(study, prolific("ben"))
    assert pair_of(second, study)
    assert "N0THING" in come_back(study)
    assert outcomes() == ["nothing-left", ""]


def test_an_open_page_is_no_absence(researcher):
    study = recruited_campaign(researcher, places=1, absent_minutes=30)
    pair_of(arrive(study, prolific("anna")), study)
    later(31)
    Annotator.objects.update(online_until=timezone.now() + timedelta(seconds=60))
    settle_parts()
    assert Participation.objects.get().placed_at


def test_the_part_ends_before_the_time_of_the_platform_and_the_open_pair_may_be_answered(researcher):
    study = recruited_campaign(researcher, most_minutes=20, codes=CODES_OF_ALL)
    browser = arrive(study, prolific("anna"))
    vote(browser, study)
    key = pair_of(browser, study)
    later(17)
    assert pair_of(browser, study) == key
    later(1)
    # Its time is over, and the pair stays on the screen.
    assert pair_of(browser, study) == key
    vote(browser, study)
    assert "LATE" in page_of(browser, study, "vote/")
    assert Vote.objects.count() == 2
    assert outcomes() == ["time-over"]


def test_time_runs_out_for_those_who_have_gone_too_and_nothing_is_paid_for_nothing(researcher):
    study = recruited_campaign(researcher, most_minutes=20, protocol=GROUPS)
    arrive(study, prolific("anna"))
    browser = arrive(study, prolific("ben"))
    page_of(browser, study)
    go_on(browser, study, {"stage": "questions", "answer-role": "other"})
    vote(browser, study)
    later(18)
    Lease.objects.filter(ended_at=None).update(ended_at=timezone.now(), ending="expired")
    settle_parts()
    paid = {row["external_id"]: (row["outcome"], row["paid"]) for row in payments_of(browser_of(researcher), study)}
    assert paid == {"anna": ("time-over", "not"), "ben": ("time-over", "in part")}
    assert "time for your part is over" in come_back(study)


def test_who_gave_nothing_and_finds_the_place_taken_is_not_paid(researcher):
    study = recruited_campaign(researcher, places=1, absent_minutes=30, codes=CODES_OF_ALL)
    pair_of(arrive(study, prolific("anna")), study)
    later(31)
    settle_parts()
    assert pair_of(arrive(study, prolific("ben")), study)
    assert "FULL" in come_back(study)
    paid = {row["external_id"]: row["paid"] for row in payments_of(browser_of(researcher), study)}
    assert paid == {"anna": "not", "ben": ""}


def test_a_connection_that_is_lost_for_a_moment_costs_no_place(researcher):
    """Somebody has waited on one page for long; only now their socket closes."""
    study = recruited_campaign(researcher, places=1, absent_minutes=30)
    pair_of(arrive(study, prolific("anna")), study)
    later(31)
    annotator = Annotator.objects.get()
    presence.set_present(annotator, False)
    stages.leave(annotator)
    settle_parts()
    assert Participation.objects.get().placed_at


@pytest.fixture
def study(researcher):
    return recruited_campaign(researcher, most_active_minutes=3, codes=CODES_OF_ALL)


def as_if_they_had_taken(minutes: int) -> None:
    """Let all pairs that were answered have stood on the screen for so long."""
    Lease.objects.exclude(ended_at=None).update(issued_at=F("ended_at") - timedelta(minutes=minutes))


def test_after_so_many_minutes_the_pair_on_the_screen_is_the_last_one(study):
    browser = arrive(study, prolific("anna"))
    assert "complete after 3 minutes with pairs on the screen" in browser.get(invitation_path(study)).content.decode()
    vote(browser, study, times=2)
    as_if_they_had_taken(1)
    key = pair_of(browser, study)
    # Beside the votes, which have no number here.
    page = page_of(browser, study, "vote/")
    assert "You: <strong>2</strong> of 3 minutes" in page
    assert '<progress max="3" value="2.0"' in page
    assert "Progress of the campaign" not in page
    as_if_they_had_taken(2)
    # Reached meanwhile, on another device: what stands here may be answered, and then comes the end.
    assert pair_of(browser, study) == key
    vote(browser, study)
    page = page_of(browser, study, "vote/")
    assert "Your part is complete" in page
    assert CODES_OF_ALL["completed"] in page
    assert Vote.objects.count() == 3
    [row] = payments_of(browser_of(study.owner), study)
    assert (row["outcome"], row["paid"]) == ("completed", "in full")
    assert row["active_minutes"] == "4.0"


def test_waiting_time_away_and_pairs_that_ran_out_are_not_counted(study):
    browser = arrive(study, prolific("anna"))
    vote(browser, study)
    key = pair_of(browser, study)
    Lease.objects.filter(pk=key).update(issued_at=timezone.now() - timedelta(hours=1), expires_at=timezone.now())
    leases.expire()
    Annotator.objects.update(joined_at=timezone.now() - timedelta(hours=2))
    assert completion.outcome_due(Annotator.objects.select_related("campaign").get()) is None
    assert pair_of(browser, study)


@pytest.mark.parametrize(("votes", "outcome", "paid"), [(1, "completed", "in full"), (0, "time-over", "not")])
def test_the_sweep_settles_who_has_gone_after_their_last_vote(study, votes, outcome, paid):
    browser = arrive(study, prolific("anna"))
    vote(browser, study, times=votes)
    path, fields = f"{invitation_path(study)}vote/", {"choice": "skip", "lease": str(pair_of(browser, study))}
    browser.post(path, fields)
    as_if_they_had_taken(2 if votes else 3)
    settle_parts()
    # Who has only skipped has not done the part.
    [row] = payments_of(browser_of(study.owner), study)
    assert (row["outcome"], row["paid"]) == (outcome, paid)
    assert CODES_OF_ALL[outcome] in page_of(browser, study, "vote/")


def test_a_refusal_holds_no_place_and_who_changes_their_mind_needs_a_free_one(researcher):
    study = recruited_campaign(researcher, places=1, consent=TEXT)
    first = come(study, "anna")
    answer(first, study, "refuse")
    second = come(study, "ben")
    answer(second, study, "agree")
    assert pair_of(second, study)
    answer(first, study, "agree")
    assert "All places of this study are taken" in page_of(first, study, "vote/")

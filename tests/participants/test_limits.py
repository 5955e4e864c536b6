"""Places, and the time that is given: taken, held, given back, and never one too many.

Active minutes as a limit: no further pair once they are reached; the pair on the screen may be answered.

A budget in answers: what must fit before the start, and what is kept within it. The whole of it is in
`tests/flows/test_budget.py`.
"""

import math
import re
from datetime import timedelta
from functools import partial

import pytest
from django.db import transaction
from django.db.models import F
from django.urls import reverse
from django.utils import timezone

import sampler
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.lifecycle import changes
from prefmh_web.campaigns.models import Campaign, Comparison, Lease, NotPossible, Side, Vote, Voter
from prefmh_web.config import Protocol
from prefmh_web.participants import completion, erasure, limits, stages
from prefmh_web.participants.erasure import Scope
from prefmh_web.participants.models import AttentionCheck, Participation
from prefmh_web.tasks import settle_parts
from prefmh_web.voting import presence
from prefmh_web.voting.responses import Response
from tests.participants.test_arrival import TEXT, answer, come
from tests.participants.test_stages import MOLECULES, OF_MOLECULES, PAIRS, PRACTICE, chosen, come_back, read
from tests.security.test_limits import all_at_once
from tests.security.world import browser_of
from tests.support.campaigns import invitation_path, make_config, make_draft, panel_judges, set_study
from tests.support.people import (
    CODES_OF_ALL,
    answer_check,
    arrive,
    go_on,
    page_of,
    pair_of,
    payments_of,
    prolific,
    recruited_campaign,
    vote,
    vote_until_check,
)
from tests.support.process import wait_until_idle

GROUPS = {
    "questions": [{"name": "role", "text": "What are you?", "options": ["student", "other"], "quota": {"student": 1}}]
}


def outcomes() -> list[str]:
    return list(Participation.objects.order_by("pk").values_list("outcome", flat=True))


def later(minutes: int) -> None:
    """Let time pass for everybody who is in the study."""
    gone = timedelta(minutes=minutes)
    for person in Voter.objects.all():
        seen = person.online_until and person.online_until - gone
        Voter.objects.filter(pk=person.pk).update(joined_at=person.joined_at - gone, online_until=seen)
    for part in Participation.objects.all():
        Participation.objects.filter(pk=part.pk).update(seen_at=part.seen_at - gone)
    for lease in Lease.objects.all():
        Lease.objects.filter(pk=lease.pk).update(issued_at=lease.issued_at - gone)


def test_who_finds_no_place_is_told_so_before_all_else_and_nothing_is_stored(researcher):
    study = recruited_campaign(researcher, quota=1, consent=TEXT)
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
    study = recruited_campaign(researcher, quota=2, votes_per_person=1, pay={"withdrawn": "nothing"})
    first, second = arrive(study, prolific("anna")), arrive(study, prolific("ben"))
    vote(first, study)
    page_of(first, study, "vote/")
    page_of(second, study, "vote/")
    completion.withdraw(Participation.objects.last().voter)
    third, fourth = arrive(study, prolific("cleo")), arrive(study, prolific("dora"))
    assert pair_of(third, study)
    page_of(fourth, study, "vote/")
    assert outcomes() == ["completed", "withdrawn", "", "full"]


def test_the_page_says_how_many_places_are_taken_and_where_a_closed_link_is_made_anew(researcher):
    study = recruited_campaign(researcher, quota=2, votes_per_person=1)
    assert pair_of(arrive(study, prolific("anna")), study)
    study.invitations.update(revoked_at=timezone.now())
    page = browser_of(researcher).get(reverse("console:participants", args=[study.pk])).content.decode()
    assert "1 of 2 places is taken" in page
    assert f'<a href="{reverse("console:edit", args=[study.pk])}">on the tab Setup</a>' in page


def test_places_of_a_group_are_counted_by_themselves(researcher):
    study = recruited_campaign(researcher, protocol=GROUPS)
    for number, role in enumerate(("student", "other", "student", "other")):
        browser = arrive(study, prolific(f"person-{number}"))
        page_of(browser, study)
        go_on(browser, study, {"stage": "questions", "answer-role": role})
    assert outcomes() == ["", "", "full", ""]


def test_a_place_is_taken_before_practice_and_given_back_by_who_does_not_understand(researcher):
    study = recruited_campaign(researcher, quota=1, protocol=PRACTICE | {"tries": 1}, codes=CODES_OF_ALL)
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
    study = recruited_campaign(researcher, quota=1, absent_minutes=30, protocol=PRACTICE, codes=CODES_OF_ALL)
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
    study = recruited_campaign(researcher, quota=1, protocol=PRACTICE | {"instructions": "Read."}, codes=CODES_OF_ALL)
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
    study = recruited_campaign(researcher, quota=3, protocol=protocol)
    browsers = [arrive(study, prolific(f"person-{number}")) for number in range(12)]

    all_at_once([partial(page_of, browser, study, "vote/") for browser in browsers])
    assert limits.held(study, study.config.study).count() == 3
    assert sorted(outcomes()) == [""] * 3 + ["full"] * 9


def test_who_is_away_for_long_loses_the_place_and_has_it_again_while_one_is_free(researcher):
    study = recruited_campaign(researcher, quota=1, absent_minutes=30, codes=CODES_OF_ALL)
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


def test_an_open_page_is_no_absence_and_a_connection_that_is_lost_for_a_moment_costs_no_place(researcher):
    study = recruited_campaign(researcher, quota=1, absent_minutes=30)
    pair_of(arrive(study, prolific("anna")), study)
    later(31)
    Voter.objects.update(online_until=timezone.now() + timedelta(seconds=60))
    settle_parts()
    assert Participation.objects.get().placed_at
    # Somebody has waited on one page for long; only now their socket closes.
    later(31)
    voter = Voter.objects.get()
    presence.set_present(voter, False)
    stages.leave(voter)
    settle_parts()
    assert Participation.objects.get().placed_at


def test_the_part_ends_before_the_time_of_the_platform_and_the_open_pair_may_be_answered(researcher):
    study = recruited_campaign(researcher, max_minutes=20, codes=CODES_OF_ALL)
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
    study = recruited_campaign(researcher, max_minutes=20, protocol=GROUPS)
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
    study = recruited_campaign(researcher, quota=1, absent_minutes=30, codes=CODES_OF_ALL)
    pair_of(arrive(study, prolific("anna")), study)
    later(31)
    settle_parts()
    assert pair_of(arrive(study, prolific("ben")), study)
    assert "FULL" in come_back(study)
    paid = {row["external_id"]: row["paid"] for row in payments_of(browser_of(researcher), study)}
    assert paid == {"anna": "not", "ben": ""}


@pytest.fixture
def study(researcher):
    return recruited_campaign(researcher, max_active_minutes=3, codes=CODES_OF_ALL)


def as_if_they_had_taken(minutes: int) -> None:
    """Let all pairs that were answered have stood on the screen for so long."""
    Lease.objects.exclude(ended_at=None).update(issued_at=F("ended_at") - timedelta(minutes=minutes))


@pytest.mark.parametrize(
    ("limit", "said"), [("votes_per_person", "of 1 vote<"), ("max_active_minutes", "of 1 minute<")]
)
def test_a_part_of_one_vote_or_minute_is_told_as_one(limit, said, researcher):
    study = recruited_campaign(researcher, codes=CODES_OF_ALL, **{limit: 1})
    assert f"You: <strong>0</strong> {said}" in page_of(arrive(study, prolific("anna")), study, "vote/")


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


@pytest.mark.parametrize(("minutes", "outcome", "paid"), [(3, "completed", "in full"), (2, "withdrawn", "in part")])
def test_who_withdraws_from_the_last_pair_has_done_their_part(study, minutes, outcome, paid):
    browser = arrive(study, prolific("anna"))
    vote(browser, study)
    assert pair_of(browser, study)
    as_if_they_had_taken(minutes)
    browser.post(f"{invitation_path(study)}withdraw/")
    [row] = payments_of(browser_of(study.owner), study)
    assert (row["outcome"], row["paid"]) == (outcome, paid)


def test_waiting_time_away_and_pairs_that_ran_out_are_not_counted(study):
    browser = arrive(study, prolific("anna"))
    vote(browser, study)
    key = pair_of(browser, study)
    Lease.objects.filter(pk=key).update(issued_at=timezone.now() - timedelta(hours=1), expires_at=timezone.now())
    leases.expire()
    Voter.objects.update(joined_at=timezone.now() - timedelta(hours=2))
    assert completion.outcome_due(Voter.objects.select_related("campaign").get()) is None
    assert pair_of(browser, study)


def test_of_a_pair_that_is_answered_after_a_break_no_more_counts_than_its_time_to_answer(study):
    browser = arrive(study, prolific("anna"))
    pair_of(browser, study)
    # A computer that slept shows the pair still; another person's answer would not come too late for it.
    slept = timezone.now() - timedelta(hours=1)
    Lease.objects.update(issued_at=slept, expires_at=slept + timedelta(minutes=2))
    leases.expire()
    Response(Lease.objects.get().key, Side.FIRST).respond(Voter.objects.select_related("campaign").get())
    assert Vote.objects.get().counted
    [row] = payments_of(browser_of(study.owner), study)
    assert (row["outcome"], row["active_minutes"]) == ("", "2.0")
    assert pair_of(browser, study)


def test_of_a_repeat_that_is_answered_after_a_break_no_more_counts_either(researcher):
    config = make_config(judges=ONE_JUDGE, chains=4, steps=30)
    repeats = {"protocol": {"repeat_share": 0.5}, "max_active_minutes": 3}
    study = recruited_campaign(researcher, config=config, **repeats)
    browser = arrive(study, prolific("anna"))
    check = vote_until_check(browser, study)
    AttentionCheck.objects.update(shown_at=timezone.now() - timedelta(hours=1))
    browser.post(f"{invitation_path(study)}vote/", {"choice": "first", "lease": str(check.key)})
    [row] = payments_of(browser_of(study.owner), study)
    assert (row["outcome"], row["active_minutes"]) == ("", "2.0")
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
    study = recruited_campaign(researcher, quota=1, consent=TEXT)
    first = come(study, "anna")
    answer(first, study, "refuse")
    second = come(study, "ben")
    answer(second, study, "agree")
    assert pair_of(second, study)
    answer(first, study, "agree")
    assert "All places of this study are taken" in page_of(first, study, "vote/")


ONE_JUDGE = [{"question": "Which is darker?", "votes": 1}]
MODEL = {
    "question": "Which is darker?",
    "votes": 5,
    "source": {"kind": "model", "endpoint": "local", "votes": "sampled"},
}


@pytest.mark.parametrize(
    ("changes", "protocol", "most"),
    [
        ({"steps": 5}, {}, 3 * 5 * 3),
        ({"steps": 5, "judges": [*ONE_JUDGE, MODEL]}, {}, 3 * 5),
        ({"steps": 5, "judges": ONE_JUDGE, "max_chains": 8}, {}, 8 * 5),
        ({"judges": ONE_JUDGE}, {"check_share": 0.1}, 150 + 15),
        ({"judges": ONE_JUDGE}, {"check_share": 0.11}, 150 + 17),
        ({"judges": ONE_JUDGE}, {"repeat_share": 0.1}, 150 + 15),
    ],
)
def test_the_worst_case_is_every_step_with_every_vote_and_the_trials_of_the_shares(changes, protocol, most):
    config = sampler.parse_config(make_config(**changes) | {"version": 1})
    assert limits.needs(config, Protocol.model_validate(protocol)).total == most


PANEL = make_config(judges=panel_judges(2))
PRACTISED = {"answer": "first", "if_wrong": "No.", "second": "CC"}


@pytest.mark.parametrize(
    ("config", "fields", "reason"),
    [
        (
            make_config(steps=5),
            {"budget": 49, "protocol": {"check_share": 0.1}},
            r"3 chains of 5 steps with 3 votes each can take 45 votes, and .* 5 trials",
        ),
        (
            make_config(),
            {"quota": 1, "votes_per_person": 20},
            "needs votes of 2 different people, and there are 1 places",
        ),
        (PANEL, {"codes": {"completed": "C"}}, "cannot send its people"),
        (PANEL, {"recruiter": "anybody", "votes_per_person": 5}, "Remove the limit"),
        # The setup has changed since: pairs that it cannot show.
        (OF_MOLECULES, {"protocol": {"practice": [PRACTISED | {"first": "no molecule"}]}}, "is no molecule"),
        (OF_MOLECULES, {"protocol": {"practice": [PRACTISED | {"first": "C", "question": 3}]}}, "at most 2: people"),
    ],
)
def test_what_cannot_be_is_refused_at_the_start_and_nothing_starts(researcher, config, fields, reason):
    listed = {"file": MOLECULES, "filename": "m.csv"} if config is OF_MOLECULES else {}
    draft = make_draft(researcher, config=config, **listed)
    set_study(draft, {"recruiter": "prolific"} | fields)
    with pytest.raises(NotPossible, match=reason):
        lifecycle.start(draft)
    draft.refresh_from_db()
    assert draft.is_draft
    assert not draft.chains.exists()


def test_a_draft_whose_places_bring_fewer_votes_than_are_expected_says_so_and_what_a_vote_costs(researcher):
    """12 places of 20 votes are 240; 150 steps need 450 at most, and 450 times the mean share of votes as expected."""
    draft = make_draft(researcher)
    fields = {"recruiter": "prolific", "quota": 12, "votes_per_person": 20, "full_pay": 5, "currency": "£"}
    set_study(draft, fields, ())
    expected = math.ceil(150 * sampler.step_votes([2, 1]))
    assert 240 < expected < 450
    page = browser_of(researcher).get(draft.get_absolute_url()).content.decode()
    assert f"bring 240 votes at most, and 150 steps need about {expected}, at most 450" in page
    assert "£0.25 a vote" in page
    set_study(draft, fields | {"quota": math.ceil(expected / 20)}, ())
    assert "votes at most, and 150 steps" not in browser_of(researcher).get(draft.get_absolute_url()).content.decode()
    set_study(draft, fields | {"budget": 449})
    page = browser_of(researcher).get(reverse("console:participants", args=[draft.pk])).content.decode()
    assert "It must be 450 or more" in page


def test_once_all_places_are_taken_the_overview_says_what_is_still_needed(researcher):
    config = make_config(judges=ONE_JUDGE, chains=2, steps=10)
    study = recruited_campaign(researcher, config=config, quota=2, votes_per_person=3)
    anna, ben = (arrive(study, prolific(person)) for person in ("anna", "ben"))
    for browser in (anna, ben):
        vote(browser, study, times=3)
    decided = sum(study.chains.values_list("step", flat=True))
    page = browser_of(researcher).get(study.get_absolute_url()).content.decode()
    assert f"All places are taken: {20 - decided} steps still need {20 - decided} votes." in page


def test_where_fewer_people_may_come_than_a_pair_needs_the_overview_says_so(researcher):
    judges = [{"question": "Which is darker?", "votes": 3}]
    study = recruited_campaign(researcher, config=make_config(judges=judges), quota=3)
    vote(arrive(study, prolific("anna")), study)
    assert "All places are taken" not in browser_of(researcher).get(study.get_absolute_url()).content.decode()
    # Of a started study, too, this can be lowered.
    set_study(study, {"quota": 1})
    page = browser_of(researcher).get(study.get_absolute_url()).content.decode()
    assert re.search(r"All places are taken: \d+ steps still need \d+ votes\.", page)


@pytest.mark.parametrize(("spare", "kept"), [(0, 0), (1, 1)])
def test_a_vote_that_comes_too_late_is_kept_while_the_budget_has_room(researcher, spare, kept):
    config = make_config(judges=ONE_JUDGE, chains=1, steps=30)
    campaign = recruited_campaign(researcher, config=config, budget=30 + spare)
    slow, other = (arrive(campaign, prolific(person)) for person in ("anna", "ben"))
    # The time of one person runs out; another answers the pair, and then they do, too.
    key = pair_of(slow, campaign)
    Lease.objects.filter(pk=key).update(expires_at=timezone.now())
    leases.expire()
    comparison = Lease.objects.get(pk=key).comparison_id
    assert Lease.objects.get(pk=pair_of(other, campaign)).comparison_id == comparison
    vote(other, campaign)
    assert Comparison.objects.get(pk=comparison).verdict
    answer = slow.post(f"{invitation_path(campaign)}vote/", {"choice": "first", "lease": str(key)})
    assert answer.status_code == 302
    wait_until_idle()
    # They go on, whether it was kept or not.
    assert pair_of(slow, campaign)
    assert Vote.objects.filter(number=None).count() == kept
    assert limits.spent(campaign) == limits.Answers(1 + kept, 0, kept)


@pytest.mark.parametrize(("budget", "raised", "kept"), [(31, 32, 0), (30, 33, 1)])
def test_an_open_page_keeps_to_a_budget_that_was_raised_for_longer_chains(researcher, budget, raised, kept):
    config = make_config(judges=ONE_JUDGE, chains=1, steps=30)
    campaign = recruited_campaign(researcher, config=config, budget=budget)
    slow, other = (arrive(campaign, prolific(person)) for person in ("anna", "ben"))
    key = pair_of(slow, campaign)
    # As their socket has read them when it opened.
    at_the_page = Voter.objects.select_related("campaign").get(pk=Lease.objects.get(pk=key).voter_id)
    assert at_the_page.campaign.config.steps == 30
    Lease.objects.filter(pk=key).update(expires_at=timezone.now())
    leases.expire()
    pair_of(other, campaign)
    vote(other, campaign)
    set_study(campaign, {"budget": raised})
    changes.extend(campaign, 2)
    Response(key, Side.FIRST).respond(at_the_page)
    assert Vote.objects.filter(number=None).count() == kept


@pytest.mark.django_db(transaction=True)
def test_of_many_trials_at_once_no_more_are_given_than_there_is_room_for(researcher):
    config = make_config(judges=ONE_JUDGE, chains=1, steps=30)
    campaign = recruited_campaign(researcher, config=config, budget=30 + 3)
    for number in range(8):
        arrive(campaign, prolific(f"person-{number}"))

    def give(part: Participation) -> None:
        with transaction.atomic():
            if limits.takes_one_more(campaign):
                AttentionCheck.objects.create(participation=part, after_votes=1, shown_at=timezone.now())

    all_at_once([partial(give, part) for part in Participation.objects.all()])
    assert AttentionCheck.objects.count() == 3


def test_what_somebody_answered_stays_spent_when_they_have_who_they_are_deleted(researcher):
    config = make_config(judges=ONE_JUDGE, chains=4, steps=30)
    campaign = recruited_campaign(researcher, config=config, protocol={"check_share": 0.5}, budget=180)
    browser = arrive(campaign, prolific("anna"))
    vote_until_check(browser, campaign)
    answer_check(browser, campaign)
    before = limits.spent(campaign)
    assert before.trials == 1
    erasure.erase(Participation.objects.get().voter, Scope.PARTICIPATION, is_forced=True)
    # The trial stays, under their number.
    assert AttentionCheck.objects.exclude(chosen_side="").count() == 1
    assert limits.spent(campaign) == before

"""A budget in answers: what must fit before the start, and what is kept within it. The whole of it is in
`tests/flows/test_budget.py`.
"""

import math
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections, transaction
from django.urls import reverse
from django.utils import timezone

import sampler
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.models import Comparison, Lease, NotPossible, Vote
from prefmh_web.config import Protocol
from prefmh_web.participants import erasure, limits
from prefmh_web.participants.erasure import Scope
from prefmh_web.participants.models import Check, Participation
from tests.security.world import browser_of
from tests.support.campaigns import (
    answer_check,
    arrive,
    invitation_path,
    make_config,
    make_draft,
    pair_of,
    prolific,
    recruited_campaign,
    set_study,
    vote,
    vote_until_check,
    wait_until_idle,
)

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


def draft_with(researcher, most: int):
    draft = make_draft(researcher, config=make_config(steps=5))
    protocol = {"check_share": 0.1}
    set_study(draft, {"recruiter": "prolific", "budget": most, "protocol": protocol}, ())
    return draft


def test_one_answer_less_than_the_worst_case_is_refused_and_nothing_starts(researcher):
    draft = draft_with(researcher, 49)
    with pytest.raises(NotPossible, match=r"3 chains of 5 steps with 3 votes each can take 45 votes, and .* 5 trials"):
        lifecycle.start(draft)
    draft.refresh_from_db()
    assert draft.is_draft
    assert not draft.chains.exists()
    page = browser_of(researcher).get(reverse("console:participants", args=[draft.pk])).content.decode()
    assert "It must be 50 or more" in page


def test_a_draft_whose_places_bring_fewer_votes_than_are_expected_says_so_and_what_a_vote_costs(researcher):
    """12 places of 20 votes are 240; 150 steps need 450 at most, and 450 times the mean share of votes as expected."""
    draft = make_draft(researcher)
    fields = {"recruiter": "prolific", "places": 12, "votes_each": 20, "place_pay": 5, "currency": "£"}
    set_study(draft, fields, ())
    expected = math.ceil(150 * sampler.step_votes([2, 1]))
    assert 240 < expected < 450
    page = browser_of(researcher).get(draft.get_absolute_url()).content.decode()
    assert f"bring 240 votes at most, and 150 steps need about {expected}, at most 450" in page
    assert "£0.25 a vote" in page
    set_study(draft, fields | {"places": math.ceil(expected / 20)}, ())
    assert "votes at most, and 150 steps" not in browser_of(researcher).get(draft.get_absolute_url()).content.decode()


def test_a_start_with_fewer_places_than_a_pair_needs_people_is_refused(researcher):
    draft = make_draft(researcher)
    set_study(draft, {"recruiter": "prolific", "places": 1, "votes_each": 20}, ())
    with pytest.raises(NotPossible, match="needs votes of 2 different people, and there are 1 places"):
        lifecycle.start(draft)
    assert draft.is_draft


def test_once_all_places_are_taken_the_overview_says_what_is_still_needed(researcher):
    config = make_config(judges=ONE_JUDGE, chains=2, steps=10)
    study = recruited_campaign(researcher, config=config, places=2, votes_each=3)
    anna, ben = (arrive(study, prolific(person)) for person in ("anna", "ben"))
    for browser in (anna, ben):
        vote(browser, study, times=3)
    decided = sum(study.chains.values_list("step", flat=True))
    page = browser_of(researcher).get(study.get_absolute_url()).content.decode()
    assert f"All places are taken: {20 - decided} steps still need {20 - decided} votes." in page


def answer_too_late(campaign, *people: str) -> None:
    """Let the time of one person run out; others answer the pair, and then they do, too."""
    slow, *others = (arrive(campaign, prolific(person)) for person in people)
    key = pair_of(slow, campaign)
    Lease.objects.filter(pk=key).update(expires_at=timezone.now())
    leases.expire()
    comparison = Lease.objects.get(pk=key).comparison_id
    for other in others:
        assert Lease.objects.get(pk=pair_of(other, campaign)).comparison_id == comparison
        vote(other, campaign)
    assert Comparison.objects.get(pk=comparison).verdict
    answer = slow.post(f"{invitation_path(campaign)}vote/", {"choice": "first", "lease": str(key)})
    assert answer.status_code == 302
    wait_until_idle()
    # They go on, whether it was kept or not.
    assert pair_of(slow, campaign)


@pytest.mark.parametrize(("spare", "kept"), [(0, 0), (1, 1)])
def test_a_vote_that_comes_too_late_is_kept_while_the_budget_has_room(researcher, spare, kept):
    config = make_config(judges=ONE_JUDGE, chains=1, steps=30)
    campaign = recruited_campaign(researcher, config=config, budget=30 + spare)
    answer_too_late(campaign, "anna", "ben")
    assert Vote.objects.filter(number=None).count() == kept
    assert limits.spent(campaign) == limits.Answers(1 + kept, 0, kept)


@pytest.mark.django_db(transaction=True)
def test_of_many_trials_at_once_no_more_are_given_than_there_is_room_for(researcher):
    config = make_config(judges=ONE_JUDGE, chains=1, steps=30)
    campaign = recruited_campaign(researcher, config=config, budget=30 + 3)
    for number in range(8):
        arrive(campaign, prolific(f"person-{number}"))

    def give(part: Participation) -> None:
        with transaction.atomic():
            if limits.takes_one_more(campaign):
                Check.objects.create(participation=part, after_votes=1, shown_at=timezone.now())
        connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(give, Participation.objects.all()))
    assert Check.objects.count() == 3


def test_what_somebody_answered_stays_spent_when_they_have_who_they_are_deleted(researcher):
    config = make_config(judges=ONE_JUDGE, chains=4, steps=30)
    campaign = recruited_campaign(researcher, config=config, protocol={"check_share": 0.5}, budget=180)
    browser = arrive(campaign, prolific("anna"))
    vote_until_check(browser, campaign)
    answer_check(browser, campaign)
    before = limits.spent(campaign)
    assert before.trials == 1
    erasure.erase(Participation.objects.get().annotator, Scope.PARTICIPATION, is_forced=True)
    # The trial stays, under their number.
    assert Check.objects.exclude(chosen_side="").count() == 1
    assert limits.spent(campaign) == before

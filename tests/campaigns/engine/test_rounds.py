"""Rounds of further steps: one at a time, for all chains alike, whatever crashes, waits or happens at once."""

from __future__ import annotations

import zipfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from django.db import connections, transaction
from django.db.models import F

from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.engine import leases, transitions
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.lifecycle import unparking
from prefmh_web.campaigns.models import Annotator, Campaign, Comparison, Lease, Side
from prefmh_web.participants import budget, recruiting
from prefmh_web.participants.recruiters import ANYBODY
from tests.support.panels import panel_judges, sit_down
from tests.support.record import assert_record_is_whole, assert_replay_passes, export_to, table
from tests.support.stack import make_draft, make_recipe, sweep_everything, vote_until_finished, wait_until_idle
from tests.support.warm_ups import TEXTS as RING
from tests.support.warm_ups import warming_recipe

STEPS, FURTHER, N = 6, 2, 3
JUDGES = [{"question": "Which is darker?", "budget": N}]


def campaign_with(researcher, most: int | None = None, *, file: str | None = None, fields=None, **recipe) -> Campaign:
    """Return a started campaign whose budget is that of the declared steps, or another one."""
    changes = {"judges": JUDGES, "steps": STEPS, "further_steps": FURTHER} | recipe
    described = make_recipe(**{name: value for name, value in changes.items() if value is not None})
    draft = make_draft(researcher, recipe=described, **({"file": file} if file else {}), **(fields or {}))
    needed = budget.needs(draft.parsed_recipe, recruiting.recruitment_of(draft).parsed_protocol).answers
    recruiting.set_up(draft, {"recruiter": ANYBODY.name, "budget": most or needed}, ())
    lifecycle.start(draft)
    wait_until_idle()
    draft.refresh_from_db()
    return draft


def newcomers(campaign: Campaign, number: int = 6) -> list[Annotator]:
    campaign.refresh_from_db()
    return [Annotator.objects.create(campaign=campaign, votes_cast=0) for _ in range(number)]


def finish(campaign: Campaign, people: list[Annotator] | None = None, seed: int = 1) -> int:
    scores = {judge.place: lambda place: place / 6 for judge in campaign.judges.all()}
    return vote_until_finished(campaign, people or newcomers(campaign), scores, np.random.default_rng(seed))


def lengths(campaign: Campaign) -> list[int]:
    return list(campaign.chains.order_by("place").values_list("length", flat=True))


def assert_it_ended_well(campaign: Campaign, tmp_path) -> int:
    """Return how many rounds there were, after looking at the campaign and its record."""
    rounds = list(campaign.rounds.all())
    assert [each.number for each in rounds] == list(range(1, len(rounds) + 1))
    length = campaign.parsed_recipe.rounds.length_after(len(rounds))
    assert set(campaign.chains.filter(ended_at=None).values_list("length", "step")) == {(length, length)}
    assert not Lease.objects.filter(ended_at=None).exists()
    assert budget.spent(campaign).answers <= recruiting.recruitment_of(campaign).budget
    assert_record_is_whole(campaign)
    path = export_to(campaign, tmp_path)
    assert_replay_passes(path)
    assert len(table(path, "rounds.csv")) == len(rounds)
    return len(rounds)


def test_saved_votes_open_rounds_until_the_next_one_does_not_fit(researcher, idle_tasks, tmp_path):
    campaign = campaign_with(researcher, steps=14)
    votes = finish(campaign)
    assert assert_it_ended_well(campaign, tmp_path) >= 2
    assert recruiting.recruitment_of(campaign).budget - votes < 3 * FURTHER * N


def test_without_further_steps_a_campaign_ends_at_its_declared_length(researcher, idle_tasks, tmp_path):
    campaign = campaign_with(researcher, further_steps=None)
    finish(campaign)
    assert lengths(campaign) == [STEPS] * 3
    assert "rounds.csv" not in str(table_names(export_to(campaign, tmp_path)))
    assert "further_steps" not in campaign.recipe


def table_names(path) -> list[str]:
    with zipfile.ZipFile(path) as archive:
        return archive.namelist()


ALIKE = "text\n" + "".join(f"text {place}\n" for place in range(6))
# Of objects that are all alike, one vote decides a step and every step needs it.
NOTHING_SAVED = {
    "file": ALIKE,
    "judges": [{"question": "Which is darker?", "budget": 1}],
    "space": {"kind": "catalog", "objects": "texts", "neighbours": 5},
    "kernel": {"kind": "neighbours"},
}


@pytest.mark.parametrize(("spare", "rounds"), [(5, 0), (6, 1)])
def test_an_answer_less_opens_a_round_less(researcher, idle_tasks, spare, rounds):
    campaign = campaign_with(researcher, 3 * STEPS + spare, **NOTHING_SAVED)
    finish(campaign)
    assert campaign.rounds.count() == rounds
    assert lengths(campaign) == [STEPS + rounds * FURTHER] * 3


@pytest.mark.parametrize("spare", [6, 7])
def test_the_votes_of_a_round_are_set_aside_from_trials_and_late_votes(researcher, idle_tasks, spare):
    campaign = campaign_with(researcher, 3 * STEPS + spare, **NOTHING_SAVED)
    with transaction.atomic():
        assert budget.takes_one_more(campaign)
    vote_up_to_the_first_round(campaign)
    with transaction.atomic():
        assert budget.takes_one_more(campaign) == (spare == 7)


def forget_the_round(campaign: Campaign) -> None:
    """Leave a campaign as a process would that died before it opened a round."""
    Comparison.objects.filter(chain__campaign=campaign, step__gt=STEPS).delete()
    campaign.rounds.all().delete()
    campaign.chains.update(length=STEPS)


def vote_up_to_the_first_round(campaign: Campaign) -> list[Annotator]:
    people, rng = newcomers(campaign), np.random.default_rng(3)
    while not campaign.rounds.exists():
        wait_until_idle()
        person = people[int(rng.integers(len(people)))]
        if lease := leases.take(person):
            leases.answer(lease.key, person, Side.LEFT, 0)
    wait_until_idle()
    return people


def test_the_sweep_opens_a_round_that_a_crash_has_left_unopened(researcher, idle_tasks, tmp_path):
    campaign = campaign_with(researcher)
    people = vote_up_to_the_first_round(campaign)
    forget_the_round(campaign)
    sweep_everything()
    wait_until_idle()
    assert lengths(campaign) == [STEPS + FURTHER] * 3
    assert Comparison.objects.filter(chain__campaign=campaign, step=STEPS + 1).count() == 3
    finish(campaign, people)
    assert_it_ended_well(campaign, tmp_path)


def test_of_many_who_look_at_once_one_opens_the_round(researcher, idle_tasks, tmp_path):
    campaign = campaign_with(researcher)
    people = vote_up_to_the_first_round(campaign)
    forget_the_round(campaign)

    def look(_: int) -> None:
        try:
            transitions.finish_if_done(Campaign.objects.get(pk=campaign.pk))
        finally:
            connections.close_all()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(look, range(6)))
    wait_until_idle()
    assert campaign.rounds.count() == 1
    assert lengths(campaign) == [STEPS + FURTHER] * 3
    finish(campaign, people)
    assert_it_ended_well(campaign, tmp_path)


def test_last_steps_that_are_decided_at_once_open_one_round(researcher, idle_tasks, tmp_path):
    """Three people decide the last steps of three chains in one moment, each on a connection of their own."""
    campaign = campaign_with(researcher, 500, judges=[{"question": "Which is darker?", "budget": 1}], chains=3)
    people = newcomers(campaign, 3)
    for _ in range(60):
        wait_until_idle()
        held = [lease for person in people if (lease := leases.take(person))]
        if not held:
            break

        def answer(lease: Lease) -> None:
            try:
                leases.answer(lease.key, lease.annotator, Side.LEFT, 0)
            finally:
                connections.close_all()

        with ThreadPoolExecutor(3) as pool:
            list(pool.map(answer, held))
    campaign.refresh_from_db()
    assert campaign.status == Campaign.Status.FINISHED
    assert assert_it_ended_well(campaign, tmp_path) >= 3


def test_a_round_may_open_while_paused_and_its_steps_do_not(researcher, idle_tasks, tmp_path):
    campaign = campaign_with(researcher)
    people = newcomers(campaign)
    # The last vote before the round is given by somebody who had the pair on their screen.
    while True:
        wait_until_idle()
        lease = next(filter(None, map(leases.take, people)))
        chains = campaign.chains.filter(step__lt=F("length"))
        if chains.count() == 1 and chains.get().step == STEPS - 1:
            lifecycle.pause(campaign)
        leases.answer(lease.key, lease.annotator, Side.LEFT, 0)
        campaign.refresh_from_db()
        if campaign.rounds.exists():
            break
        if campaign.status == Campaign.Status.PAUSED:
            lifecycle.resume(campaign)
    wait_until_idle()
    assert campaign.status == Campaign.Status.PAUSED
    assert lengths(campaign) == [STEPS + FURTHER] * 3
    assert not Comparison.objects.filter(chain__campaign=campaign, step__gt=STEPS).exists()
    lifecycle.resume(campaign)
    finish(campaign, people)
    assert_it_ended_well(campaign, tmp_path)


def test_a_chain_that_was_ended_walks_no_further_and_costs_nothing(researcher, idle_tasks, tmp_path):
    campaign = campaign_with(researcher, fields={"park_after_skips": 1})
    lease = leases.take(newcomers(campaign, 1)[0])
    leases.skip(lease.key, lease.annotator)
    unparking.end_chain(lease.comparison_id, "not to be shown")
    finish(campaign)
    assert assert_it_ended_well(campaign, tmp_path) >= 1
    assert campaign.chains.get(ended_at__isnull=False).length == STEPS
    assert {each.walking for each in campaign.rounds.all()} == {2}
    assert campaign.rounds.first().answers_needed == 2 * FURTHER * N


def test_ending_the_last_chain_that_walks_opens_the_round_of_the_others(researcher, idle_tasks, tmp_path):
    campaign = campaign_with(researcher, fields={"park_after_skips": 1})
    skipper, *people = newcomers(campaign, 7)
    lease = leases.take(skipper)
    leases.skip(lease.key, skipper)
    rng = np.random.default_rng(2)
    for _ in range(300):
        wait_until_idle()
        person = people[int(rng.integers(len(people)))]
        if lease_of := leases.take(person):
            leases.answer(lease_of.key, person, Side.RIGHT, 0)
    assert not campaign.rounds.exists()
    unparking.end_chain(lease.comparison_id, "")
    assert campaign.rounds.count() == 1
    finish(campaign, people)
    assert_it_ended_well(campaign, tmp_path)


def test_where_all_chains_were_ended_there_is_no_round(researcher, idle_tasks):
    campaign = campaign_with(researcher, fields={"park_after_skips": 1}, chains=1)
    lease = leases.take(newcomers(campaign, 1)[0])
    leases.skip(lease.key, lease.annotator)
    unparking.end_chain(lease.comparison_id, "")
    campaign.refresh_from_db()
    assert campaign.status == Campaign.Status.FINISHED
    assert not campaign.rounds.exists()


def test_chains_that_open_in_a_round_walk_as_far_as_the_others(researcher, idle_tasks, tmp_path):
    one_vote = [{"question": "Which is darker?", "budget": 1}]
    campaign = campaign_with(researcher, 200, chains=1, most_chains=3, judges=one_vote)
    first, *others = newcomers(campaign, 5)
    # Alone they never wait, so no further chain opens.
    while not campaign.rounds.exists():
        wait_until_idle()
        if lease := leases.take(first):
            leases.answer(lease.key, first, Side.LEFT, 0)
    assert campaign.chains.count() == 1
    for person in others:
        leases.take(person)
        wait_until_idle()
    assert campaign.chains.count() == 3
    assert set(lengths(campaign)) == {campaign.parsed_recipe.rounds.length_after(campaign.rounds.count())}
    finish(campaign, [first, *others])
    assert assert_it_ended_well(campaign, tmp_path) >= 2


def test_a_panel_and_a_warm_up_get_further_steps(researcher, idle_tasks, tmp_path):
    panel = campaign_with(researcher, judges=panel_judges(3))
    people = [sit_down(panel, seat) for seat in (1, 2, 3)]
    finish(panel, people)
    assert assert_it_ended_well(panel, tmp_path) >= 1
    warming = campaign_with(researcher, 300, file=RING, **warming_recipe(further_steps=2))
    finish(warming)
    assert assert_it_ended_well(warming, tmp_path) >= 1
    assert warming.tuning


def test_steps_that_cost_nothing_end_too(researcher, idle_tasks, tmp_path):
    """Almost always one object is proposed for itself, without a vote: a budget alone would open rounds for ever."""
    recipe = {"space": {"kind": "catalog", "objects": "texts", "neighbours": 0}, "kernel": {"kind": "independent"}}
    nearly_one = "text,weight\nalone,1e15\nnever,1\n"
    campaign = campaign_with(researcher, 500, file=nearly_one, chains=2, steps=3, further_steps=5, **recipe)
    for _ in range(40):
        wait_until_idle()
        sweep_everything()
    campaign.refresh_from_db()
    assert campaign.status == Campaign.Status.FINISHED
    assert assert_it_ended_well(campaign, tmp_path) == 5
    assert lengths(campaign) == [28, 28]


def test_a_start_without_a_budget_is_refused_with_what_would_do(researcher):
    draft = make_draft(researcher, recipe=make_recipe(judges=JUDGES, steps=STEPS, further_steps=FURTHER))
    with pytest.raises(NotPossible, match=r"A budget pays for further steps, and there is none.* to 54 or more"):
        lifecycle.start(draft)
    draft.refresh_from_db()
    assert draft.is_draft

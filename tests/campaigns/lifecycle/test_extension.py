"""Extensions: chains go on as if the setup had asked for so many steps, and the record says when that was decided."""

import json
from collections.abc import Callable

import numpy as np
import pytest

from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.lifecycle import changes
from prefmh_web.campaigns.models import Campaign, Chain, NotPossible, Side, Voter
from prefmh_web.campaigns.record.export import results_now
from prefmh_web.recruiters import ANYBODY
from sampler import Record, read_record
from sampler.diagnostics.findings import findings
from sampler.diagnostics.report import diagnose
from tests.support.campaigns import make_campaign, make_config, make_draft, set_study, started_now, vote_until_finished
from tests.support.process import wait_until_idle
from tests.support.records import checked_export, differences, export_to, happened, table

STEPS, FURTHER = 4, 3
CONFIG = {"judges": [{"question": "Which is darker?", "votes": 2}], "chains": 2, "burn_in": 1}


@pytest.fixture
def short(researcher, idle_tasks) -> Campaign:
    return make_campaign(researcher, config=make_config(steps=STEPS, **CONFIG))


def finish(campaign: Campaign) -> None:
    """Vote to the end. A pair is answered by its objects alone, so the order in which pairs come does not matter."""
    campaign.refresh_from_db()
    people = [Voter.objects.create(campaign=campaign, votes_cast=0) for _ in range(2)]
    vote_until_finished(campaign, people, {0: lambda index: 1e4 * index}, np.random.default_rng(1))
    campaign.refresh_from_db()


def walked(campaign: Campaign) -> list[tuple[object, ...]]:
    columns = ("chain__index", "step", "uniform", "current__index", "proposal__index", "verdict")
    chains = campaign.chains.all()
    return sorted(chains.exclude(comparisons=None).values_list(*(f"comparisons__{c}" for c in columns)))


def walk_to_the_end(chain: Chain) -> None:
    """Vote on one chain alone: whoever gets a pair of another one answers when this one has ended."""
    held = []
    while chain.step < STEPS:
        person = Voter.objects.create(campaign=chain.campaign, votes_cast=0)
        lease = leases.take(person)
        assert lease is not None
        if lease.comparison.chain_id == chain.pk:
            leases.answer(lease.key, person, Side.FIRST, 0)
        else:
            held.append((lease.key, person))
        wait_until_idle()
        chain.refresh_from_db()
    for key, person in held:
        leases.answer(key, person, Side.FIRST, 0)


def test_an_extended_chain_walks_as_one_that_was_declared_longer(researcher, idle_tasks, short, tmp_path):
    declared = make_campaign(researcher, config=make_config(steps=STEPS + FURTHER, **CONFIG))
    finish(declared)
    finish(short)
    changes.extend(short, FURTHER, researcher)
    assert short.status == Campaign.Status.PAUSED
    assert short.finished_at is None
    lifecycle.resume(short)
    wait_until_idle()
    finish(short)
    assert short.status == Campaign.Status.FINISHED
    assert walked(short) == walked(declared)
    path = checked_export(short, tmp_path)
    assert happened(path, "extended") == [
        ("extended", {"steps_before": 4, "steps_after": 7, "verdict": "cannot be judged", "by": "owner"})
    ]
    rng = np.random.default_rng(0)
    assert any("Extended from 4 to 7 steps a chain" in line for line in diagnose(findings(read_record(path), rng), rng))
    phases = {int(row["step"]): row["phase"] for row in table(path, "samples.csv")}
    assert [phases[step] for step in (1, STEPS, STEPS + FURTHER)] == ["burn-in", "sampling", "sampling"]


def test_a_running_campaign_goes_on_where_its_chains_stand(short, tmp_path):
    walk_to_the_end(short.chains.order_by("index")[0])
    assert sorted(chain.step for chain in short.chains.all())[0] < STEPS
    changes.extend(short, FURTHER)
    changes.extend(short, 1)
    wait_until_idle()
    assert short.is_running
    assert {chain.length for chain in short.chains.all()} == {STEPS + FURTHER + 1}
    assert not short.chains.exclude(comparisons__verdict__isnull=True).exists()
    finish(short)
    assert {chain.step for chain in short.chains.all()} == {STEPS + FURTHER + 1}
    checked_export(short, tmp_path)


def test_a_campaign_that_was_ended_by_hand_stays_so_although_its_last_pair_was_answered_later(researcher, idle_tasks):
    judges = [{"question": "Which is darker?", "votes": 1}]
    campaign = make_campaign(researcher, config=make_config(steps=1, chains=1, judges=judges))
    held = leases.take(Voter.objects.create(campaign=campaign))
    lifecycle.finish_now(campaign)
    leases.answer(held.key, held.voter, Side.FIRST, 0)
    assert campaign.chains.get().step == 1
    with pytest.raises(NotPossible, match="was ended before its last step, and stays so"):
        changes.extend(campaign, FURTHER)


@pytest.mark.parametrize(
    ("steps", "told"), [(0, "at least 1"), (-2, "at least 1"), (10**6, "cannot get 1000004 steps")]
)
def test_a_number_that_cannot_be_is_refused_and_changes_nothing(short, steps, told):
    with pytest.raises(NotPossible, match=told):
        changes.extend(short, steps)
    short.refresh_from_db()
    assert short.config_data["steps"] == STEPS
    assert not short.events.filter(kind="extended").exists()
    assert {chain.length for chain in short.chains.all()} == {STEPS}


def test_the_results_that_are_kept_know_every_extension(short):
    finish(short)
    for times in (1, 2):
        changes.extend(short, FURTHER)
        assert results_now(Campaign.objects.get(pk=short.pk)).extended == times


def test_a_budget_must_cover_the_longer_chains(researcher, idle_tasks):
    draft = make_draft(researcher, config=make_config(steps=STEPS, **CONFIG))
    set_study(draft, {"recruiter": ANYBODY.name, "budget": 2 * 2 * (STEPS + 1)}, ())
    started_now(draft)
    with pytest.raises(NotPossible, match="First set “Budget, in answers” to 24 or more"):
        changes.extend(draft, 2)
    changes.extend(draft, 1)
    assert draft.config_data["steps"] == STEPS + 1
    finish(draft)
    with pytest.raises(NotPossible, match="cannot be raised any more, because the campaign is finished"):
        changes.extend(draft, 1)


def test_the_owner_extends_on_the_campaigns_page(client, researcher, short):
    client.force_login(researcher)
    path = short.get_absolute_url()
    assert "Extend the campaign" in client.get(f"{path}setup/").content.decode()
    told = client.post(f"{path}extend/", {"steps": "3"}, follow=True).content.decode()
    assert "Each chain walks 7 steps now." in told
    told = client.post(f"{path}extend/", {"steps": "many"}, follow=True).content.decode()
    assert "Further steps of each chain: Enter a whole number. Nothing was changed." in told
    assert short.events.filter(kind="extended").count() == 1


def event_in(record: Record) -> dict[str, str]:
    return next(row for row in record["events"] if row["kind"] == "extended")


def said(**changes: int) -> Callable[[Record], None]:
    def change(record: Record) -> None:
        event = event_in(record)
        event["data"] = json.dumps(json.loads(event["data"]) | changes)

    change.__name__ = str(changes)
    return change


def later(record: Record) -> None:
    event_in(record)["at"] = "2099-01-01T00:00:00.000Z"


def shorter_config(record: Record) -> None:
    record.config["steps"] -= 1
    for rows in (record["steps"], record["votes"], record["samples"]):
        rows[:] = [row for row in rows if int(row["step"]) <= record.config["steps"]]


def test_a_campaign_of_one_step_may_have_been_extended(researcher, idle_tasks, tmp_path):
    campaign = make_campaign(researcher, config=make_config(steps=1, **CONFIG | {"burn_in": 0}))
    changes.extend(campaign, FURTHER)
    checked_export(campaign, tmp_path)


TAMPERED = [said(steps_before=9), said(steps_after=6), later, shorter_config]


def test_replay_finds_an_extension_that_cannot_be(short, tmp_path):
    finish(short)
    changes.extend(short, FURTHER)
    lifecycle.resume(short)
    wait_until_idle()
    finish(short)
    record = read_record(export_to(short, tmp_path))
    assert not differences(record)
    for tamper in TAMPERED:
        assert any("(extended)" in each for each in differences(record, tamper)), tamper.__name__

"""Looks of a stopping rule in a record: `replay` works them out again, and names what was changed."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import pytest
from django.db import connection

import sampler
from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.lifecycle import unparking
from prefmh_web.campaigns.models import Annotator, Comparison
from prefmh_web.campaigns.record import snapshot
from sampler import Record, read_record
from sampler.diagnostics.report import diagnose
from tests.campaigns.engine.test_looks import EASY, NEVER, campaign_with, lengths, vote_to
from tests.campaigns.engine.test_rounds import finish
from tests.support.record import assert_replay_passes, export_to, table


@pytest.fixture(scope="module")
def kept() -> dict[str, Record]:
    """The record of one campaign, for all tests of this file."""
    return {}


@pytest.fixture
def record(researcher, idle_tasks, tmp_path, kept) -> Record:
    if not kept:
        campaign = campaign_with(researcher, NEVER)
        finish(campaign)
        kept["record"] = read_record(export_to(campaign, tmp_path))
    return copy.deepcopy(kept["record"])


def told(record: Record) -> list[str]:
    tables = record.states, record.steps, record.votes, record.samples
    return [str(each) for each in sampler.replay(record.recipe, *tables, looks=record.looks).differences]


def cell(place: int, column: str, value: str) -> Callable[[Record], None]:
    def change(record: Record) -> None:
        record.looks[place][column] = value

    change.__name__ = f"{column}-{value}"
    return change


def without_the_first(record: Record) -> None:
    record.looks.pop(0)


def without_the_last(record: Record) -> None:
    record.looks.pop()


def one_too_many(record: Record) -> None:
    record.looks.append(record.looks[-1] | {"step": "20"})


def stopped_at_the_second(record: Record) -> None:
    record.looks[1]["stops"] = "1"
    del record.looks[2:]


def a_chain_that_lags(record: Record) -> None:
    for rows in (record.steps, record.votes, record.samples):
        rows[:] = [row for row in rows if row["chain"] != "2" or int(row["step"]) <= 5]


def a_step_before_its_look(record: Record) -> None:
    step = next(row for row in record.steps if (row["chain"], row["step"]) == ("1", "14"))
    step["opened_at"] = "2020-01-01T00:00:00.000+00:00"


def easier(record: Record) -> None:
    record.recipe["stopping"] = EASY


def test_a_true_record_agrees(record):
    assert told(record) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (cell(0, "r_hat", "1.0"), "looks.csv, step 8: r_hat"),
        (cell(1, "bulk_ess", "5000"), "looks.csv, step 12: bulk_ess"),
        (cell(2, "tail_ess", ""), "looks.csv, step 16: tail_ess"),
        (cell(0, "stops", "1"), "looks.csv, step 8: stops"),
        (cell(1, "step", "13"), "looks.csv, step 13: the step"),
        (without_the_first, "looks.csv, step 12: the step: the export has 12, expected 8"),
        (without_the_last, "step 17"),
        (one_too_many, "expected none: there are 3 looks at most"),
        (stopped_at_the_second, "looks.csv, step 12: stops: the export has 1, expected 0"),
        (easier, "stops"),
        (a_chain_that_lags, "looks.csv, step 8: the steps of chain 2: the export has 5, expected 8, or its end before"),
        (a_step_before_its_look, "looks.csv, step 12: when step 14 of chain 1 opened"),
    ],
)
def test_a_changed_record_is_told_of(record, change, message):
    change(record)
    assert any(message in each for each in told(record)), told(record)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda record: record.recipe.pop("stopping"), r"a looks\.csv, although the recipe has no stopping rule"),
        (cell(0, "r_hat", "much"), "could not convert"),
    ],
)
def test_what_cannot_be_read_is_refused(record, change, message):
    change(record)
    with pytest.raises(sampler.RecordError, match=message):
        told(record)


def test_a_last_look_that_cannot_be_read_is_told_with_its_row(record):
    record.looks[-1] |= {"step": "far", "stops": "1"}
    with pytest.raises(sampler.RecordError) as refused:
        told(record)
    assert (refused.value.file, refused.value.row) == ("looks.csv", record.looks[-1])


def test_a_record_without_its_looks_is_refused(record):
    tables = record.states, record.steps, record.votes, record.samples
    with pytest.raises(sampler.RecordError, match=r"there is no looks\.csv, although the recipe has a stopping rule"):
        sampler.replay(record.recipe, *tables)


@pytest.mark.parametrize(
    ("changes", "path", "message"),
    [
        ({"property": "charm"}, "stopping.property", "there is no property 'charm' of these objects; there are words"),
        ({"first": 20}, "stopping.first", "must be less than the 20 steps"),
        ({"first": 3}, "stopping.first", "must be 4 or more"),
        ({"every": 0}, "stopping.every", "greater than or equal to 1"),
        ({"r_hat": 1}, "stopping.r_hat", "greater than 1"),
    ],
)
def test_a_rule_that_does_not_fit_is_refused(record, changes, path, message):
    recipe = record.recipe | {"stopping": NEVER | changes}
    with pytest.raises(sampler.RecipeError) as refused:
        sampler.parse_recipe(recipe)
    assert any(each.path == path and message in each.message for each in refused.value.problems), refused.value


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"chains": 1}, "compares chains"),
        ({"most_chains": 9}, "chains that open later"),
        ({"further_steps": 2}, "does not go with further steps"),
        ({"burn_in": 6}, "must be 10 or more: 4 steps after the 6 that are left out"),
    ],
)
def test_what_it_does_not_go_with_is_refused(record, changes, message):
    with pytest.raises(sampler.RecipeError, match=message):
        sampler.parse_recipe(record.recipe | changes)


def test_a_record_whose_chains_were_all_ended_after_a_look_keeps_the_look(researcher, idle_tasks, tmp_path):
    campaign = campaign_with(researcher, NEVER, fields={"park_after_skips": 1})
    vote_to(campaign, 8)
    assert lengths(campaign) == {12}
    # Each chain then has an open step after the ninth, or a parked one.
    vote_to(campaign, 9)
    for _ in range(3):
        person = Annotator.objects.create(campaign=campaign, votes_cast=0)
        if lease := leases.take(person):
            leases.skip(lease.key, person)
    for step in Comparison.objects.filter(chain__campaign=campaign, parked=Comparison.Parked.PARKED):
        unparking.end_chain(step.pk, "not to be shown")
    assert not campaign.chains.filter(ended_at__isnull=True).exists()
    path = export_to(campaign, tmp_path)
    assert [row["step"] for row in table(path, "looks.csv")] == ["8"]
    assert_replay_passes(path)


def test_a_look_takes_no_chain_that_was_ended_before_it(researcher, idle_tasks, tmp_path):
    campaign = campaign_with(researcher, NEVER, fields={"park_after_skips": 1})
    unparking.end_chain(parked_in(campaign), "not to be shown")
    finish(campaign)
    path = export_to(campaign, tmp_path)
    assert [row["step"] for row in table(path, "looks.csv")] == ["8", "12", "16"]
    assert_replay_passes(path)


def parked_in(campaign) -> int:
    """Return a step that somebody has skipped, and which is parked by that."""
    person = Annotator.objects.create(campaign=campaign, votes_cast=0)
    leases.skip(leases.take(person).key, person)
    return Comparison.objects.get(chain__campaign=campaign, parked=Comparison.Parked.PARKED).pk


def test_a_chain_that_is_ended_while_an_export_begins_is_ended_in_it(researcher, idle_tasks):
    """Else the record would have a look that others came to, and a chain that lags without an end."""
    campaign = campaign_with(researcher, NEVER, fields={"park_after_skips": 1})
    parked = parked_in(campaign)
    is_ended = []

    def end_first(execute, sql, params, many, context):
        if 'FROM "campaigns_chain"' in sql and not is_ended:
            is_ended.append(True)
            unparking.end_chain(parked, "not to be shown")
        return execute(sql, params, many, context)

    with connection.execute_wrapper(end_first):
        found = snapshot.Snapshot.now(campaign)
    step = Comparison.objects.select_related("chain").get(pk=parked)
    assert found.ended == {(step.chain.place, step.step)}


def test_a_chain_that_is_ended_while_an_export_begins_takes_no_look_from_it(researcher, idle_tasks):
    """Which chains were ended is read first, and then how far all have come: the look lay between."""
    campaign = campaign_with(researcher, NEVER)
    finish(campaign)
    looks = snapshot._looks_at(campaign, {0: 6, 1: 9, 2: 8}, set())
    assert [each.step for each in looks] == [8]
    assert not snapshot._looks_at(campaign, {0: 6, 1: 8, 2: 8}, set())


def test_a_report_says_that_the_length_depends_on_what_was_seen(record):
    def about(found: Record) -> list[str]:
        return [line for line in diagnose(found, np.random.default_rng(1), None, 50) if "stopping rule" in line]

    [line] = about(record)
    assert line.startswith("The stopping rule on words has not stopped the chains, after 3 looks; ")
    stopped_at_the_second(record)
    [line] = about(record)
    assert line.startswith("The stopping rule on words stopped all chains at step 12 of at most 20, after 2 looks; ")
    assert line.endswith("averages have a small bias")
    del record.recipe["stopping"]
    assert about(record) == []

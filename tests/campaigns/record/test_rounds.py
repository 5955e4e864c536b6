"""Rounds of further steps in a record: `replay` works them out again, and names what was changed."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import sampler
from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.models import Side
from sampler import Record, read_record
from sampler.diagnostics.report import declared, diagnose
from tests.campaigns.engine.test_rounds import FURTHER, campaign_with, finish, newcomers
from tests.support.record import export_to
from tests.support.stack import wait_until_idle

STEPS = 14
MODEL = {"question": "Which?", "budget": 1, "source": {"kind": "model", "endpoint": "e", "votes": "sampled"}}


@pytest.fixture(scope="module")
def kept() -> dict[str, Record]:
    """The record of one campaign, for all tests of this file."""
    return {}


@pytest.fixture
def record(researcher, idle_tasks, tmp_path, kept) -> Record:
    if not kept:
        campaign = campaign_with(researcher, steps=STEPS)
        finish(campaign)
        kept["record"] = read_record(export_to(campaign, tmp_path))
    return copy.deepcopy(kept["record"])


def told(record: Record) -> list[str]:
    tables = record.states, record.steps, record.votes, record.samples
    more = {"protocol": record.protocol, "checks": record.checks, "rounds": record.rounds}
    return [str(each) for each in sampler.replay(record.recipe, *tables, **more).differences]


def last_round(record: Record) -> tuple[int, int]:
    """Return the number of the last round, and how long the chains were before it."""
    return len(record.rounds), STEPS + FURTHER * (len(record.rounds) - 1)


def cell(column: str, by: int) -> Callable[[Record], None]:
    def change(record: Record) -> None:
        record.rounds[0][column] = str(int(record.rounds[0][column]) + by)

    change.__name__ = f"{column}{by:+}"
    return change


def without_the_last_round(record: Record) -> None:
    record.rounds.pop()


def without_all_of_the_last_round(record: Record) -> None:
    """As if it had never been opened, with its steps, votes and samples."""
    _, before = last_round(record)
    record.rounds.pop()
    for rows in (record.steps, record.votes, record.samples):
        rows[:] = [row for row in rows if int(row["step"]) <= before]


def with_a_round_too_many(record: Record) -> None:
    record.rounds.append(record.rounds[-1] | {"round": str(len(record.rounds) + 1)})


def one_chain_walks_alone(record: Record) -> None:
    """The last rounds were for one chain only: the others' steps are taken out."""
    _, before = last_round(record)
    for rows in (record.steps, record.votes, record.samples):
        rows[:] = [row for row in rows if row["chain"] == "0" or int(row["step"]) <= before - FURTHER]


def opened_after_its_steps(record: Record) -> None:
    record.rounds[0]["opened_at"] = record.steps[-1]["decided_at"]


def opened_before_the_one_before(record: Record) -> None:
    record.rounds[1]["opened_at"] = record.votes[0]["cast_at"]


def a_smaller_budget(record: Record) -> None:
    record.protocol["budget"]["answers"] -= 3


def a_sample_as_if_declared(record: Record) -> None:
    next(row for row in record.samples if row["phase"] == "beyond")["phase"] = "sampling"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (cell("answers_left", -40), "round 1: answers_left"),
        (cell("answers_left", 1), "round 1: answers_left"),
        (cell("answers_needed", -1), "round 1: answers_needed"),
        (cell("votes", -1), "round 1: votes"),
        (cell("walking", -1), "round 1: walking"),
        (cell("steps", 1), "round 1: steps"),
        (cell("chains", -1), "round 1: chains"),
        (cell("round", 1), "round 1: round"),
        (without_the_last_round, "the step: the export has one, expected none: the last step is"),
        (without_all_of_the_last_round, "the round: the export has none, expected one"),
        (with_a_round_too_many, "answers_left: the export has"),
        (one_chain_walks_alone, "chain 1: the export has a shorter one"),
        (opened_after_its_steps, f"round 1: when step {STEPS + 1} of chain 0 opened"),
        (opened_before_the_one_before, "round 2: opened_at"),
        (a_smaller_budget, "round 1: answers_left"),
        (a_sample_as_if_declared, f"step {STEPS + 1}: the sample's phase: the export has sampling, expected beyond"),
    ],
)
def test_what_was_changed_in_a_record_is_named(record, change, named):
    assert len(record.rounds) >= 2
    assert told(record) == []
    change(record)
    assert any(named in each for each in told(record)), told(record)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"rounds": None}, r"there is no rounds\.csv, although the recipe has further_steps"),
        ({"protocol": None}, r"protocol\.json has no budget"),
    ],
)
def test_a_record_that_lacks_what_pays_for_its_steps_cannot_be_read(record, changes, problem):
    with pytest.raises(sampler.RecordError, match=problem):
        told(replace(record, **changes))


def test_a_recipe_without_further_steps_has_no_rounds(record):
    del record.recipe["further_steps"]
    with pytest.raises(sampler.RecordError, match=r"a rounds\.csv, although the recipe has no further_steps"):
        told(record)


@pytest.mark.parametrize(
    ("changes", "path", "message"),
    [
        ({"further_steps": 0}, "further_steps", "greater than or equal to 1"),
        ({"further_steps": 451}, "further_steps", "must be at most 450: a chain walks 500 steps at most"),
        (
            {"judges": [MODEL]},
            "further_steps",
            "does not go with models or programs that judge",
        ),
    ],
)
def test_a_recipe_whose_further_steps_do_not_fit_is_refused(record, changes, path, message):
    recipe = record.recipe | {"steps": 50, "further_steps": 5} | changes
    recipe.pop("target")
    with pytest.raises(sampler.RecipeError) as refused:
        sampler.parse_recipe(recipe)
    assert [each.path for each in refused.value.problems] == [path]
    assert message in str(refused.value)


def test_a_record_of_any_moment_replays(researcher, idle_tasks, tmp_path):
    campaign = campaign_with(researcher, steps=4)
    people, rng = newcomers(campaign), np.random.default_rng(8)
    seen = set()
    while not campaign.finished_at:
        wait_until_idle()
        person = people[int(rng.integers(len(people)))]
        if lease := leases.take(person):
            leases.answer(lease.key, person, Side.LEFT, 0)
            record = read_record(export_to(campaign, tmp_path))
            assert told(record) == []
            seen.add(len(record.rounds))
        campaign.refresh_from_db()
    assert len(seen) >= 2


def test_a_report_leaves_out_what_is_beyond_the_declared_length_unless_asked(record):
    further = sum(int(row["step"]) > STEPS for row in record.steps)
    usual, whole, short = (
        list(diagnose(each, np.random.default_rng(1), None, 50, beyond_declared=beyond))
        for each, beyond in ((record, False), (record, True), (declared(record), False))
    )
    (about,) = (line for line in usual if "beyond the declared length" in line)
    assert about.startswith(f"Left out: {further} steps beyond the declared length, of {len(record.rounds)} rounds")
    assert "--beyond-declared" in about
    # All else is what it is of a record that ends with the declared steps.
    assert [line for line in usual if line != about] == short
    assert f"{STEPS} draws" in "".join(usual)
    assert f"Included: {further} steps beyond the declared length" in "".join(whole)
    assert f"{STEPS + FURTHER * len(record.rounds)} draws" in "".join(whole)

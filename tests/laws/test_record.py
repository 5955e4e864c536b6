"""What is done to counted votes and to decided steps afterwards: `replay` names the row."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace

import pytest

import sampler
from prefmh_web.campaigns.models import Annotator
from sampler import Position, Verdict, ask, read_record
from tests.laws.cases import RIGHT, SEED, WHOLE
from tests.laws.study import Study
from tests.support.campaigns import export_to

STEPS = 12


@pytest.fixture(scope="module")
def kept() -> dict[str, sampler.Record]:
    """The record of one study, for all tests of this file."""
    return {}


@pytest.fixture
def record(researcher, tmp_path, kept) -> sampler.Record:
    """The record of a small study, with people who were removed or have withdrawn after votes that count."""
    if not kept:
        study = Study(researcher, replace(RIGHT[WHOLE], steps=STEPS))
        study.run()
        gone = Annotator.objects.filter(removed_at__isnull=False, votes_cast__gte=1)
        kept["record"] = read_record(export_to(study.campaign, tmp_path))
        kept["gone"] = {str(pk) for pk in gone.values_list("pk", flat=True)}
    return copy.deepcopy(kept["record"])


Place = tuple[int, int]


def without_the_votes_of_somebody_removed(record, gone) -> Place:
    """E1: the votes of an excluded person are taken out."""
    first = next(row for row in record.votes if row["annotator"] in gone)
    record.votes[:] = [row for row in record.votes if row["annotator"] != first["annotator"]]
    return int(first["chain"]), int(first["step"])


def with_another_choice(record, _gone) -> Place:
    """E7: a choice is changed after it has counted, and its step decided."""
    vote = next(row for row in record.votes if int(row["step"]) > 1)
    vote["chosen_side"] = {"first": "second", "second": "first"}[vote["chosen_side"]]
    vote["for_proposal"] = str(1 - int(vote["for_proposal"]))
    return int(vote["chain"]), int(vote["step"])


def longer_under_another_seed(record, _gone) -> Place:
    """E9: a step is appended to a chain, drawn with another seed."""
    record.recipe["steps"] = STEPS + 1
    last = next(row for row in reversed(record.samples) if row["chain"] == "0")
    drawn = ask(RIGHT[WHOLE].plan(SEED + 1), Position(0, STEPS, int(last["state"])))
    row = record.steps[-1] | {
        "chain": "0", "step": str(STEPS + 1), "current": last["state"], "proposal": str(drawn.proposal),
        "log_r0": repr(drawn.log_r0), "uniform": repr(drawn.uniform), "votes_cast": "0", "votes_for": "0",
        "verdict": "" if not drawn.is_identity else Verdict.ACCEPT.value,
    }  # fmt: skip
    record.steps.append(row)
    return 0, STEPS + 1


@pytest.mark.parametrize(
    "tamper", [without_the_votes_of_somebody_removed, with_another_choice, longer_under_another_seed]
)
def test_replay_names_the_row(record, kept, tamper: Callable[..., Place]):
    assert not differences(record)
    place = tamper(record, kept["gone"])
    found = differences(record)
    assert found
    assert place in {(each.chain, each.step) for each in found}
    assert any(f"chain {place[0]}" in str(each) and f"step {place[1]}" in str(each) for each in found)


def differences(record):
    tables = record.states, record.steps, record.votes, record.samples
    return sampler.replay(record.recipe, *tables, chains=record.chains).differences

"""What is done to counted votes and to decided steps afterwards: `replay` names the row."""

import copy
from dataclasses import replace

import sampler
from prefmh_web.campaigns.models import Annotator, numbers_in
from sampler import Position, Verdict, ask, read_record
from tests.laws.cases import RIGHT, SEED, WHOLE
from tests.laws.study import Study
from tests.support.campaigns import export_to

STEPS = 12


Place = tuple[int, int]


def without_the_votes_of_somebody_removed(record, gone) -> Place:
    """E1: the votes of an excluded person are taken out."""
    first = next(row for row in record["votes"] if row["voter"] in gone)
    record["votes"][:] = [row for row in record["votes"] if row["voter"] != first["voter"]]
    return int(first["chain_index"]), int(first["step"])


def with_another_choice(record, _gone) -> Place:
    """E7: a choice is changed after it has counted, and its step decided."""
    vote = next(row for row in record["votes"] if int(row["step"]) > 1)
    vote["chosen_side"] = {"first": "second", "second": "first"}[vote["chosen_side"]]
    vote["for_proposal"] = str(1 - int(vote["for_proposal"]))
    return int(vote["chain_index"]), int(vote["step"])


def longer_under_another_seed(record, _gone) -> Place:
    """E9: a step is appended to a chain, drawn with another seed."""
    record.config["steps"] = STEPS + 1
    last = next(row for row in reversed(record["samples"]) if row["chain_index"] == "0")
    drawn = ask(RIGHT[WHOLE].plan(SEED + 1), Position(0, STEPS, int(last["state_index"])))
    row = record["steps"][-1] | {
        "chain_index": "0", "step": str(STEPS + 1), "current_state": last["state_index"],
        "proposal_state": str(drawn.proposal),
        "log_r0": repr(drawn.log_r0), "uniform": repr(drawn.uniform),
        "verdict": "" if not drawn.is_identity else Verdict.ACCEPT.value,
    }  # fmt: skip
    record["steps"].append(row)
    return 0, STEPS + 1


def test_replay_names_the_row(researcher, tmp_path):
    """Of a small study, with people who were removed or have withdrawn after votes that count."""
    study = Study(researcher, replace(RIGHT[WHOLE], steps=STEPS))
    study.run()
    removed = Annotator.objects.filter(removed_at__isnull=False, votes_cast__gte=1)
    numbers = numbers_in(study.campaign)
    gone = {str(numbers[pk]) for pk in removed.values_list("pk", flat=True)}
    right = read_record(export_to(study.campaign, tmp_path))
    assert not differences(right)
    for tamper in (without_the_votes_of_somebody_removed, with_another_choice, longer_under_another_seed):
        record = copy.deepcopy(right)
        chain, step = tamper(record, gone)
        found = differences(record)
        assert (chain, step) in {each.step for each in found}, tamper
        assert any(f"chain {chain}" in str(each) and f"step {step}" in str(each) for each in found), tamper


def differences(record):
    return sampler.replay(record).differences

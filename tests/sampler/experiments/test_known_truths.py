"""What the evaluation finds where the truth is planted."""

import numpy as np
import pytest
from scipy.special import expit

from sampler import ExperimentOptions, tournament_schedule
from sampler.diagnostics.scores import bradley_terry_intervals
from sampler.experiments.metrics import mark_of, tournament_choices
from tests.support.campaigns import begin_run, write_votes

STRENGTHS = np.array([-0.6, -0.3, -0.2, 0.3, 0.8])
METHODS = ("base", "pointwise-sep", "pointwise-joint", "pref-joint", "pref-sep")


def test_a_tournament_of_files_gives_the_planted_strengths(tmp_path):
    """Natural log-odds, mean 0: 50 prompts x 10 pairs x 10 matches x 2 orders; the error of a score is about .05."""
    planted = dict(zip(METHODS, STRENGTHS, strict=True))
    run = begin_run(tmp_path, ExperimentOptions.of("stories"))
    write_votes(run, lambda _, one, other, __: float(expit(planted[one] - planted[other])), np.random.default_rng(4))
    for votes in tournament_choices(run).values():
        assert votes.votes == 10_000
        assert len(votes.clusters) == 50
        found = bradley_terry_intervals(votes, np.random.default_rng(0), 200)
        assert found.estimate.sum() == pytest.approx(0, abs=1e-9)
        for method, value in zip(found.items, found.estimate, strict=True):
            assert value == pytest.approx(planted[method], abs=0.2)


def test_marks_are_the_paper_s():
    rng = np.random.default_rng(3)
    reference = {source: float(value) for source, value in enumerate(rng.normal(40, 10, 60))}
    higher = {source: value + 3 for source, value in reference.items()}
    assert mark_of(higher, reference, higher_is_better=True) == "†"
    assert mark_of(higher, reference, higher_is_better=False) == ""
    assert mark_of(reference, reference, higher_is_better=True) == "‡"


def test_every_match_meets_in_both_orders_and_the_schedule_is_a_function_of_the_seed():
    options = ExperimentOptions.of("stories", prompts=3, matches=4)
    slots = tournament_schedule(options)
    assert slots == tournament_schedule(options)
    assert slots != tournament_schedule(ExperimentOptions.of("stories", prompts=3, matches=4, seeds=[1]))
    assert len({slot.key for slot in slots}) == len(slots) == 10 * 3 * 4 * 3 * 2
    for first, second in zip(slots[::2], slots[1::2], strict=True):
        assert first.key[:2] == second.key[:2]
        assert (first.one_first, second.one_first) == (True, False)
    steps = {slot.match.other.step for slot in slots if slot.match.other.method == "pref-sep"}
    assert steps == {262, 275, 287, 300}

"""Rules that rate: what a config may ask for, and the verdict that ratings give."""

import math
from dataclasses import replace

import numpy as np
import pytest

from sampler import Comparison, PointwiseConfig, Verdict, mean_ratings, parse_config, tell_by_numbers
from tests.support.campaigns import make_config
from tests.support.sampling import problems_of

MODEL = {"kind": "model", "endpoint": "A model"}
JUDGE = {"question": "How gothic is it?", "votes": 2, "source": MODEL}
GOOD = make_config(
    kernel={"kind": "neighbours"},
    judges=[JUDGE, JUDGE | {"votes": 1}],
    rule={"kind": "pointwise", "form": "separate"},
)
ONE_JUDGE = {"judges": [JUDGE]}
COMPARISON = Comparison(0, 1, "x", "y", math.log(0.8), 0.5, (2, 1))


def rule(form, **changes):
    return {"rule": {"kind": "pointwise", "form": form} | changes}


def verdict(pointwise, comparison, *ratings):
    return tell_by_numbers(pointwise, comparison, *(mean_ratings(pointwise, comparison.budgets, x) for x in ratings))


def test_without_a_rule_votes_decide():
    config = {name: value for name, value in GOOD.items() if name != "rule"}
    assert parse_config(config).model_dump()["rule"] == {"kind": "n-vote"}


@pytest.mark.parametrize("form", ["separate", "joint", "difference", "power"])
def test_every_form_takes_one_judge_and_survives_json(form):
    config = parse_config(GOOD | ONE_JUDGE | rule(form))
    assert parse_config(config.model_dump(mode="json")) == config
    assert (config.rule.form, config.rule.scale.answers[0], config.rule.scale.answers[-1]) == (form, "1", "10")


@pytest.mark.parametrize(
    ("changes", "path", "reason"),
    [
        (rule("separate", lowest=2), "rule.lowest", "0 or 1"),
        (rule("separate", beta=3), "rule", "beta belongs to form 'power'"),
        (rule("power", lowest=0) | ONE_JUDGE, "rule", "lowest must be 1"),
        (rule("joint"), "rule.form", "ask all in one question"),
        ({"judges": [JUDGE, {"question": "How kind?", "votes": 1}]}, "judges.1.source", "must be a model"),
        ({"judges": [JUDGE | {"order": "balanced"}]}, "judges.0.order", "stands alone"),
        (
            {"judges": [JUDGE | {"source": MODEL | {"votes": "log-probabilities"}}]},
            "judges.0.source.votes",
            "'sampled'",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(changes, path, reason):
    found = problems_of(GOOD | changes)
    assert list(found) == [path]
    assert reason in found[path]


@pytest.mark.parametrize(
    ("form", "budgets", "current", "proposal", "acceptance"),
    [
        # Means 4 and 5 on 1 to 10, then 3 and 1.5: the sum of the gaps in tenths.
        ("separate", (2, 1), [[3, 5], [5]], [[2, 4], [5]], 0.8 * math.exp(-0.1)),
        ("separate", (1, 1, 1), [[10], [1], [7]], [[1], [4], [7]], 0.8 * math.exp(-0.6)),
        ("joint", (2,), [[7, 8]], [[4, 5]], 0.8 * math.exp(-0.3)),
        ("difference", (2,), [[7, 8]], [[7, 7]], 0.8 * math.exp(-0.5)),
        ("power", (1,), [[10]], [[9]], 0.8 * 0.9**30),
        ("power", (1,), [[9]], [[10]], 1.0),
    ],
)
def test_a_step_is_accepted_just_below_the_probability_of_the_paper_and_rejected_just_above(
    form, budgets, current, proposal, acceptance
):
    pointwise = PointwiseConfig(form=form)
    comparison = replace(COMPARISON, budgets=budgets)
    below = replace(comparison, uniform=acceptance * (1 - 1e-12))
    assert verdict(pointwise, below, current, proposal) is Verdict.ACCEPT
    if acceptance < 1:
        above = replace(comparison, uniform=acceptance * (1 + 1e-12))
        assert verdict(pointwise, above, current, proposal) is Verdict.REJECT


@pytest.mark.parametrize("missing", [[[3], [5]], [[3, 5], []], [[], []]])
def test_a_step_waits_for_its_last_rating_unless_it_proposes_to_stay(missing):
    pointwise, whole = PointwiseConfig(form="separate"), [[3, 5], [5]]
    assert verdict(pointwise, COMPARISON, whole, missing) is Verdict.UNDECIDED
    assert verdict(pointwise, COMPARISON, missing, whole) is Verdict.UNDECIDED
    assert verdict(pointwise, COMPARISON, whole, whole) is not Verdict.UNDECIDED
    assert verdict(pointwise, replace(COMPARISON, proposal="x"), missing, missing) is Verdict.ACCEPT


@pytest.mark.parametrize(
    ("given", "reason"),
    [([[3, 5, 5], [5]], "2 1 by judge at most"), ([[0, 5], [5]], "between 1 and 10"), ([[3, 5]], "of 2 judges, not 1")],
)
def test_ratings_that_no_judge_can_have_given_are_refused(given, reason):
    with pytest.raises(ValueError, match=reason):
        mean_ratings(PointwiseConfig(form="separate"), (2, 1), given)


def test_a_mean_is_over_all_n_ratings():
    assert mean_ratings(PointwiseConfig(form="separate"), (2, 1), [[3, 4], [9]]) == (3.5, 9.0)
    assert np.isclose(mean_ratings(PointwiseConfig(form="joint", lowest=0), (3,), [[0, 0, 10]])[0], 10 / 3)

"""Rules by numbers, scores or ratings: what a config may be, what decides, and the distribution of whole chains."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logit

import sampler
from sampler.exact import log_base_ratio, target, transitions_of
from tests.support.campaigns import make_config
from tests.support.enumerated import imbalance
from tests.support.outcomes import distribution_of
from tests.support.sampling import LOPSIDED, independent_distribution, neighbours_distribution, problems_of

TEXTS = {"kind": "texts", "scenarios": [0]}
SUFFIX = {"kind": "suffix", "cut": "length"}
BASE = {
    "version": 1, "space": TEXTS, "kernel": {"kind": "independent"}, "judges": [], "rule": {"kind": "base"},
    "chains": 2, "steps": 10, "seed": 1,
}  # fmt: skip
MARS = BASE | {
    "space": {"kind": "molecules"}, "kernel": {"kind": "fragments"}, "rule": {"kind": "score", "form": "mars"}
}  # fmt: skip
QUEST = BASE | {"kernel": SUFFIX, "rule": {"kind": "quest", "scorer": "comet", "beta": 0.05}}
JUDGE = {"question": "Which?", "votes": 2}


def scored(form):
    return QUEST | {"rule": {"kind": "score", "form": form, "scorers": ["comet"], "beta": 2}}


def test_the_name_of_a_scorer_has_at_most_forty_characters():
    def named(length):
        return QUEST | {"rule": {"kind": "quest", "scorer": "c" * length, "beta": 0.05}}

    assert sampler.parse_config(named(40)).rule.scorer == "c" * 40
    with pytest.raises(sampler.ConfigError, match="40"):
        sampler.parse_config(named(41))


@pytest.mark.parametrize(
    ("config", "distribution"),
    [
        (BASE, "p0(x); each state is an independent draw"),
        (MARS, "p0(x) * s(x)^30; s: (min(qed, 0.7) + min((10 - synthetic_accessibility) / 9, 0.7)) / 2 of scorers"),
        (scored("power"), "p0(x) * s(x)^2; s: the number of scorer “comet”"),
        (scored("exponential"), "p0(x) * exp(2*s(x)); s: the number of scorer “comet”"),
        (QUEST, "p0(x) * exp(r(x)/0.05); r: logit of the number of scorer “comet”, clipped to 0.001 and 0.999"),
    ],
)
def test_a_config_says_what_it_samples_and_comes_back_from_its_json(config, distribution):
    parsed = sampler.parse_config(config)
    assert parsed.target_distribution == distribution
    assert parsed.max_votes == ()
    assert sampler.parse_config(parsed.model_dump(mode="json")) == parsed


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"judges": [JUDGE]}, "judges: must be empty, []: this rule asks nobody"),
        ({"kernel": SUFFIX}, "kernel: must be 'independent' under rule 'base'"),
        ({"max_chains": 9}, "max_chains: does not go with a rule that asks nobody"),
        ({"rule": {"kind": "n-vote"}}, "judges: there must be 1 to 8 under rule 'n-vote'"),
        ({"rule": {"kind": "score", "form": "power"}}, "rule: form 'power' takes one scorer: name it in scorers"),
        ({"rule": {"kind": "score", "form": "mars", "scorers": ["qed"]}}, "rule: form 'mars' takes two scorers"),
        ({"target": "p0(x)"}, "target: judges and rule sample another distribution"),
    ],
)
def test_what_such_a_config_cannot_be_is_said(changes, problem):
    with pytest.raises(sampler.ConfigError) as refused:
        sampler.parse_config(BASE | changes)
    assert any(str(each).startswith(problem) for each in refused.value.problems), refused.value.problems


def moving(uniform: float = 0.5, log_r0: float = 0.0) -> sampler.Comparison[str]:
    return sampler.Comparison(0, 1, "x", "y", log_r0, uniform, ())


def test_the_acceptance_of_mars_is_that_of_the_formula_and_others_hold_at_their_ends():
    mars = sampler.ScoreConfig(form="mars")
    before, after = (min(0.5, 0.7) + min(6 / 9, 0.7)) / 2, (0.7 + 0.7) / 2
    assert math.isclose(mars.acceptance(-9, (0.5, 4), (0.9, 2)), min(1, math.exp(-9) * (after / before) ** 30))
    assert sampler.ScoreConfig(form="power", scorers=("s",), beta=2).acceptance(0, (3,), (0,)) == 0
    # What is beyond 0.001 and 0.999 is clipped to them.
    assert sampler.QuestConfig(scorer="comet", beta=0.5).acceptance(0, (1.7,), (0.999,)) == 1


def verdict(rule, comparison, *given):
    return sampler.tell_by_numbers(rule, comparison, *(sampler.numbers_of(rule, each) for each in given))


def test_a_step_waits_until_both_objects_have_all_their_numbers():
    rule, both = sampler.ScoreConfig(form="mars"), {"qed": 0.5, "synthetic_accessibility": 3.0}
    assert verdict(rule, moving(), both, {"qed": 0.5}) is sampler.Verdict.UNDECIDED
    assert verdict(rule, moving(), {}, both) is sampler.Verdict.UNDECIDED
    assert verdict(rule, moving(), both, both | {"other": 7.0}) is sampler.Verdict.ACCEPT
    assert verdict(rule, moving(0.9), both, both | {"qed": 0.1}) is sampler.Verdict.REJECT
    staying = sampler.Comparison(0, 1, "x", "x", 0.0, 0.99, ())
    assert verdict(rule, staying, {}, {}) is sampler.Verdict.ACCEPT


@pytest.mark.parametrize(
    ("rule", "given", "message"),
    [
        (sampler.ScoreConfig(form="mars"), {"qed": 1.5, "synthetic_accessibility": 3.0}, "from 0 to 1, not 1.5"),
        (sampler.ScoreConfig(form="mars"), {"qed": 0.5, "synthetic_accessibility": 0.0}, "from 1 to 10, not 0"),
        (sampler.ScoreConfig(form="power", scorers=("s",)), {"s": -1.0}, "0 or more, not -1"),
        (sampler.QuestConfig(scorer="s"), {"s": math.inf}, "must be finite"),
    ],
)
def test_a_number_that_the_rule_cannot_use_is_refused(rule, given, message):
    with pytest.raises(ValueError, match=message):
        sampler.numbers_of(rule, given)


def test_numbers_below_0_are_refused_by_powers_only():
    rule = sampler.ScoreConfig(form="exponential", scorers=("s",))
    assert sampler.numbers_of(rule, {"s": -1.0}) == (-1.0,)


RATINGS = np.array([3.0, 7.5, 5.0, 9.0, 1.0])
SHARES = RATINGS / 10
# A rule, the number of each object of a catalog, and the log of what p0 is multiplied by.
WEIGHTED = {
    "joint ratings": (sampler.PointwiseConfig(form="joint"), RATINGS, RATINGS / 10),
    "difference of ratings": (sampler.PointwiseConfig(form="difference"), RATINGS, RATINGS),
    "power of ratings": (sampler.PointwiseConfig(form="power"), RATINGS, 30 * np.log(RATINGS)),
    "power": (sampler.ScoreConfig(form="power", scorers=("s",), beta=3), SHARES, 3 * np.log(SHARES)),
    "exponential": (sampler.ScoreConfig(form="exponential", scorers=("s",), beta=2), SHARES, 2 * SHARES),
    "quest": (sampler.QuestConfig(scorer="s", beta=2), SHARES, logit(SHARES) / 2),
}


def chain_of(rule, numbers):
    """Return the chain of neighbours in which verdicts by these numbers decide, averaged over U, shape (n, n)."""
    q = neighbours_distribution(LOPSIDED)
    log_r0, accepted = log_base_ratio(LOPSIDED.log_p0, q), np.zeros_like(q)
    for x, y in np.argwhere(q):

        def decide(rng, x=x, y=y):
            comparison = sampler.Comparison(0, 1, x, y, log_r0[x, y], rng.random(), ())
            return sampler.tell_by_numbers(rule, comparison, numbers[[x]], numbers[[y]])

        accepted[x, y] = distribution_of(decide).get(sampler.Verdict.ACCEPT, 0.0)
    return transitions_of(q, accepted)


@pytest.mark.parametrize("name", WEIGHTED)
def test_a_rule_by_numbers_keeps_its_own_distribution_and_no_other(name):
    rule, numbers, _ = WEIGHTED[name]
    chain = chain_of(rule, numbers)
    for other, (_, _, weight) in WEIGHTED.items():
        unbalanced = imbalance(target(LOPSIDED.log_p0, weight[None]), chain)
        assert unbalanced < 1e-12 if other == name else unbalanced > 1e-3


def test_states_of_base_are_independent_draws_from_p0_and_other_kernels_are_noticed():
    p0, always = np.exp(LOPSIDED.log_p0), np.ones((len(LOPSIDED), len(LOPSIDED)))
    assert imbalance(p0, transitions_of(independent_distribution(LOPSIDED), always)) < 1e-12
    assert imbalance(p0, transitions_of(neighbours_distribution(LOPSIDED), always)) > 1e-3


# Rules that rate: what a config may ask for, and the verdict that ratings give.


MODEL = {"kind": "model", "endpoint": "A model"}
RATED = {"question": "How gothic is it?", "votes": 2, "source": MODEL}
GOOD = make_config(
    kernel={"kind": "neighbours"},
    judges=[RATED, RATED | {"votes": 1}],
    rule={"kind": "pointwise", "form": "separate"},
)
ONE_JUDGE = {"judges": [RATED]}
COMPARISON = sampler.Comparison(0, 1, "x", "y", math.log(0.8), 0.5, (2, 1))


def rule(form, **changes):
    return {"rule": {"kind": "pointwise", "form": form} | changes}


def by_ratings(pointwise, comparison, *ratings):
    return sampler.tell_by_numbers(
        pointwise, comparison, *(sampler.mean_ratings(pointwise, comparison.max_votes, x) for x in ratings)
    )


def test_without_a_rule_votes_decide():
    config = {name: value for name, value in GOOD.items() if name != "rule"}
    assert sampler.parse_config(config).model_dump()["rule"] == {"kind": "n-vote"}


@pytest.mark.parametrize("form", ["separate", "joint", "difference", "power"])
def test_every_form_takes_one_judge_and_survives_json(form):
    config = sampler.parse_config(GOOD | ONE_JUDGE | rule(form))
    assert sampler.parse_config(config.model_dump(mode="json")) == config
    assert (config.rule.form, config.rule.scale.answers[0], config.rule.scale.answers[-1]) == (form, "1", "10")


@pytest.mark.parametrize(
    ("changes", "path", "reason"),
    [
        (rule("separate", lowest=2), "rule.lowest", "0 or 1"),
        (rule("separate", beta=3), "rule", "beta belongs to form 'power'"),
        (rule("power", lowest=0) | ONE_JUDGE, "rule", "lowest must be 1"),
        (rule("joint"), "rule.form", "ask all in one question"),
        ({"judges": [RATED, {"question": "How kind?", "votes": 1}]}, "judges.1.source", "must be a model"),
        ({"judges": [RATED | {"order": "balanced"}]}, "judges.0.order", "stands alone"),
        (
            {"judges": [RATED | {"source": MODEL | {"votes": "log-probabilities"}}]},
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
    ("form", "max_votes", "current", "proposal", "acceptance"),
    [
        # Means 4 and 5 on 1 to 10, then 3 and 1.5: the sum of the gaps in tenths.
        ("separate", (2, 1), [[3, 5], [5]], [[2, 4], [5]], 0.8 * math.exp(-0.1)),
        ("separate", (1, 1, 1), [[10], [1], [7]], [[1], [4], [7]], 0.8 * math.exp(-0.6)),
        # The mean of several ratings in one answer; single ones decide whole chains above.
        ("difference", (2,), [[7, 8]], [[7, 7]], 0.8 * math.exp(-0.5)),
        ("power", (1,), [[9]], [[10]], 1.0),
    ],
)
def test_a_step_is_accepted_just_below_the_probability_of_the_paper_and_rejected_just_above(
    form, max_votes, current, proposal, acceptance
):
    pointwise = sampler.PointwiseConfig(form=form)
    comparison = replace(COMPARISON, max_votes=max_votes)
    below = replace(comparison, uniform=acceptance * (1 - 1e-12))
    assert by_ratings(pointwise, below, current, proposal) is sampler.Verdict.ACCEPT
    if acceptance < 1:
        above = replace(comparison, uniform=acceptance * (1 + 1e-12))
        assert by_ratings(pointwise, above, current, proposal) is sampler.Verdict.REJECT


@pytest.mark.parametrize("missing", [[[3], [5]], [[3, 5], []], [[], []]])
def test_a_step_waits_for_its_last_rating_unless_it_proposes_to_stay(missing):
    pointwise, whole = sampler.PointwiseConfig(form="separate"), [[3, 5], [5]]
    assert by_ratings(pointwise, COMPARISON, whole, missing) is sampler.Verdict.UNDECIDED
    assert by_ratings(pointwise, COMPARISON, missing, whole) is sampler.Verdict.UNDECIDED
    assert by_ratings(pointwise, COMPARISON, whole, whole) is not sampler.Verdict.UNDECIDED
    assert by_ratings(pointwise, replace(COMPARISON, proposal="x"), missing, missing) is sampler.Verdict.ACCEPT


@pytest.mark.parametrize(
    ("given", "reason"),
    [([[3, 5, 5], [5]], "2 1 by judge at most"), ([[0, 5], [5]], "between 1 and 10"), ([[3, 5]], "of 2 judges, not 1")],
)
def test_ratings_that_no_judge_can_have_given_are_refused(given, reason):
    with pytest.raises(ValueError, match=reason):
        sampler.mean_ratings(sampler.PointwiseConfig(form="separate"), (2, 1), given)


def test_a_mean_is_over_all_n_ratings():
    assert sampler.mean_ratings(sampler.PointwiseConfig(form="separate"), (2, 1), [[3, 4], [9]]) == (3.5, 9.0)
    assert np.isclose(
        sampler.mean_ratings(sampler.PointwiseConfig(form="joint", lowest=0), (3,), [[0, 0, 10]])[0], 10 / 3
    )

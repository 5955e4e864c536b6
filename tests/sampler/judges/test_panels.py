"""Panels: what a config of one may be, which law it samples, and pairs that somebody meets again."""

import copy

import numpy as np
import pytest
from scipy.special import expit

import sampler
from sampler import exact
from sampler.judges.config import best_acceptance
from tests.laws.law import CATALOG
from tests.support.sampling import neighbours_law

NAMES = ("Ada", "Grace", "Alan")
CONFIG = {
    "version": 1,
    "space": {"kind": "catalog", "objects": "texts", "neighbours": 5},
    "kernel": {"kind": "neighbours"},
    "judges": [{"question": "Which?", "votes": 1, "source": {"kind": "panelist", "name": name}} for name in NAMES],
    "chains": 3,
    "steps": 50,
    "seed": 1,
}
WARM_UP = {"steps": 3, "grid": [1, 3], "properties": ["words"], "burn_in": 1}
WALK = {"kind": "walk", "kernel": {"kind": "neighbours"}, "length": 3, "warm_up": WARM_UP}


def changed(**changes) -> dict:
    return copy.deepcopy(CONFIG) | changes


def with_judge(place: int, **changes) -> dict:
    config = copy.deepcopy(CONFIG)
    config["judges"][place] |= changes
    return config


def test_a_panel_samples_the_sum_of_the_scores_of_its_people():
    config = sampler.parse_config(CONFIG)
    assert config.panelists == NAMES
    assert config.law == (
        "p0(x) * exp(s1(x) + s2(x) + s3(x)); "
        "s1: “Which?”, panelist 1; s2: “Which?”, panelist 2; s3: “Which?”, panelist 3"
    )


def test_a_model_may_answer_another_question():
    model = {"question": "Is it a text?", "votes": 4, "source": {"kind": "model", "endpoint": "mine"}}
    assert sampler.parse_config(changed(judges=[*CONFIG["judges"], model])).panelists == NAMES


@pytest.mark.parametrize(
    ("config", "path", "message"),
    [
        (with_judge(0, votes=2), "judges.0.votes", "must be 1 for a panelist"),
        (with_judge(1, order="proposal-first"), "judges.1.order", "the same pair twice"),
        (with_judge(2, source={"kind": "people"}), "judges.2.source", "nobody else votes"),
        (with_judge(2, source={"kind": "panelist", "name": "Ada"}), "judges", "asked of each of the 2 panelists, once"),
        (with_judge(2, question="Another?"), "judges", "“Another?” must be asked of each of the 3 panelists, once"),
        (with_judge(2, source={"kind": "panelist", "name": " "}), "judges.2.source.name", "at least 1 character"),
        (with_judge(2, source={"kind": "panelist", "name": "1"}), "judges.2.source.name", "number of another panelist"),
        (changed(kernel=WALK), "kernel.warm_up", "the panelists of a panel differ"),
        (changed(max_chains=9), "max_chains", "does not go with a panel"),
        (changed(rule={"kind": "pointwise", "form": "separate"}), "judges.0.source", "people compare"),
    ],
)
def test_what_a_panel_cannot_be_is_refused_where_it_stands(config, path, message):
    with pytest.raises(sampler.ConfigError) as refused:
        sampler.parse_config(config)
    assert any(problem.path == path and message in problem.message for problem in refused.value.problems)


def test_panelists_of_any_scores_leave_the_law_of_their_sum_unchanged():
    scores = np.random.default_rng(1).normal(0, 2, size=(5, len(CATALOG.weights)))
    q = neighbours_law(CATALOG)
    preferences = np.stack([expit(each[None, :] - each[:, None]) for each in scores], axis=-1)
    rule = sampler.NVote((1,) * 5)
    matrix = exact.transitions_of(q, rule.mean_acceptance(exact.log_base_ratio(CATALOG.log_p0, q), preferences))
    assert np.allclose(exact.stationary(matrix), sampler.target(CATALOG.log_p0, scores), atol=1e-12)
    # One judge whose voters are these five has another law.
    mixed = np.repeat(preferences.mean(axis=-1, keepdims=True), 5, axis=-1)
    crowd = exact.transitions_of(q, rule.mean_acceptance(exact.log_base_ratio(CATALOG.log_p0, q), mixed))
    assert np.abs(exact.stationary(crowd) - exact.stationary(matrix)).sum() / 2 > 0.05


def test_the_best_acceptance_is_that_of_people_who_do_not_care():
    even = np.full((1, 5), 0.5)
    assert best_acceptance(5) == pytest.approx(sampler.NVote((1,) * 5).mean_acceptance(np.zeros(1), even)[0])


def test_to_others_a_panelist_is_a_number_and_the_law_is_the_same():
    named = sampler.parse_config(CONFIG)
    told = named.model_copy(update={"judges": sampler.unnamed(named.judges)})
    assert not any(name in told.model_dump_json() for name in NAMES)
    assert told.panelists == ("1", "2", "3")
    assert told.law == named.law
    # Once more, nothing changes; and nothing does where there is no panel.
    assert sampler.unnamed(told.judges) == told.judges
    crowd = sampler.parse_config(changed(judges=[{"question": "Which?", "votes": 1}]))
    assert sampler.unnamed(crowd.judges) == crowd.judges

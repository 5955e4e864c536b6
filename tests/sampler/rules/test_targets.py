"""The law that a config's chains sample, in words; and that it is the one they do sample."""

import itertools
import re

import numpy as np
import pytest

from sampler import parse_config
from sampler.exact import log_base_ratio, preferences, target, transitions_of
from sampler.rules.n_vote import NVote
from tests.sampler.rules.test_rules import leaning
from tests.support.campaigns import make_config
from tests.support.enumerated import imbalance
from tests.support.sampling import LOPSIDED, neighbours_law, two_scores

PEOPLE = {"question": "Which is darker?", "votes": 2}
KIND = {"question": "Which is kinder?", "votes": 1}
MODEL = {"source": {"kind": "model", "endpoint": "A model", "temperature": 0.7}}


def both(judge):
    return [judge | {"order": order} for order in ("proposal-first", "proposal-second")]


def law(judges, **changes):
    return parse_config(make_config(kernel={"kind": "neighbours"}, judges=judges) | changes).law


def rated(form, judges=(PEOPLE,), **changes):
    return law([judge | MODEL for judge in judges], rule={"kind": "pointwise", "form": form} | changes)


@pytest.mark.parametrize(
    ("judges", "formula"),
    [
        ([PEOPLE], "p0(x) * exp(s1(x))"),
        ([PEOPLE, KIND], "p0(x) * exp(s1(x) + s2(x))"),
        (both(PEOPLE), "p0(x) * exp(2*s1(x))"),
        ([*both(PEOPLE), KIND], "p0(x) * exp(2*s1(x) + s2(x))"),
        ([KIND, *both(PEOPLE)], "p0(x) * exp(s1(x) + 2*s2(x))"),
        ([*both(PEOPLE), *both(PEOPLE | MODEL)], "p0(x) * exp(2*s1(x) + 2*s2(x))"),
        ([*both(PEOPLE), PEOPLE], "p0(x) * exp(3*s1(x))"),
        ([PEOPLE | MODEL | {"order": "balanced"}], "p0(x) * exp(s1(x))"),
    ],
)
def test_a_question_counts_once_for_each_judge(judges, formula):
    assert law(judges).split("; ")[0] == formula


def test_the_letters_are_explained():
    assert law([*both(PEOPLE), KIND | MODEL]) == (
        "p0(x) * exp(2*s1(x) + s2(x)); s1: “Which is darker?”, people; "
        "s2: “Which is kinder?”, model “A model” at temperature 0.7"
    )


@pytest.mark.parametrize(
    ("form", "changes", "formula"),
    [
        (("separate", (PEOPLE, KIND)), {}, "p0(x) * exp(r1(x)/10 + r2(x)/10)"),
        (("separate",), {"lowest": 0}, "p0(x) * exp(r1(x)/10)"),
        (("joint",), {}, "p0(x) * exp(r1(x)/10)"),
        (("difference",), {}, "p0(x) * exp(r1(x))"),
        (("power",), {}, "p0(x) * r1(x)^30"),
        (("power",), {"beta": 2.5}, "p0(x) * r1(x)^2.5"),
    ],
)
def test_ratings_have_a_law_of_their_own(form, changes, formula):
    found = rated(*form, **changes)
    head, *names = found.split("; ")
    assert head == formula
    assert all(re.match(r"r\d: the mean of \d ratings from \d to 10, drawn once", name) for name in names)


@pytest.mark.parametrize("mixed", [False, True])
def test_a_law_that_nobody_knows_is_called_so(mixed):
    paper = {"kind": "fragments", "convention": "paper"}
    parts = [{"weight": 0.5, "kernel": paper}, {"weight": 0.5, "kernel": {"kind": "fragments"}}]
    kernel = {"kind": "mixture", "parts": parts} if mixed else paper
    assert law([PEOPLE], space={"kind": "molecules"}, kernel=kernel).startswith("not known")
    assert law([PEOPLE], space={"kind": "molecules"}, kernel={"kind": "fragments"}).startswith("p0(x)")


@pytest.mark.parametrize("lean", [0.0, 1.0])
def test_the_chain_of_a_mixed_campaign_is_in_balance_with_what_its_config_says(lean):
    # The first question in both orders, by people who lean; the second in none, by people who do not.
    log_p0, scores, q = LOPSIDED.log_p0, np.array(two_scores(LOPSIDED)), neighbours_law(LOPSIDED)
    dark, kind = np.moveaxis(preferences(scores), -1, 0)
    first, second = leaning(dark, lean)
    chances = np.stack([first, second, kind], axis=-1)
    chain = transitions_of(q, NVote((2, 2, 1)).mean_acceptance(log_base_ratio(log_p0, q), chances))
    formula = law([*both(PEOPLE), KIND]).split("; ")[0]
    stated = [int(times or 1) for times in re.findall(r"(?:(\d)\*)?s\d\(x\)", formula)]
    for times in itertools.product((1, 2), repeat=2):
        off = imbalance(target(log_p0, np.array(times)[:, None] * scores), chain)
        assert (off < 1e-14) == (list(times) == stated), times

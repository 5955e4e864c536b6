"""Reports against known truths: voters with planted scores and biases, asked by the real chains."""

import math
import re

import numpy as np
import pytest
from scipy.special import expit

from sampler import Record, results_of
from sampler.diagnostics.findings import findings
from sampler.diagnostics.report import diagnose
from tests.support.sampling import CATALOG, WORDS, Voters, config_of, exported, model, order_pair, run_campaign

SCORES = (1.5, 0.5, 0.0, -0.5, -1.5)
BIAS = re.compile(r"^Position bias.*: log-odds ([+-]\d+\.\d+)")
SCORE = re.compile(r"^ +([+-]\d+\.\d+)  (?:\(([+-]\d+\.\d+) to ([+-]\d+\.\d+)\)  )?(.+)$")


def report(record, **options):
    rng = np.random.default_rng(1)
    return list(diagnose(findings(record, rng, **options), rng))


def biases_in(lines):
    """Return what the report says of position biases before it comes to the judges."""
    opening = lines[: lines.index("")] if "" in lines else lines
    return [float(found[1]) for found in map(BIAS.match, opening) if found]


def with_config(record, **changes):
    """Return a record with another config."""
    return Record({"campaign.json": record.config | changes}, record.tables)


def sections_of(lines):
    """Return the scores of each judge's section by what they are of."""
    starts = [index for index, line in enumerate(lines) if line.startswith("Judge")]
    parts = [lines[one:other] for one, other in zip(starts, [*starts[1:], None], strict=True)]
    return [{found[4]: float(found[1]) for found in map(SCORE.match, part) if found} for part in parts]


def standard_error(record, bias):
    """Return the standard error of the bias that Fisher's information gives at `SCORES` and the planted bias."""
    x = np.zeros((len(record["votes"]), len(SCORES) + 1))
    for row, vote in zip(x, record["votes"], strict=True):
        row[int(vote["first_state"])], row[int(vote["second_state"])], row[-1] = 1, -1, 1
    chance = expit(x @ [*SCORES, bias])
    information = x.T @ (x * (chance * (1 - chance))[:, None])
    return math.sqrt(np.linalg.pinv(information, rcond=1e-10, hermitian=True)[-1, -1])


def test_scores_without_a_fit_have_the_reason_that_holds():
    """Who always chooses the first object lets every object win and lose: that is no reason."""
    record = exported([Voters((0.0,) * 5, 40.0)])
    (asked,) = results_of(record).questions
    assert "a bias to the first object without bound" in asked.why_not
    assert "never" not in asked.why_not
    (asked,) = results_of(exported([Voters((40.0, 0.0))], ("a", "b"))).questions
    assert "never won, or never lost" in asked.why_not


def test_where_chains_open_later_a_mean_weighs_chains_and_not_steps():
    record = exported([Voters(SCORES, 0.0)])
    properties = [{"state_index": str(state), "liking": str(score)} for state, score in enumerate(SCORES)]
    # The first chain has come three steps far; it counts as much as any other.
    left = [row for row in record["samples"] if row["chain_index"] != "0" or int(row["step"]) <= 3]
    record = record.but(samples=left, properties=properties)
    assert not any(line.startswith("Mean") for line in report(record))
    of_chains: dict[str, list[float]] = {}
    for row in left:
        if row["step"] != "0":
            of_chains.setdefault(row["chain_index"], []).append(SCORES[int(row["state_index"])])
    expected = np.mean([np.mean(each) for each in of_chains.values()])
    elastic = with_config(record, max_chains=99)
    (line,) = [line for line in report(elastic) if line.startswith("Mean of liking")]
    assert line.startswith(f"Mean of liking: {expected:.4g}, ")
    assert f"over {len(of_chains)} chains, weighed equally" in line


@pytest.mark.parametrize("planted", [0.0, 0.4, -1.0])
@pytest.mark.parametrize("order", ["two-judge", "random"])
def test_a_planted_bias_is_found_in_either_order(planted, order):
    voters = order_pair(SCORES, planted) if order == "two-judge" else [Voters(SCORES, planted)]
    record = exported(voters, seed=2)
    if (planted, order) == (0.0, "two-judge"):
        # By design: the proposal's half ends early where the proposal loses. This is no position bias.
        assert sum(row["chosen_side"] == "first" for row in record["votes"]) / len(record["votes"]) < 0.4
    (bias,) = biases_in(report(record))
    # One estimate in 16,000 lies further off.
    assert abs(bias - planted) < 4 * standard_error(record, planted)


def test_a_campaign_of_all_kinds_keeps_its_questions_apart():
    darker = order_pair(SCORES, 0.6, question="Which is darker?")
    kinder = Voters(SCORES[::-1], 0.6, 2, question="Which is kinder?")
    asked_first = order_pair([score / 2 for score in SCORES], -1.0, question="Which is darker?", source=model("tiny"))
    record = exported([*asked_first, *darker, kinder], chains=60)
    lines = report(record)
    assert [line for line in lines if line.startswith("Judge")] == [
        "Judges 0 and 1 (model tiny): Which is darker?",
        "Judges 2 and 3: Which is darker?",
        "Judge 4: Which is kinder?",
    ]
    machine, people = biases_in(lines)
    assert (machine, people) == (pytest.approx(-1.0, abs=0.3), pytest.approx(0.6, abs=0.3))
    of_model, dark, kind = sections_of(lines)
    assert max(of_model, key=of_model.__getitem__) == max(dark, key=dark.__getitem__) == WORDS[0]
    assert max(kind, key=kind.__getitem__) == WORDS[4]


def texts_of(voters, **run):
    """Return the export of texts that chains make themselves, under three prompts, and few votes on each."""
    space = {"kind": "texts", "model": "story-openings", "temperature": 1.0, "scenarios": [0, 1, 2]}
    return run_campaign(config_of(voters, space, "suffix", **run), voters)


def test_a_bias_is_found_where_no_scores_can_be_fitted_and_voting_stops_early():
    record = texts_of([Voters(lambda text: len(text.text) / 40, 1.0)], chains=30, steps=40, seed=5)
    lines = report(record)
    assert any("cannot be fitted" in line for line in lines)
    (bias,) = biases_in(lines)
    # About 1,250 votes on 750 pairs; a pair with two votes on either side tells b with a variance of about 2.
    # Left out of account, the preferences would draw it to about 0.7; a score for each pair would drive it up to 1.5.
    assert abs(bias - 1.0) < 0.25


def test_two_judges_on_objects_that_hardly_meet_twice_tell_no_bias():
    record = texts_of(order_pair(lambda text: len(text.text) / 40, 1.0), chains=6, steps=20, seed=6)
    bias = next(line for line in report(record) if line.startswith("Position bias"))
    assert "log-odds" not in bias
    assert "cannot be estimated; " in bias


# Convergence: of what objects are, not of what they are called.


def converged(lines):
    """Return what is said of each property by its name."""
    return {found[1]: found[2] for found in (re.match(r"Convergence of (\w+): (.*)", line) for line in lines) if found}


def test_chains_of_different_prompts_are_not_compared():
    record = texts_of([Voters(lambda text: 0.0)], chains=6, steps=50, seed=8)
    # Independent draws, each prompt's far above those of the one before.
    noise = np.random.default_rng(8).normal(size=len(record["samples"]))
    samples = [
        row | {"height": repr(10 * (int(row["chain_index"]) % 3) + drawn)}
        for row, drawn in zip(record["samples"], noise.tolist(), strict=True)
    ]
    found = converged(report(record.but(samples=samples)))["height"]
    # Means of 25 draws have a standard error of 0.2: R-hat 1.1 takes means that lie 0.45 apart, more than three.
    r_hat = re.match(r"R-hat (\d+\.\d+)", found)
    assert float(r_hat[1]) < 1.15
    assert found.endswith("from 6 chains of 50 draws, the worst of 3 prompts")


def test_an_r_hat_without_bound_is_told_in_words():
    record = exported([Voters(SCORES)], chains=4, steps=8)
    # Each chain stands still, at a height of its own.
    samples = [row | {"height": row["chain_index"]} for row in record["samples"]]
    assert converged(report(record.but(samples=samples)))["height"].startswith("R-hat infinite, ")


def pictures():
    """Return a campaign on uploaded pictures, of which the export holds the names."""
    record = exported([Voters(SCORES)], chains=2, steps=10)
    return with_config(record, space=CATALOG | {"objects": "images"})


def test_pictures_that_the_export_lacks_are_asked_for():
    lines = report(pictures())
    missing = [line for line in lines if line.startswith("Convergence: ")]
    assert len(missing) == 1
    assert "properties.csv" in missing[0]
    assert biases_in(lines)


def measured(record, **columns):
    """Return the rows of a properties.csv with these columns."""
    rows = [{"state_index": row["state_index"], "content": row["content"]} for row in record["states"]]
    return [row | {name: str(cells[at]) for name, cells in columns.items()} for at, row in enumerate(rows)]


def test_pictures_are_followed_by_the_measures_of_the_downloaded_table():
    record = pictures()
    table = measured(record, colourfulness=(3.5, 10, 33, 59, 82), mood=("a", "b", "c", "d", "e"), tint=(2,) * 5)
    lines = report(record.but(properties=table))
    found = converged(lines)
    assert list(found) == ["colourfulness", "tint", "weight"]
    assert found["colourfulness"].startswith("R-hat ")
    assert found["tint"].startswith("not measured; it has one value")
    assert not any(line.startswith("Convergence: ") for line in lines)


def test_a_campaign_without_a_decided_step_has_a_report():
    whole = exported([Voters(SCORES)], chains=2)
    record = whole.but(samples=[row for row in whole["samples"] if row["step"] == "0"], steps=[], votes=[])
    assert report(record) == [
        "Cannot be judged: No step is decided yet, so there is nothing to follow.",
        "2 chains, 0 decided steps, 0 open; 0 counted votes, 0 late",
        "Samples: 0 of the sampling phase",
        "Convergence: no step is decided yet, so there is nothing to follow",
        "Position bias: there is no vote",
    ]


# Intervals of the report allow for votes that are alike: on the same prompt, or in the same chain.


def test_the_report_says_which_clusters_and_how_many():
    lines = report(exported([Voters(SCORES)], chains=40))
    assert any(line.endswith("with 95 % intervals (40 clusters: chains)") for line in lines)


def test_below_fifteen_clusters_no_interval_is_given():
    lines = report(exported([Voters(SCORES[:2])], chains=14))
    assert "one from 14 clusters (chains) is not to be trusted" in "\n".join(lines)
    assert any("Cycles: the compared pairs form no cycle" in line for line in lines)
    shown = [found for found in map(SCORE.match, lines) if found]
    # Nor one that is not known, which would stand before the object.
    assert {found[4] for found in shown} == set(WORDS[:2])
    assert not any(found[2] for found in shown)
    assert not any("95 % interval" in line for line in lines if line.startswith("Position bias"))

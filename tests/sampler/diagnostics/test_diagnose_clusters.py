"""Intervals of the report allow for votes that are alike: on the same prompt, or in the same chain."""

import numpy as np

from sampler import Record, tables
from tests.sampler.diagnostics.test_diagnose import SCORE, report
from tests.support.sampling import CATALOG, WORDS, row_of


def votes_with_effects(rng, clusters, votes=20, effect=1.0, difference=0.5):
    """Return an export of two objects; along each chain the log-odds have an effect of their own, of sd `effect`."""
    judges = [{"question": "Which?", "votes": votes, "order": "random", "source": {"kind": "people"}}]
    law = {"space": CATALOG, "kernel": {"kind": "independent"}, "judges": judges}
    config = {**law, "chains": clusters, "steps": 1, "seed": 0}
    states = [row_of(tables.STATES, state_index=at, object_index=at, weight=1.0, content=WORDS[at]) for at in range(2)]
    record = Record({"campaign.json": config}, {"states": states})
    chances = 1 / (1 + np.exp(-(difference + effect * rng.normal(size=clusters))))
    first_won, first_left = rng.random((clusters, votes)) < chances[:, None], rng.random((clusters, votes)) < 0.5
    for chain in range(clusters):
        of_step = {"chain_index": chain, "step": 1}
        record["steps"].append(row_of(tables.STEPS, **of_step, current_state=0, proposal_state=1))
        for won, left in zip(first_won[chain].tolist(), first_left[chain].tolist(), strict=True):
            side = "first" if won == left else "second"
            shown = {"first_state": int(not left), "second_state": int(left), "chosen_state": int(not won)}
            cells = {"number": 1, "judge_index": 0, "chosen_side": side, "for_proposal": int(not won)}
            record["votes"].append(row_of(tables.VOTES, **of_step, **cells, **shown))
    return record


def test_the_report_says_which_clusters_and_how_many():
    lines = report(votes_with_effects(np.random.default_rng(11), clusters=40), resamples=50)
    assert any(line.endswith("with 95 % intervals (40 clusters: chains)") for line in lines)


def test_below_fifteen_clusters_no_interval_is_given():
    lines = report(votes_with_effects(np.random.default_rng(12), clusters=14), resamples=50)
    assert "one from 14 clusters (chains) is not to be trusted" in "\n".join(lines)
    shown = [found for found in map(SCORE.match, lines) if found]
    assert len(shown) == 2
    assert not any(found[2] for found in shown)
    assert not any("95 % interval" in line for line in lines if line.startswith("Lean"))

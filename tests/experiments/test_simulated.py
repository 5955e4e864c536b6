"""`--simulated`: each experiment whole without any model, by stand-ins that say what they are."""

import json
from importlib.util import find_spec

import numpy as np
import pytest
from scipy.special import expit

import sampler
from prefmh_web.experiments.simulated import GAIN, Judge, names
from prefmh_web.management.commands.experiment import _roles
from sampler import judges
from tests.support.installations import Site

MOLECULES = ("--methods", "mars-plain,pointwise,pref") if find_spec("torch") is None else ()
SMALL = {
    "stories": (),
    "images": ("--steps", "2"),
    "molecules": ("--seeds", "0", "--chains", "2", "--steps", "2", *MOLECULES),
    "translation": ("--methods", "quest-0.1,pointwise,pref"),
}
FIGURES = {"stories": "radar", "images": "trajectories", "molecules": "measures", "translation": "measures"}


@pytest.mark.parametrize("experiment", SMALL)
def test_an_experiment_runs_whole_without_any_model(experiment, tmp_path):
    site = Site(tmp_path, (experiment, "--scale", "laptop", "--simulated", *SMALL[experiment]), roles={})
    ended = site.experiment()
    assert ended.returncode == 0, ended.stderr
    models = json.loads((site.out / "settings.json").read_text())["models"]
    roles, scorers = names(sampler.EXPERIMENTS[experiment])
    has_tournament = experiment == "stories"
    assert set(models) == {role for role in roles if role != "evaluator" or has_tournament} | set(scorers)
    for file in ("table.md", "table.tex", f"figures/{FIGURES[experiment]}.svg"):
        text = (site.out / file).read_text()
        said = text if file.endswith("svg") else text.splitlines()[0]
        assert "stands in for" in said
    cells = site.rows("table.csv")
    # The grammar's campaigns ask for the quality only where QUEST goes by it.
    assert all(cell["ours"] for cell in cells if not cell["column"].startswith("quality"))
    assert not any(cell["paper"] for cell in cells)
    calls = site.rows("calls.csv")
    assert {row["role"] for row in calls} == set(models) - {"writer"}
    readme = (site.out / "README").read_text().splitlines()
    assert readme[0] == (site.out / "table.md").read_text().splitlines()[0]
    assert "- Cost:" in readme


def test_a_role_that_is_named_is_not_simulated():
    experiment = sampler.EXPERIMENTS["stories"]
    options = sampler.ExperimentOptions.of("stories", "laptop")
    simulated, _ = names(experiment)
    assert _roles(options, simulated, ["judge=mine"]) == simulated | {"judge": "mine"}


def test_the_judge_votes_by_bradley_and_terry_on_its_stated_score():
    judge = Judge(sampler.EXPERIMENTS["molecules"])
    asked = sampler.EXPERIMENTS["molecules"].compared[0]
    smiles = ("CCO", "c1ccccc1O")
    words = judges.Prompt(judges.PRESETS[asked.preset].template, asked.question)
    body = {
        "model": "m",
        "messages": words.messages(*map(judges.ShownObject, smiles)),
        "temperature": 2.0,
        "logprobs": True,
    }
    replies = [judge.answer(body | {"seed": seed})["choices"][0] for seed in range(2_000)]
    first, second = (sampler.describe_molecule(each).qed for each in smiles)
    wanted = expit(GAIN * (first - second) / 2)
    assert np.mean([reply["message"]["content"] == "A" for reply in replies]) == pytest.approx(wanted, abs=0.05)
    told = {each["token"]: each["logprob"] for each in replies[0]["logprobs"]["content"][0]["top_logprobs"]}
    assert told["A"] - told["B"] == pytest.approx(GAIN * (first - second))

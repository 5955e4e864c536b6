"""`--scorer`: final states are given numbers by real programs, stored, counted, and never asked about twice."""

from dataclasses import dataclass
from pathlib import Path

import pytest

import sampler
from prefmh_web.experiments import campaigns, evaluation
from prefmh_web.experiments.campaigns import Blocked
from prefmh_web.experiments.configs import GRAMMAR, Run
from prefmh_web.objects import OBJECT_KINDS, StoredObject
from prefmh_web.scorers import offered

OPTIONS = sampler.ExperimentOptions.of("translation", "laptop", methods=["pointwise", "pref"])
KEYS = [sampler.StateKey("pointwise", "de-en", 0, chain, step) for chain in range(40) for step in (1, 2)]


@dataclass(frozen=True)
class States(evaluation.KeptStates):
    """80 states, one of them odd, without records."""

    @property
    def by_key(self):
        return {key: (self.stored(key).content, 0) for key in KEYS}

    def stored(self, key) -> StoredObject:
        return StoredObject("odd" if key[3:] == (3, 1) else f"text {10 * key.chain + key.step}")


@pytest.fixture
def states(declare, django_user_model, tmp_path):
    """Those of a run, whose scorer writes down what it is sent, and fails while there is a file `gone`."""
    declare(
        f"open({str(tmp_path / 'log')!r}, 'a').write(told['content'] + '\\n')\n"
        f"if os.path.exists({str(tmp_path / 'gone')!r}): sys.exit(1)\n"
        "print('nan' if told['content'] == 'odd' else told['content'].split()[1], flush=True)"
    )
    owner, scorers = django_user_model.objects.create_user("researcher"), {"xcomet": offered("texts")["length"]}
    return States(Run(OPTIONS, owner, Path("out"), "a" * 64, {"writer": GRAMMAR}, {}, scorers))


@pytest.mark.django_db
def test_what_is_stored_is_not_asked_again_and_what_was_lost_is_counted(states, tmp_path, monkeypatch):
    said: list[str] = []
    monkeypatch.setattr(evaluation, "BATCH", 30)
    (tmp_path / "gone").touch()
    with pytest.raises(Blocked, match="gives no numbers"):
        evaluation.ask_scorers(states.run, states, lambda *_: None, said.append)
    assert list(evaluation.score_rows(states.run, states)) == []
    (tmp_path / "gone").unlink()
    (tmp_path / "log").unlink()
    shown: list[tuple[int, int]] = []
    evaluation.ask_scorers(states.run, states, lambda *counts: shown.append(counts), said.append)
    assert shown == [(0, 80), (30, 80), (60, 80), (80, 80)]
    asked = (tmp_path / "log").read_text().splitlines()
    assert len(asked) == 80
    assert len(said) == 1
    assert "1 states have no number" in said[0]
    # The one that has no number has no row, and is not asked about again.
    assert {(row["chain"], row["step"]): row["value"] for row in evaluation.score_rows(states.run, states)} == {
        key[3:]: 10.0 * key.chain + key.step for key in KEYS if key[3:] != (3, 1)
    }
    evaluation.ask_scorers(states.run, states, lambda *_: None, said.append)
    assert (tmp_path / "log").read_text().splitlines() == asked
    calls = list(campaigns.call_rows(states.run))
    assert [(row["stage"], row["method"]) for row in calls] == [("score", "pointwise"), ("score", "pref")]
    # The first batch was begun, lost, and asked for again.
    assert [calls[0][name] for name in ("requests", "repeated", "unparsable", "tokens")] == [80, 30, 1, 0]
    assert calls[1]["requests"] == 0


def test_a_scorer_is_told_the_prompt_and_the_reference_beside_the_object(declare):
    declare("print(len(told['prompt']) * 100 + len(told['reference']) * 10 + len(told['content']), flush=True)")
    told = (("prompt", "four"), ("reference", "ref"))
    assert offered("texts")["length"].scores(OBJECT_KINDS["texts"], [StoredObject("ab", told=told)]) == [432]

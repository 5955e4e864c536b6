"""`--scorer`: final states are given numbers by real programs, stored, counted, and never asked about twice."""

import pytest

import sampler
from prefmh_web.experiments import scoring
from prefmh_web.experiments.campaigns import Blocked
from prefmh_web.objects import OBJECT_KINDS, StoredObject
from prefmh_web.scorers import offered

OPTIONS = sampler.ExperimentOptions.of("stories", "laptop")
PLACES = [("base", "", 0, chain, step) for chain in range(40) for step in (1, 2)]


@pytest.fixture
def scored(declare, django_user_model, tmp_path):
    """A run of 80 states, whose scorer writes down what it is sent, and fails while there is a file `gone`."""
    declare(
        f"open({str(tmp_path / 'log')!r}, 'a').write(told['content'] + '\\n')\n"
        f"if os.path.exists({str(tmp_path / 'gone')!r}): sys.exit(1)\n"
        "print('nan' if told['content'] == 'odd' else told['content'].split()[1], flush=True)"
    )
    owner = django_user_model.objects.create_user("researcher")
    scorer = offered("texts")["length"]

    def stored(place) -> StoredObject:
        return StoredObject("odd" if place[3:] == (3, 1) else f"text {10 * place[3] + place[4]}")

    return scoring.Scoring(owner, "a" * 64, OPTIONS, {"role": scorer}, PLACES, stored)


@pytest.mark.django_db
def test_what_is_stored_is_not_asked_again_and_what_was_lost_is_counted(scored, tmp_path, monkeypatch):
    said: list[str] = []
    monkeypatch.setattr(scoring, "BATCH", 30)
    (tmp_path / "gone").touch()
    with pytest.raises(Blocked, match="gives no numbers"):
        scoring.run(scored, lambda *_: None, said.append)
    assert list(scoring.score_rows(scored)) == []
    (tmp_path / "gone").unlink()
    (tmp_path / "log").unlink()
    shown: list[tuple[int, int]] = []
    scoring.run(scored, lambda *counts: shown.append(counts), said.append)
    assert shown == [(0, 80), (30, 80), (60, 80), (80, 80)]
    asked = (tmp_path / "log").read_text().splitlines()
    assert len(asked) == 80
    assert len(said) == 1
    assert "1 states have no number" in said[0]
    header = sampler.outputs.SCORES.header
    found = [dict(zip(header, row, strict=True)) for row in scoring.score_rows(scored)]
    # The one that has no number has no row, and is not asked about again.
    assert {(int(row["chain"]), int(row["step"])): float(row["value"]) for row in found} == {
        place[3:]: 10.0 * place[3] + place[4] for place in PLACES if place[3:] != (3, 1)
    }
    scoring.run(scored, lambda *_: None, said.append)
    assert (tmp_path / "log").read_text().splitlines() == asked
    header = sampler.outputs.CALLS.header
    calls = [dict(zip(header, row, strict=True)) for row in scoring.call_rows(scored, {})]
    assert [row["method"] for row in calls] == list(OPTIONS.methods)
    assert {row["stage"] for row in calls} == {"score"}
    # The first batch was begun, lost, and asked for again.
    assert [int(calls[0][name]) for name in ("requests", "repeated", "unparsable", "tokens")] == [80, 30, 1, 0]
    assert [int(row["requests"]) for row in calls[1:]] == [0] * 4


def test_a_scorer_is_told_the_prompt_and_the_reference_beside_the_object(declare):
    declare("print(len(told['prompt']) * 100 + len(told['reference']) * 10 + len(told['content']), flush=True)")
    told = (("prompt", "four"), ("reference", "ref"))
    assert offered("texts")["length"].scores(OBJECT_KINDS["texts"], [StoredObject("ab", told=told)]) == [432]

"""QUEST as released, whole: `manage.py experiment translation` over a real server, and its record tampered with."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import pytest

import sampler
from tests.support.experiment_sites import Site
from tests.support.model_server import model_server, write_model
from tests.support.ports import port_from
from tests.support.scorer_programs import declared

METHOD, BETA = "quest-released-0.1", 0.1
DIRECTIONS = ("de-en", "en-de")
PROMPTS, STEPS = 2, 3
SIZE = (
    "translation", "--scale", "laptop", "--methods", METHOD,
    "--prompts", str(PROMPTS), "--steps", str(STEPS), "--burn-in", "1", "--keep", "2", "--scorer", "quality=quality",
)  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Site:
    """A run that has ended; its server is gone."""
    folder = tmp_path_factory.mktemp("site")
    with model_server(write_model(folder / "tiny.gguf"), port_from(23_300)) as url:
        made = Site.made(folder, url, "llama.cpp", SIZE, also=declared(folder, ["quality"]).environment)
        ended = made.run()
        assert ended.returncode == 0, ended.stderr
    return made


def record_of(site: Site, direction: str) -> sampler.Record:
    path = site.out / "records" / f"{METHOD}-{direction}-s0.zip"
    assert not sampler.replay_file(path).differences
    return sampler.read_record(path)


def mean_after(numbers: list[float], cut: int) -> float:
    return math.fsum(numbers[cut:]) / (len(numbers) - cut)


def mean_of_all(numbers: list[float], cut: int) -> float:
    return mean_after(numbers, 0)


def cuts_of(record: sampler.Record) -> dict[tuple[str, str], int]:
    """Draw again from which token on each step wrote."""
    tokens = {row["state"]: len(json.loads(row["code"])["tokens"]) for row in record.states}
    drawn = {}
    for row in record.steps:
        rng = sampler.stream(record.recipe["seed"], int(row["chain"]), int(row["step"]), sampler.Purpose.PROPOSAL)
        drawn[row["chain"], row["step"]] = int(rng.random() * tokens[row["current"]])
    return drawn


def assert_released(record: sampler.Record, mean: Callable[[list[float], int], float]) -> None:
    """Compute each base ratio and verdict anew from the numbers of tokens, scores and random numbers."""
    told = {row["state"]: json.loads(row["code"])["log_probabilities"] for row in record.states}
    scored = {row["state"]: float(row["score"]) for row in record.scores}
    reward = {state: math.log(q / (1 - q)) for state, q in scored.items()}
    cuts = cuts_of(record)
    for row in record.steps:
        before, after, cut = told[row["current"]], told[row["proposal"]], cuts[row["chain"], row["step"]]
        log_r0 = math.log(len(before) / len(after)) + mean(before, cut) - mean(after, cut)
        assert float(row["log_r0"]) == pytest.approx(log_r0, abs=1e-12)
        bound = min(0.0, log_r0 + (reward[row["proposal"]] - reward[row["current"]]) / BETA)
        assert row["verdict"] == ("accept" if float(row["uniform"]) < math.exp(bound) else "reject")


def test_records_replay_and_their_verdicts_follow_from_what_the_server_told(site):
    for direction in DIRECTIONS:
        record = record_of(site, direction)
        assert len(record.steps) == PROMPTS * STEPS
        assert record.recipe["rule"]["released"] is True
        assert record.recipe["target"].startswith("not known, inexact")
        assert_released(record, mean_after)
        with pytest.raises(AssertionError):
            # Negative control: means over the whole texts give other ratios.
            assert_released(record, mean_of_all)


def test_the_table_marks_the_row_and_the_sums_are_those_of_the_dry_run(site):
    assert "samples neither target" in (site.out / "table.md").read_text()
    sums = sampler.planned_sums(sampler.options_of(json.loads((site.out / "settings.json").read_text())))
    assert sums["proposals"][METHOD] == len(DIRECTIONS) * PROMPTS * STEPS
    (row,) = [row for row in site.rows("calls.csv") if row["role"] == "writer"]
    assert int(row["planned"]) == sums["proposals"][METHOD]


def replayed(record: sampler.Record, states: list[dict[str, str]], steps: list[dict[str, str]]) -> list[str]:
    found = sampler.replay(
        record.recipe, states, steps, record.votes, record.samples, scores=record.scores, scorers=record.scorers
    )
    return [str(difference) for difference in found.differences]


def with_number(record: sampler.Record, state: str, place: int, number: float) -> list[dict[str, str]]:
    """Return the states with another log-probability of one token."""
    rows = []
    for row in map(dict, record.states):
        if row["state"] == state:
            code = json.loads(row["code"])
            code["log_probabilities"][place] = number
            row["code"] = json.dumps(code, ensure_ascii=False, separators=(",", ":"))
        rows.append(row)
    return rows


def last_steps(record: sampler.Record) -> list[dict[str, str]]:
    """Return the last step of each chain: what its proposal is told to be touches no other step's ratio."""
    return [row for row in record.steps if row["step"] == str(STEPS) and row["current"] != row["proposal"]]


def test_a_tampered_log_probability_is_found_also_where_the_ratio_beside_it_is_made_to_fit(site):
    flipped = 0
    for direction in DIRECTIONS:
        record = record_of(site, direction)
        cuts = cuts_of(record)
        assert replayed(record, list(record.states), list(record.steps)) == []
        for row in last_steps(record):
            code = json.loads(next(each["code"] for each in record.states if each["state"] == row["proposal"]))
            numbers, cut = code["log_probabilities"], cuts[row["chain"], row["step"]]
            # So little for the last token that the proposal would be accepted, or so much that it would be rejected.
            is_accepted = row["verdict"] == "accept"
            number = 0.0 if is_accepted else numbers[-1] - 1e4
            states = with_number(record, row["proposal"], len(numbers) - 1, number)
            assert any("log_r0" in each for each in replayed(record, states, list(record.steps)))
            change = (number - numbers[-1]) / (len(numbers) - cut)
            steps = [
                dict(each) | ({"log_r0": repr(float(each["log_r0"]) - change)} if each is row else {})
                for each in record.steps
            ]
            found = replayed(record, states, steps)
            assert not any("log_r0" in each for each in found)
            if not is_accepted:
                flipped += 1
                assert any("the verdict: the export has reject, expected accept" in each for each in found)
    assert flipped


def test_a_number_of_a_kept_token_must_be_that_of_the_text_before(site):
    found = 0
    for direction in DIRECTIONS:
        record = record_of(site, direction)
        cuts = cuts_of(record)
        for row in last_steps(record):
            if cuts[row["chain"], row["step"]] == 0:
                continue
            found += 1
            states = with_number(record, row["proposal"], 0, -0.5)
            assert any("of the same first" in each for each in replayed(record, states, list(record.steps)))
    assert found


def test_a_record_without_its_numbers_cannot_be_read(site):
    record = record_of(site, "de-en")
    code = json.loads(record.states[0]["code"])
    del code["log_probabilities"]
    states = [dict(record.states[0]) | {"code": json.dumps(code)}, *record.states[1:]]
    with pytest.raises(sampler.RecordError, match="log_probabilities must be"):
        replayed(record, states, list(record.steps))

"""What a record says beside its chains and votes, compared with the rest of it: judges.json, checks.csv and events.csv.

judges.json tells what each model judge was when its campaign started. Who answered cannot be recomputed. What can be
checked is that the file tells of the config's judges, in the config's words, and that each vote and rating names a
reply that counted.

checks.csv has the trials that people were shown between their pairs. Which vote is followed by a trial, of which kind,
and what stands on which side, are functions of the seed, the person's number, how many votes they had given, and the
shares that the protocol declares. That a trial is missing cannot be seen: its person may have left, or no pair could be
repeated.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from sampler.config import ChainConfig
from sampler.judges.config import JudgeConfig, ModelSource, PanelistSource
from sampler.judges.presentation import InsertedTrial, TrialShares, check_after
from sampler.judges.prompts import Placeholder, placeholders, stored_prompt, template_of
from sampler.record import tables
from sampler.record.commitment import Commitment
from sampler.record.draws import Parsed
from sampler.record.record import Difference, Row, StepKey, of_file, of_step, quoted, reading, step_key, vote_name


def compare_judges(parsed: Parsed) -> Iterator[Difference]:
    """Yield where judges.json differs from the config, or votes and ratings from it.

    Raises:
        RecordError: the file does not hold the config's judges, or a field is not what it should be.
    """
    config, judges = parsed.config, parsed.record.documents.get(tables.JUDGES)
    if judges is None:
        return
    with reading(tables.JUDGES):
        if not all(isinstance(judge, Mapping) for judge in judges) or len(judges) != len(config.judges):
            raise ValueError(f"judges.json must hold the {len(config.judges)} judges of the config")
        for index, (judge, expected) in enumerate(zip(judges, config.judges, strict=True)):
            for what, (recorded, value) in _fields(config, index, judge, expected).items():
                if recorded != value:
                    yield _differs(index, what, recorded, value, tables.JUDGES)
        yield from _compare_replies(parsed, judges)


def _differs(
    judge: int, what: str, recorded: object, expected: object, file: str, row: Row | None = None
) -> Difference:
    return Difference(f"judge {judge} in judges.json", what, quoted(recorded), quoted(expected), file, row)


def _fields(
    config: ChainConfig, index: int, judge: Mapping[str, Any], expected: JudgeConfig
) -> dict[str, tuple[object, object]]:
    """Return what judges.json says and what the config says, by field."""
    compared: dict[str, tuple[object, object]] = {
        "the number": (judge["judge_index"], index),
        "the question": (judge["question"], expected.question),
        "the source": (judge["source"], expected.source.kind),
    }
    if isinstance(expected.source, PanelistSource):
        compared["the panelist"] = judge["panelist"], config.panelists.index(expected.source.name) + 1
    if not isinstance(expected.source, ModelSource) or "request" not in judge:
        return compared
    request = _object(judge, "request")
    compared["the endpoint"] = judge["endpoint"], expected.source.endpoint
    vision = expected.source.vision
    compared["how pictures are shown"] = judge.get("vision"), vision and vision.model_dump(mode="json")
    return compared | {
        "the temperature": (judge.get("temperature", request.get("temperature")), expected.source.temperature),
        "the requested model": (request.get("model", judge["model"]), judge["model"]),
        **_prompt_fields(config, judge, expected),
    }


def _prompt_fields(
    config: ChainConfig, judge: Mapping[str, Any], expected: JudgeConfig
) -> dict[str, tuple[object, object]]:
    prompt, template = stored_prompt(_object(judge, "prompt")), template_of(expected.source)
    # Of prefmh's own words no version is written.
    version = prompt.template.version if template else None
    compared: dict[str, tuple[object, object]] = {
        "the prompt's version": (judge.get("prompt_version"), version),
        "the number of objects shown": (prompt.objects, config.rule.objects_shown),
        "the question in the prompt": (prompt.question, " ".join(expected.question.split())),
    }
    if template:
        return compared | {"the prompt": (prompt.template, template)}
    shows_columns = Placeholder("context") in placeholders(prompt.template.user)
    return compared | {"whether columns are shown": (shows_columns, bool(config.context))}


def _object(judge: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = judge[name]
    if not isinstance(found, Mapping):
        raise ValueError(f"{name} in judges.json must be an object")
    return found


def _compare_replies(parsed: Parsed, judges: Sequence[Mapping[str, Any]]) -> Iterator[Difference]:
    for row in parsed.record["votes"]:
        judge = int(row["judge_index"])
        source = parsed.config.judges[judge].source
        if not isinstance(source, ModelSource):
            continue
        name = vote_name(row)
        if row["preference"] and source.votes == "sampled":
            expected = "none: this judge's votes are sampled"
            where = step_key(row), f"{name}'s preference"
            yield of_step(*where, row["preference"], expected, tables.VOTES.file, row)
        if reason := _why_not(judges[judge], row):
            yield of_step(step_key(row), f"{name}'s reply", quoted(row["identity"]), reason, tables.VOTES.file, row)
    for row in parsed.record["ratings"]:
        judge = int(row["judge_index"])
        if reason := _why_not(judges[judge], row):
            what = f"the reply for the rating of state {row['state_index']} in slot {row['slot']}"
            yield _differs(judge, what, row["identity"], reason, tables.RATINGS.file, row)


def _why_not(judge: Mapping[str, Any], row: Row) -> str:
    """Return what a vote or a rating of a model should say of its reply; empty if it is in order."""
    accepted = {
        str(identity["identity"]) for identity in judge.get("identities", ()) if identity["accepted_at"] is not None
    }
    if not row["identity"]:
        return "one of judges.json"
    return "" if row["identity"] in accepted else "one that counted"


_OTHER = {"first": "second", "second": "first"}
_Key = tuple[int, int]
"""The voter, and how many votes they had given."""


@dataclass(frozen=True)
class Declared:
    """What campaign.json declares of trials that are no votes."""

    shares: TrialShares
    answers: tuple[str, ...]
    """Which side of each gold pair is right; empty while that is hidden."""


def compare_trials(parsed: Parsed) -> Iterator[Difference]:
    """Yield where checks.csv is not what campaign.json gives.

    Raises:
        RecordError: the study of campaign.json lacks a field, or a value is not what it should be.
    """
    if not parsed.record.study:
        return
    with reading(tables.CONFIG):
        declared = declared_in(parsed.record.study)
    voted = {_pair_key(row): row["chosen_side"] for row in parsed.record["votes"] if row["voter"]}
    seen: set[_Key] = set()
    for row in parsed.record["checks"]:
        key = int(row["voter"]), int(row["after_votes"])
        if key in seen:
            yield _of_trial(key, "the trial", "a second one", "one", row)
        seen.add(key)
        if not parsed.is_sealed:
            yield from _compare_trial(parsed.config.seed, declared, key, row)
        yield from _compare_answer(key, row, voted)


def compare_budget(parsed: Parsed) -> Iterator[Difference]:
    """Yield that more answers were given than the budget of campaign.json, or that it does not cover the steps."""
    if parsed.record.study.get("budget") is None:
        return
    with reading(tables.CONFIG):
        most = _number(parsed.record.study, "budget")
    config = parsed.config
    set_aside = config.chains_at_most * config.steps * config.votes_a_step
    answered = sum(row["chosen_side"] != "" for row in parsed.record["checks"])
    given = sum(row["voter"] != "" for row in parsed.record["votes"]) + answered
    if not set_aside <= most or given > most:
        expected = f"{max(set_aside, given)} or more, for the votes that were set aside and the {given} answers"
        yield of_file(tables.CONFIG, "study.budget", f"{most:g}", expected)


def _of_trial(key: _Key, what: str, recorded: str, expected: str, row: Row) -> Difference:
    where = f"checks.csv, voter {key[0]}, after {key[1]} votes"
    return Difference(where, what, recorded, expected, tables.CHECKS.file, row)


def _compare_trial(seed: int, declared: Declared, key: _Key, row: Row) -> Iterator[Difference]:
    trial = check_after(seed, *key, declared.shares, len(declared.answers))
    if trial is None:
        yield _of_trial(key, "the trial", row["kind"], "none: the declared shares give none", row)
        return
    for column, expected in _cells(trial, declared).items():
        if row[column] != expected:
            yield _of_trial(key, column, quoted(row[column]), quoted(expected), row)


def _cells(trial: InsertedTrial, declared: Declared) -> dict[str, str]:
    """Return what checks.csv says of a trial before anybody has answered."""
    is_swapped = trial.kind != "instructed" and trial.side == "second"
    expected = {"instructed": trial.side, "repeat": ""}.get(trial.kind, "")
    if trial.gold is not None:
        right = declared.answers[trial.gold]
        expected = _OTHER[right] if is_swapped and right else right
    gold = "" if trial.gold is None else str(trial.gold)
    return {"kind": trial.kind, "gold_index": gold, "swapped": str(int(is_swapped)), "expected_side": expected}


def _compare_answer(key: _Key, row: Row, voted: Mapping[tuple[str, ...], str]) -> Iterator[Difference]:
    chosen, expected = row["chosen_side"], row["expected_side"]
    passed = str(int(chosen == expected)) if chosen and expected else ""
    if row["passed"] != passed:
        yield _of_trial(key, "passed", quoted(row["passed"]), quoted(passed), row)
    before = voted.get(_pair_key(row)) if row["kind"] == "repeat" else None
    if before is None and row["kind"] == "repeat":
        # A record that is written while people vote may have the repeat of a vote that came after its moment.
        return
    agreed = str(int((chosen == before) != (row["swapped"] == "1"))) if chosen and before else ""
    if row["agreed"] != agreed:
        yield _of_trial(key, "agreed", quoted(row["agreed"]), quoted(agreed), row)


def declared_in(study: Mapping[str, Any]) -> Declared:
    """Return what the study of a record's campaign.json declares.

    Raises:
        ValueError: it lacks a field, or a value is not what it should be.
    """
    protocol = study.get("protocol")
    if not isinstance(protocol, Mapping):
        raise ValueError("study.protocol in campaign.json must be an object")
    golds = protocol.get("gold", [])
    if not isinstance(golds, list) or not all(_is_gold(each) for each in golds):
        raise ValueError("study.protocol.gold in campaign.json must hold pairs whose answer is first or second")
    shares = TrialShares(*(_number(protocol, name) for name in ("check_share", "gold_share", "repeat_share")))
    if not 0 <= shares.total <= 1 or (shares.gold and not golds):
        raise ValueError("the shares in campaign.json must be at most 1 together, and gold_share needs gold pairs")
    return Declared(shares, tuple(each.get("answer", "") for each in golds))


def _is_gold(pair: object) -> bool:
    return isinstance(pair, Mapping) and pair.get("answer", "first") in _OTHER


def _number(parent: Mapping[str, Any], name: str) -> float:
    found = parent.get(name)
    if isinstance(found, bool) or not isinstance(found, int | float) or found < 0:
        raise ValueError(f"{name} in campaign.json must be a number from 0 on")
    return found


def _pair_key(row: Row) -> tuple[str, ...]:
    return tuple(row[column] for column in ("voter", "chain_index", "step", "judge_index"))


STARTED, REVEALED = "started", "seed-revealed"
EXTENDED, OPENED, ENDED = "extended", "chain-opened", "chain-ended"
FINISHED_NOW = "finished-now"
SUSPENDED, TRIED_AGAIN = "step-suspended", "step-tried-again"
CONSENT_ASKED, CONSENT_ANSWERED = "consent-asked", "consent-answered"
"""The kinds of events that are compared with the rest of the record."""
WAIT, AHEAD = "wait", "ahead"
"""Why a chain opened after the start."""


def events_of(rows: Iterable[Row], *kinds: str) -> Iterator[tuple[Row, dict[str, Any]]]:
    """Yield the rows of events.csv of some kinds, each with what it says.

    Raises:
        RecordError: a row does not say it as JSON.
    """
    for row in rows:
        if row["kind"] in kinds:
            with reading(tables.EVENTS.file, row):
                try:
                    said = json.loads(row["data"])
                except RecursionError as error:
                    raise ValueError("data is nested too deeply") from error
            yield row, said


def compare_events(parsed: Parsed) -> Iterator[Difference]:
    """Yield where events are not numbered from 1, or where the start, the end, extensions, openings and ends of chains,
    and what people agreed to, are not as the rest of the record has them. When a step was suspended, and by how many
    skips, cannot be worked out again.
    """
    for number, event in enumerate(parsed.record["events"], start=1):
        if event["number"] != str(number):
            yield _of_event(event, "the number", event["number"], number)
    if parsed.commitment:
        yield from _compare_seed(parsed.record["events"], parsed.commitment)
    yield from _compare_extensions(parsed)
    yield from _compare_openings(parsed)
    yield from _compare_ends(parsed)
    yield from _compare_consents(parsed)


def _compare_seed(events: Sequence[Row], commitment: Commitment) -> Iterator[Difference]:
    """A campaign starts once, with the hash of its seed, and a seed that is told was revealed once."""
    for kind in (STARTED, REVEALED) if commitment.is_open else (STARTED,):
        if (count := sum(row["kind"] == kind for row in events)) != 1:
            yield of_file(tables.EVENTS.file, f"events of kind {kind}", count, 1)
    for row, said in events_of(events, STARTED):
        if (digest := said.get("seed_hash")) != commitment.digest:
            yield _of_event(row, "seed_hash", quoted(digest), quoted(commitment.digest))


def _of_event(row: Row, what: str, recorded: object, expected: object) -> Difference:
    where = f"events.csv, event {row['number']} ({row['kind']})"
    return Difference(where, what, str(recorded), str(expected), tables.EVENTS.file, row)


def _compare_extensions(parsed: Parsed) -> Iterator[Difference]:
    """The config says how many steps each chain walks in the end. With extensions, it once said `steps_before` of the
    first, and no step beyond may have opened before its event.
    """
    length = 0
    last: Row | None = None
    for row, said in events_of(parsed.record["events"], EXTENDED):
        with reading(tables.EVENTS.file, row):
            before, after = int(said["steps_before"]), int(said["steps_after"])
        if length and before != length:
            yield _of_event(row, "steps_before", before, length)
        if not 0 < before < after:
            yield _of_event(row, "steps_after", after, f"more than {max(before, 0)}")
        length, last = after, row
        for step in parsed.steps:
            # Moments of one zone, written in one way: their order is that of their letters.
            if before < int(step["step"]) <= after and step["opened_at"] < row["at"]:
                key = step_key(step)
                what = f"when step {key[1]} of chain {key[0]} opened"
                yield _of_event(row, what, step["opened_at"], f"no earlier than {row['at']}")
    if last is not None and length != parsed.config.steps:
        yield _of_event(last, "steps_after", length, f"{parsed.config.steps}, the config's steps")


def _compare_openings(parsed: Parsed) -> Iterator[Difference]:
    """A chain opens when somebody would wait, so nothing says how many there should be. What can be checked: each of
    those after the start has its event, they are numbered without a gap, and none of their steps is older.
    """
    opened_at: dict[int, str] = {}
    for row, said in events_of(parsed.record["events"], OPENED):
        with reading(tables.EVENTS.file, row):
            chain = int(said["chain_index"])
        if chain != parsed.config.chains + len(opened_at) or not chain < parsed.config.chains_at_most:
            yield _of_event(row, "the chain", chain, f"{parsed.config.chains + len(opened_at)}, if there is one more")
        opened_at[chain] = row["at"]
        if said.get("reason") not in (WAIT, AHEAD):
            yield _of_event(row, "why the chain opened", quoted(said.get("reason")), f"{WAIT} or {AHEAD}")
        if not row["voter"]:
            yield _of_event(row, "for whom the chain opened", "nobody", "who would have waited")
    if (found := len(opened_at)) != (late := parsed.chains - parsed.config.chains):
        yield of_file(tables.EVENTS.file, "chains that opened after the start", found, late)
    for step in parsed.steps:
        if step["opened_at"] < (moment := opened_at.get(int(step["chain_index"]), "")):
            expected = f"no earlier than its chain, {moment}"
            yield of_step(step_key(step), "when the step opened", step["opened_at"], expected, row=step)


def _compare_consents(parsed: Parsed) -> Iterator[Difference]:
    """A text that people are asked to agree to is named by its hash; they answer to one that they were asked."""
    asked: set[str] = set()
    for row, said in events_of(parsed.record["events"], CONSENT_ASKED, CONSENT_ANSWERED):
        version = str(said.get("version"))
        if row["kind"] == CONSENT_ASKED:
            asked.add(version)
            with reading(tables.EVENTS.file, row):
                digest = sha256(str(said.get("wording")).encode()).hexdigest()
            if version != digest:
                yield _of_event(row, "the version of the text", quoted(version), quoted(digest))
        elif version not in asked:
            yield _of_event(row, "the version of the text", quoted(version), "one that was asked before")


def _compare_ends(parsed: Parsed) -> Iterator[Difference]:
    """A step at which its chain was ended has no verdict, and is the only one without a verdict whose uniform is given.
    So a chain that ends early is told from one that goes on in both files, and neither can be changed alone.
    """
    steps = {step_key(row): row for row in parsed.steps}
    ended: set[StepKey] = set()
    for row, said in events_of(parsed.record["events"], SUSPENDED, TRIED_AGAIN, ENDED):
        with reading(tables.EVENTS.file, row):
            key = int(said["chain_index"]), int(said["step"])
        if key not in steps:
            yield _of_event(row, "the step", f"step {key[1]} of chain {key[0]}", "one of steps.csv")
        elif row["kind"] == ENDED:
            ended.add(key)
    for key, step in steps.items():
        if key in ended and step["verdict"]:
            yield of_step(key, "the end of the chain", "at this step", "none: the step has a verdict", row=step)
        elif key in ended and not step["uniform"]:
            yield of_step(key, "uniform", "none", "one: the chain was ended at this step", row=step)
        elif key not in ended and step["uniform"] and not step["verdict"]:
            expected = "one: the step has a uniform and no verdict"
            yield of_step(key, "the end of the chain", "none in events.csv", expected, row=step)

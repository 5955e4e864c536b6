"""A record's judges.json: what each model judge was when its campaign started, compared with the rest of the record.

Who answered cannot be recomputed. What can be checked is that the file tells of the config's judges, in the config's
words, and that each vote and rating names a reply that counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sampler.config import ChainConfig
from sampler.judges.config import JudgeConfig, ModelSource, PanelistSource
from sampler.judges.prompts import OwnPrompt, prompt_version, stored_prompt
from sampler.judges.templates import template_of
from sampler.record import tables
from sampler.record.chains import Parsed
from sampler.record.differences import Difference, Row, of_step, quoted, reading, step_key


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
        for place, (judge, expected) in enumerate(zip(judges, config.judges, strict=True)):
            for what, (recorded, value) in _fields(config, place, judge, expected).items():
                if recorded != value:
                    yield _differs(place, what, recorded, value, tables.JUDGES)
        yield from _compare_replies(parsed, judges)


def _differs(
    judge: int, what: str, recorded: object, expected: object, file: str, row: Row | None = None
) -> Difference:
    return Difference(f"judge {judge} in judges.json", what, quoted(recorded), quoted(expected), file, row)


def _fields(
    config: ChainConfig, place: int, judge: Mapping[str, Any], expected: JudgeConfig
) -> dict[str, tuple[object, object]]:
    """Return what judges.json says and what the config says, by field."""
    compared: dict[str, tuple[object, object]] = {
        "the number": (judge["judge_index"], place),
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
    version, question = prompt_version(prompt), " ".join(expected.question.split())
    compared: dict[str, tuple[object, object]] = {
        # Of prefmh's own words none is written.
        "the prompt's version": (judge.get("prompt_version", version), version),
        "whose words the prompt has": (isinstance(prompt, OwnPrompt), template is not None),
    }
    if isinstance(prompt, OwnPrompt):
        return compared | {
            "the number of objects shown": (prompt.objects, config.rule.objects_shown),
            "the prompt": (prompt.template, template),
            "the question in the prompt": (prompt.question, question),
        }
    return compared | {
        "the number of objects shown": (len(prompt.headings), config.rule.objects_shown),
        "whether columns are shown": (bool(prompt.context), bool(config.context)),
        "the question in the prompt": (prompt.opening.removeprefix("Question: "), question),
    }


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
        name = f"vote {row['number']}" if row["number"] else "a late vote"
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

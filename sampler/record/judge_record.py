"""A record's judges.json: what each model judge was when its campaign started, compared with the rest of the record.

Who answered cannot be recomputed. What can be checked is that the file tells of the config's judges, in the config's
words, and that each vote and rating names a reply that counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sampler.config import ChainConfig
from sampler.judges.config import JudgeConfig
from sampler.judges.own_prompts import OwnPrompt, prompt_version, stored_prompt
from sampler.judges.sources import ModelSource, PanelistSource
from sampler.judges.templates import template_of
from sampler.record import schema
from sampler.record.check_chain import Difference, Row


@dataclass(frozen=True)
class JudgeDifference(Difference):
    """A difference that is about a judge and no step; `chain` is the judge's number."""

    file: str = schema.JUDGES

    def __str__(self) -> str:
        return f"judge {self.chain}: {self.what} is {self.recorded} in judges.json, {self.recomputed} in the record"


def compare_judges(
    config: ChainConfig, judges: Sequence[Mapping[str, Any]], votes: Iterable[Row], ratings: Iterable[Row]
) -> Iterator[Difference]:
    """Yield where judges.json differs from the config, or votes and ratings from it.

    Raises:
        KeyError: a judge lacks a field.
        ValueError: the file does not hold the config's judges, or a field is not what it should be.
    """
    if not all(isinstance(judge, Mapping) for judge in judges) or len(judges) != len(config.judges):
        raise ValueError(f"judges.json must hold the {len(config.judges)} judges of the config")
    for place, (judge, expected) in enumerate(zip(judges, config.judges, strict=True)):
        for what, (recorded, value) in _fields(config, place, judge, expected).items():
            if recorded != value:
                yield JudgeDifference(place, 0, what, f"“{recorded}”", f"“{value}”")
    yield from _compare_votes(config, judges, votes)
    yield from _compare_ratings(judges, ratings)


def _fields(
    config: ChainConfig, place: int, judge: Mapping[str, Any], expected: JudgeConfig
) -> dict[str, tuple[object, object]]:
    """Return what judges.json says and what the config says, by field."""
    compared: dict[str, tuple[object, object]] = {
        "the number": (judge["judge"], place),
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


def _compare_votes(
    config: ChainConfig, judges: Sequence[Mapping[str, Any]], votes: Iterable[Row]
) -> Iterator[Difference]:
    for row in votes:
        judge = int(row["judge"])
        if row["annotator"]:
            continue
        where, name = (int(row["chain"]), int(row["step"])), f"vote {row['number']}" if row["number"] else "a late vote"
        source = config.judges[judge].source
        is_sampled = isinstance(source, ModelSource) and source.votes == "sampled"
        if row["preference"] and is_sampled:
            what, expected = f"{name}'s preference", "none: this judge's votes are sampled"
            yield Difference(*where, what, row["preference"], expected, schema.VOTES.file, row)
        if reason := _why_not(judges[judge], row):
            yield Difference(*where, f"{name}'s reply", f"“{row.get('identity', '')}”", reason, schema.VOTES.file, row)


def _compare_ratings(judges: Sequence[Mapping[str, Any]], ratings: Iterable[Row]) -> Iterator[Difference]:
    for row in ratings:
        judge = int(row["judge"])
        if reason := _why_not(judges[judge], row):
            what = f"the reply for the rating of state {row['state']} in slot {row['slot']}"
            yield JudgeDifference(judge, 0, what, f"“{row.get('identity', '')}”", reason, schema.RATINGS.file, row)


def _why_not(judge: Mapping[str, Any], row: Row) -> str:
    """Return what a vote or a rating of a model should say of its reply; empty if it is in order."""
    named = row.get("identity", "")
    accepted = {
        str(identity["identity"]) for identity in judge.get("identities", ()) if identity["accepted_at"] is not None
    }
    if not named:
        return "one of judges.json"
    return "" if named in accepted else "one that counted"

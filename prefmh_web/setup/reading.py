"""From the text of a campaign's file to the setup, or to every reason why it is none, each with its line and column."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from difflib import get_close_matches
from functools import cache
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from pydantic import ValidationError

import sampler
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.models import Campaign
from prefmh_web.participants import own_pairs
from prefmh_web.participants.misfits import misfits as misfits_of_people
from prefmh_web.recruiters import RECRUITERS
from prefmh_web.setup import fitting, left_out, yaml_text
from prefmh_web.setup.model import Setup, json_schema
from prefmh_web.setup.people import People
from prefmh_web.setup.problems import Problem, SetupError, refused

_MENDS = {
    "Field required": "is missing; add it",
    "Input should be a valid string": "must be text; put it in quotes",
}
_UNKNOWN = "Extra inputs are not permitted"
Tell = Callable[[Problem], None]


def setup_in(content: bytes | str, tell: Tell | None = None, owner: User | None = None) -> Setup:
    """Return the setup that `campaign.yaml` describes.

    Args:
        owner: whom it must fit; None to leave that to `apply.create`, which knows no lines.
        tell: is told of each value that the record's copy has left out, and something that fits stands for it. Without
            it, such a value is a problem.

    Raises:
        SetupError: with every problem found.
    """
    document = yaml_text.read(content if isinstance(content, str) else _decoded(content))
    if not isinstance(document.data, dict):
        raise SetupError([document.problem("", "The setup must be keys with values, such as “name: My campaign”.")])
    missing = [document.problem(path, left_out.mend(path)) for path in left_out.fill(document.data)]
    problems = [] if tell else missing
    try:
        setup = Setup.model_validate(document.data)
    except ValidationError as error:
        found = sampler.problems_in(error, document.data)
        raise SetupError([*problems, *(_told(document, each.path, each.message) for each in found)]) from error
    misfits = [*_misfits(setup), *(fitting.of_owner(setup, owner) if owner else ())]
    problems += [document.problem(path, message) for path, message in misfits]
    if problems:
        raise SetupError(problems)
    for each in missing:
        if tell:
            tell(each)
    return setup


def config_of(setup: Setup, seed: int = 0) -> sampler.ChainConfig:
    """Return the config of a setup.

    Args:
        seed: where the setup has none.

    Raises:
        sampler.ConfigError: its parts do not fit together.
    """
    return sampler.parse_config(setup.config(seed))


def as_campaign(setup: Setup, config: sampler.ChainConfig) -> Campaign:
    """Return a draft of a setup, unsaved, to look at."""
    return Campaign(
        name=setup.name,
        config_data=config.model_dump(mode="json"),
        instructions=setup.instructions,
        language=setup.language,
        layout=setup.layout or "",
    )


def recruitment_fields(people: People) -> dict[str, Any]:
    """Return the fields of a `Recruitment`, but for the protocol."""
    names = set(People.model_fields) - {"codes", "pay", "refused", "protocol"}
    return {name: getattr(people, name) for name in names} | {
        "codes": {outcome.value: code for outcome, code in people.codes.items()},
        "pay": {outcome.value: pay.value for outcome, pay in people.pay.items()},
    }


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise refused(f"The file is no text in UTF-8: line {line} has another byte. Save it as UTF-8.") from error


def _told(document: yaml_text.Document, path: str, message: str) -> Problem:
    if message == _UNKNOWN:
        key = path.rpartition(".")[2]
        near = get_close_matches(key, _keys(), n=1)
        message = "is no key of this part; " + (f"do you mean “{near[0]}”?" if near else "remove it")
    return document.problem(path[:300], _MENDS.get(message, message))


@cache
def _keys() -> list[str]:
    """Return the names of all keys of all parts."""
    schema = json_schema()
    parts = [schema, *schema["$defs"].values()]
    return sorted({key for part in parts for key in part.get("properties", ())})


def _misfits(setup: Setup) -> Iterator[tuple[str, str]]:
    try:
        config = config_of(setup)
    except sampler.ConfigError as error:
        yield from ((problem.path, problem.message) for problem in error.problems)
        return
    yield from _file_misfits(setup, config)
    yield from _language_misfits(setup)
    yield from _people_misfits(setup)
    try:
        own_pairs.demand_fit(setup.people.protocol, as_campaign(setup, config))
    except NotPossible as reason:
        yield "people.protocol", str(reason)
    yield from fitting.of_scorers(setup, config)


def _file_misfits(setup: Setup, config: sampler.ChainConfig) -> Iterator[tuple[str, str]]:
    if config.generates and setup.file is not None:
        yield "file", "must be left out: the chains make their objects"
    elif not config.generates and setup.file is None:
        yield "file", "is missing: name the file that has the list, such as “file: {name: texts.csv}”"


def _language_misfits(setup: Setup) -> Iterator[tuple[str, str]]:
    known = dict(settings.LANGUAGES)
    if setup.language not in known:
        yield "language", f"“{setup.language}” is no language of the voters' pages; there are {', '.join(known)}"


def _people_misfits(setup: Setup) -> Iterator[tuple[str, str]]:
    people = setup.people
    if people.recruiter not in RECRUITERS:
        yield "people.recruiter", f"must be one of {', '.join(RECRUITERS)}"
        return
    fields = recruitment_fields(people)
    for field, reason in misfits_of_people(fields, people.protocol, excludes_people=bool(people.refused)):
        yield f"people.{'refused' if field == 'excluded' else field}", reason

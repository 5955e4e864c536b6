"""From the text of a campaign's file to its configuration, or to every reason why it is none, each with its line and
column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from difflib import get_close_matches
from functools import cache
from typing import Any

from django.contrib.auth.models import User
from pydantic import ValidationError

import sampler
from prefmh_web.config import HIDDEN, CampaignConfig, json_schema, misfits
from prefmh_web.setup import fitting, yaml_text
from prefmh_web.setup.problems import Problem, SetupError, refused

_MENDS = {
    "Field required": "is missing; add it",
    "Input should be a valid string": "must be text; put it in quotes",
}
_UNKNOWN = "Extra inputs are not permitted"
Tell = Callable[[Problem], None]


def config_in(content: bytes | str, tell: Tell | None = None, owner: User | None = None) -> CampaignConfig:
    """Return the configuration that `campaign.yaml` describes.

    Args:
        owner: whom it must fit; None to leave that to `apply.create`, which knows no lines.
        tell: is told of each value that a record's copy has left out, where it can be done without.

    Raises:
        SetupError: with every problem found.
    """
    document = yaml_text.read(content if isinstance(content, str) else _decoded(content))
    if not isinstance(document.data, dict):
        raise SetupError([document.problem("", "The setup must be keys with values, such as “name: My campaign”.")])
    left_out = [*_left_out(document)]
    try:
        config = CampaignConfig.model_validate(document.data)
    except ValidationError as error:
        found = sampler.problems_in(error, document.data)
        raise SetupError([_told(document, each.path, each.message) for each in found]) from error
    wrong = [*misfits(config), *(fitting.of_owner(config, owner) if owner else fitting.of_scorers(config))]
    if wrong:
        raise SetupError([document.problem(path, message) for path, message in wrong])
    for each in left_out:
        if tell:
            tell(each)
    return config


def _left_out(document: yaml_text.Document) -> Iterator[Problem]:
    """Take the list of what a record's copy leaves out from a document, and yield each."""
    paths = document.data.pop(HIDDEN, ())
    for path in paths if isinstance(paths, list) else ():
        yield Problem("is left out of a record; enter it where it is needed", str(path)[:300])


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
    schema: dict[str, Any] = json_schema()
    parts = [schema, *schema["$defs"].values()]
    return sorted({key for part in parts for key in part.get("properties", ())})

"""How problems in a config are told: where in its JSON, and what would be accepted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import ValidationError
from pydantic_core import ErrorDetails

# Nobody reads more of them, and a file can be made of mistakes.
MOST_PROBLEMS = 100


@dataclass(frozen=True)
class ConfigProblem:
    """One thing wrong with a config: where in its JSON (a path such as judges.0.votes) and what would be accepted."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class ConfigError(ValueError):
    """A config that cannot be run; `problems` lists every reason."""

    def __init__(self, problems: list[ConfigProblem]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = problems


def problems_in(error: ValidationError, data: object) -> list[ConfigProblem]:
    """Return what pydantic has found wrong with `data`, by the paths of its JSON; the first 100, and how many more."""
    found = error.errors(include_url=False, include_input=False)
    details = found[:MOST_PROBLEMS]
    problems = [_problem(each, data) for each in details if not _is_only_echo(each, details)]
    if len(found) > MOST_PROBLEMS:
        problems.append(ConfigProblem("", f"{len(found) - MOST_PROBLEMS:,} more problems follow; mend these first"))
    return problems


def _problem(found: ErrorDetails, data: object) -> ConfigProblem:
    path, message = _path(found["loc"], data), found["msg"].removeprefix("Value error, ")
    if found["type"] == "union_tag_invalid":
        path, message = [*path, "kind"], f"Input should be one of {found['ctx']['expected_tags']}"
    elif found["type"] == "union_tag_not_found":
        path, message = [*path, "kind"], "Field required"
    # The path ends with the field, which the message need not name again.
    return ConfigProblem(".".join(path), message.removeprefix(f"{path[-1]}: ") if path else message)


def _path(loc: tuple[int | str, ...], data: object) -> list[str]:
    """Return pydantic's `loc` without the kinds that it names wherever a kind decides what may follow."""
    path: list[str] = []
    named: object = None
    for place, part in enumerate(loc):
        if isinstance(data, Mapping):
            # A field may be called like its parent's kind, which is named once, before it: `pairs`, or one not allowed.
            is_field = data is named or (part in data and place == len(loc) - 1)
            if part == data.get("kind") and not is_field:
                named = data
                continue
            data = data.get(part)
        elif isinstance(data, Sequence) and isinstance(part, int):
            # Of a list of fixed length, what is missing has a place, too.
            data = data[part] if part < len(data) else None
        path.append(str(part))
    return path


def _is_only_echo(found: ErrorDetails, details: list[ErrorDetails]) -> bool:
    """True when a list is called too short only because what stands in it is refused already."""
    depth = len(found["loc"])
    return found["type"] == "too_short" and any(
        len(other["loc"]) > depth and other["loc"][:depth] == found["loc"] for other in details
    )

"""What others may see of a configuration: the one way in which it leaves its owner's own form and file.

Each field says in its declaration whether it is hidden, and until when: `hidden="always"` (whoever has a completion
code or the address to return to is paid for a part that they have not done) or `hidden="until the end"` (whoever knows
the right answers passes the checks).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

import sampler
from prefmh_web.config.campaign import CampaignConfig
from sampler.declared import ui_of

HIDDEN = "hidden"
"""The key under which a public configuration names what it leaves out, by path."""


def public(config: CampaignConfig, *, is_over: bool) -> dict[str, Any]:
    """Return a configuration, as plain data, without what is hidden; panelists have numbers for names.

    Args:
        is_over: the campaign is finished, so that only what is hidden always stays so.
    """
    nameless = config.model_copy(update={"judges": sampler.unnamed(config.judges)})
    told: dict[str, Any] = nameless.model_dump(mode="json", exclude_none=True)
    left_out = [path for path in hidden_paths(nameless, is_over=is_over) if path != ("seed",)]
    for path in left_out:
        _remove(told, path)
    return told | ({HIDDEN: [".".join(map(str, path)) for path in left_out]} if left_out else {})


def hidden_paths(value: BaseModel, *, is_over: bool) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of each value that is set and hidden."""
    for name, info in type(value).model_fields.items():
        found, until = getattr(value, name), ui_of(info).hidden
        if until == "always" or (until and not is_over):
            yield from ((name, *inner) for inner in _set(found))
        else:
            yield from ((name, *inner) for inner in _hidden_in(found, is_over))


def _set(value: Any) -> Iterator[tuple[str | int, ...]]:
    if isinstance(value, Mapping):
        yield from ((str(key),) for key, each in value.items() if each)
    elif value not in (None, "", ()):
        yield ()


def _hidden_in(value: Any, is_over: bool) -> Iterator[tuple[str | int, ...]]:
    if isinstance(value, BaseModel):
        yield from hidden_paths(value, is_over=is_over)
    elif isinstance(value, tuple):
        for index, each in enumerate(value):
            yield from ((index, *inner) for inner in _hidden_in(each, is_over))


def _remove(data: Any, path: tuple[str | int, ...]) -> None:
    *parts, last = path
    for part in parts:
        data = data[part]
    del data[last]

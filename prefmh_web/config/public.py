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
    # Whether a seed is told is settled by whoever made the configuration.
    left_out = [*_hide(nameless.model_copy(update={"seed": None}), told, is_over)]
    return told | ({HIDDEN: left_out} if left_out else {})


def _hide(value: Any, data: Any, is_over: bool) -> Iterator[str]:
    """Take what is hidden out of the plain data of a value, and yield the path of each."""
    match value, data:
        case tuple(), list():
            for index, each in enumerate(value):
                yield from (f"{index}.{path}" for path in _hide(each, data[index], is_over))
        case BaseModel(), dict():
            for name, info in type(value).model_fields.items():
                found, until = getattr(value, name), ui_of(info).hidden
                if not until or (is_over and until != "always"):
                    yield from (f"{name}.{path}" for path in _hide(found, data.get(name), is_over))
                elif isinstance(found, Mapping):
                    data[name] = {}
                    yield from (f"{name}.{key}" for key, each in found.items() if each)
                elif found not in (None, "", ()):
                    del data[name]
                    yield name

"""What the record's copy of a setup does not tell, and how a file that lacks it is read.

Whoever has a code or the address to return to is paid for a part that they have not done, and whoever knows the answers
of a check passes it. Each has a mark in its place, so that a reader of the record sees that it was there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sampler
from prefmh_web.participants.protocol_file import LEFT_OUT as MARK

_CODE, _ANSWER = "A-CODE", "right"
# Keys of people that hold an address; there is no other one in a setup.
_ADDRESSES = ("way_back",)


def hide(setup: dict[str, Any], *, hides_answers: bool) -> dict[str, Any]:
    """Return a setup, as plain data, with marks for codes, addresses and, if they are to be hidden, right answers; a
    panel has numbers for names."""
    people = dict(setup.get("people") or {})
    people |= {key: MARK for key in _ADDRESSES if people.get(key)}
    if people.get("codes"):
        people["codes"] = {outcome: MARK for outcome, code in people["codes"].items() if code}
    protocol = people.get("protocol") or {}
    if hides_answers and protocol.get("comprehension"):
        checks = [check | {_ANSWER: MARK} for check in protocol["comprehension"]]
        people["protocol"] = protocol | {"comprehension": checks}
    return sampler.unnamed_config(setup) | {"people": people}


def fill(setup: Any) -> Iterator[str]:
    """Put something that fits in the place of each mark, and yield the place.

    Args:
        setup: as it stands in a file: plain data, which is changed and may be of any shape.
    """
    people = _part(setup, "people")
    for key in _ADDRESSES:
        if people.get(key) == MARK:
            del people[key]
            yield f"people.{key}"
    codes = _part(people, "codes")
    for outcome in [outcome for outcome, code in codes.items() if code == MARK]:
        codes[outcome] = _CODE
        yield f"people.codes.{outcome}"
    checks = _part(people, "protocol").get("comprehension")
    for place, check in enumerate(checks if isinstance(checks, list) else ()):
        options = _part(check).get("options")
        if _part(check).get(_ANSWER) == MARK and isinstance(options, list) and options:
            check[_ANSWER] = options[0]
            yield f"people.protocol.comprehension.{place}.{_ANSWER}"


def mend(path: str) -> str:
    """Return what is wrong with a mark at a path, and what would be accepted."""
    wanted = "one of the options" if path.endswith(_ANSWER) else "the value, or remove the key"
    return f"“{MARK}” stands for what a record does not tell; enter {wanted}"


def _part(value: Any, key: str | None = None) -> dict[str, Any]:
    """Return a value, or what it has under a key, if that is a mapping; an empty one otherwise."""
    found = value if key is None else value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}

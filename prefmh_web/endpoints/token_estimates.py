"""How many tokens a request will have, before it is sent: its prompt, estimated, and the most that it may write.

On the safe side, since what a reply says counts instead: English has four characters a token, other scripts fewer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

_BYTES_A_TOKEN = 3
# What hosted models take for a picture of some size (`picture_tokens.py`).
_A_PICTURE = 1_000
# A data URL, or the Base64 of a file alone.
_PICTURE = re.compile(r"data:[\w/+.-]+;base64,|[A-Za-z0-9+/]{1000}")
# How the kinds of servers name the most tokens of an answer.
_MOST_WRITTEN = frozenset(
    {"max_tokens", "max_completion_tokens", "max_new_tokens", "n_predict", "num_predict", "maxOutputTokens"}
)


def estimated(body: Mapping[str, Any] | None) -> int:
    """Return about how many tokens a request reads and writes; 0 for one without a body."""
    return 0 if body is None else math.ceil(_bytes(body) / _BYTES_A_TOKEN)


def _bytes(value: object) -> int:
    """Return what stands in a body, as bytes of text."""
    if isinstance(value, str):
        return _A_PICTURE * _BYTES_A_TOKEN if _PICTURE.match(value) else len(value.encode(errors="replace"))
    if isinstance(value, Mapping):
        written = [most for name in _MOST_WRITTEN & value.keys() if isinstance(most := value[name], int)]
        read = sum(_bytes(inner) for name, inner in value.items() if name not in _MOST_WRITTEN)
        return read + _BYTES_A_TOKEN * sum(written)
    if isinstance(value, list | tuple):
        # Whole numbers are token ids.
        ids = sum(isinstance(inner, int) for inner in value)
        return _BYTES_A_TOKEN * ids + sum(_bytes(inner) for inner in value if not isinstance(inner, int))
    return 0

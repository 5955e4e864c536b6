"""Special tokens, made harmless: what a text must not say to a model that judges it.

A chat reaches a model as one sequence of tokens, in which special tokens say where a turn ends and whose the next one
is. Many servers write the chat out as a text first and then read special tokens wherever they stand, in a judged text
too: a text that holds <|im_end|> would end the question it is shown in, and could put words into the judge's mouth.

Nobody here knows the judge's vocabulary, so the forms are taken that such tokens have in use: <|im_end|>, </s>,
<end_of_turn>, <｜User｜>, <<SYS>>; [INST], [/INST], [TOOL_CALLS], [gMASK], [unused1], [|user|]; ]~b] and [e~[. A space
after the opening bracket makes other tokens of them and leaves the words to be read. Each text always gets the same
spaces, whichever of the two objects it is.
"""

from __future__ import annotations

import re
from typing import Final

# Full-width and small forms, too: some tokenisers turn them into the plain ones.
_ANGLE: Final = re.compile(r"[<＜﹤](?![ \n]|\Z)")
_SQUARE: Final = re.compile(
    r"[\[［](?=[|｜/／]|[a-z]?[A-Z][A-Z_0-9]+[\]］]|[a-z]+_?[0-9]+[\]］]|[a-z]~)|\](?=~|![a-z]~)"
)


def without_special_tokens(text: str, *, is_smiles: bool = False) -> str:
    """Return a text that holds no special token of the usual forms.

    Args:
        is_smiles: leave square brackets as they are: atoms stand in them.
    """
    text = _ANGLE.sub(_spaced, text)
    return text if is_smiles else _SQUARE.sub(_spaced, text)


def _spaced(match: re.Match[str]) -> str:
    return f"{match[0]} "

"""Special tokens, made harmless: what a text must not say to a model that judges it.

A chat reaches a model as one sequence of tokens, in which special tokens say where a turn ends and whose the next one
is. Many servers write the chat out as a text first and then read special tokens wherever they stand, in a judged text
too: a text that holds <|im_end|> would end the question it is shown in, and could put words into the judge's mouth.

Nobody here knows the judge's vocabulary, so the forms are taken that such tokens have in use: <|im_end|>, </s>,
<end_of_turn>, <｜User｜>, <<SYS>>; [INST], [/INST], [TOOL_CALLS], [gMASK], [unused1], [|user|]; ]~b] and [e~[. A space
after the opening bracket makes other tokens of them and leaves the words to be read. Each text always gets the same
spaces, whichever of the two objects it is. SMILES get none: no atom and no arrow of a dative bond has such a form.
"""

from __future__ import annotations

import re
from typing import Final

# Full-width and small forms, too: some tokenisers turn them into the plain ones.
_ANGLE: Final = r"[<＜﹤](?![- \n]|\Z)"
_SQUARE: Final = (
    r"[\[［](?=[|｜/／]|[a-z]?[A-Z][A-Z_]{2,}[0-9]*[\]］]|[a-z]{3,}_?[0-9]+[\]］]|[a-z]~\[)|\](?=~!?b[\[\]]|![a-z]~\[)"
)
_OPENING: Final = re.compile(f"{_ANGLE}|{_SQUARE}")


def without_special_tokens(text: str) -> str:
    """Return a text that holds no special token of the usual forms: the same one, but for spaces."""
    return _OPENING.sub(r"\g<0> ", text)

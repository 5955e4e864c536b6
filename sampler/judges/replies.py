"""A model's reply, read strictly: one of the labels, one whole number, yes or no, or an error that says what it is.

Forgiven are the label's case, quotation marks, one full stop and white space around it, unless the reply is far too
long for an answer. Nothing is ever guessed out of prose: a guess that is wrong more often for one of the two objects is
a lean, and a coin flip is a lapse.
Asking again after such a reply is the caller's business. It makes the vote a vote *given that the reply is a label*:
still a fixed law for each presentation, but another one than the model's own, which is why it has to be counted.
"""

from __future__ import annotations

import re
from typing import Final

from sampler.judges.rating_scale import RatingScale

LABELS: Final = ("A", "B")
YES_OR_NO: Final = ("yes", "no")

_QUOTES = "\"'`“”‘’«»"
# Possessive: what a part has taken it keeps. Neighbours take different characters, so nothing is lost by it, and no
# reply is gone through again and again for another way to divide it.
_WRAPPED = r"\s*+[{quotes}]*+\s*+({answer})\s*+(?:\.?+\s*+[{quotes}]*+|[{quotes}]*+\s*+\.?+)\s*+"
# ASCII only: a Cyrillic A or a full-width digit is something else than was asked for.
_LABEL = re.compile(_WRAPPED.format(quotes=_QUOTES, answer="[ABab]"), re.ASCII)
_RATING = re.compile(_WRAPPED.format(quotes=_QUOTES, answer=r"\d{1,3}"), re.ASCII)
_YES_OR_NO = re.compile(_WRAPPED.format(quotes=_QUOTES, answer="yes|no"), re.ASCII | re.IGNORECASE)
_LONGEST_EXCERPT = 80
# An answer is asked for in a few tokens; a server that sends a book has not kept to that, and nobody reads it.
LONGEST_REPLY: Final = 4096


class UnparsableReplyError(ValueError):
    """A reply that is not an answer; the message says what it is instead."""


def parse_label(reply: str | None) -> str:
    """Return "A" or "B".

    Raises:
        UnparsableReplyError: the reply is empty, prose, names both labels, or is anything else.
    """
    text = _not_empty(reply)
    if match := _LABEL.fullmatch(text):
        return match.group(1).upper()
    named = set(re.findall(r"\b[AB]\b", text))
    if named == set(LABELS):
        raise UnparsableReplyError(f"the reply names both A and B: {_excerpt(text)}")
    raise UnparsableReplyError(f"the reply is not just A or B: {_excerpt(text)}")


def parse_rating(reply: str | None, scale: RatingScale) -> int:
    """Return the rating.

    Raises:
        UnparsableReplyError: the reply is empty, is not one whole number, or the number is off the scale.
    """
    text = _not_empty(reply)
    match = _RATING.fullmatch(text)
    if match is None:
        raise UnparsableReplyError(f"the reply is not one whole number: {_excerpt(text)}")
    rating = int(match.group(1))
    if not scale.lowest <= rating <= scale.highest:
        raise UnparsableReplyError(f"the rating {rating} is not between {scale.lowest} and {scale.highest}")
    return rating


def parse_yes_or_no(reply: str | None) -> bool:
    """Return whether a detector's reply says yes.

    Raises:
        UnparsableReplyError: the reply is empty, prose, or anything else than the one word.
    """
    text = _not_empty(reply)
    if match := _YES_OR_NO.fullmatch(text):
        return match.group(1).lower() == YES_OR_NO[0]
    raise UnparsableReplyError(f"the reply is not just yes or no: {_excerpt(text)}")


def _not_empty(reply: str | None) -> str:
    if reply is not None and len(reply) > LONGEST_REPLY:
        raise UnparsableReplyError(
            f"the reply has {len(reply)} characters, more than {LONGEST_REPLY}: {_excerpt(reply[:LONGEST_REPLY])}"
        )
    if reply is None or not reply.strip():
        raise UnparsableReplyError("the reply is empty")
    return reply


def _excerpt(text: str) -> str:
    words = " ".join(text.split())
    return repr(words if len(words) <= _LONGEST_EXCERPT else words[: _LONGEST_EXCERPT - 1] + "…")

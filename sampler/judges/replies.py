"""Integer ratings of one object alone: the paper's Pointwise-MH baselines (appendix on experiments).

Texts, molecules and translations are rated from 1 to 10, images from 0 to 10; a state's rating is the mean of N
replies. The acceptance rules that use it are in `sampler.rules.pointwise`; they are exact for the density their
formula names only if a state always keeps the rating it got first, so the caller stores it with the state.

A model's reply, read strictly: one of the labels, one whole number, yes or no, or an error that says what it is.

Forgiven are the label's case, quotation marks, one full stop and white space around it, unless the reply is far too
long for an answer. Nothing is ever guessed out of prose: a guess that is wrong more often for one of the two objects is
a lean, and a coin flip is a lapse.
Asking again after such a reply is the caller's business. It makes the vote a vote *given that the reply is a label*:
still a fixed law for each presentation, but another one than the model's own, which is why it has to be counted.

Which object is A and which is B.

A is the object that stands first. Where the proposal stands is drawn for each vote by one of `sampler.rules.order`,
before anybody is asked, and kept by the caller with the vote.

Votes from the log-probabilities of the two labels: the law of N sampled votes for the price of one request.

A model that is asked for one token at temperature T answers token v with probability

    P_T(v) = exp(l_v / T) / sum_w exp(l_w / T),        l_v its log-probability at temperature 1,

and, given that the answer is one of the labels, A with

    p = a / (a + b),    a = sum of exp(l_v / T) over the tokens v that say A,    b likewise.

The sum over all tokens cancels. So p is exact from the labels' own l_v, whatever the other tokens hold, both when
the server confines the reply to the labels and when other replies are asked again. Servers report l_v before the
temperature (vLLM, llama.cpp); one that reports it afterwards is harmless too if the request is made at temperature 1.

What is assumed: the votes it replaces differ only by their seed; a label is one token; and, where the reply is not
confined, the reply ends after an A as often as after a B (a longer reply would not have been counted).
"""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar


@dataclass(frozen=True)
class RatingScale:
    """Whole numbers from `lowest` to `highest`.

    Raises:
        ValueError: the scale is empty, negative or longer than 0 to 100.
    """

    lowest: int = 1
    highest: int = 10

    def __post_init__(self) -> None:
        if not 0 <= self.lowest < self.highest <= 100:
            raise ValueError(f"lowest must be below highest, both from 0 to 100, not {self.lowest} and {self.highest}")

    @property
    def answers(self) -> tuple[str, ...]:
        """The replies that are ratings."""
        return tuple(str(rating) for rating in range(self.lowest, self.highest + 1))


def mean_rating(ratings: Sequence[int], scale: RatingScale) -> float:
    """Return the mean of N ratings.

    Raises:
        ValueError: there is none, or one is off the scale.
    """
    if not ratings:
        raise ValueError("ratings must not be empty")
    if not all(scale.lowest <= rating <= scale.highest for rating in ratings):
        raise ValueError(f"ratings must lie between {scale.lowest} and {scale.highest}")
    return sum(ratings) / len(ratings)


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


Shown = TypeVar("Shown")


def in_order(current: Shown, proposal: Shown, proposal_first: bool) -> tuple[Shown, Shown]:
    """Return the two in the order of A and B."""
    return (proposal, current) if proposal_first else (current, proposal)


def label_is_for_proposal(label: str, proposal_first: bool) -> bool:
    """Say whether a label is a vote for the proposal."""
    return (label == "A") == proposal_first


def preference_for_proposal(preference_for_first: float, proposal_first: bool) -> float:
    """Return the probability of a vote for the proposal, given that of a vote for A."""
    return preference_for_first if proposal_first else 1.0 - preference_for_first


# vLLM samples at 0.01 where it is asked for less, and takes the likeliest token below 0.00001.
LOWEST_TEMPERATURE: Final = 0.01


class NoPreferenceError(ValueError):
    """The log-probabilities do not give p; the message says why. Sampled votes have the same law, and may."""


class NoDistributionError(ValueError):
    """The log-probabilities are no distribution; the message says why. The reply that they came with never counts."""


# Sums and repeated values of honest servers are off by rounding alone.
_MOST_SUM = 1.001
_MOST_GAP = 1e-3
# A probability below e to the minus this is 0.
_LARGEST = 1e300
# Of the labels together, where the reply was confined to them.
_LEAST_CONFINED = 0.98


def distribution(
    entries: Iterable[tuple[str, object]],
    chosen: tuple[str, object] | None = None,
    confined_to: Collection[str] = (),
) -> list[tuple[str, float]]:
    """Return reported log-probabilities of one position as they can be relied on: each entry once.

    Args:
        entries: (token, log-probability) of the most probable tokens, whatever a server put there.
        chosen: the same of the token that the server sampled; None where it is not looked at.
        confined_to: the texts that this very reply was confined to; none if it was not.

    Raises:
        NoDistributionError: no distribution has such values.
    """
    # Some servers list the sampled token twice. An equal text with another value is another token.
    listed = list(dict.fromkeys((token, _log_probability(token, value)) for token, value in entries))
    # A single one may be certain; then p is not told.
    if len(listed) > 1 and all(value == 0.0 for _, value in listed):
        raise NoDistributionError("all log-probabilities are 0")
    total = math.fsum(math.exp(value) for _, value in listed)
    if total > _MOST_SUM:
        raise NoDistributionError(f"the reported probabilities sum to {total:.4g}")
    if chosen is not None:
        _check_chosen(chosen[0], _log_probability(*chosen), listed)
    held = math.fsum(math.exp(value) for token, value in listed if token in confined_to)
    if confined_to and held < _LEAST_CONFINED:
        raise NoDistributionError(f"the reply was confined to labels that hold {held:.2f}")
    return listed


def _log_probability(token: str, value: object) -> float:
    # A bool is an int, and a whole number may be too large for a float.
    if isinstance(value, bool) or not isinstance(value, int | float) or not value <= 1e-6:
        raise NoDistributionError(f"{reprlib.repr(value)} for {reprlib.repr(token)} is no log-probability")
    return -math.inf if value < -_LARGEST else float(value)


def _check_chosen(token: str, value: float, listed: Sequence[tuple[str, float]]) -> None:
    values = [each for other, each in listed if other == token]
    if values and not any(each == value or abs(each - value) <= _MOST_GAP for each in values):
        words = f"the sampled token {reprlib.repr(token)} has {value:.4g}, and in the list {values[0]:.4g}"
        raise NoDistributionError(words)
    if not values and listed and value > min(each for _, each in listed) + _MOST_GAP:
        raise NoDistributionError(f"the sampled token {reprlib.repr(token)} is missing in the list of the likeliest")


@dataclass(frozen=True)
class LabelPreference:
    """What one request for log-probabilities says about one presentation.

    Args:
        first: p, the probability of a vote for A, the object that stands first.
        shortfall: the probability of any other reply at temperature 1: how unwilling the model is to answer.
        temperature: T of the votes.
    """

    first: float
    shortfall: float
    temperature: float


def label_preference(
    log_probabilities: Iterable[tuple[str, float]],
    temperature: float,
    *,
    confined: bool,
    most_shortfall: float = 0.5,
) -> LabelPreference:
    """Return p from the first token's most probable values.

    Args:
        log_probabilities: (token, l_v at temperature 1) of some tokens, both labels among them.
        temperature: T, at least `LOWEST_TEMPERATURE`.
        confined: whether sampled replies would be confined to exactly "A" or "B". If not, tokens such as " a" that
            `parse_label` forgives count as well, as they would in a sampled reply.
        most_shortfall: refuse a larger one.

    Raises:
        NoPreferenceError: a label is not among the tokens, so that p is not known; or the shortfall is too large.
        NoDistributionError: the log-probabilities are no distribution.
        ValueError: the temperature is too low.
    """
    checked_temperature(temperature)
    logs: dict[str, list[float]] = {label: [] for label in LABELS}
    for token, value in distribution(log_probabilities):
        label = _label_of(token, confined)
        if label is not None:
            logs[label].append(value)
    if missing := [label for label in LABELS if not logs[label]]:
        raise NoPreferenceError(f"{' and '.join(missing)} not among the most probable replies: p is not known")
    shortfall = max(0.0, 1.0 - sum(math.exp(value) for values in logs.values() for value in values))
    if shortfall > most_shortfall:
        raise NoPreferenceError(
            f"the model replies something else than A or B with probability {shortfall:.2f}, above {most_shortfall:g}"
        )
    log_a, log_b = (_log_sum(logs[label], temperature) for label in LABELS)
    return LabelPreference(1.0 / (1.0 + math.exp(min(log_b - log_a, 700.0))), shortfall, temperature)


def drawn_vote(uniform: float, preference: float) -> bool:
    """Return the vote that a uniform number on [0, 1) draws from p: for the proposal iff it is below.

    Raises:
        ValueError: the probability is outside [0, 1].
    """
    if not 0.0 <= preference <= 1.0:
        raise ValueError(f"a preference must lie in [0, 1], not {preference}")
    return uniform < preference


def checked_temperature(temperature: float) -> float:
    """Return the temperature.

    Raises:
        ValueError: it is not a number from `LOWEST_TEMPERATURE` on. At 0 a judge's votes are copies of each other.
    """
    if not LOWEST_TEMPERATURE <= temperature < math.inf:
        raise ValueError(
            f"temperature must be at least {LOWEST_TEMPERATURE:g}, not {temperature}: "
            "at 0 a judge's votes are copies of each other"
        )
    return temperature


def _label_of(token: str, confined: bool) -> str | None:
    if confined:
        return token if token in LABELS else None
    try:
        return parse_label(token)
    except UnparsableReplyError:
        return None


def _log_sum(values: Sequence[float], temperature: float) -> float:
    scaled = [value / temperature for value in values]
    highest = max(scaled)
    if highest == -math.inf:
        raise NoPreferenceError("a label has probability 0")
    return highest + math.log(sum(math.exp(value - highest) for value in scaled))

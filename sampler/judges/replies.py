"""Integer ratings of one object alone: the paper's Pointwise-MH baselines (appendix on experiments).

Texts, molecules and translations are rated from 1 to 10, images from 0 to 10; a state's rating is the mean of N
replies. The acceptance rules that use it are in `sampler.rules.pointwise`; they are exact for the density their
formula names only if a state always keeps the rating it got first, so the caller stores it with the state.

A model's reply, read strictly: one of the labels, one whole number, yes or no, or an error that says what it is.

Forgiven are the label's case, quotation marks, one full stop and white space around it, unless the reply is far too
long for an answer. Nothing is ever guessed out of prose: a guess that is wrong more often for one of the two objects is
a position bias, and a coin flip is a lapse.
Asking again after such a reply is the caller's business. It makes the vote a vote *given that the reply is a label*:
still a fixed distribution for each presentation, but another one than the model's own; hence it has to be counted.

Which object is A and which is B.

A is the object that stands first. Where the proposal stands is drawn for each vote, by the order of its judge,
before anybody is asked, and kept by the caller with the vote.

Votes from the log-probabilities of the two labels: the distribution of N sampled votes for the price of one request.

A model that is asked for one token at temperature T answers token v with probability

    P_T(v) = exp(l_v / T) / sum_w exp(l_w / T),        l_v its log-probability at temperature 1,

and, given that the answer is one of the labels, A with

    p = a / (a + b),    a = sum of exp(l_v / T) over the tokens v that say A,    b likewise.

The sum over all tokens cancels. So p is exact from the labels' own l_v, whatever the other tokens hold, both when
the server constrains the reply to the labels and when other replies are asked again. Servers report l_v before the
temperature (vLLM, llama.cpp); one that reports it afterwards is harmless too if the request is made at temperature 1.

What is assumed: the votes it replaces differ only by their seed; a label is one token; and, where the reply is not
constrained, the reply ends after an A as often as after a B (a longer reply would not have been counted).

Seeing from replies whether a server samples from the distribution that it reports: whether its votes are what p says.

**Truth.** Pairs whose likelier label has a probability of .6 to .85 are asked many times in both orders. All replies
are looked at together in the family logit p -> beta * logit p. There beta = 1 is what was reported; above 1 the
distribution is sharper (or truncated), below 1 flatter, below 0 the labels are swapped. If r is the log-likelihood
ratio of the likeliest beta against 1, a truthful server reaches it with a probability of at most 2 exp(-r), however few
the replies are (H. Chernoff, Annals of Mathematical Statistics 23, 1952). There are two looks, each at half of `LEVEL`:
after `REPLIES` replies, and, where their chance is below `DOUBT`, after twice as many. Simulated with the seeds of
`tests/sampler/judges/test_truth.py`, p of the likelier labels before the colon, the share found at the first look and
at any:

    a truthful server                  .6, .83, .65 to .83: 1 and 3 of 400,000 tests; .04 of them have a second look
    top-p .8                           .83: 1 and 1, at 57 replies; .83 in one order and .7 in the other: .29 and .97
    .755 reported for .606             .51 and .97
    twice, half the temperature        .83: .60 and .98; .94 and 1
    1.4, .7 times the temperature      .83: .04 and .27; .06 and .43

**Rare label.** A prompt is asked at a temperature at which one label has a small probability q, as its
log-probabilities say. Then the rare label must come at the rate q. The replies are looked at in the same way: in 400 of
them a label of q = .045 that was taken away, by a min-p of .05 or a top-p of .95, is always missed, and one at half the
temperature, which comes at odds^2, in .94 of all tests.
"""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np


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
_LONGEST_EXCERPT, _LONGEST_SHOWN = 80, 40
# An answer is asked for in a few tokens; a server that sends a book has not kept to that, and nobody reads it.
LONGEST_REPLY: Final = 4096


class UnparsableReplyError(ValueError):
    """A reply that is not an answer; the message says what it is instead."""


class _Short(reprlib.Repr):
    def repr_str(self, x: str, level: int) -> str:
        # Whole or not at all: half a key, should the server repeat it, would not be known for one, and not struck out.
        return repr(x) if len(x) <= _LONGEST_SHOWN else f"({len(x)} characters)"


def shown(value: object) -> str:
    """Return what a server sent for an error's text, however long or deep it is."""
    return _Short().repr(value)


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
    """The log-probabilities do not give p; the message says why. Sampled votes have the same distribution, and may."""


class NoDistributionError(ValueError):
    """The log-probabilities are no distribution; the message says why. The reply that they came with never counts."""


# Sums and repeated values of honest servers are off by rounding alone.
_MAX_SUM = 1.001
_MAX_GAP = 1e-3
# OpenAI and vLLM write -9999 for a token whose probability they do not report, llama.cpp the least number there is.
_UNREPORTED = -9999.0
# More than any vocabulary has.
_MAX_TOKENS = 500_000
# Of the labels together, where the reply was constrained to them.
_MIN_CONSTRAINED = 0.98


def distribution(
    entries: Iterable[tuple[str, object]],
    chosen: tuple[str, object] | None = None,
    constrained_to: Collection[str] = (),
) -> list[tuple[str, float]]:
    """Return reported log-probabilities of one position as they can be relied on: each entry once.

    Args:
        entries: (token, log-probability) of the most probable tokens, whatever a server put there.
        chosen: the same of the token that the server sampled; None where it is not looked at.
        constrained_to: the texts that this very reply was constrained to; none if it was not.

    Raises:
        NoDistributionError: no distribution has such values.
    """
    values: dict[str, list[float]] = {}
    for token, value in entries:
        values.setdefault(token, []).append(_log_probability(token, value))
    listed = [(token, value) for token, some in values.items() for value in _without_repeats(some)]
    total = math.fsum(math.exp(value) for _, value in listed)
    if total > _MAX_SUM:
        raise NoDistributionError(f"the reported probabilities sum to {total:.4g}")
    # None that is not listed is more probable than the least of the list, behind which the sampled one may stand.
    others = [value for token, value in listed if value > -math.inf and (chosen is None or token != chosen[0])]
    if others and 1 - total > 1 - _MIN_CONSTRAINED + _MAX_TOKENS * math.exp(min(others)):
        raise NoDistributionError(f"the reported probabilities sum to {total:.2g}, and no others are left for the rest")
    if chosen is not None:
        _check_chosen(chosen[0], _log_probability(*chosen), listed)
    held = math.fsum(math.exp(value) for token, value in listed if token in constrained_to)
    if constrained_to and held < _MIN_CONSTRAINED:
        raise NoDistributionError(f"the reply was constrained to labels that hold {held:.2f}")
    return listed


def _log_probability(token: str, value: object) -> float:
    # A bool is an int, and a whole number may be too large for a float.
    if isinstance(value, bool) or not isinstance(value, int | float) or not value <= 1e-6:
        raise NoDistributionError(f"{shown(value)} for {shown(token)} is no log-probability")
    return -math.inf if value <= _UNREPORTED else float(value)


def _without_repeats(values: Sequence[float]) -> list[float]:
    """Return the values of a token each once: some servers list the sampled one twice. An equal text with another value
    is another token.
    """
    found: list[float] = []
    for value in sorted(values, reverse=True):
        if not found or not _are_equal(found[-1], value):
            found.append(value)
    return found


def _are_equal(one: float, other: float) -> bool:
    return one == other or abs(one - other) <= _MAX_GAP


def _check_chosen(token: str, value: float, listed: Sequence[tuple[str, float]]) -> None:
    values = [each for other, each in listed if other == token]
    if values and not any(_are_equal(each, value) for each in values):
        words = f"the sampled token {shown(token)} has {value:.4g}, and in the list {values[0]:.4g}"
        raise NoDistributionError(words)
    if not values and listed and value > min(each for _, each in listed) + _MAX_GAP:
        raise NoDistributionError(f"the sampled token {shown(token)} is missing in the list of the likeliest")


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
    constrained: bool,
    max_shortfall: float = 0.5,
) -> LabelPreference:
    """Return p from the first token's most probable values.

    Args:
        log_probabilities: (token, l_v at temperature 1) of some tokens, both labels among them.
        temperature: T, at least `LOWEST_TEMPERATURE`.
        constrained: whether sampled replies would be constrained to exactly "A" or "B". If not, tokens such as " a"
            that `parse_label` forgives count as well, as they would in a sampled reply.
        max_shortfall: refuse a larger one.

    Raises:
        NoPreferenceError: a label is not among the tokens, so that p is not known; or the shortfall is too large.
        NoDistributionError: the log-probabilities are no distribution.
        ValueError: the temperature is too low.
    """
    checked_temperature(temperature)
    logs: dict[str, list[float]] = {label: [] for label in LABELS}
    for token, value in distribution(log_probabilities):
        label = _label_of(token, constrained)
        if label is not None:
            logs[label].append(value)
    if missing := [label for label in LABELS if not logs[label]]:
        raise NoPreferenceError(f"{' and '.join(missing)} not among the most probable replies: p is not known")
    shortfall = max(0.0, 1.0 - sum(math.exp(value) for values in logs.values() for value in values))
    if shortfall > max_shortfall:
        raise NoPreferenceError(
            f"the model replies something else than A or B with probability {shortfall:.2f}, above {max_shortfall:g}"
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


def _label_of(token: str, constrained: bool) -> str | None:
    if constrained:
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


Listed = Sequence[tuple[str, float]]
"""The likeliest first tokens with their log-probabilities at temperature 1."""

LEVEL: Final = 1e-4
"""How often an honest server is said to sample otherwise, at most, in both looks together."""
DOUBT: Final = 0.2
REPLIES: Final = 200
# Below, an honest server's replies say little; above, a truncated one may leave only one label, as an honest one might.
_MIN_P, _MAX_P = 0.6, 0.85
# Some servers truncate before the temperature: far from 1 that would not show.
_TEMPERATURES: Final = tuple(0.7 * (1.5 / 0.7) ** (step / 16) for step in range(17))
_STEEPEST = 20.0

ERROR: Final = 1e-3
"""How often the bound of a rate that no log-probability tells is wrong, at most."""
# A min-p of .05 or a top-p of .95 takes away a label that is as rare as this.
_WANTED: Final = 0.045
_RAREST: Final = 0.03
_MOST: Final = 0.15
_HALVINGS = 60


@dataclass(frozen=True)
class AskedPresentation:
    """One presentation of a pair, asked many times.

    Args:
        first: p, the reported probability of A at the temperature of the replies, between 0 and 1.
        replies: how many were labels.
        firsts: how many of these were A.
    """

    first: float
    replies: int
    firsts: int


@dataclass(frozen=True)
class Agreement:
    """How well replies agree with what was reported.

    Args:
        power: the likeliest beta; 1 is agreement, and 20 stands for whatever is above.
        chance: of replies that agree no better is at most that, where beta is 1.
    """

    power: float
    chance: float

    @property
    def is_none(self) -> bool:
        """Whether the difference is significant."""
        return self.chance < LEVEL / 2

    @property
    def is_doubtful(self) -> bool:
        """Whether as many replies again are to be looked at."""
        return self.chance < DOUBT and not self.is_none


def agreement(asked: Sequence[AskedPresentation]) -> Agreement:
    """Return how well all replies to some presentations agree with what was reported.

    Raises:
        ValueError: a reported probability is 0 or 1.
    """
    if not all(0 < each.first < 1 for each in asked):
        raise ValueError("a reported probability must lie between 0 and 1")
    # Here and not above: programs that judge nothing start without SciPy.
    from scipy.special import expit, log_expit, logit

    logits = logit([each.first for each in asked])
    replies, firsts = np.array([each.replies for each in asked]), np.array([each.firsts for each in asked])

    def slope(power: float) -> float:
        return float(logits @ (firsts - replies * expit(power * logits)))

    def likelihood(power: float) -> float:
        return float(firsts @ log_expit(power * logits) + (replies - firsts) @ log_expit(-power * logits))

    low, high = -_STEEPEST, _STEEPEST
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) > 0 else (low, middle)
    ratio = max(0.0, likelihood(high) - likelihood(1.0))
    return Agreement(high, min(1.0, 2.0 * math.exp(-ratio)))


@dataclass(frozen=True)
class Fit:
    """A temperature at which a pair's reported probabilities can be compared with replies.

    Args:
        temperature: T.
        firsts: p of A at T, for each order.
    """

    temperature: float
    firsts: tuple[float, ...]


def fit_of(listed: Sequence[Listed], *, constrained: bool, hottest: float) -> Fit | None:
    """Return the temperature near 1 at which the likelier label of each order has a probability of .6 to .85, the
    largest as near .85 as can be, where most is seen; None where there is none.

    Args:
        listed: of each order.
        constrained: whether replies are constrained to the labels; see `label_preference`.
        hottest: the highest temperature that may be asked for.

    Raises:
        NoDistributionError: log-probabilities are no distribution.
    """
    found: dict[float, Fit] = {}
    for temperature in (each for each in _TEMPERATURES if each <= hottest):
        try:
            firsts = tuple(label_preference(each, temperature, constrained=constrained).first for each in listed)
        except NoPreferenceError:
            return None
        likelier = [max(first, 1 - first) for first in firsts]
        if min(likelier) >= _MIN_P and max(likelier) <= _MAX_P:
            found[max(likelier)] = Fit(temperature, firsts)
    return found[max(found)] if found else None


@dataclass(frozen=True)
class RareLabel:
    """A label that is rare at a temperature.

    Args:
        label: the rare one.
        rate: q, of the replies that are labels.
        temperature: T.
    """

    label: str
    rate: float
    temperature: float


def rare_label_of(listed: Listed, *, constrained: bool, coldest: float, hottest: float) -> RareLabel | None:
    """Return the temperature at which one label is as rare as is wanted, or nearly; None where there is none.

    Args:
        listed: the first tokens with their log-probabilities at temperature 1.
        constrained: whether replies are constrained to the labels; see `label_preference`.
        coldest, hottest: the temperatures that may be asked for.
    """
    try:
        first = label_preference(listed, hottest, constrained=constrained, max_shortfall=1.0).first
    except (NoPreferenceError, ValueError):
        return None
    label = LABELS[first > 0.5]

    def rate(temperature: float) -> float:
        told = label_preference(listed, temperature, constrained=constrained, max_shortfall=1.0).first
        return told if label == LABELS[0] else 1.0 - told

    low, high = coldest, hottest
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if rate(middle) > _WANTED else (middle, high)
    found = rate(high)
    return RareLabel(label, found, high) if _RAREST <= found <= _MOST else None


def min_rate(rare: int, replies: int, hot: float, temperature: float) -> float:
    """Return what a label's rate is at least at a lower temperature, where no log-probability tells it.

    The odds of single tokens at temperature T are those at `hot` to the power of hot / T. The rate at `hot` is taken at
    its lower confidence limit, of error `ERROR` (Clopper and Pearson). A label may be two tokens, with and without a
    space: then the odds may be less by a factor of 2^(hot / T - 1), which is allowed for.

    Args:
        rare, replies: how often the label came, and how many replies were labels.
        hot: their temperature.
        temperature: T, lower.
    """
    if not rare:
        return 0.0
    from scipy.special import betaincinv

    low = float(betaincinv(rare, replies - rare + 1, ERROR))
    power = hot / temperature
    odds = float((low / (1 - low)) ** power / 2 ** (power - 1))
    return odds / (1 + odds)

"""Whether a server samples from the distribution that it tells, asked as `sampler.judges.replies` judges replies.

    temperature  replies differ at a high one, and not where it leaves one token to choose from
    truth        pairs whose reported p lies in .6 to .85, four of them: 200 replies in both orders, 400 in doubt
    rare_label   a label that log-probabilities make rare must come at its rate. Without them, hot replies say what its
                 rate is at least at a lower temperature; if it never comes there, it was taken away

Replies are constrained to the labels where the server can do that, as votes are. Each is one request of one token.
Where no pair has such a p, and no label is rare, nothing is claimed. A status says nothing, since many servers answer
200 and pass over fields that they do not know.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from yarl import URL

from prefmh_web.endpoints.calls import asked
from prefmh_web.endpoints.errors import BadReply, EndpointError, NeedsAttention, ServerError
from prefmh_web.endpoints.judge_calls import constrains
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.servers import ChatRequest, Dialect
from sampler import judges

DISTRIBUTION = TRUTH, RARE_LABEL = "truth", "rare label"
# Where it is passed over, votes come from another distribution than the model's own at the judge's temperature.
TEMPERATURE = "temperature"
MAX_PAIRS = 16
Pair = tuple[judges.Messages, judges.Messages]
"""A question about two objects, in both orders."""
Tokens = tuple[tuple[str, float], ...]

_TRUE_PAIRS = 4
_MAX_RARE = 480
# Questions that are read to find a rare label.
_MAX_READ = 8
_PAIRS_FILE = Path(__file__).with_name("ready_pairs.tsv")
MAX_TRUTH = 2 * MAX_PAIRS + 2 * judges.REPLIES
"""Requests that `truth` makes at most."""
MAX_REQUESTS = 8 + MAX_TRUTH + _MAX_READ + _MAX_RARE
"""Requests that all three make at most."""
ASK: judges.Messages = [{"role": "user", "content": "Write one short sentence about the sea."}]
SEEDS = (104_729, 1_299_709, 15_485_863, 179_424_673)
HOT, _COLD = 1.5, 0.01
_AT_ONCE = 32
_COLDEST = 0.1
_HOT_REPLIES = 96
# Of the first hot replies, in which a label must come at all.
_LOOKS = 32

_DOCUMENTED = {("api.openai.com", Dialect.OPENAI.value)}
_UNKNOWN = (
    "nobody can say whether a server of this kind truncates: it has no fields to switch that off. Serve the model with "
    "vLLM, llama.cpp, SGLang or Ollama, let votes be drawn from log-probabilities, or accept at the question that "
    "the sampling cannot be verified"
)
_THINKS = (
    "its model thinks before it answers, and nobody can say how its answers are then distributed. Empty “Thinking "
    "tokens at most”, or accept at the question that the sampling cannot be verified"
)
_ANSWERS = (
    "nobody can say whether the answers of a program are independent of each other. Let it have one vote on a pair, or "
    "accept at the question that the sampling cannot be verified"
)


class Effect(StrEnum):
    """What a test saw a server do with what it is told, or with its own distribution."""

    OBEYED = "obeyed"
    REFUSED = "refused"
    IGNORED = "ignored"
    UNTESTABLE = "cannot be told"


@dataclass(frozen=True)
class Observation:
    """What was seen of one ability, or of the distribution, in words."""

    field: str
    effect: str
    evidence: str


def why_untestable(endpoint: Endpoint) -> str:
    """Return why no test can tell the distribution of an endpoint's replies; empty where one can."""
    if endpoint.thinking_tokens is not None:
        return _THINKS
    if endpoint.dialect == Dialect.PROGRAM:
        return _ANSWERS
    is_documented = (URL(endpoint.base_url).host or "", endpoint.dialect) in _DOCUMENTED
    return "" if is_documented or Dialect(endpoint.dialect).server.why_untruncated else _UNKNOWN


def differs(endpoint: Endpoint, fields: Sequence[str] = DISTRIBUTION) -> str:
    """Return why votes would have another distribution than the one told, by the last test; empty where none saw that.

    Args:
        fields: those that count. For sampled votes the temperature as well.
    """
    for seen in _rows(endpoint):
        if seen["field"] in fields and seen["effect"] == Effect.IGNORED:
            is_distribution = seen["field"] in DISTRIBUTION
            what = (
                "does not sample from the distribution that it tells" if is_distribution else f"ignores {seen['field']}"
            )
            return f"its last test saw that it {what}: {seen['evidence']}. If it has changed, test it again"
    return ""


def untruncated(endpoint: Endpoint) -> tuple[bool | None, str]:
    """Return whether sampled votes have the model's own distribution, as far as the last test says, and why.

    None where that is not tested: nobody has pressed Test, or it could not tell.
    """
    if why := differs(endpoint, (*DISTRIBUTION, TEMPERATURE)) or why_untestable(endpoint):
        return False, why
    distributions = [seen for seen in _rows(endpoint) if seen["field"] in DISTRIBUTION]
    if evidence := [seen["evidence"] for seen in distributions if seen["effect"] == Effect.OBEYED]:
        return True, "; ".join(evidence)
    told = f" (its last test could not tell: {distributions[0]['evidence']})" if distributions else ""
    why = f"whether its votes have its model's own distribution is not tested{told}. Press Test on the endpoint's page"
    return None, why


def was_tested(endpoint: Endpoint) -> bool:
    """Say whether the last test saw replies that agree with what the server tells."""
    return any(seen["field"] in DISTRIBUTION and seen["effect"] == Effect.OBEYED for seen in _rows(endpoint))


def _rows(endpoint: Endpoint) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = endpoint.profile.get("fields", [])
    return rows


def temperature(endpoint: Endpoint) -> tuple[list[Observation], EndpointError | None]:
    """Return whether the temperature is obeyed, and why that could not be finished, if it could not."""

    def look(replies: _Replies) -> tuple[Effect, str]:
        hot, cold = (len(set(replies.texts(ASK, each))) for each in (min(HOT, replies.hottest), _COLD))
        words = f"{len(SEEDS)} seeds gave {hot} different replies, and {cold} with temperature = {_COLD}"
        if cold == 1:
            return (Effect.OBEYED if hot > 1 else Effect.UNTESTABLE), words
        # Two tokens may be as likely as each other; and beside other requests, a server rounds differently.
        return (Effect.UNTESTABLE if cold < hot else Effect.IGNORED), words

    return _seen(endpoint, TEMPERATURE, look)


def truth(endpoint: Endpoint, pairs: Sequence[Pair] = ()) -> tuple[list[Observation], EndpointError | None]:
    """Return whether replies are what p says, and why that could not be finished, if it could not.

    Args:
        pairs: at most `MAX_PAIRS`; ready-made ones if there are none.
    """
    return _seen(endpoint, TRUTH, lambda replies: _by_pairs(replies, pairs[:MAX_PAIRS] or ready_pairs()))


def rare_label(endpoint: Endpoint) -> tuple[list[Observation], EndpointError | None]:
    """Return whether a rare label comes at its rate, and why that could not be finished, if it could not."""

    def look(replies: _Replies) -> tuple[Effect, str]:
        found = _with_rare_label(replies)
        return _by_rate(replies, *found) if found else _without_rate(replies)

    return _seen(endpoint, RARE_LABEL, look)


def ready_pairs() -> list[Pair]:
    """Return pairs of which some have no certain answer."""
    found = []
    with _PAIRS_FILE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            one, other = judges.ShownObject(row["one"]), judges.ShownObject(row["other"])
            orders = ((one, other), (other, one))
            first, second = (judges.pairwise_prompt("texts", row["question"]).messages(*order) for order in orders)
            found.append((first, second))
    return found


class _Replies:
    """First tokens and labels that an endpoint replies with, each with its own seed."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint, self._number = endpoint, 0
        self._choices = judges.LABELS if constrains(endpoint) else ()
        self.hottest = Dialect(endpoint.dialect).server.hottest

    @property
    def constrained(self) -> bool:
        return bool(self._choices)

    def reported(self, chats: Sequence[judges.Messages]) -> list[Tokens]:
        """Return for each chat the first tokens with their log-probabilities; none where the server tells none.

        Raises:
            EndpointError: it does not answer now.
        """
        questions = [ChatRequest(self._endpoint.model, chat, log_probabilities=True) for chat in chats]
        outcomes = asked(self._endpoint, questions).outcomes
        for outcome in outcomes:
            if isinstance(outcome, EndpointError) and not isinstance(outcome, CANNOT):
                raise outcome
        return [() if isinstance(outcome, EndpointError) else outcome.tokens for outcome in outcomes]

    def labels(self, chats: Sequence[tuple[judges.Messages, float]]) -> list[str]:
        """Return the label of a reply to each chat at its temperature; empty where it is none.

        Raises:
            EndpointError: the server does not answer.
        """
        begin, self._number = self._number + 1, self._number + len(chats)
        # Far apart: servers use neighbouring seeds for other things.
        seeds = [(1_000_003 * number + 12_347) % 2**31 for number in range(begin, self._number + 1)]
        questions = [
            ChatRequest(self._endpoint.model, chat, 1, temperature, seed, self._choices)
            for (chat, temperature), seed in zip(chats, seeds, strict=True)
        ]
        return [_label(text) for text in self._said(questions)]

    def some(self, chat: judges.Messages, temperature: float, count: int) -> list[str]:
        """Return the labels among so many replies to a chat; raises as `labels` does."""
        return [label for label in self.labels([(chat, temperature)] * count) if label]

    def texts(self, chat: judges.Messages, temperature: float) -> list[str | None]:
        """Return a short reply to a chat for each seed; raises as `labels` does."""
        return self._said([ChatRequest(self._endpoint.model, chat, 8, temperature, seed) for seed in SEEDS])

    def _said(self, questions: Sequence[ChatRequest]) -> list[str | None]:
        found = asked(self._endpoint, questions)
        if found.failure is not None:
            raise found.failure
        return [reply.text for reply in found.results]


def _label(text: str | None) -> str:
    try:
        return judges.parse_label(text)
    except judges.UnparsableReplyError:
        return ""


# It answered a plain question a moment ago: what it fails at now, it cannot do.
CANNOT = (NeedsAttention, BadReply, ServerError)


def _seen(
    endpoint: Endpoint, name: str, look: Callable[[_Replies], tuple[Effect, str]]
) -> tuple[list[Observation], EndpointError | None]:
    failure = None
    try:
        if not Dialect(endpoint.dialect).server.sets_temperature:
            effect, words = Effect.UNTESTABLE, "this kind of model takes no temperature but 1"
        elif endpoint.thinking_tokens is not None:
            effect, words = Effect.UNTESTABLE, "its model thinks before each label, so no rate is known"
        else:
            effect, words = look(_Replies(endpoint))
    except CANNOT as error:
        effect, words = Effect.REFUSED, error.reason
    except EndpointError as error:
        effect, words, failure = Effect.UNTESTABLE, error.reason, error
    return [Observation(name, effect.value, words[:300])], failure


@dataclass(frozen=True)
class _Presentation:
    """One order of a pair, at its temperature; `first` is what was reported of A, `labels` what came so far."""

    chat: judges.Messages
    temperature: float
    first: float
    labels: list[str] = field(default_factory=list)


def _by_pairs(replies: _Replies, pairs: Sequence[Pair]) -> tuple[Effect, str]:
    shown = _presentations(replies, pairs)
    if not shown:
        return (
            Effect.UNTESTABLE,
            f"none of {len(pairs)} pairs has log-probabilities of .6 to .85 for its likelier label",
        )
    counts, found = _compared(replies, shown)
    came = sum(each.firsts if each.first > 0.5 else each.replies - each.firsts for each in counts)
    told = sum(max(each.first, 1 - each.first) * each.replies for each in counts)
    counted = sum(each.replies for each in counts)
    words = (
        f"the likelier label came {came} times in {counted} replies to {len(shown) // 2} pairs in both orders; "
        f"log-probabilities say {told:.1f}"
    )
    return _words(counted, found, words)


def _compared(
    replies: _Replies, shown: Sequence[_Presentation]
) -> tuple[list[judges.AskedPresentation], judges.Agreement]:
    """Ask all of them, once more in doubt, and return what came and how well it agrees."""
    for _ in range(2):
        # In turns: where there are fewer than four pairs, each is asked more often.
        turns = [shown[number % len(shown)] for number in range(judges.REPLIES)]
        came = replies.labels([(each.chat, each.temperature) for each in turns])
        for each, label in zip(turns, came, strict=True):
            each.labels.extend([label] if label else [])
        counts = [
            judges.AskedPresentation(each.first, len(each.labels), each.labels.count(judges.LABELS[0]))
            for each in shown
        ]
        found = judges.agreement(counts)
        if not found.is_doubtful:
            break
    return counts, found


def _presentations(replies: _Replies, pairs: Sequence[Pair]) -> list[_Presentation]:
    """Return both orders of the first pairs that can be compared, a few read at a time."""
    shown: list[_Presentation] = []
    for begin in range(0, len(pairs), _TRUE_PAIRS):
        some = pairs[begin : begin + _TRUE_PAIRS]
        listed = replies.reported([chat for pair in some for chat in pair])
        for index, pair in enumerate(some):
            fit = judges.fit_of(
                listed[2 * index : 2 * index + 2], constrained=replies.constrained, hottest=replies.hottest
            )
            if fit is not None and len(shown) < 2 * _TRUE_PAIRS:
                shown += [_Presentation(chat, fit.temperature, p) for chat, p in zip(pair, fit.firsts, strict=True)]
        # Of a server that tells nothing, nothing more is asked.
        if len(shown) == 2 * _TRUE_PAIRS or not any(listed):
            break
    return shown


def _words(counted: int, found: judges.Agreement, words: str) -> tuple[Effect, str]:
    if counted < judges.REPLIES / 2:
        return Effect.UNTESTABLE, f"only {counted} of {judges.REPLIES} replies or more were labels"
    if not found.is_none:
        return Effect.OBEYED, words
    distribution = (
        "sharper or truncated" if found.power > 1 else "flatter" if found.power > 0 else "that of the other label"
    )
    return (
        Effect.IGNORED,
        f"{words}: its distribution is {distribution} (a truthful server does that with a chance below 1 in 20,000)",
    )


def _with_rare_label(replies: _Replies) -> tuple[judges.Messages, judges.RareLabel] | None:
    """Return the question that tells of a label which is rare near temperature 1, and that temperature.

    Some servers truncate before the temperature: far from 1 that would not show.
    """
    found: list[tuple[judges.Messages, judges.RareLabel]] = []
    for chat, _ in ready_pairs()[:_MAX_READ]:
        (listed,) = replies.reported([chat])
        if not listed:
            return None
        rare = judges.rare_label_of(listed, constrained=replies.constrained, coldest=_COLDEST, hottest=replies.hottest)
        found += [] if rare is None else [(chat, rare)]
    return min(found, key=lambda each: abs(math.log(each[1].temperature)), default=None)


def _by_rate(replies: _Replies, chat: judges.Messages, rare: judges.RareLabel) -> tuple[Effect, str]:
    is_first = rare.label == judges.LABELS[0]
    (asked,), found = _compared(
        replies, [_Presentation(chat, rare.temperature, rare.rate if is_first else 1 - rare.rate)]
    )
    came = asked.firsts if is_first else asked.replies - asked.firsts
    words = (
        f"{rare.label} came {came} times in {asked.replies} replies at temperature {rare.temperature:.2g}; its "
        f"log-probability says {rare.rate * asked.replies:.1f}"
    )
    return _words(asked.replies, found, words)


def _without_rate(replies: _Replies) -> tuple[Effect, str]:
    """See whether a label that comes when it is hot is gone where its rate cannot be that small."""
    chat, hottest, unreported = ready_pairs()[0][0], replies.hottest, "no log-probabilities tell of a rare label"
    cooler = hottest / 2
    hot = replies.some(chat, hottest, _LOOKS)
    if len(set(hot)) < len(judges.LABELS):
        return Effect.UNTESTABLE, f"{unreported}, and {_LOOKS} hot replies have one label at most"
    hot += replies.some(chat, hottest, _HOT_REPLIES - _LOOKS)
    rare = min(judges.LABELS, key=hot.count)
    rate = judges.min_rate(hot.count(rare), len(hot), hottest, cooler)
    most = _MAX_RARE - _HOT_REPLIES
    # As many as make it improbable that none is the rare one.
    needed = math.ceil(math.log(judges.ERROR) / math.log1p(-rate)) if rate > 0 else most + 1
    hotly = f"{rare} came {hot.count(rare)} times in {len(hot)} replies at temperature {hottest:g}"
    if needed > most:
        return Effect.UNTESTABLE, f"{unreported}; {hotly}, too seldom to tell its rate at a lower one"
    tries, cold = 0, list[str]()
    while len(cold) < needed and tries < most:
        tries += _AT_ONCE
        cold += replies.some(chat, cooler, _AT_ONCE)
        if rare in cold:
            return (
                Effect.UNTESTABLE,
                f"{hotly}, and still comes at {cooler:g}; without log-probabilities no rate is known",
            )
    if len(cold) < needed:
        return Effect.UNTESTABLE, f"only {len(cold)} of {tries} replies were labels"
    words = f"{hotly}, and never in {len(cold)} at {cooler:g}, where its rate is at least {rate:.3f}"
    return Effect.IGNORED, f"{words}: its distribution is truncated or sharper"

"""Whether a rare label comes at its rate: a law that is truncated or sharpened is found by its effect on votes.

    with log-probabilities      the rate is what they tell, at a temperature that makes one label rare; replies are
                                drawn until two sequential tests end (`sampler.judges.tilted`)
    without                     hot replies say what the rate is at least at a lower temperature; a label that never
                                comes there, in as many requests as that takes, is one that was taken away

Replies are confined to the labels where the server can do that, as votes are. Each is one request of one token.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from prefmh_web.endpoints.calls import call
from prefmh_web.endpoints.client import Client
from prefmh_web.endpoints.dialects import Dialect
from prefmh_web.endpoints.effects import Effect, Seen
from prefmh_web.endpoints.errors import BadReply, EndpointError, NeedsAttention, ServerError
from prefmh_web.endpoints.models import Endpoint
from sampler import judges

RARE_LABEL = "rare label"
MOST_REQUESTS = 480
"""Replies that are asked for at most, in one of the two ways."""
_PROMPTS = (
    "Reply with the single letter A or B. Which one is up to you.",
    "Reply with the single letter A or B. A is the first letter of the alphabet.",
    "Reply with the single letter A or B. B is the better grade here.",
    "A coin was thrown: A is heads, B is tails. Reply with A or B.",
    "Reply with the single letter A or B. Most people take A.",
    "Reply with the single letter A or B. Most people take B.",
)
_AT_ONCE = 32
_COLDEST = 0.1
_HOT_REPLIES = 96
# Of the first hot replies, in which a label must come at all.
_LOOKS = 32


class _Replies:
    """Labels that an endpoint replies with, each with its own seed; replies that are no label are left out."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint, self._number = endpoint, 0
        self.requests = 0
        self._choices = judges.LABELS if Dialect(endpoint.dialect).has_confinement else ()

    @property
    def confined(self) -> bool:
        return bool(self._choices)

    def told(self, prompt: str) -> list[tuple[str, float]]:
        """Return the first tokens with their log-probabilities; none where the server tells none.

        Raises:
            EndpointError: it does not answer now.
        """
        called = call(self._endpoint, [lambda client: client.first_token(_chat(prompt))])
        self.requests += len(called.requests)
        if isinstance(called.failure, NeedsAttention | BadReply | ServerError):
            return []
        if called.failure is not None:
            raise called.failure
        return list(called.results[0])

    def labels(self, prompt: str, temperature: float, count: int) -> list[str]:
        """Return the labels among so many replies.

        Raises:
            EndpointError: it does not answer.
        """
        jobs = [self._job(prompt, temperature) for _ in range(count)]
        called = call(self._endpoint, jobs)
        self.requests += len(called.requests)
        if called.failure is not None:
            raise called.failure
        return [label for label in called.results if label]

    def _job(self, prompt: str, temperature: float) -> Callable[[Client], str]:
        self._number += 1
        # Far apart: servers use neighbouring seeds for other things.
        seed = (1_000_003 * self._number + 12_347) % 2**31

        def ask(client: Client) -> str:
            said = client.chat(_chat(prompt), temperature=temperature, seed=seed, choices=self._choices, max_tokens=1)
            try:
                return judges.parse_label(said)
            except judges.UnparsableReplyError:
                return ""

        return ask


def rare_label(endpoint: Endpoint) -> tuple[Seen, EndpointError | None]:
    """Return what was seen of a rare label, and why that could not be finished, if it could not."""
    server = Dialect(endpoint.dialect).server
    if not server.sets_temperature:
        return Seen(RARE_LABEL, Effect.UNTOLD.value, "this kind of model takes no temperature but 1", 0), None
    if endpoint.thinking_tokens is not None:
        return Seen(RARE_LABEL, Effect.UNTOLD.value, "its model thinks before each label, so no rate is known", 0), None
    replies = _Replies(endpoint)
    try:
        tilted = _tilted(replies, server.hottest)
        effect, words = _by_rate(replies, *tilted) if tilted else _without_rate(replies, server.hottest)
    except (NeedsAttention, BadReply, ServerError) as error:
        effect, words = Effect.REFUSED, error.reason
    except EndpointError as error:
        return Seen(RARE_LABEL, Effect.UNTOLD.value, error.reason[:300], replies.requests), error
    return Seen(RARE_LABEL, effect.value, words[:300], replies.requests), None


def _tilted(replies: _Replies, hottest: float) -> tuple[str, judges.Tilt] | None:
    """Return the prompt that tells of a label which is rare near temperature 1, and that temperature.

    Some servers truncate before the temperature: far from 1 that would not show.
    """
    found: list[tuple[str, judges.Tilt]] = []
    for prompt in _PROMPTS:
        listed = replies.told(prompt)
        if not listed:
            return None
        tilt = judges.tilt_of(listed, confined=replies.confined, coldest=_COLDEST, hottest=hottest)
        found += [] if tilt is None else [(prompt, tilt)]
    return min(found, key=lambda each: abs(math.log(each[1].temperature)), default=None)


def _by_rate(replies: _Replies, prompt: str, tilt: judges.Tilt) -> tuple[Effect, str]:
    seen, asked = judges.RareLabel(tilt.rate), 0
    while seen.told is None and asked < MOST_REQUESTS:
        asked += _AT_ONCE
        for label in replies.labels(prompt, tilt.temperature, _AT_ONCE):
            seen.add(label == tilt.label)
        if not seen.replies:
            return Effect.UNTOLD, f"none of {asked} replies was a label"
    words = (
        f"{tilt.label} came {seen.rare} times in {seen.replies} replies at temperature {tilt.temperature:.2g}; its "
        f"log-probability says {tilt.rate * seen.replies:.1f}"
    )
    if seen.told == "plain":
        return Effect.OBEYED, words
    if seen.told is None:
        return Effect.UNTOLD, f"{words}, and more replies would be needed"
    return Effect.IGNORED, f"{words}: its law is {'truncated or sharper' if seen.told == 'sharper' else 'flatter'}"


def _without_rate(replies: _Replies, hottest: float) -> tuple[Effect, str]:
    """See whether a label that comes when it is hot is gone where its rate cannot be that small."""
    prompt, cooler = _PROMPTS[0], hottest / 2
    hot = replies.labels(prompt, hottest, _LOOKS)
    if len(set(hot)) < len(judges.LABELS):
        return (
            Effect.UNTOLD,
            f"no log-probabilities tell of a rare label, and {_LOOKS} hot replies have one label at most",
        )
    hot += replies.labels(prompt, hottest, _HOT_REPLIES - _LOOKS)
    rare = min(judges.LABELS, key=hot.count)
    rate = judges.least_rate(hot.count(rare), len(hot), hottest, cooler)
    # As many as make it improbable that none is the rare one.
    needed = math.ceil(math.log(judges.ERROR) / math.log1p(-rate)) if rate > 0 else MOST_REQUESTS + 1
    hotly = f"{rare} came {hot.count(rare)} times in {len(hot)} replies at temperature {hottest:g}"
    most = MOST_REQUESTS - _HOT_REPLIES
    if needed > most:
        return (
            Effect.UNTOLD,
            f"no log-probabilities tell of a rare label; {hotly}, too seldom to tell its rate at a lower one",
        )
    asked, cold = 0, list[str]()
    while len(cold) < needed and asked < most:
        asked += _AT_ONCE
        cold += replies.labels(prompt, cooler, _AT_ONCE)
        if rare in cold:
            return Effect.UNTOLD, f"{hotly}, and still comes at {cooler:g}; without log-probabilities no rate is known"
    if len(cold) < needed:
        return Effect.UNTOLD, f"only {len(cold)} of {asked} replies were labels"
    words = f"{hotly}, and never in {len(cold)} at {cooler:g}, where its rate is at least {rate:.3f}"
    return Effect.IGNORED, f"{words}: its law is truncated or sharper"


def _chat(prompt: str) -> list[dict[str, object]]:
    return [{"role": "user", "content": prompt}]

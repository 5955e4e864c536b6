"""What can go wrong with a call, sorted by what to do about it.

    TryLater            nothing is wrong with what was asked: ask the same again, in `retry_after` seconds
        Unreachable, TimedOut, RateLimited, ServerError, BadReply, CircuitOpen, MinuteFull, Stopped
    NeedsAttention      asking again changes nothing until somebody changes something: suspend, and show the reason
        Unparsable, Refused, Unable, NotReported, NoDistribution, KeyMissing, AddressRefused, replies.Changed

No message holds a key or what was asked.
"""

_LONGEST_REASON = 500


class EndpointError(Exception):
    """A call that gave no answer. Its text is for the researcher; it can be shown and stored whatever a server sent."""

    def __init__(self, reason: str) -> None:
        reason = _printable(reason)
        super().__init__(reason)
        self.reason = reason


def _printable(reason: str) -> str:
    """Return a reason without what a database or a page cannot take: NUL, half a surrogate pair, too many words."""
    # Cut first: what is looked at is then short, too.
    words = "".join(character if character.isprintable() else " " for character in reason[: 2 * _LONGEST_REASON])
    words = " ".join(words.split())
    return words if len(words) <= _LONGEST_REASON else words[: _LONGEST_REASON - 1] + "…"


class TryLater(EndpointError):  # noqa: N818 - named by what to do
    """The same may be asked again, in `retry_after` seconds: the server's wish where it has one."""

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.wait(retry_after)

    def wait(self, retry_after: float | None) -> None:
        """Take in the server's wish; None where it has none."""
        self.asked_to_wait = retry_after is not None
        self.retry_after = 5.0 if retry_after is None else retry_after


class NeedsAttention(EndpointError):  # noqa: N818 - named by what to do
    """Nobody should ask the same again before something has changed."""


class Unreachable(TryLater):
    """No connection, or a connection that was cut."""


class TimedOut(TryLater):
    """No whole reply in time."""


class RateLimited(TryLater):
    """429; `retry_after` is the server's, where it gave one."""


class ServerError(TryLater):
    """5xx."""


class BadReply(TryLater):
    """A reply that is not what the protocol says: no JSON, a field missing, too long."""


class CircuitOpen(TryLater):
    """Not asked: the endpoint failed lately, and rests."""


class MinuteFull(TryLater):
    """Not asked: the endpoint has had what it may have in a minute, and `retry_after` is when there is room."""


class Stopped(TryLater):
    """Not asked: somebody wants no more requests of this kind now (`client.Watch`)."""


class Unparsable(NeedsAttention):
    """The model does not answer with a label or a rating, however often it is asked."""


class Refused(NeedsAttention):
    """The server refuses the request itself: 4xx, or a redirect."""


class Unable(NeedsAttention):
    """The server, or the model, cannot do what is asked of it."""


class NotReported(Unable):
    """The log-probabilities of this reply do not tell p: a label is not among them, or other replies
    are too likely."""


class NoDistribution(Unable):
    """The log-probabilities of this reply are no distribution over the first token of an answer.

    The reply fails: neither they nor its token are ever counted. Which token it is may be why they are wrong, so a vote
    by it would have another distribution. Another reply may be asked for.
    """


class KeyMissing(NeedsAttention):
    """The environment has no usable key under that name, or it may not be sent there."""


class AddressRefused(NeedsAttention):
    """The address may not be called."""


def by_status(status: int, reason: str, wait: float | None = None) -> EndpointError:
    """Return what the status of an error means, whether the reply had it or its body names it.

    Args:
        wait: the seconds that the server asks to wait; None where it does not say.
    """
    later: dict[int, type[TryLater]] = {408: TimedOut, 425: TimedOut, 429: RateLimited}
    if kind := later.get(status, ServerError if status >= 500 else None):
        return kind(reason, wait)
    return Refused(reason)

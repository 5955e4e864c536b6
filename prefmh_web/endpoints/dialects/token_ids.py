"""Servers that take and return token ids, so that their models can write texts.

Asked to, they tell the log-probability of each token that they draw, which the ratio of QUEST's published code needs.
It is that of the law that the token was drawn from, the temperature included, or it is of no use.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from prefmh_web.endpoints import replies
from prefmh_web.endpoints.dialects.server import Body, Path, Server


class WithTokenIds(Server):
    """A server where token ids can go in and come out.

    Attributes:
        telling: the fields of a completion that ask for the log-probabilities of the tokens drawn.
        leaves_out: whether it may leave out those of some tokens, for which `asking_the_law` is there.
    """

    has_token_ids = True
    telling: ClassVar[Body]
    leaves_out: ClassVar[bool] = False

    @abstractmethod
    def completion_path(self) -> Path:
        """Return where a completion goes."""

    @abstractmethod
    def completion(self, model: str, prompt: Sequence[int], *, limit: int, temperature: float, seed: int) -> Body:
        """Return the body of a completion with token ids in and out.

        Args:
            limit: the most new tokens.
        """

    @abstractmethod
    def continuation(
        self, reply: Body, prompt: Sequence[int], *, limit: int, temperature: float
    ) -> replies.Continuation:
        """Return what a prompt was continued with.

        Raises:
            Unable: the server did something else than it was asked to.
            BadReply: the reply is not what the protocol says.
        """

    @abstractmethod
    def told(self, reply: Body, tokens: Sequence[int]) -> list[float | None]:
        """Return what a reply to a body with `telling` says of the tokens that it brought; None where it does not.

        Raises:
            Unable: the server told other log-probabilities than it was asked for, or none at all.
            BadReply: the reply is not what the protocol says.
        """

    def most_probable(self, reply: Body) -> float:
        """Return the log-probability of the most probable first token, from the reply to a body with `telling`.

        Only where nothing is left out; elsewhere the law tells more.

        Raises:
            Unable: the server tells none.
            BadReply: the reply is not what the protocol says.
        """
        raise NotImplementedError("the law is asked for in place of this")

    def asking_the_law(self, model: str, prompt: Sequence[int], end: int) -> Body:
        """Return the body of a completion that tells the law of the one token that follows a prompt.

        Args:
            end: the end-of-sequence token.
        """
        raise NotImplementedError("this kind of server leaves out nothing")

    def law(self, reply: Body, temperature: float) -> Mapping[int, float]:
        """Return the log-probability of each token at a temperature, from the reply to `asking_the_law`.

        Raises:
            Unable: it tells of some tokens only.
            BadReply: the reply is not what the protocol says.
        """
        raise NotImplementedError("this kind of server leaves out nothing")

"""Servers that take and return token ids, so that their models can write texts."""

from abc import abstractmethod
from collections.abc import Sequence

from prefmh_web.endpoints import replies
from prefmh_web.endpoints.dialects.server import Body, Path, Server


class WithTokenIds(Server):
    """A server where token ids can go in and come out."""

    has_token_ids = True

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

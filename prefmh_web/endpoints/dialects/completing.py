"""Servers that go on from a text: the `/completions` of the OpenAI protocol, without a chat template.

The path and its fields are those of OpenAI's old completions, as vLLM, llama.cpp, SGLang and Text Generation Inference
share them; only llama.cpp has really been asked. The fields of the sampling are those of the server's chats. An answer
ends with its line. Log-probabilities come as a list of objects (`top_logprobs`), or in llama.cpp as those of a chat
(`content`).
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from prefmh_web.endpoints import replies
from prefmh_web.endpoints.dialects.server import Body, Path, Question, Server
from prefmh_web.endpoints.errors import BadReply, Unable
from prefmh_web.endpoints.identity import Identity
from prefmh_web.endpoints.replies import Shape, Text, Told, read_as
from sampler.judges import raw_text


class Completing(Server):
    """A server of some kind, asked to go on from a text.

    Args:
        chat: that kind.
    """

    has_confinement = True
    varies: ClassVar[tuple[str, ...]] = ("prompt", "seed")

    def __init__(self, chat: Server) -> None:
        self._chat = chat

    def path(self, model: str) -> Path:
        """Return where a completion goes."""
        return Path("/completions")

    def body(self, question: Question) -> Body:
        """Return the body of a request for what follows a text."""
        head = {"model": question.model, "prompt": raw_text(question.messages), "max_tokens": question.max_tokens}
        body = head | self._chat.sampling(question.temperature, question.seed) | {"stop": ["\n"]}
        if question.choices and self.has_confinement:
            body |= self._chat.confined(question.choices)
        return body | ({"logprobs": self._chat.most_log_probabilities} if question.log_probabilities else {})

    def text(self, reply: Body) -> str | None:
        """Return what the server went on with."""
        return read_as(_Completion, reply, "the reply does not hold one choice").choices[0].text

    def first_token(self, reply: Body) -> list[tuple[str, float]]:
        """Return the most probable first tokens."""
        told = read_as(_Logged, reply, "the reply does not hold one choice").choices[0].logprobs
        if told is None or (told.top_logprobs is None and told.content is None):
            raise Unable("the server returns no log-probabilities for completions")
        if told.content:
            return replies.first_token(reply)
        if not told.top_logprobs:
            raise BadReply("the reply holds no token, so no log-probabilities either")
        return list(told.top_logprobs[0].items())

    def tokens_used(self, reply: Body) -> tuple[int, int]:
        """Return the tokens read and written."""
        return self._chat.tokens_used(reply)

    def identity(self, reply: Body) -> Identity:
        """Return which model a reply says that it is from."""
        return self._chat.identity(reply)

    def wait(self, headers: Mapping[str, str], reply: Any) -> float | None:
        """Return how many seconds a reply that is an error asks to wait."""
        return self._chat.wait(headers, reply)


class CompletingPlainly(Completing):
    """One that neither confines what it goes on with nor tells log-probabilities, as TGI's."""

    has_confinement = False
    has_log_probabilities = False


class _Logs(Shape):
    top_logprobs: list[dict[Text, float]] | None = None
    content: list[Any] | None = None


class _LoggedChoice(Shape):
    logprobs: Annotated[_Logs | None, Told] = None


class _Logged(Shape):
    choices: Annotated[list[_LoggedChoice], Field(min_length=1, max_length=1)]


class _Choice(Shape):
    text: Text


class _Completion(Shape):
    choices: Annotated[list[_Choice], Field(min_length=1, max_length=1)]

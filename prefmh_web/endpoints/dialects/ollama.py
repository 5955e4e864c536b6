"""Ollama, through its own `/api/chat`: the path that speaks as OpenAI does takes no top-k and no min-p.

https://docs.ollama.com/api/chat with https://docs.ollama.com/openapi.yaml (as of 2026-11-23). Fields that are missing
come from the model's Modelfile, or from defaults that truncate (top-k 40, top-p 0.9). In `sample/samplers.go` of
ollama/ollama (as of 2026-11-23) a top-k of no less than the vocabulary, a top-p of 1 and a min-p of 0 change nothing.
Prompts that do not fit are cut without a word unless `truncate` is false. `think` false switches thinking off;
thoughts would come in a field of their own. Log-probabilities came with version 0.12.11.
"""

from collections.abc import Mapping
from itertools import groupby
from typing import Annotated, ClassVar

from prefmh_web.endpoints.dialects.server import Body, Path, Question, Server, parts_of, picture_of
from prefmh_web.endpoints.errors import BadReply, Unable
from prefmh_web.endpoints.replies import Count, Shape, Text, Told, read_as

# More tokens than any vocabulary has; in some versions 0 stands for none at all.
_ALL = 1_000_000


class Ollama(Server):
    """Ollama's own server; the base URL ends in /v1, as for the others."""

    varies = ("messages", "options.seed")
    why_plain = "Ollama takes top_k, top_p, min_p and penalties from the request's options, where they are switched off"

    trials: ClassVar[Mapping[str, Body]] = {
        "temperature": {"options.temperature": 0.01},
        "top_p": {"options.top_p": 0.0001},
        "top_k": {"options.top_k": 1},
        "min_p": {"options.min_p": 1.0},
        "seed": {},
    }
    limit_field = "num_predict"
    # It has no field for a budget: the limit, which counts thoughts as well, is what bounds them.
    can_think = True

    def path(self, model: str) -> Path:
        """Return where a chat goes."""
        return Path("/api/chat", is_beside=True)

    def body(self, question: Question) -> Body:
        """Return the body of a request for one answer."""
        options = {
            "seed": question.seed,
            "temperature": question.temperature,
            "num_predict": question.max_tokens + (question.thinking or 0),
            "top_k": _ALL,
            "top_p": 1.0,
            "min_p": 0.0,
            "typical_p": 1.0,
            "repeat_penalty": 1.0,
            "repeat_last_n": 0,
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
            "mirostat": 0,
            "stop": [],
        }
        asked = {"logprobs": True, "top_logprobs": self.most_log_probabilities} if question.log_probabilities else {}
        return {
            "model": question.model,
            "messages": [each for message in question.messages for each in _messages(message)],
            "stream": False,
            "think": question.thinking is not None,
            "truncate": False,
            "shift": False,
            "options": options,
            **asked,
        }

    def text(self, reply: Body) -> str | None:
        """Return the text of the one answer."""
        return read_as(_Chat, reply, "the reply holds no message").message.content

    def first_token(self, reply: Body) -> list[tuple[str, float]]:
        """Return the most probable first tokens."""
        logged = read_as(_Logged, reply, "the log-probabilities are not in the form of the protocol").logprobs
        if logged is None:
            raise Unable("the server returns no log-probabilities; Ollama has them since version 0.12.11")
        if not logged:
            raise BadReply("the reply holds no token, so no log-probabilities either")
        return [(entry.token, entry.logprob) for entry in logged[0].top_logprobs]

    def tokens_used(self, reply: Body) -> tuple[int, int]:
        """Return the tokens read and written."""
        counted = _Counted.model_validate(reply)
        return counted.prompt_eval_count or 0, counted.eval_count or 0


class _Said(Shape):
    content: Text | None = None


class _Chat(Shape):
    message: _Said


class _LogProbability(Shape):
    token: Text
    logprob: float


class _Position(Shape):
    top_logprobs: list[_LogProbability]


class _Logged(Shape):
    logprobs: list[_Position] | None = None


class _Counted(Shape):
    prompt_eval_count: Annotated[Count | None, Told] = None
    eval_count: Annotated[Count | None, Told] = None


def _messages(message: Body) -> list[Body]:
    """Return a message as one or more: each picture in one of its own, so that it stands where it stood.

    Ollama puts the pictures of a message before its text, and joins messages of one role.
    """
    found: list[Body] = []
    for is_picture, parts in groupby(parts_of(message), key=lambda part: bool(part["type"] == "image_url")):
        if is_picture:
            pictures = [picture_of(part)[1] for part in parts]
            found.extend({"role": message["role"], "content": "", "images": [picture]} for picture in pictures)
        else:
            found.append({"role": message["role"], "content": "\n".join(part["text"] for part in parts)})
    return found

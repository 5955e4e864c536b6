"""Anthropic's Messages API.

https://platform.claude.com/docs/en/api/messages (as of 2026-11-23): the key goes into `x-api-key`; system text stands
outside the messages; content is a list of blocks, of which only those of the type `text` are the answer; there is no
seed, no log-probability, no confinement and no penalty. `usage.output_tokens` counts thinking, too. The API fixes
what `top_p` and `top_k` are when they are not sent, and does not let some models set them: they are left out, and so
nobody can say whether it truncates. Newer models refuse a temperature other than 1, and
https://platform.claude.com/docs/en/build-with-claude/thinking-troubleshooting (as of 2026-11-23) lists those that do
not let thinking be switched off: both are refused with a 400, which is shown. A refusal has the `stop_reason`
"refusal": https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons (as of 2026-11-23). A 429 comes
with `retry-after`. A budget of thinking tokens is at least 1,024 and below `max_tokens`, and goes with temperature 1:
https://platform.claude.com/docs/en/build-with-claude/extended-thinking (read as an excerpt on 2026-11-23).
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from prefmh_web.endpoints import replies
from prefmh_web.endpoints.dialects.server import Body, Path, Question, Server, parts_of, picture_of, words_of
from prefmh_web.endpoints.replies import Count, Shape, Text, Told, read_as


class Anthropic(Server):
    """Anthropic's own API."""

    hosts = ("api.anthropic.com",)
    has_log_probabilities = False
    hottest = 1.0
    key_header = "x-api-key"
    key_prefix = ""
    # Later versions refuse a temperature altogether.
    headers: ClassVar[dict[str, str]] = {"anthropic-version": "2023-06-01"}
    varies = ("messages", "system")
    can_think = True
    least_thinking = 1_024
    thinks_at_any_temperature = False

    trials: ClassVar[Mapping[str, Body]] = {"temperature": {"temperature": 0.01}}

    def path(self, model: str) -> Path:
        """Return where a chat goes."""
        return Path("/messages")

    def body(self, question: Question) -> Body:
        """Return the body of a request for one answer."""
        system, thinking = words_of(question.messages, "system"), question.thinking
        return {
            "model": question.model,
            "max_tokens": question.max_tokens + (thinking or 0),
            **({"system": system} if system else {}),
            "messages": [_message(message) for message in question.messages if message["role"] != "system"],
            "thinking": {"type": "disabled"} if thinking is None else {"type": "enabled", "budget_tokens": thinking},
            "temperature": question.temperature,
            "stream": False,
        }

    def text(self, reply: Body) -> str | None:
        """Return the texts of all blocks that are texts; thinking is none."""
        found = read_as(_Message, reply, "the reply holds no list of content blocks")
        texts = [
            read_as(_TextBlock, block, "a text block holds no text").text for block in found.content if _is_text(block)
        ]
        return "".join(texts) if texts and found.stop_reason != "refusal" else None

    def reasoning(self, reply: Body) -> str:
        """Return the texts of the blocks that are thinking."""
        found = reply.get("content")
        blocks = [block for block in found if isinstance(block, dict)] if isinstance(found, list) else []
        thoughts = [block.get("thinking") for block in blocks if block.get("type") == "thinking"]
        return replies.thoughts_of(thoughts)

    def tokens_used(self, reply: Body) -> tuple[int, int]:
        """Return the tokens read, from a cache or not, and written."""
        usage = _Counted.model_validate(reply).usage
        if usage is None:
            return 0, 0
        read = (usage.input_tokens, usage.cache_creation_input_tokens, usage.cache_read_input_tokens)
        return sum(count or 0 for count in read), usage.output_tokens or 0


class _Message(Shape):
    content: list[Any]
    stop_reason: Any = None


class _TextBlock(Shape):
    text: Text


class _Usage(Shape):
    input_tokens: Annotated[Count | None, Told] = None
    cache_creation_input_tokens: Annotated[Count | None, Told] = None
    cache_read_input_tokens: Annotated[Count | None, Told] = None
    output_tokens: Annotated[Count | None, Told] = None


class _Counted(Shape):
    usage: Annotated[_Usage | None, Told] = None


def _is_text(block: object) -> bool:
    return isinstance(block, dict) and block.get("type") == "text"


def _message(message: Body) -> Body:
    return {"role": message["role"], "content": [_block(part) for part in parts_of(message)]}


def _block(part: Body) -> Body:
    if part["type"] != "image_url":
        return {"type": "text", "text": part["text"]}
    media_type, data = picture_of(part)
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}

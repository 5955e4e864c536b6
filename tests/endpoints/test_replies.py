"""What is said of a reply in another shape than the protocol's, and whether it is a bad reply or a server unable."""

from collections.abc import Callable
from typing import Any

import pytest

from prefmh_web.endpoints import replies
from prefmh_web.endpoints.errors import BadReply, EndpointError, Unable


def completed(reply: dict[str, Any]) -> replies.Continuation:
    return replies.completions_continuation(reply, [1, 2, 3], 4)


def continued(reply: dict[str, Any]) -> replies.Continuation:
    return replies.llama_cpp_continuation(reply, [1, 2, 3], 4, 1.0)


def logged(content: Any) -> dict[str, Any]:
    return {"choices": [{"logprobs": {"content": content}}]}


SETTINGS = {
    "samplers": ["temperature"], "grammar": "", "logit_bias": [], "mirostat": 0, "temperature": 1, "n_predict": 4
}  # fmt: skip


@pytest.mark.parametrize(
    ("read", "reply", "kind", "words"),
    [
        (replies.chat_text, {}, BadReply, "does not hold one choice"),
        (replies.chat_text, {"choices": {}}, BadReply, "does not hold one choice"),
        (replies.chat_text, {"choices": [{"message": {}}] * 2}, BadReply, "does not hold one choice"),
        (replies.chat_text, {"choices": [7]}, BadReply, "does not hold one choice"),
        (replies.chat_text, {"choices": [{}]}, BadReply, "holds no message"),
        (replies.chat_text, {"choices": [{"message": "A"}]}, BadReply, "holds no message"),
        (replies.chat_text, {"choices": [{"message": {"content": ["A"]}}]}, BadReply, "content is not a text"),
        (replies.first_token, {"choices": [{}]}, Unable, "returns no log-probabilities"),
        (replies.first_token, logged(None), Unable, "returns no log-probabilities"),
        (replies.first_token, logged([]), BadReply, "holds no token"),
        (replies.first_token, logged([{}]), BadReply, "not in the form"),
        (replies.first_token, logged([{"top_logprobs": [{"token": "A", "logprob": True}]}]), BadReply, "in the form"),
        (replies.first_token, logged([{"top_logprobs": [{"token": "A", "logprob": 10**400}]}]), BadReply, "the form"),
        (completed, {"choices": []}, BadReply, "does not hold one choice"),
        (completed, {"choices": [{}]}, Unable, "returns no token ids"),
        (completed, {"choices": [{"token_ids": [True]}]}, BadReply, "not whole numbers"),
        (completed, {"choices": [{"token_ids": [2**31]}]}, BadReply, "not whole numbers"),
        (continued, {}, BadReply, "does not say how it was sampled"),
        (continued, {"generation_settings": SETTINGS}, Unable, "returns no token ids"),
        (continued, {"generation_settings": SETTINGS | {"temperature": True}}, Unable, "temperature = True, not 1.0"),
        (continued, {"generation_settings": SETTINGS, "tokens": [-1]}, BadReply, "not whole numbers"),
        (replies.token_ids_of, {"tokens": []}, BadReply, "did not turn the prompt into token ids"),
        (replies.token_ids_of, {"tokens": ["1"]}, BadReply, "did not turn the prompt into token ids"),
        (replies.prompt_of, {"prompt": "\ud800"}, BadReply, "did not apply its chat template"),
    ],
)
def test_what_is_wrong_with_a_reply_is_said(
    read: Callable[[dict[str, Any]], object], reply: dict[str, Any], kind: type[EndpointError], words: str
) -> None:
    with pytest.raises(kind, match=words):
        read(reply)


@pytest.mark.parametrize(
    ("reply", "used"),
    [
        ({"usage": {"prompt_tokens": 3, "completion_tokens": True}}, (3, 0)),
        ({"usage": {"prompt_tokens": -1, "completion_tokens": 2}}, (0, 2)),
        ({"usage": 5, "tokens_evaluated": 4, "tokens_predicted": 2**31}, (4, 0)),
        ({}, (0, 0)),
    ],
)
def test_counts_are_read_one_by_one(reply: dict[str, Any], used: tuple[int, int]) -> None:
    assert replies.tokens_used(reply) == used

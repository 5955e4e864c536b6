"""Which replies count: recorded replies x ways of asking x what has to be made of them; and what is said of the others.

The replies are those of public reports, where a comment names one, and of the protocol's description. Nothing but a
label with quotation marks, a full stop and spaces ever counts as one.
"""

import json
import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from prefmh_web.endpoints import replies
from prefmh_web.endpoints.errors import (
    BadReply,
    EndpointError,
    NeedsAttention,
    NoDistribution,
    RateLimited,
    Refused,
    ServerError,
    TryLater,
    Unable,
)
from prefmh_web.endpoints.servers import ChatRequest, Dialect
from sampler.judges import NoPreferenceError, UnparsableReplyError, drawn_vote, label_preference, parse_label

CHAT = ({"role": "user", "content": "A or B?"},)
SAMPLED = ChatRequest("m", CHAT, 8)
CONFINED = ChatRequest("m", CHAT, 8, choices=("A", "B"))
THINKING = ChatRequest("m", CHAT, 8, thinking=2000)
FIRST = ChatRequest("m", CHAT, log_probabilities=True)
CONFINED_FIRST = ChatRequest("m", CHAT, choices=("A", "B"), log_probabilities=True)
# What a reply comes to that is no label: it is asked for again.
NO = "no label"
# Logarithms of a distribution's values: what p is for A, and the rest of it.
A, B, OTHER = math.log(0.606), math.log(0.384), math.log(0.01)
P = pytest.approx(0.606 / 0.99)


def reply(content: Any = "A", finish: Any = "stop", logprobs: Any = None, **message: Any) -> dict[str, Any]:
    """Return a chat completion."""
    choice = {"message": {"role": "assistant", "content": content} | message, "finish_reason": finish}
    return {"model": "m", "choices": [choice | ({"logprobs": logprobs} if logprobs is not None else {})]}


def tops(*entries: tuple[str, Any], token: Any = "A", own: Any = A) -> dict[str, Any]:
    """Return log-probabilities of the first token."""
    listed = [{"token": each, "logprob": value} for each, value in entries]
    return {"content": [{"token": token, "logprob": own, "top_logprobs": listed}]}


GOOD = tops(("A", A), ("B", B), ("Well", OTHER))


def failing(error: Any) -> dict[str, Any]:
    return {"error": error}


def outcome(dialect: str, question: ChatRequest, found: dict[str, Any]) -> Any:
    """Return what is counted of a reply: a label, p, `NO`, or the kind of error in its place."""
    server = Dialect(dialect).server
    try:
        if question.log_probabilities:
            tokens = server.first_token(found, question)
            return label_preference(tokens, 1.0, constrained=bool(question.choices)).first
        return parse_label(server.text(found, question))
    except (UnparsableReplyError, NoPreferenceError):
        return NO
    except EndpointError as error:
        return type(error)


def everywhere(expected: Any) -> list[tuple[ChatRequest, Any]]:
    return [(question, expected) for question in (SAMPLED, CONFINED, THINKING, FIRST, CONFINED_FIRST)]


def as_label(sampled: Any, constrained: Any, thinking: Any) -> list[tuple[ChatRequest, Any]]:
    return [(SAMPLED, sampled), (CONFINED, constrained), (THINKING, thinking)]


TABLE: list[tuple[str, str, dict[str, Any], list[tuple[ChatRequest, Any]]]] = [
    # Why a reply ended.
    ("a natural end", "vllm", reply(), as_label("A", "A", "A")),
    ("a natural end, other spellings", "vllm", reply(" 'b'. "), as_label("B", "B", "B")),
    ("the limit", "vllm", reply(finish="length"), as_label(NO, "A", NO)),
    ("the limit, and no exact label", "vllm", reply("A.", "length"), as_label(NO, NO, NO)),
    ("the limit, of a kind that cannot constrain", "openai", reply(finish="length"), as_label(NO, NO, NO)),
    ("the limit, after a thought", "vllm", reply(finish="length", reasoning_content="B?"), as_label(NO, NO, NO)),
    ("no end said", "vllm", reply(finish=None), as_label(NO, NO, NO)),
    ("an end of another type", "vllm", reply(finish=["stop"]), as_label(NO, NO, NO)),
    ("a word that nobody knows", "vllm", reply(finish="repetition"), as_label(NO, NO, NO)),
    ("a call of a tool", "openai", reply(finish="tool_calls"), as_label(NO, NO, NO)),
    ("a filter", "openai", reply(finish="content_filter"), as_label(NO, NO, NO)),
    ("a refusal", "openai", reply(refusal="I cannot."), as_label(NO, NO, NO)),
    ("an error of the server", "openrouter", reply(finish="error"), everywhere(ServerError)),
    ("an abort", "sglang", reply(finish="abort"), everywhere(ServerError)),
    *(
        (f"{word}, of an unknown kind", "openai", reply(finish=word), as_label("A", "A", "A"))
        for word in ("stop", "eos", "eos_token", "end_turn", "STOP")
    ),
    ("another's word", "vllm", reply(finish="end_turn"), as_label(NO, NO, NO)),
    ("Ollama's end", "ollama", {"message": {"content": "A"}, "done_reason": "stop"}, as_label("A", "A", "A")),
    ("Ollama's limit", "ollama", {"message": {"content": "A"}, "done_reason": "length"}, as_label(NO, NO, NO)),
    ("Ollama's load", "ollama", {"message": {"content": "A"}, "done_reason": "load"}, as_label(NO, NO, NO)),
    ("Ollama before it said why", "ollama", {"message": {"content": "A"}, "done": True}, as_label(NO, NO, NO)),
    ("a program's answer", "program", {"choice": "B"}, as_label("B", "B", "B")),
    ("a program's other answer", "program", {"choice": "C"}, as_label(NO, NO, NO)),
    ("a program's number", "program", {"choice": 1}, as_label(Unable, Unable, Unable)),
    ("a program without an answer", "program", {}, as_label(NO, NO, NO)),
    ("a program's error", "program", failing({"code": 400, "message": "no"}), as_label(Refused, Refused, Refused)),
    # Thoughts.
    ("a thought beside it", "vllm", reply(reasoning_content="B, surely."), as_label("A", "A", "A")),
    ("an empty thought", "sglang", reply("<think>\n\n</think>\n\nA"), as_label("A", "A", "A")),
    ("an empty thought at the limit", "sglang", reply("<think></think>A", "length"), as_label(NO, "A", NO)),
    ("a thought before it", "sglang", reply("<think>B?</think>A"), as_label(NO, NO, NO)),
    ("a thought without an end", "sglang", reply("<think>A"), as_label(NO, NO, NO)),
    ("an empty thought after it", "sglang", reply("A<think></think>"), as_label(NO, NO, NO)),
    *(
        (f"the limit, after a thought as {where!r:.40}", "vllm", reply(finish="length", **where), as_label(NO, NO, NO))
        for where in (
            {"reasoning": ["B?"]},
            {"thinking": {"text": "B?"}},
            {"reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}]},
        )
    ),
    ("a thought of blanks", "vllm", reply(finish="length", reasoning_content="\n\n"), as_label(NO, "A", NO)),
    *(
        (f"the limit, after thoughts that {field} counts", "vllm", reply(finish="length") | {"usage": usage},
         as_label(NO, expected, NO))
        for field, usage, expected in (
            ("OpenAI", {"completion_tokens_details": {"reasoning_tokens": 3}}, NO),
            ("SGLang", {"reasoning_tokens": 3}, NO),
            ("nobody", {"completion_tokens_details": {"reasoning_tokens": 0}, "reasoning_tokens": None}, "A"),
        )
    ),
    # Content.
    ("a list of texts", "openai", reply([{"type": "text", "text": "A"}]), as_label("A", "A", "A")),
    ("two texts", "openai", reply([{"type": "text", "text": each} for each in "AB"]), as_label(NO, NO, NO)),
    (
        "a thought among the parts",
        "openai",
        reply([{"type": "thinking", "thinking": "B?"}, {"type": "text", "text": "A"}]),
        [*as_label("A", "A", "A"), (FIRST, Unable)],
    ),
    *(
        (f"content {content!r:.30}", "vllm", reply(content), as_label(Unable, Unable, Unable))
        for content in (7, True, {"text": "A"}, ["A"], [{"type": "image"}], [{"type": "text", "text": 1}])
    ),
    ("no content", "vllm", reply(None), as_label(NO, NO, NO)),
    ("an empty list", "vllm", reply([]), as_label(NO, NO, NO)),
    # Errors in a reply with status 200, of every kind of server.
    *(
        (f"{dialect}: error {code!r}", dialect, failing({"code": code, "message": "no"}), [(SAMPLED, expected)])
        for dialect in Dialect.values
        for code, expected in (
            (400, Refused), ("404", Refused), (403.0, Refused), ("401 Unauthorized", Refused), (429, RateLimited),
            (502, ServerError), (4000, ServerError), ("x400", ServerError), (None, ServerError), ([400], ServerError),
        )
    ),
    *(
        (f"{dialect}: no money, {error!r:.60}", dialect, failing(error), [(SAMPLED, Refused)])
        for dialect in Dialect.values
        for error in (
            {"code": "insufficient_quota"}, {"type": "insufficient_quota", "code": 429}, {"code": "INSUFFICIENT_QUOTA"},
            {"code": "billing_not_active", "status": 429}, {"type": "exceeded_current_quota_error"},
            {"code": 429, "metadata": {"raw": '{"error": {"code": "insufficient_quota"}}'}}, "insufficient_quota",
        )
    ),
    *(
        (f"an error beside nothing else, {error!r:.60}", "openai", error, everywhere(expected))
        for error, expected in (
            ({"code": 400, "message": "no"}, Refused),
            ({"statusCode": 401, "message": "no"}, Refused),
            ({"message": "no", "code": "insufficient_quota"}, Refused),
            ({"message": "no", "status_code": 429}, RateLimited),
            ({"message": "no"}, ServerError),
        )
    ),
    ("an error as SGLang sends it", "sglang", {"object": "error", "code": 400, "message": "no"}, everywhere(Refused)),
    ("an error in a choice", "openrouter", {"choices": [failing({"code": 403})]}, everywhere(Refused)),
    ("an error with a status", "gemini", failing({"status": 401}), as_label(Refused, Refused, Refused)),
    ("an error by its type", "openai", failing({"type": "invalid_request_error"}), everywhere(Refused)),
    ("an error in words", "openai", failing("overloaded"), everywhere(ServerError)),
    ("no money", "openai", failing({"code": "insufficient_quota", "message": "no"}), everywhere(Refused)),
    ("an error beside an answer", "openai", reply() | failing({"code": 400}), everywhere(Refused)),
    ("no error beside an answer", "openai", reply() | failing(None), as_label("A", "A", "A")),
    # Log-probabilities.
    ("none", "vllm", reply(), [(FIRST, Unable)]),
    ("none of Ollama's", "ollama", {"message": {"content": "A"}, "done_reason": "stop"}, [(FIRST, Unable)]),
    ("good ones", "vllm", reply(logprobs=GOOD), [(FIRST, P), (CONFINED_FIRST, P)]),
    ("good ones at the limit", "vllm", reply(finish="length", logprobs=GOOD), [(FIRST, P)]),
    ("a token that ends", "vllm", reply("", logprobs=tops(("A", A), ("B", B), token="</s>", own=-9.0)), [(FIRST, P)]),
    ("the limit without a text", "vllm", reply("", "length", GOOD), [(FIRST, NoDistribution)]),
    ("another text", "vllm", reply("B", logprobs=GOOD), [(FIRST, NoDistribution)]),
    ("no text, and a label", "vllm", reply("", logprobs=GOOD), [(FIRST, NoDistribution)]),
    ("a refusal, and a label", "openai", reply(None, logprobs=GOOD, refusal="No."), [(FIRST, NoDistribution)]),
    ("no end said of them", "vllm", reply(finish=None, logprobs=GOOD), [(FIRST, NoDistribution)]),
    ("a filter beside them", "openai", reply(finish="content_filter", logprobs=GOOD), [(FIRST, NoDistribution)]),
    # SGLang #25055: .77 for a reply of B.
    ("those of a thought", "sglang", reply("A", reasoning_content="A", logprobs=GOOD), [(FIRST, NoDistribution)]),
    ("those of thoughts that are counted", "openai",
     reply(logprobs=GOOD) | {"usage": {"completion_tokens_details": {"reasoning_tokens": 9}}},
     [(FIRST, NoDistribution)]),
    ("those of an encrypted thought", "openrouter", reply(logprobs=GOOD, reasoning_details=[{"data": "x"}]),
     [(FIRST, NoDistribution)]),
    ("Ollama's thought", "ollama", {"message": {"content": "A", "thinking": "A?"}, "done_reason": "stop",
     "logprobs": GOOD["content"]}, [(FIRST, NoDistribution)]),
    ("Ollama's", "ollama", {"message": {"content": "A"}, "done_reason": "stop", "logprobs": GOOD["content"]},
     [(FIRST, P)]),
    # vLLM #36660: p would be .755.
    ("the sampled token twice", "vllm", reply(logprobs=tops(("A", A), ("A", A), ("B", B))), [(FIRST, P)]),
    ("twice, not the same", "vllm", reply(logprobs=tops(("A", A), ("A", A - 0.01), ("B", B))),
     [(FIRST, NoDistribution)]),
    ("twice, but for rounding", "vllm",
     reply(logprobs=tops(("A", A - 1), ("A", A - 1.0004), ("B", B - 1), own=A - 1)), [(FIRST, NO)]),
    ("twice, but for rounding, of labels that hold half", "vllm",
     reply(logprobs=tops(("A", A - 0.6), ("A", A - 0.6004), ("B", B - 0.6), own=A - 0.6)), [(FIRST, P)]),
    # What OpenAI, vLLM and llama.cpp write in place of what they do not tell: p would be 1.
    *(
        (f"{untold:g} for one", "vllm", reply(logprobs=tops(("A", A), ("B", untold))), [(FIRST, NO)])
        for untold in (-9999, -9999.0, -3.4028235e38)
    ),
    # vLLM #17876: p would be .5.
    ("all 0", "vllm", reply(logprobs=tops(("A", 0.0), ("B", 0.0), own=0.0)), [(FIRST, NoDistribution)]),
    ("a sum above 1", "vllm", reply(logprobs=tops(("A", A), ("B", -0.5))), [(FIRST, NoDistribution)]),
    # SGLang #32290: .10 for .50.
    ("a collapsed entry", "sglang", reply(logprobs=tops(("A", math.log(0.1)), ("B", math.log(0.5)), own=math.log(0.5))),
     [(FIRST, NoDistribution)]),
    # Whichever token was sampled: what is missing is too much for tokens that are less probable than the last one.
    *(
        (f"a collapsed entry among many, {token} sampled", "sglang",
         reply(token, logprobs=tops(("A", math.log(0.1)), ("B", math.log(0.5)), *((f"t{n}", -17.0) for n in range(18)),
                                    token=token, own=math.log(0.5))), [(FIRST, NoDistribution)])
        for token in ("A", "B")
    ),
    ("a rest for the unlisted", "sglang",
     reply(logprobs=tops(("A", A - 0.3), ("B", B - 0.3), ("Well", -14.0), token="A", own=A - 0.3)), [(FIRST, P)]),
    ("collapsed entries", "sglang", reply(logprobs=tops(("A", -2.3), ("B", -2.2), own=-2.3)),
     [(FIRST, NO), (CONFINED_FIRST, NoDistribution)]),
    ("labels that hold too little", "vllm", reply(logprobs=tops(("A", -1.0), ("B", -0.9), own=-1.0)),
     [(FIRST, pytest.approx(1 / (1 + math.exp(0.1)))), (CONFINED_FIRST, NoDistribution)]),
    *(
        (f"{value!r:.20} for one", "vllm", reply(logprobs=tops(("A", A), ("B", value))), [(FIRST, NoDistribution)])
        for value in (None, "-1", True, 0.5, 10**400, [-1])
    ),
    ("null for the token's own", "vllm", reply(logprobs=tops(("A", A), ("B", B), own=None)), [(FIRST, NoDistribution)]),
    ("no form", "vllm", reply(logprobs={"content": [{}]}), [(FIRST, NoDistribution)]),
    ("no token", "vllm", reply(logprobs={"content": []}), [(FIRST, BadReply)]),
    ("one label", "vllm", reply(logprobs=tops(("A", A))), [(FIRST, NO)]),
]  # fmt: skip
CASES = [
    pytest.param(dialect, question, found, expected, id=f"{what}-{number}")
    for what, dialect, found, asked in TABLE
    for number, (question, expected) in enumerate(asked)
]


@pytest.mark.parametrize(("dialect", "question", "found", "expected"), CASES)
def test_what_counts_of_a_reply(dialect: str, question: ChatRequest, found: dict[str, Any], expected: Any) -> None:
    came = outcome(dialect, question, found)
    assert came == expected or (isinstance(came, type) and isinstance(expected, type) and issubclass(came, expected))
    # As it would come over the wire.
    assert repr(outcome(dialect, question, replies.parsed(json.dumps(found).encode()))) == repr(came)


def test_a_rating_that_another_begins_with_does_not_count_at_the_limit() -> None:
    question = ChatRequest("m", CHAT, 8, choices=("1", "2", "10"))
    assert [Dialect.VLLM.server.text(reply(said, "length"), question) for said in ("1", "2", "10")] == ["1…", "2", "10"]


def test_one_token_that_was_asked_for_is_whole() -> None:
    server = Dialect.OPENAI.server
    assert server.text(reply("Sea", "length"), ChatRequest("m", CHAT, 1)) == "Sea"
    assert server.text(reply("Sea", "length"), ChatRequest("m", CHAT, 1, thinking=2000)) == "Sea…"


def test_a_person_reads_why_a_reply_does_not_count() -> None:
    server = Dialect.VLLM.server
    assert server.text(reply("I would say", "length"), SAMPLED) == "I would say…"
    assert server.text(reply(finish=None), SAMPLED) == "A [finish_reason: None]"
    with pytest.raises(Refused, match=r"error 400: the model is gone"):
        server.text(failing({"code": 400, "message": "the model is gone"}), SAMPLED)


def test_a_key_in_a_long_error_is_whole_or_not_there() -> None:
    key = "sk-" + "x" * 40
    for padding in range(240, 300):
        with pytest.raises(Refused) as raised:
            Dialect.OPENAI.server.text(
                failing({"code": 400, "message": "a " * (padding // 2) + key + " b" * 99}), FIRST
            )
        assert "sk-" not in raised.value.reason.replace(key, "")


def test_no_number_is_read_as_none_at_all() -> None:
    # Python's servers write NaN, others null.
    found = json.dumps(reply(logprobs=tops(("A", A), ("B", math.nan))))
    assert "NaN" in found
    assert outcome("vllm", FIRST, replies.parsed(found.encode())) is NoDistribution
    assert replies.parsed(b"[Infinity, -Infinity]") == [None, None]


# What is around a label in texts that count.
AROUND = re.compile(r"[\s\"'`“”‘’«»]")


@given(
    st.text(alphabet="AaBb.\"'`“«»…:*</think>\n \u200bАВ１", max_size=8) | st.text(max_size=20),
    st.sampled_from(Dialect.values),
    st.sampled_from([SAMPLED, CONFINED, THINKING]),
    st.sampled_from(["stop", "length", "eos", None, "error", 0]),
)
def test_no_other_text_counts_as_a_label(text: str, dialect: str, question: ChatRequest, finish: Any) -> None:
    bare = AROUND.sub("", re.sub(r"^\s*<(think|thinking)>\s*</\1>", "", text))
    assume(bare.removesuffix(".") not in ("A", "B", "a", "b"))
    replied = {"choice": text} if dialect == "program" else reply(text, finish)
    if dialect == "ollama":
        replied = {"message": {"content": text}, "done_reason": finish}
    assert outcome(dialect, question, replied) in (NO, ServerError)


@given(st.text(max_size=12), st.sampled_from(sorted(set(Dialect.values) - {"program", "ollama"})))
def test_no_other_word_for_an_end_counts(word: str, dialect: str) -> None:
    assume(word not in (*Dialect(dialect).server.ends, "length"))
    for question in (SAMPLED, CONFINED, THINKING):
        assert outcome(dialect, question, reply(finish=word)) in (NO, ServerError)
    assert outcome(dialect, FIRST, reply(finish=word, logprobs=GOOD)) in (NoDistribution, ServerError)


# Votes by log-probabilities of a server of whose replies a tenth are broken, where the token that was sampled is A.

VOTES, CHANCE, BROKEN = 20_000, 0.6, 0.1
# Beyond it with probability 6e-5, as the votes are binomial.
TOLERANCE = 4 * math.sqrt(CHANCE * (1 - CHANCE) / VOTES)


def as_a_server_with_a_fault(rng: np.random.Generator) -> dict[str, Any]:
    """Return a reply of a model that says A with probability CHANCE; a tenth of all list the sampled A wrongly."""
    token = "A" if rng.random() < CHANCE else "B"
    own = {"A": math.log(CHANCE), "B": math.log(1 - CHANCE)}
    is_broken = token == "A" and rng.random() < BROKEN / CHANCE
    listed = {"A": math.log(0.1) if is_broken else own["A"], "B": own["B"]}
    return reply(token, "length", tops(*listed.items(), token=token, own=own[token]))


def share_of_a(of_a_failed_reply: Callable[[dict[str, Any]], float | None]) -> float:
    """Return the share of votes for A, the votes of replies that fail being given by a function.

    Args:
        of_a_failed_reply: the probability of a vote for A; None where another reply is asked for.
    """
    rng, server, votes = np.random.default_rng(20261128), Dialect.VLLM.server, 0
    for _ in range(VOTES):
        chance: float | None = None
        while chance is None:
            found = as_a_server_with_a_fault(rng)
            try:
                chance = label_preference(server.first_token(found, FIRST), 1.0, constrained=True).first
            except NoDistribution:
                chance = of_a_failed_reply(found)
        votes += drawn_vote(rng.random(), chance)
    return votes / VOTES


def its_own_token(found: dict[str, Any]) -> float:
    return float(found["choices"][0]["message"]["content"] == "A")


def its_log_probabilities(found: dict[str, Any]) -> float:
    [position] = found["choices"][0]["logprobs"]["content"]
    return label_preference(
        [(top["token"], top["logprob"]) for top in position["top_logprobs"]], 1.0, constrained=True
    ).first


def test_votes_keep_their_distribution_where_replies_that_fail_are_refused_and_only_there() -> None:
    assert abs(share_of_a(lambda found: None) - CHANCE) < TOLERANCE
    # A tenth of the votes is A for certain, or A with probability .2.
    for counted, share in ((its_own_token, 0.9 * CHANCE + 0.1), (its_log_probabilities, 0.9 * CHANCE + 0.1 * 0.2)):
        biased = share_of_a(counted)
        assert abs(biased - share) < TOLERANCE
        assert abs(biased - CHANCE) > TOLERANCE


# What a server that refuses for now says of when to come back.


@pytest.mark.parametrize(
    ("headers", "body", "wait"),
    [
        ({}, {}, None),
        ({"retry-after": "20"}, {}, 20),
        ({"retry-after": "0.5"}, {}, 0.5),
        ({"retry-after": "0"}, {}, 0),
        ({"retry-after": "-5"}, {}, 0),
        ({"retry-after": "Fri, 31 Dec 2100 23:59:59 GMT"}, {}, 3600),
        ({"retry-after": "1m30s"}, {}, 90),
        ({"retry-after": "1m 30s"}, {}, 90),
        ({"retry-after": "90 seconds"}, {}, 90),
        ({"retry-after": "2 Minutes"}, {}, 120),
        ({"retry-after": "1d"}, {}, 3600),
        ({"retry-after": "Friday, 31-Dec-99 23:59:59 GMT"}, {}, 0),
        ({"retry-after": "Fri Dec 31 23:59:59 2100"}, {}, 3600),
        ({"retry-after": "2100-12-31T23:59:59Z"}, {}, 3600),
        ({"retry-after": "Fri, 31 Dec 2100 23:59:59 -99999999999999"}, {}, None),
        ({"retry-after-ms": "20ms"}, {}, 0.02),
        ({"x-ratelimit-reset": "30"}, {}, 30),
        ({"x-ratelimit-reset": "4102444800"}, {}, 3600),
        ({"x-ratelimit-reset": "4102444800000"}, {}, 3600),
        ({"x-ratelimit-reset": "1600000000"}, {}, 0),
        ({"x-ratelimit-reset-requests": "2100-12-31T23:59:59Z"}, {}, 3600),
        ({}, {"metadata": {"headers": {"X-RateLimit-Reset": "4102444800000"}}}, 3600),
        ({}, {"message": "Please retry after 26 seconds."}, 26),
        ({}, {"message": "Please retry in 34.07s."}, 34.07),
        ({}, {"message": "Please try again in 5 minutes."}, 300),
        ({}, {"message": "Please try again in 1 h 2 min"}, 3600),
        ({}, {"message": "Please try again in 250 milliseconds"}, 0.25),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, {}, 0),
        ({"retry-after": "soon"}, {}, None),
        ({"retry-after": "nan"}, {}, None),
        ({"retry-after": "1e9"}, {}, 3600),
        ({"retry-after": "2", "retry-after-ms": "1500"}, {}, 1.5),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s"}, {}, 360),
        ({"x-ratelimit-remaining-tokens": "9", "x-ratelimit-reset-tokens": "6m0s"}, {}, None),
        ({"x-ratelimit-reset-requests": "12ms"}, {}, 0.012),
        ({"x-ratelimit-reset-requests": "12ms", "x-ratelimit-reset-tokens": "1.5"}, {}, 1.5),
        ({}, {"message": "Rate limit reached. Please try again in 20s."}, 20),
        ({}, {"message": "Please try again in 1m2.5s. Visit"}, 62.5),
        ({}, {"message": "Try again in 350ms"}, pytest.approx(0.35)),
        ({}, {"message": "try again in 7 seconds"}, 7),
        ({}, {"message": "try again in a while"}, None),
        ({}, {"details": [{"retryDelay": "22s"}, 7, {"retryDelay": 3}]}, 22),
        ({}, {"details": {"retryDelay": "22s"}, "metadata": 3, "message": 4}, None),
    ],
)
def test_a_wait_is_read_in_every_form(headers: dict[str, str], body: dict[str, Any], wait: Any) -> None:
    found = replies.failure(429, headers, {"error": body}, "later")
    assert isinstance(found, RateLimited)
    assert (found.retry_after, found.asked_to_wait) == ((5.0, False) if wait is None else (wait, True))
    assert replies.wait(headers, body) == wait


@pytest.mark.parametrize(
    "form",
    ["%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %d %H:%M:%S %Y", "%Y-%m-%dT%H:%M:%SZ", "%s"],
)
def test_a_moment_is_a_wait(form: str) -> None:
    date = datetime.now(UTC) + timedelta(seconds=30)
    said = str(date.timestamp()) if form == "%s" else date.strftime(form)
    assert replies.wait({"retry-after": said}, {}) == pytest.approx(30, abs=3)


@given(st.text(alphabet="0123456789.:,+-TZ GMTmsdhonWed", max_size=40) | st.text(max_size=30))
def test_no_wait_breaks_the_reader(said: str) -> None:
    found = replies.wait({"retry-after": said}, {"message": f"try again in {said}"})
    assert found is None or 0 <= found <= replies.LONGEST_RETRY_AFTER_S


@pytest.mark.parametrize("field", ["code", "type"])
def test_no_money_does_not_heal(field: str) -> None:
    found = replies.failure(429, {"retry-after": "2"}, {"error": {field: "insufficient_quota"}}, "no money")
    assert isinstance(found, Refused)
    assert isinstance(found, NeedsAttention)
    assert "no money" in found.reason
    assert isinstance(replies.failure(408, {}, None, ""), TryLater)


# Texts by token ids, and what is said of replies in another shape than the protocol's.


def completed(reply: dict[str, Any]) -> replies.Continuation:
    return replies.completions_continuation(reply, [1, 2, 3], 4, 1.0)


def continued(reply: dict[str, Any]) -> replies.Continuation:
    return replies.llama_cpp_continuation(reply, [1, 2, 3], 4, 1.0)


def ids(choice: dict[str, Any], prompt_tokens: int = 3, completion_tokens: int = 2) -> dict[str, Any]:
    """Return a completion of token ids."""
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens}
    return {"choices": [{"token_ids": [7, 8], "finish_reason": "stop"} | choice], "usage": usage}


SETTINGS = {
    "samplers": ["temperature"], "grammar": "", "logit_bias": [], "mirostat": 0, "temperature": 1, "n_predict": 4
}  # fmt: skip


@pytest.mark.parametrize(
    ("read", "found", "kind", "words"),
    [
        (completed, {"choices": []}, BadReply, "does not hold one choice"),
        (completed, {"choices": [{}]}, Unable, "returns no token ids"),
        (completed, {"choices": [{"token_ids": [True]}]}, BadReply, "not whole numbers"),
        (completed, {"choices": [{"token_ids": [2**31]}]}, BadReply, "not whole numbers"),
        (completed, ids({"finish_reason": "length"}), Unable, "context is too small"),
        (completed, ids({"token_ids": [7, 8, 9, 10, 11]}, 3, 5), BadReply, "at most 4"),
        (completed, ids({}, prompt_tokens=4), Unable, "read 4 tokens of a prompt of 3"),
        (completed, ids({}, completion_tokens=3), BadReply, "says 3 tokens"),
        (completed, ids({"prompt_token_ids": [1, 2, 4]}), Unable, "or others"),
        (completed, ids({"token_ids": []}, completion_tokens=0), BadReply, "sends 0"),
        (completed, failing({"code": 404, "message": "no such model"}), Refused, "404: no such model"),
        (continued, failing({"code": 400, "message": "too long"}), Refused, "400: too long"),
        (replies.said, failing("overloaded"), ServerError, "the server failed: overloaded"),
        (continued, {}, BadReply, "does not say how it was sampled"),
        (continued, {"generation_settings": SETTINGS}, Unable, "returns no token ids"),
        (continued, {"generation_settings": SETTINGS | {"temperature": True}}, Unable, "temperature = True, not 1.0"),
        (continued, {"generation_settings": SETTINGS | {"samplers": ["top_k", "temperature"]}}, Unable, "samplers"),
        (continued, {"generation_settings": SETTINGS | {"n_predict": 3}}, Unable, "n_predict"),
        (continued, {"generation_settings": SETTINGS | {"grammar": "root ::= x"}}, Unable, "grammar"),
        (continued, {"generation_settings": SETTINGS, "tokens": [-1]}, BadReply, "not whole numbers"),
        (replies.token_ids_of, {"tokens": []}, BadReply, "did not turn the prompt into token ids"),
        (replies.token_ids_of, {"tokens": ["1"]}, BadReply, "did not turn the prompt into token ids"),
        (replies.prompt_of, {"prompt": "\ud800"}, BadReply, "did not apply its chat template"),
    ],
)
def test_what_is_wrong_with_a_reply_is_said(
    read: Callable[[dict[str, Any]], object], found: dict[str, Any], kind: type[EndpointError], words: str
) -> None:
    with pytest.raises(kind, match=words):
        read(found)


@pytest.mark.parametrize(
    ("found", "used"),
    [
        ({"usage": {"prompt_tokens": 3, "completion_tokens": True}}, (3, 0)),
        ({"usage": {"prompt_tokens": -1, "completion_tokens": 2}}, (0, 2)),
        ({"usage": 5, "tokens_evaluated": 4, "tokens_predicted": 2**31}, (4, 0)),
        ({}, (0, 0)),
    ],
)
def test_counts_are_read_one_by_one(found: dict[str, Any], used: tuple[int, int]) -> None:
    assert replies.tokens_used(found) == used

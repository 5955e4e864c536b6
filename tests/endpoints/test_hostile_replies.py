"""Whatever a server answers becomes a result or an error with a name, and takes a bounded time and memory."""

import copy
import gzip
import json
import socket
import threading
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from prefmh_web.endpoints import judge_calls, limits
from prefmh_web.endpoints.calls import called
from prefmh_web.endpoints.errors import BadReply, EndpointError, ServerError, TimedOut, Unreachable
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.probe import probe
from prefmh_web.endpoints.servers import Dialect
from prefmh_web.endpoints.writer import ServedModel
from sampler.judges import RatingScale, ShownObject, rating_prompt
from tests.endpoints.conftest import PAIR, chat
from tests.support.models import (
    Script,
    chat_reply,
    dripping,
    logged,
    raw,
    returns,
    send,
    slow,
    status,
    trickling,
    wire,
)

# Whatever a server answers becomes a result or an error with a name: no reply is a crash, a 500, or a broken row.


RATED = judge_calls.RatingRequest(
    rating_prompt("texts", "How dark?", RatingScale(0, 10)), ShownObject("the red moon"), RatingScale(0, 10)
)
MANY = examples(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def rng() -> np.random.Generator:
    return np.random.default_rng(20261122)


def written(endpoint: Endpoint) -> list[str]:
    """Return a text by a served model, through all its requests: the prompt's tokens, new tokens, their words."""
    model = ServedModel(endpoint, limit=4)
    (tokens,) = model.continue_batch([rng()], ["Begin."], [()])
    return [model.text("Begin.", tokens)]


@dataclass(frozen=True)
class Way:
    """One way to ask a server, and a reply that it can use."""

    ask: Callable[[Endpoint], object]
    reply: dict[str, Any]
    dialect: Dialect = Dialect.VLLM


_TOP = [{"token": "A", "logprob": -0.7}, {"token": "B", "logprob": -0.9}]
_LLAMA = {"samplers": ["temperature"], "grammar": "", "logit_bias": [], "mirostat": 0, "temperature": 1.0}
WAYS = {
    "a vote": Way(lambda e: called(judge_calls.votes(e, PAIR, [True], rng())), chat_reply("A")),
    "a rating": Way(lambda e: called(judge_calls.ratings(e, RATED, 1, rng())), chat_reply("7")),
    "log-probabilities": Way(
        lambda e: called(judge_calls.votes(e, PAIR, [True], rng(), [0.5])),
        chat_reply("A", logprobs=logged("A", _TOP)),
    ),
    # One reply that does for every request of a text.
    "a text of vLLM's": Way(
        written,
        {
            "tokens": [1, 2, 3],
            "choices": [{"token_ids": [7, 2], "prompt_token_ids": [1, 2, 3], "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 2},
            "prompt": "the cat",
        },
    ),
    "a text of llama.cpp's": Way(
        written,
        {
            "prompt": "Begin.",
            "tokens": [1, 2, 3],
            "generation_settings": _LLAMA | {"n_predict": 4},
            "truncated": False,
            "tokens_evaluated": 3,
            "tokens_predicted": 3,
            "stop_type": "eos",
            "content": "the cat",
        },
        Dialect.LLAMA_CPP,
    ),
    "a test": Way(probe, chat_reply("A", logprobs=logged("A", _TOP))),
}

NESTED: Any = "A"
for _ in range(600):
    NESTED = [NESTED]
NASTY = [
    None, True, -1, 0, 2**31, 2**63, 2**64, -(2**63), 10**400, -(10**400), 10**4000, 1e308, -1e308, 5e-324,
    float("inf"), float("-inf"), float("nan"), "", "\0", "A\0", "\ud800", "\udfff A", "A" * 5000,
    "\N{RIGHT-TO-LEFT OVERRIDE}A", "1",
    [], [[]], {}, {"A": {}}, [None], ["A", "B"], [-1], [True], [10**400], [2**63], [0.5], NESTED, {"a": NESTED},
]  # fmt: skip
VALUES = st.sampled_from(NASTY) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)


def ways_into(value: Any, way: tuple = ()) -> Iterator[tuple]:
    """Yield the way to every value inside a reply, the reply itself among them."""
    yield way
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in inside:
        yield from ways_into(inner, (*way, name))


def changed(reply: dict[str, Any], path: tuple, value: Any) -> Any:
    """Return a reply with something else at one place."""
    if not path:
        return value
    reply = copy.deepcopy(reply)
    inner = reply
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    return reply


def outcome(endpoint: Endpoint, way: Way) -> object:
    """Ask, and let nothing but an error with a name leave."""
    limits.forget()
    endpoint.dialect = way.dialect
    endpoint.save()
    try:
        return way.ask(endpoint)
    except EndpointError as error:
        return error
    except Exception as crash:  # noqa: BLE001 - what the test is about
        return pytest.fail(f"{type(crash).__name__} left the client: {str(crash)[:200]}")


def check_rows(endpoint: Endpoint) -> None:
    """Check that what was stored can be read and shown."""
    endpoint.refresh_from_db()
    assert "\0" not in endpoint.last_error
    endpoint.last_error.encode()
    totals = endpoint.totals
    counts = [getattr(totals, name) for name in totals.NAMES]
    assert all(0 <= count < 2**62 for count in counts), counts


def answer_with(script: Script, fault: Callable) -> None:
    script.faults.clear()
    script.faults.extend([fault] * 400)
    script.pages.update(dict.fromkeys(("/props", "/get_server_info", "/version"), fault))


@pytest.mark.parametrize("name", WAYS)
def test_the_replies_that_are_changed_here_are_good_ones(scripted: Endpoint, script: Script, name: str) -> None:
    way = WAYS[name]
    answer_with(script, returns(way.reply))
    script.pages.clear()
    found = outcome(scripted, way)
    assert not isinstance(found, EndpointError), found
    assert getattr(found, "failure", None) is None


@pytest.mark.parametrize("name", WAYS)
def test_a_reply_that_is_wrong_at_one_place_is_a_result_or_an_error(scripted, script: Script, name: str) -> None:
    way = WAYS[name]

    @MANY
    @given(st.sampled_from(list(ways_into(way.reply))), VALUES)
    def check(path: tuple, value: Any) -> None:
        answer_with(script, raw(json.dumps(changed(way.reply, path, value)).encode()))
        found = outcome(scripted, way)
        for text in found if isinstance(found, list) else ():
            assert "\0" not in text
            text.encode()
        check_rows(scripted)

    check()


@pytest.mark.parametrize("name", ["a vote", "log-probabilities", "a text of llama.cpp's", "a test"])
def test_a_reply_of_any_bytes_is_an_error(scripted, script: Script, name: str) -> None:
    @MANY
    @given(st.binary(max_size=300), st.booleans(), st.sampled_from([200, 204, 206, 301, 400, 418, 429, 500, 503, 599]))
    def check(content: bytes, is_whole: bool, code: int) -> None:
        head = b"HTTP/1.1 200 OK\r\n" if is_whole else b""
        answer_with(script, wire(head + content) if code == 200 else status(code, content))
        outcome(scripted, WAYS[name])
        check_rows(scripted)

    check()


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"choices": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"choices": ' + b"9" * 5_000 + b"}",
        b'{"choices": NaN}',
        b'{"usage": {"prompt_tokens": 1e999}, "choices": [{"message": {"content": "A"}}]}',
        b"\xed\xa0\x80",
        b'{"choices": "\xed\xa0\x80"}',
        '{"choices": 1}'.encode("utf-16"),
        b"\0" * 1000,
        b"",
        b"\xef\xbb\xbf",
        b'"' + b"\\ud800" * 1000 + b'"',
    ],
)
def test_json_that_a_reader_chokes_on_is_an_error(scripted, script: Script, content: bytes) -> None:
    for name in WAYS:
        answer_with(script, raw(content))
        outcome(scripted, WAYS[name])
        check_rows(scripted)


def test_a_text_that_no_database_takes_is_written_without_it(scripted, script: Script) -> None:
    way = WAYS["a text of vLLM's"]
    answer_with(script, returns(way.reply | {"prompt": "the \0cat \ud83d"}))
    assert outcome(scripted, way) == ["the \N{REPLACEMENT CHARACTER}cat \N{REPLACEMENT CHARACTER}"]


# What a request may take of this machine, whatever the server does: time, memory, and what is kept of the reply.


# A request is given up after TIMEOUT_S; one that is still under way after PATIENCE_S has no end.
TIMEOUT_S, PATIENCE_S = 0.8, 20.0
MAX_MEMORY = 64 * 2**20


def asked(script: Script, timeout_s: float = TIMEOUT_S) -> EndpointError | str | None:
    """Return what a request comes to, its error included."""
    try:
        return chat(script.url, timeout_s=timeout_s)
    except EndpointError as error:
        return error


def in_time(request: Callable[[], object]) -> object:
    """Return what a request comes to; fail if it does not end."""
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(request()), daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    assert not thread.is_alive(), f"a request with a limit of {TIMEOUT_S:g} s still waits after {PATIENCE_S:g} s"
    return found[0]


HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "fault",
    [
        trickling(HEAD + b"X-Filler: a\r\n"),
        trickling(b"HTTP/1.1 100 Continue\r\n\r\n"),
        trickling(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\na\r\n" * 100_000),
        trickling(HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;" + b"x" * 100_000),
        trickling(HEAD + b"Content-Length: 100000\r\n\r\n" + b" " * 100_000),
        dripping,
        slow,
    ],
    ids=["header", "interim replies", "chunks", "a chunk's head", "body", "drip", "silence"],
)
def test_a_reply_that_never_ends_is_given_up(local_allowed, script: Script, fault) -> None:
    script.faults.append(fault)
    assert type(in_time(lambda: asked(script))) is TimedOut


def test_a_name_that_is_looked_up_for_ever_is_given_up(settings, monkeypatch) -> None:
    settings.ENDPOINT_ALLOWED_HOSTS = ["models.example.org"]
    over = threading.Event()

    def look_up(*_: object, **__: object) -> list:
        over.wait()
        return []

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    try:
        error = in_time(lambda: asked(Script("http://models.example.org/v1", dict)))
    finally:
        over.set()
    assert type(error) is TimedOut


def bomb(pack: Callable[[bytes], bytes], encoding: str, code: int = 200) -> Callable:
    """Answer with a reply that unpacks to 256 MiB."""
    packed = pack(b" " * 256 * 2**20)
    return lambda handler: send(handler, code, packed, {"Content-Encoding": encoding})


BOMBS = {
    "gzip": (lambda: bomb(gzip.compress, "gzip"), BadReply),
    "deflate": (lambda: bomb(zlib.compress, "deflate"), BadReply),
    "gzip twice": (lambda: bomb(lambda data: gzip.compress(gzip.compress(data)), "gzip, gzip"), BadReply),
    "with an error": (lambda: bomb(gzip.compress, "gzip", 500), ServerError),
    "deflate within gzip": (lambda: bomb(lambda data: gzip.compress(zlib.compress(data)), "deflate, gzip"), BadReply),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_few_bytes_do_not_unpack_to_gigabytes(local_allowed, script: Script, name: str) -> None:
    make, kind = BOMBS[name]
    script.faults.append(make())
    tracemalloc.start()
    try:
        error = asked(script, timeout_s=60)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < MAX_MEMORY, f"the reply took {peak / 2**20:.0f} MiB of memory"
    assert type(error) is kind


def bare(data: bytes) -> bytes:
    """Return deflate without any header, as some servers send it."""
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


PACKED = [("gzip", gzip.compress), ("GZip", gzip.compress), ("deflate", zlib.compress), ("deflate", bare)]
UNREADABLE = [
    ("gzip, gzip", lambda data: gzip.compress(gzip.compress(data)), "not a JSON object"),
    ("br", lambda data: data, ""),
    ("gzip", lambda data: data, "not compressed as it says"),
    ("gzip", lambda data: gzip.compress(data)[:-10], "not a JSON object"),
    ("deflate", lambda data: b"\x78\x9c" + data, "not compressed as it says"),
]


@pytest.mark.parametrize(("encoding", "pack"), PACKED)
def test_a_reply_packed_once_is_read_though_not_asked_for(local_allowed, script: Script, encoding, pack) -> None:
    content = pack(json.dumps(chat_reply("A")).encode())
    script.faults.append(lambda handler: send(handler, 200, content, {"Content-Encoding": encoding}))
    assert asked(script) == "A"
    assert script.headers[0]["Accept-Encoding"] == "identity"


@pytest.mark.parametrize(("encoding", "pack", "words"), UNREADABLE)
def test_a_reply_packed_otherwise_is_an_error(local_allowed, script: Script, encoding, pack, words) -> None:
    content = pack(json.dumps(chat_reply("A")).encode())
    script.faults.append(lambda handler: send(handler, 200, content, {"Content-Encoding": encoding}))
    error = asked(script)
    assert type(error) is BadReply
    assert words in error.reason


@pytest.mark.parametrize(
    "header",
    [b"X-A: b\r\n" * 1000, b"X-A: " + b"b" * 80_000 + b"\r\n", b"Set-Cookie: a=b; expires=" + b" 1" * 40_000 + b"\r\n"],
    ids=["many lines", "a long line", "a long cookie"],
)
def test_a_header_without_measure_is_refused(local_allowed, script: Script, header: bytes) -> None:
    body = json.dumps(chat_reply("A")).encode()
    script.faults.append(wire(HEAD + header + b"Content-Length: %d\r\n\r\n" % len(body) + body))
    error = in_time(lambda: asked(script))
    assert type(error) is BadReply
    assert "header" in error.reason


def test_no_cookie_is_kept(local_allowed, script: Script) -> None:
    def with_cookie(handler) -> None:
        send(handler, 200, json.dumps(chat_reply("A")).encode(), {"Set-Cookie": "tracked=yes"})

    script.faults.append(with_cookie)
    for _ in range(2):
        asked(script)
    assert "Cookie" not in script.headers[1]


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", Unreachable),
        (b"HTTP/1.1 200 OK\r\nContent-Le", Unreachable),
        (b"SSH-2.0-OpenSSH_9.2\r\n", BadReply),
        (b"\x15\x03\x01\x00\x02\x02\x46", BadReply),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3, 4\r\n\r\nabc", BadReply),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc", BadReply),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", BadReply),
        (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", EndpointError),
        (b"\0" * 1000, EndpointError),
    ],
)
def test_what_is_not_http_is_an_error(local_allowed, script: Script, content: bytes, kind: type) -> None:
    script.faults.append(wire(content))
    error = in_time(lambda: asked(script))
    assert isinstance(error, kind), error


def test_a_reply_of_eight_mebibytes_in_tiny_chunks_is_bounded_on_its_way(local_allowed, script: Script) -> None:
    chunks = b"1\r\n \r\n" * (3 * 2**20)
    script.faults.append(wire(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunks))
    assert isinstance(in_time(lambda: asked(script)), BadReply | TimedOut)

"""Servers that speak like a model's: scripted ones, faulty ones, and a real llama.cpp with a tiny model."""

import base64
import contextlib
import io
import itertools
import json
import math
import os
import shlex
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import gguf
import httpx
import numpy as np
import pytest
from PIL import Image

from prefmh_web.endpoints.servers import Dialect
from prefmh_web.scorers import commands

# Free ports for servers of the tests: each process looks in a range of its own, so that two do not take the same.


def port_from(first: int) -> int:
    """Return a port that nobody listens on, somewhat above `first`."""
    begin = first + 7 * (os.getpid() % 100)
    for port in range(begin, begin + 300):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError(f"no port from {begin} on is free")


# A server that does as it is told: a judge whose preferences are known, and every fault a real one can have.
#
# It speaks like vLLM. `faults` are used up one a request; after them, and without any, requests are answered by
# `answer`.


# Takes the body of a request, returns that of the reply.
Answer = Callable[[dict], dict]
# Writes whatever it likes, or nothing, and is the last to touch the connection.
Fault = Callable[[BaseHTTPRequestHandler], None]


@dataclass
class Script:
    """What the server does, and what it was sent."""

    url: str
    answer: Answer
    faults: deque[Fault] = field(default_factory=deque)
    # What is answered to a GET, by its path; without it, as vLLM does.
    pages: dict[str, Fault] = field(default_factory=dict)
    requests: list[dict] = field(default_factory=list)
    # The same as they came over the wire.
    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    # Which requests faults are for; `is_vote` spares the test of the endpoint when a campaign starts.
    strikes: Callable[[dict], bool] = lambda body: True
    # Those that are open: clients keep them, and one that goes on with an old server gets the answers of that one.
    connections: set[socket.socket] = field(default_factory=set)
    # Set at the end: what a slow fault waits for.
    over: threading.Event = field(default_factory=threading.Event)


@contextlib.contextmanager
def scripted_server(answer: Answer, tls: ssl.SSLContext | None = None) -> Iterator[Script]:
    """Serve on this machine, on a free port, over TLS with a context.

    Yields:
        The script, whose URL ends in /v1.
    """
    server = _Server(("127.0.0.1", 0), _Handler)
    if tls:
        # The handshake is made by each connection's own thread, with its first read.
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.script = Script(f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}/v1", answer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, name="scripted-server")
    thread.start()
    try:
        yield server.script
    finally:
        server.script.over.set()
        server.shutdown()
        thread.join()
        server.server_close()
        for connection in list(server.script.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # Of connections that come at once, the system would cut those beyond five.
    request_queue_size = 1024


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Header and body leave in one packet; otherwise each reply waits 40 ms for an acknowledgement.
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        if page := self.server.script.pages.get(self.path):
            page(self)
            return
        reply(self, {"version": "0.0"} if self.path == "/version" else {"error": "not found"}, self.path == "/version")

    def do_POST(self) -> None:
        content = self.rfile.read(length := int(self.headers["Content-Length"]))
        if len(content) < length:
            # Whoever sent it was killed meanwhile.
            self.close_connection = True
            return
        body, script = json.loads(content), self.server.script
        script.bodies.append(content)
        script.requests.append(body)
        script.headers.append(dict(self.headers.items()))
        script.paths.append(self.path)
        try:
            fault = script.faults.popleft() if script.strikes(body) else None
        except IndexError:
            fault = None
        if fault:
            fault(self)
        else:
            reply(self, script.answer(body))

    def handle(self) -> None:
        self.server.script.connections.add(self.connection)
        # A client that gave up waiting, or that does not like the certificate, is part of the script.
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            super().handle()
        self.server.script.connections.discard(self.connection)

    def log_message(self, *message: object) -> None:
        pass


def reply(handler: BaseHTTPRequestHandler, body: dict, found: bool = True) -> None:
    """Answer with JSON."""
    send(handler, 200 if found else 404, json.dumps(body).encode(), {"Content-Type": "application/json"})


def send(handler: BaseHTTPRequestHandler, code: int, body: bytes, headers: dict[str, str] | None = None) -> None:
    """Answer with anything."""
    handler.send_response(code)
    for name, value in (headers or {}).items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def status(code: int, body: bytes = b"no", **headers: str) -> Fault:
    """Answer with an error; underscores in header names stand for hyphens."""
    return lambda handler: send(handler, code, body, {name.replace("_", "-"): value for name, value in headers.items()})


def says(text: str | None) -> Fault:
    """Answer with this text, whatever was asked."""
    return lambda handler: reply(handler, chat_reply(text))


def returns(body: dict) -> Fault:
    """Answer with this JSON."""
    return lambda handler: reply(handler, body)


def raw(body: bytes) -> Fault:
    """Answer 200 with these bytes."""
    return lambda handler: send(handler, 200, body)


def wire(content: bytes) -> Fault:
    """Send these bytes in place of a reply, and hang up."""

    def fault(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(content)
        handler.close_connection = True

    return fault


# Promises a long reply, sends its beginning, and hangs up.
cut = wire(b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"choices": [')


def trickling(content: bytes, pause: float = 0.05, head: bytes = b"") -> Fault:
    """Send these bytes one by one, over and over, in place of a reply, until nobody listens; a head at once."""

    def fault(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(head)
        for byte in itertools.cycle(content):
            if handler.server.script.over.wait(pause):
                break
            handler.wfile.write(bytes([byte]))
            handler.wfile.flush()
        handler.close_connection = True

    return fault


# Sends a space every little while, so that no single wait is long.
dripping = trickling(b" ", 0.1, head=b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")


def slow(handler: BaseHTTPRequestHandler) -> None:
    """Answer nothing until the end."""
    handler.server.script.over.wait()
    handler.close_connection = True


def chat_reply(text: str | None, **choice: object) -> dict:
    """Return a chat completion."""
    return {
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}, **choice}],
        "usage": {"prompt_tokens": 50, "completion_tokens": 2},
    }


def logged(token: str, top: list[dict]) -> dict:
    """Return the log-probabilities of a chat completion of one token: its own is that of the last listed one if it is
    not among them.
    """
    own = {each["token"]: each["logprob"] for each in top}
    return {"content": [{"token": token, "logprob": own.get(token, top[-1]["logprob"]), "top_logprobs": top}]}


TEXTS = "text,weight\n" + "".join(
    f"The {colour} {thing} stood there.,{1 + index % 3}\n"
    for index, (colour, thing) in enumerate(
        (c, t) for c in ("red", "blue", "grey") for t in ("house", "tree", "dog", "sea")
    )
)
LINES = [line.rsplit(",", 1)[0] for line in TEXTS.splitlines()[1:]]
"""The texts themselves."""
SCORES = {line: index / 4 for index, line in enumerate(LINES)}
"""What a model thinks of them."""


@dataclass(frozen=True)
class KnownJudge:
    """A model whose logits are known: s(A) + bias for A, s(B) for B, and one for each other reply.

    Args:
        scores: s of each text; two of them, and no more, must occur in a prompt.
        bias: added for whatever stands first.
        others: logits of replies that are no label.
        constrains: whether it honours `structured_outputs`.
    """

    scores: dict[str, float]
    bias: float = 0.0
    others: dict[str, float] = field(default_factory=dict)
    constrains: bool = True

    def __call__(self, body: dict) -> dict:
        if not self.is_asked_about_two(body):
            return anything_else(body)
        logits = self.logits(body["messages"][-1]["content"])
        top = None
        if body.get("logprobs"):
            total = math.log(sum(math.exp(logit) for logit in logits.values()))
            top = [{"token": token, "logprob": logit - total} for token, logit in logits.items()]
        if self.constrains and (constrained := body.get("structured_outputs")):
            logits = {token: logit for token, logit in logits.items() if token in constrained["choice"]}
        weights = np.exp(np.array(list(logits.values())) / body["temperature"])
        drawn = np.random.default_rng(body["seed"]).choice(len(weights), p=weights / weights.sum())
        text = list(logits)[drawn]
        return chat_reply(text, logprobs=top and logged(text, top))

    def is_asked_about_two(self, body: dict) -> bool:
        """Say whether a request shows two of the texts."""
        prompt = body["messages"][-1]["content"] if "messages" in body else ""
        return isinstance(prompt, str) and sum(text in prompt for text in self.scores) == 2

    def logits(self, prompt: str) -> dict[str, float]:
        """Return the logit of every reply to a prompt."""
        first, second = sorted((text for text in self.scores if text in prompt), key=prompt.index)
        return {"A": self.scores[first] + self.bias, "B": self.scores[second], **self.others}

    def preference(self, proposal: str, current: str, temperature: float, proposal_first: bool) -> float:
        """Return the probability of a vote for the proposal."""
        gap = self.scores[proposal] - self.scores[current] + (self.bias if proposal_first else -self.bias)
        return 1 / (1 + math.exp(-gap / temperature))


def hiding(judge: KnownJudge, least: float) -> Answer:
    """Return what answers as a server that lists only labels of a probability above `least`."""

    def answer(body: dict) -> dict:
        found = judge(body)
        told = found["choices"][0].get("logprobs")
        if told and judge.is_asked_about_two(body):
            entry = told["content"][0]
            entry["top_logprobs"] = [one for one in entry["top_logprobs"] if one["logprob"] > math.log(least)]
        return found

    return answer


class Held:
    """Answers when it is told to, but for the first requests; knows how many it has, and the most that it had at once.

    Args:
        answers: how many are answered without waiting.
    """

    def __init__(self, answer: Answer, answers: int = 0) -> None:
        self._answer, self._answers = answer, answers
        self._lock, self.may_go_on = threading.Lock(), threading.Event()
        self.now = self.most = 0

    def __call__(self, body: dict) -> dict:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
            self._answers -= 1
            waits = self._answers < 0
        if waits:
            self.may_go_on.wait(20)
        answer = self._answer(body)
        with self._lock:
            self.now -= 1
        return answer


@dataclass(frozen=True)
class Writer:
    """A model of fifty words, each as likely, whose texts are all as long as they may be.

    Args:
        pause: called before each text is written.
    """

    pause: Callable[[], object] = lambda: None

    def __call__(self, body: dict) -> dict:
        if "messages" in body:
            return {"tokens": [1, 2, 3]}
        if "tokens" in body:
            return {"prompt": " ".join(f"word{token}" for token in body["tokens"])}
        self.pause()
        return fifty_words(body)


def fifty_words(body: dict) -> dict:
    """Return as many tokens as a completion may have, of fifty; by its seed."""
    drawn = np.random.default_rng(body["seed"]).integers(0, 50, body["max_tokens"])
    usage = {"prompt_tokens": len(body["prompt"]), "completion_tokens": len(drawn)}
    return {"choices": [{"token_ids": drawn.tolist(), "finish_reason": "length"}], "usage": usage}


def anything_else(body: dict) -> dict:
    """Answer what the test of an endpoint asks, as a model of fifty words, each as likely, does; by its seed."""
    if "messages" not in body:
        return fifty_words(body)
    words = [f"word{number}" for number in range(50)]
    if constrained := body.get("structured_outputs"):
        words = constrained["choice"]
    said = str(np.random.default_rng(body.get("seed")).choice(words))
    top = [{"token": word, "logprob": -math.log(50)} for word in words[:20]] if body.get("logprobs") else None
    return chat_reply(said, logprobs=top and logged(said, top))


def is_vote(body: dict) -> bool:
    """Say whether a request asks for a vote or a rating, and does not test the endpoint or the longest prompt."""
    said = json.dumps(body.get("messages", ""))
    return "Question: " in said and "Which is redder?" not in said and body["seed"] != 1


def votes_asked(script: Script) -> list[dict]:
    """Return the requests for votes or ratings."""
    return [body for body in list(script.requests) if is_vote(body)]


def texts_written(script: Script, since: int = 0) -> int:
    """Return how many texts a server has been asked to write, since so many requests."""
    return sum("max_tokens" in body and "prompt" in body for body in script.requests[since:])


# A real OpenAI-compatible server over a model that the tests write themselves.
#
# `write_model` writes a llama of about 150,000 random weights with a byte-level tokenizer; `model_server` serves it
# with llama.cpp's own server (the wheel `xllamacpp`) in a process of its own, on a free port. With a projector
# it sees pictures.
#
# The last layer of the model is random too, but for two things: after the token that opens the assistant's turn, A, B
# and digits are likely; and everywhere, words, spaces and the end of the text are.


CONTEXT = 2048
WIDTH = 64
_HEADS = 2
_PAD, _START, _END = 0, 1, 2
_CONTROL = ("<pad>", "<s>", "</s>", "<|system|>", "<|user|>", "<|assistant|>")
_SPACE = "\u0120"
_WORDS = ("the", "cat", "sea", "and", "was", "old", "dark", "moon", "house", "red")
_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
# What the server process runs: xllamacpp has no command line.
_SERVE = """
import sys, time, xllamacpp
parameters = xllamacpp.CommonParams()
parameters.model.path = sys.argv[1]
parameters.hostnames, parameters.port = ["127.0.0.1"], int(sys.argv[2])
parameters.n_ctx, parameters.n_parallel = 8 * int(sys.argv[3]), 8
parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
parameters.warmup = False
if sys.argv[4]:
    parameters.mmproj.path, parameters.mmproj_use_gpu = sys.argv[4], False
server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)
sys.stdin.read()  # ends when the tests end
"""


def write_model(path: Path, seed: int = 20261121, width: int = WIDTH, layers: int = 2) -> Path:
    """Write the model as a GGUF file and return its path.

    Args:
        width: of its embeddings; its hidden layers are twice as wide.
        layers: how many. A wider and deeper one is only slower.
    """
    rng = np.random.default_rng(seed)
    tokens, kinds, merges = _vocabulary()
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_name("tiny")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(width)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(2 * width)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(width // _HEADS)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(_START)
    writer.add_eos_token_id(_END)
    writer.add_pad_token_id(_PAD)
    writer.add_add_bos_token(True)
    writer.add_chat_template(_TEMPLATE)
    _write_tensors(writer, _weights(rng, tokens, width, layers))
    return path


def _write_tensors(writer: gguf.GGUFWriter, tensors: dict[str, np.ndarray]) -> None:
    """End a file with these."""
    for name, tensor in tensors.items():
        writer.add_tensor(name, tensor.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@contextlib.contextmanager
def model_server(model: Path, port: int, projector: Path | None = None) -> Iterator[str]:
    """Serve the model; yield the base URL, which ends in /v1, once it answers.

    Args:
        projector: what lets it see pictures.

    Raises:
        RuntimeError: it did not start; the message holds what it printed.
    """
    log = model.with_suffix(".log")
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", _SERVE, str(model), str(port), str(CONTEXT), str(projector or "")],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
    try:
        _wait_until_ready(process, f"http://127.0.0.1:{port}/health", log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait()
        process.stdin.close()


def _wait_until_ready(process: subprocess.Popen, url: str, log: Path, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(url, trust_env=False).status_code == httpx.codes.OK:
                return
        time.sleep(0.02)
    raise RuntimeError(f"the model server did not start: {log.read_text(errors='replace')[-2000:]}")


def _vocabulary() -> tuple[list[str], list[int], list[str]]:
    """Return tokens, their types and the merges: control tokens, one token a byte, and ten words, built by merges."""
    tokens = [*_CONTROL, *_byte_characters()]
    merges = []
    for word in _WORDS:
        for end in range(2, len(word) + 1):
            if word[:end] not in tokens:
                tokens.append(word[:end])
                merges.append(f"{word[: end - 1]} {word[end - 1]}")
    kinds = [gguf.TokenType.CONTROL if token in _CONTROL else gguf.TokenType.NORMAL for token in tokens]
    return tokens, kinds, merges


def _byte_characters() -> list[str]:
    """Return the character that stands for each byte in a byte-level tokenizer: itself where it can be printed."""
    printable = {*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = iter(range(256, 512))
    return [chr(byte) if byte in printable else chr(next(hidden)) for byte in range(256)]


def _weights(rng: np.random.Generator, tokens: list[str], width: int, layers: int) -> dict[str, np.ndarray]:
    def normal(*shape: int, scale: float = 0.12) -> np.ndarray:
        return scale * rng.standard_normal(shape)

    embedding = normal(len(tokens), width, scale=0.5)
    output = normal(len(tokens), width, scale=0.12)
    # The first coordinate is the same for every token, the second is large for one token only; what stands in the
    # output's first two columns lifts a token everywhere, or as the first of a reply.
    embedding[:, :2] = (2.0, 0.0)
    embedding[tokens.index("<|assistant|>"), 1] = 8.0
    output[:, :2] = 0.0
    everywhere = dict.fromkeys(_WORDS, 1.5) | {_SPACE: 2.0, ".": 1.0, "</s>": 1.0}
    first = {"A": 1.7, "B": 1.6} | {str(digit): 0.8 for digit in range(10)}
    for token, lift in everywhere.items():
        output[tokens.index(token), 0] = lift
    for token, lift in first.items():
        output[tokens.index(token), 1] = lift
    weights = {"token_embd.weight": embedding, "output_norm.weight": np.ones(width), "output.weight": output}
    for layer in range(layers):
        block = f"blk.{layer}"
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            weights[f"{block}.{name}.weight"] = normal(width, width)
        weights[f"{block}.ffn_gate.weight"] = normal(2 * width, width)
        weights[f"{block}.ffn_up.weight"] = normal(2 * width, width)
        weights[f"{block}.ffn_down.weight"] = normal(width, 2 * width)
        weights[f"{block}.attn_norm.weight"] = weights[f"{block}.ffn_norm.weight"] = np.ones(width)
    return weights


# Answers of a model that sees: votes, ratings and detections follow from the pixels that it is sent.


# What a picture is to a model that sees, at any size.
TOKENS = 64
_GAIN = 20.0
# By the words of the question: the channel in which it looks.
_CHANNELS = {"salamander": 0, "mushroom": 0, "butterfly": 2}


def pictures(body: dict) -> list[bytes]:
    """Return the files of the pictures in a request."""
    parts = [part for message in body.get("messages", ()) if isinstance(message["content"], list)
             for part in message["content"]]  # fmt: skip
    return [base64.b64decode(part["image_url"]["url"].partition(",")[2]) for part in parts
            if part["type"] == "image_url"]  # fmt: skip


def words(body: dict) -> str:
    """Return what a request says beside its pictures."""
    said = []
    for message in body.get("messages", ()):
        content = message["content"]
        said += [content] if isinstance(content, str) else [part.get("text", "") for part in content]
    return "\n".join(said)


def brightness(file: bytes, said: str) -> float:
    """Return how bright a picture is in the channel that a question names, 0 to 1."""
    [channel] = {channel for name, channel in _CHANNELS.items() if name in said} or {0}
    with Image.open(io.BytesIO(file)) as opened:
        return float(np.asarray(opened.convert("RGB"))[..., channel].mean()) / 255


def is_there(file: bytes, said: str) -> bool:
    """Say what a detector answers."""
    return brightness(file, said) > 0.5


def sees(body: dict) -> dict:
    """Answer from the pixels; what the test of an endpoint asks as a model of fifty words does."""
    shown, said = pictures(body), words(body)
    reply = _said(body, shown, said) if shown and any(name in said for name in _CHANNELS) else anything_else(body)
    if "usage" in reply:
        reply["usage"]["prompt_tokens"] += TOKENS * len(shown)
    return reply


def _said(body: dict, shown: list[bytes], said: str) -> dict:
    rng = np.random.default_rng(body["seed"])
    if len(shown) == 2:
        first, second = (brightness(each, said) for each in shown)
        chance = 1 / (1 + np.exp(-_GAIN * (first - second) / body["temperature"]))
        return chat_reply("A" if rng.random() < chance else "B")
    if "yes or no" in said:
        return chat_reply("Yes." if is_there(shown[0], said) else "No.")
    return chat_reply(str(round(10 * brightness(shown[0], said))))


# A judge whose preferences are known, in the words of each kind of server: what it is sent, and what it answers.
#
# `Speaking` turns a request of any kind into one of vLLM's, which `KnownJudge` understands, and its reply back.
# `Truncating` is the same judge behind a server that drops what is not likely enough, whatever it is told.


Body = dict[str, Any]


@dataclass(frozen=True)
class Truncating(KnownJudge):
    """A judge whose server keeps replies to a pair only if they are likely enough.

    Args:
        keeps: least probability of what is kept, as a share of the likeliest reply's.
    """

    keeps: float = 0.7

    def logits(self, prompt: str) -> dict[str, float]:
        """Return the logit of every reply that is kept."""
        found = KnownJudge.logits(self, prompt)
        least = max(found.values()) + math.log(self.keeps)
        return {reply: logit for reply, logit in found.items() if logit >= least}


@dataclass(frozen=True)
class Speaking:
    """A judge as a server of some kind.

    Args:
        seeds: of the replies, where a request brings none.
    """

    judge: KnownJudge
    dialect: str
    seeds: Iterator[int] = field(default_factory=lambda: itertools.count(1_000))

    def __call__(self, body: Body) -> Body:
        """Answer a chat; a completion as well, as llama.cpp's own path does."""
        if "n_predict" in body:
            return completed(body)
        asked = {"seed": next(self.seeds), "temperature": 1.0} | _PLAIN.get(self.dialect, _of_openai)(body)
        reply = self.judge(asked) if self.judge.is_asked_about_two(asked) else anything_else(asked)
        return _SAID.get(self.dialect, dict)(reply)


def _of_openai(body: Body) -> Body:
    known = ("seed", "temperature", "logprobs")
    return {name: body[name] for name in known if name in body} | {
        "messages": _message(body["messages"]),
        **_choice(body),
    }


def _of_ollama(body: Body) -> Body:
    options = {name: body["options"][name] for name in ("seed", "temperature")}
    return options | {"messages": _message(body["messages"]), "logprobs": body.get("logprobs", False)}


def _of_program(body: Body) -> Body:
    words = "\n".join(body[name] for name in ("question", "first", "second"))
    return {"messages": [{"role": "user", "content": words}]}


def _message(messages: list[Body]) -> list[Body]:
    """Return the words of all that the user says as one message."""
    said = [message["content"] for message in messages if message["role"] == "user"]
    parts = [[{"text": content}] if isinstance(content, str) else content for content in said]
    return [{"role": "user", "content": "\n".join(part.get("text", "") for each in parts for part in each)}]


def _choice(body: Body) -> Body:
    """Return what a reply is constrained to, as vLLM is told."""
    if grammar := body.get("grammar") or body.get("ebnf"):
        rules = grammar.removeprefix("root ::= ").split(" | ")
        return {"structured_outputs": {"choice": [json.loads(rule) for rule in rules]}}
    return {"structured_outputs": body["structured_outputs"]} if "structured_outputs" in body else {}


def _text(reply: Body) -> str:
    text: str = reply["choices"][0]["message"]["content"]
    return text


def _tops(reply: Body) -> list[Body]:
    logged = reply["choices"][0].get("logprobs")
    return logged["content"] if logged else []


def _as_ollama(reply: Body) -> Body:
    said: Body = {"model": "m", "message": {"role": "assistant", "content": _text(reply)}, "done_reason": "stop"}
    return said | ({"logprobs": _tops(reply)} if _tops(reply) else {})


def _as_program(reply: Body) -> Body:
    return {"choice": _text(reply), "version": "1"}


def completed(body: Body) -> Body:
    """Answer a completion as llama.cpp does."""
    settings = {"grammar": "", **{name: body[name] for name in ("samplers", "logit_bias", "mirostat", "temperature")}}
    limit = body["n_predict"]
    return {
        "generation_settings": settings | {"n_predict": limit},
        "tokens": [7] * limit,
        "tokens_evaluated": len(body["prompt"]),
        "tokens_predicted": limit,
    }


_PLAIN: dict[str, Callable[[Body], Body]] = {
    Dialect.OLLAMA: _of_ollama,
    Dialect.PROGRAM: _of_program,
}
_SAID: dict[str, Callable[[Body], Body]] = {
    Dialect.OLLAMA: _as_ollama,
    Dialect.PROGRAM: _as_program,
}


# Real programs for SCORERS, written as small Python scripts.


Declare = Callable[..., None]
READS = "import json, os, sys, time\nfor number, line in enumerate(sys.stdin):\n    told = json.loads(line)\n"
"""The head of a scorer that reads its lines."""
# Stand-ins for the scorers of experiments, by role: numbers that depend on the object and on what is told about it.
_STAND_INS = {
    "quality": "0.05 + 0.9 * (sum(map(ord, told['content'] + told['prompt'])) % 101) / 100",
    "xcomet": "(len(told['content']) + len(told['prompt']) + len(told['reference'])) / 1000",
    "aesthetic": "len(told['content']) % 100 / 10",
    "molskill": "-len(told['content']) / 10",
}


@dataclass(frozen=True)
class Programs:
    """Stand-ins for scorers.

    Args:
        environment: what declares them, each by its role's name.
        told: by role, where its program writes down each line that it is sent.
    """

    environment: Mapping[str, str]
    told: dict[str, Path]


def declared(folder: Path, roles: Iterable[str]) -> Programs:
    """Write a program for each role of an experiment."""
    words, told = [], {}
    for role in roles:
        script, told[role] = folder / f"{role}.py", folder / f"{role}.told"
        script.write_text(
            f"{READS}    open({str(told[role])!r}, 'a').write(line)\n    print({_STAND_INS[role]}, flush=True)\n"
        )
        words.append(f"{role}={shlex.quote(sys.executable)} {shlex.quote(str(script))}")
    return Programs({"SCORERS": ",".join(words)} if words else {}, told)


@pytest.fixture
def declare(tmp_path: Path, settings) -> Iterator[Declare]:
    """Declare a program in SCORERS: the lines of the loop over what it is sent, or, with `whole`, all of it."""

    def declared(body: str, name: str = "length", seconds: float = 20, whole: bool = False) -> None:
        script = tmp_path / f"{name}.py"
        indented = body if whole else READS + "".join(f"    {line}\n" for line in body.splitlines())
        script.write_text(indented)
        settings.SCORERS = {**settings.SCORERS, name: (sys.executable, str(script))}
        settings.SCORER_TIMEOUT_SECONDS = seconds

    settings.SCORERS = {}
    yield declared
    commands.close_all()
    commands.forget()


def is_gone(pid: int) -> bool:
    """Return whether a process ends soon: one that was killed is there until somebody has taken note."""
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False

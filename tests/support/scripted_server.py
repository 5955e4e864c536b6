"""A server that does as it is told: a judge whose preferences are known, and every fault a real one can have.

It speaks like vLLM. `faults` are used up one a request; after them, and without any, requests are answered by `answer`.
"""

import contextlib
import itertools
import json
import math
import socket
import ssl
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

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
def scripted_server(
    answer: Answer, address: tuple[str, int] = ("127.0.0.1", 0), tls: ssl.SSLContext | None = None
) -> Iterator[Script]:
    """Serve on this machine, at a chosen address or on a free port, over TLS with a context.

    Yields:
        The script, whose URL ends in /v1.
    """
    server = _Server(address, _Handler)
    if tls:
        # The handshake is made by each connection's own thread, with its first read.
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.script = Script(f"http{'s' if tls else ''}://{address[0]}:{server.server_port}/v1", answer)
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


def trickling(content: bytes, pause: float = 0.05) -> Fault:
    """Send these bytes one by one, over and over, in place of a reply, until nobody listens."""

    def fault(handler: BaseHTTPRequestHandler) -> None:
        for byte in itertools.cycle(content):
            if handler.server.script.over.wait(pause):
                break
            handler.wfile.write(bytes([byte]))
            handler.wfile.flush()
        handler.close_connection = True

    return fault


def cut(handler: BaseHTTPRequestHandler) -> None:
    """Promise a long reply, send its beginning, and hang up."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [')
    handler.wfile.flush()
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)


def slow(handler: BaseHTTPRequestHandler) -> None:
    """Answer nothing until the end."""
    handler.server.script.over.wait()
    handler.close_connection = True


def dripping(handler: BaseHTTPRequestHandler) -> None:
    """Send a space every little while, so that no single wait is long, until the end or until nobody listens."""
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    while not handler.server.script.over.wait(0.1):
        handler.wfile.write(b" ")
        handler.wfile.flush()
    handler.close_connection = True


def chat_reply(text: str | None, **choice: object) -> dict:
    """Return a chat completion."""
    return {
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}, **choice}],
        "usage": {"prompt_tokens": 50, "completion_tokens": 2},
    }


@dataclass(frozen=True)
class KnownJudge:
    """A model whose logits are known: s(A) + lean for A, s(B) for B, and one for each other reply.

    Args:
        scores: s of each text; two of them, and no more, must occur in a prompt.
        lean: added for whatever stands first.
        others: logits of replies that are no label.
        confines: whether it honours `structured_outputs`.
    """

    scores: dict[str, float]
    lean: float = 0.0
    others: dict[str, float] = field(default_factory=dict)
    confines: bool = True

    def __call__(self, body: dict) -> dict:
        if not self.is_asked_about_two(body):
            return anything_else(body)
        logits = self.logits(body["messages"][-1]["content"])
        top = None
        if body.get("logprobs"):
            total = math.log(sum(math.exp(logit) for logit in logits.values()))
            top = [{"token": token, "logprob": logit - total} for token, logit in logits.items()]
        if self.confines and (confined := body.get("structured_outputs")):
            logits = {token: logit for token, logit in logits.items() if token in confined["choice"]}
        weights = np.exp(np.array(list(logits.values())) / body["temperature"])
        drawn = np.random.default_rng(body["seed"]).choice(len(weights), p=weights / weights.sum())
        text = list(logits)[drawn]
        return chat_reply(text, logprobs=top and {"content": [{"token": text, "top_logprobs": top}]})

    def is_asked_about_two(self, body: dict) -> bool:
        """Say whether a request shows two of the texts."""
        prompt = body["messages"][-1]["content"] if "messages" in body else ""
        return isinstance(prompt, str) and sum(text in prompt for text in self.scores) == 2

    def logits(self, prompt: str) -> dict[str, float]:
        """Return the logit of every reply to a prompt."""
        first, second = sorted((text for text in self.scores if text in prompt), key=prompt.index)
        return {"A": self.scores[first] + self.lean, "B": self.scores[second], **self.others}

    def preference(self, proposal: str, current: str, temperature: float, proposal_first: bool) -> float:
        """Return the probability of a vote for the proposal."""
        gap = self.scores[proposal] - self.scores[current] + (self.lean if proposal_first else -self.lean)
        return 1 / (1 + math.exp(-gap / temperature))


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
        drawn = np.random.default_rng(body["seed"]).integers(0, 50, body["max_tokens"])
        return {"choices": [{"token_ids": drawn.tolist(), "finish_reason": "length"}]}


def anything_else(body: dict) -> dict:
    """Answer what the test of an endpoint asks, as a model of fifty words, each as likely, does; by its seed."""
    if "messages" not in body:
        drawn = np.random.default_rng(body["seed"]).integers(0, 50, body["max_tokens"])
        return {"choices": [{"token_ids": drawn.tolist(), "finish_reason": "length"}]}
    words = [f"word{number}" for number in range(50)]
    if confined := body.get("structured_outputs"):
        words = confined["choice"]
    said = str(np.random.default_rng(body.get("seed")).choice(words))
    top = [{"token": word, "logprob": -math.log(50)} for word in words[:20]] if body.get("logprobs") else None
    return chat_reply(said, logprobs=top and {"content": [{"token": said, "top_logprobs": top}]})


def is_vote(body: dict) -> bool:
    """Say whether a request asks for a vote or a rating, and does not test the endpoint or the longest prompt."""
    said = json.dumps(body.get("messages", ""))
    return "Question: " in said and "Which is redder?" not in said and body["seed"] != 1


def votes_asked(script: Script) -> list[dict]:
    """Return the requests for votes or ratings."""
    return [body for body in list(script.requests) if is_vote(body)]


def texts_written(script: Script) -> int:
    """Return how many texts a server has been asked to write."""
    return sum("max_tokens" in body and "prompt" in body for body in list(script.requests))

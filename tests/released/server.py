"""The model of the released campaigns: a server that starts again at the same address, and answers alike.

Its address is part of the records, so it is one of this machine that nobody else is likely to use.
"""

import errno
import itertools
import math
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import numpy as np

from tests.support.scripted_server import Script, Writer, chat_reply, is_vote, scripted_server, status

HOST, PORT = "127.26.11.22", 18811
URL = f"http://{HOST}:{PORT}/v1"
ALLOWED = {"ENDPOINT_ALLOWED_HOSTS": [f"{HOST}:{PORT}"], "ENDPOINT_ALLOW_PRIVATE": [f"{HOST}/32"]}
_PATIENCE_S = 120
_PROSE = ("The sea is calm.", "Waves come and go.", "Salt is in the air.", "The tide turns.")


@dataclass
class Checksum:
    """A model whose mind is a checksum of the prompt. The seed is not heeded: a reply follows from the prompt and from
    how often it has been asked, so that whoever asks in the same order gets the same answers.
    """

    asked: Counter[str] = field(default_factory=Counter)
    writes: Writer = field(default_factory=Writer)

    def __call__(self, body: dict) -> dict:
        is_chat = "messages" in body and "max_tokens" in body
        answer = self._answer(body) if is_chat else self.writes(body)
        return {"model": body.get("model"), "system_fingerprint": "checksum", **answer}

    def _answer(self, body: dict) -> dict:
        prompt = str(body["messages"])
        choices = body.get("structured_outputs", {}).get("choice")
        if body.get("logprobs"):
            return self._with_log_probabilities(prompt)
        self.asked[prompt] += 1
        rng = np.random.default_rng([zlib.crc32(prompt.encode()), self.asked[prompt]])
        if choices == ["A", "B"]:
            return chat_reply("A" if rng.random() < _preference(prompt, body["temperature"]) else "B")
        if choices and choices[-1].isdigit():
            return chat_reply(_rating(prompt, choices, rng))
        return chat_reply(str(rng.choice(choices or _PROSE)))

    def _with_log_probabilities(self, prompt: str) -> dict:
        first = _preference(prompt, 1.0)
        top = [("A", 0.98 * first), ("B", 0.98 * (1 - first)), ("Well", 0.02)]
        tokens = [{"token": token, "logprob": math.log(p)} for token, p in top]
        return chat_reply("A", logprobs={"content": [{**tokens[0], "top_logprobs": tokens}]})


def _preference(prompt: str, temperature: float) -> float:
    """Return the probability of A."""
    logit = (zlib.crc32(prompt.encode()) % 13 - 6) / 4
    return 1 / (1 + math.exp(-logit / temperature))


def _rating(prompt: str, choices: list[str], rng: np.random.Generator) -> str:
    """Return a rating around the middle of the scale, a point more or less each time."""
    middle = len(choices) // 2 + zlib.crc32(prompt.encode()) % 5 - 2
    return choices[middle + int(rng.integers(-1, 2))]


@contextmanager
def model() -> Iterator[Script]:
    """Serve at the usual address; wait while another run of the tests does so."""
    with ExitStack() as stack:
        yield _started(stack)


def _started(stack: ExitStack) -> Script:
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return stack.enter_context(scripted_server(Checksum(), (HOST, PORT)))
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def falls_silent(script: Script, after: int) -> None:
    """Let the server answer so many questions of the campaign more, and then, until its faults are cleared, none."""
    answer, left = script.answer, itertools.count(after - 1, -1)
    # The test of the endpoint at Start is answered whatever comes.
    script.strikes = is_vote

    def counted(body: dict) -> dict:
        if is_vote(body) and next(left) == 0:
            script.faults.extend([status(503)] * 1000)
        return answer(body)

    script.answer = counted

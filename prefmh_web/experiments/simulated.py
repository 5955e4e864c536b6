"""Stand-ins for the models of an experiment (`--simulated`), so that it runs whole where there is no model.

    writer                        the story grammar for texts, prefmh's own patterns for images
    judge, evaluator, detector    a Bradley-Terry judge on the experiment's stated scores (`Experiment.simulated`)
    scorers                       what this program measures of every object

The judge is a server of this process, which speaks as vLLM does: so it is asked, counted and recorded as any model is.
It draws each label with the probability that it tells. The likeliest of its ratings is the one nearest to the score,
and it detects what has a score above one half.
"""

from __future__ import annotations

import asyncio
import base64
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np
from aiohttp import web
from django.conf import settings
from django.contrib.auth.models import User
from PIL import Image
from scipy.special import log_softmax
from yarl import URL

import sampler
from prefmh_web.endpoints import loop
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.servers import Dialect
from prefmh_web.experiments.configs import GRAMMAR, PATTERNS
from sampler import judges

NAME = "simulated"
"""Of the endpoint."""
GAIN = 8.0
"""Log-odds between two objects, one with the lowest score and one with the highest."""
_HOST = "127.0.0.1"
_QUOTED = re.compile(r'^("{3,})\n(.*?)\n\1$', re.MULTILINE | re.DOTALL)
_ANYTHING = tuple(map(str, range(20)))
_PICTURE_TOKENS = 64
_LARGEST_REQUEST = 64 * 2**20


def names(experiment: sampler.Experiment) -> tuple[dict[str, str], dict[str, str]]:
    """Return who stands in for each role of model servers, and for each scorer."""
    roles = dict.fromkeys(experiment.roles, NAME)
    if "writer" in roles:
        roles["writer"] = GRAMMAR if experiment.is_written else PATTERNS
    return roles, dict(experiment.simulated.scorers)


@contextmanager
def served(owner: User, experiment: sampler.Experiment) -> Iterator[None]:
    """Let the judge answer until the block ends, as an endpoint of a researcher's.

    Raises:
        OSError: its port of an earlier run, which records name, is in use.
    """
    known = Endpoint.objects.filter(owner=owner, name=NAME).first()
    judge = Judge(experiment)
    server = loop.run(_listening(judge, (URL(known.base_url).port or 0) if known else 0))
    _register(owner, judge, server.addresses[0][1])
    try:
        yield
    finally:
        loop.run(server.cleanup())


async def _listening(judge: Judge, port: int) -> web.AppRunner:
    async def answer(request: web.Request) -> web.Response:
        return web.json_response(await asyncio.to_thread(judge.answer, await request.json()))

    application = web.Application(client_max_size=_LARGEST_REQUEST)
    application.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, _HOST, port).start()
    return runner


def _register(owner: User, judge: Judge, port: int) -> None:
    address = f"{_HOST}:{port}"
    # Of this process alone, which serves no pages.
    settings.ENDPOINT_ALLOWED_HOSTS = (*settings.ENDPOINT_ALLOWED_HOSTS, address)
    settings.ENDPOINT_ALLOW_PRIVATE = (*settings.ENDPOINT_ALLOW_PRIVATE, f"{_HOST}/32")
    distribution = {
        "field": "truth",
        "effect": "obeyed",
        "evidence": "prefmh's own stand-in, which draws what it tells",
    }
    fields = {
        "base_url": f"http://{address}/v1",
        "model": judge.description,
        "dialect": Dialect.VLLM,
        "dialect_is_declared": True,
        "concurrency": 16,
        "profile": {"fields": [distribution]},
        "samples_untruncated": True,
    }
    Endpoint.objects.update_or_create(owner=owner, name=NAME, defaults=fields)


class Judge:
    """Answers chats about the objects of an experiment by its stated scores."""

    def __init__(self, experiment: sampler.Experiment) -> None:
        self._experiment = experiment
        named = [each for method in experiment.methods for each in method.judges]
        self._questions = {each.question: each.name for each in (*named, *experiment.rated, *experiment.compared)}
        self._score = lru_cache(4096)(self._scored)

    @property
    def description(self) -> str:
        """What settings.json says of it."""
        measures = ", ".join(each.measure for each in self._experiment.simulated.scores)
        return f"Bradley-Terry on {measures}"

    def answer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return a chat completion, drawn from its seed."""
        said, pictures = _said(body["messages"])
        choices = body.get("structured_outputs", {}).get("choice", _ANYTHING)
        told = next((name for question, name in self._questions.items() if question in said), None)
        answers = self._logits(said, pictures, told, choices) if told else dict.fromkeys(choices, 0.0)
        labels, logits = list(answers), np.array(list(answers.values()))
        heat = float(body["temperature"])
        probabilities = np.exp(log_softmax(logits / heat)) if heat else np.eye(len(labels))[logits.argmax()]
        text = labels[np.random.default_rng(body["seed"]).choice(len(labels), p=probabilities)]
        message = {"role": "assistant", "content": text}
        choice: dict[str, Any] = {"index": 0, "finish_reason": "stop", "message": message}
        if body.get("logprobs"):
            listed = [
                {"token": label, "logprob": float(each)}
                for label, each in zip(labels, log_softmax(logits), strict=True)
            ]
            own = listed[labels.index(text)]
            choice["logprobs"] = {"content": [own | {"top_logprobs": listed}]}
        read = len(said.split()) + _PICTURE_TOKENS * len(pictures)
        usage = {"prompt_tokens": read, "completion_tokens": 1}
        return {"model": body["model"], "choices": [choice], "usage": usage}

    def _logits(self, said: str, pictures: Sequence[bytes], about: str, choices: Sequence[str]) -> dict[str, float]:
        """Return the logit of each answer to a question about one object or two."""
        # Molecules come as SMILES and as drawings.
        shown = [text for _, text in _QUOTED.findall(said)] or pictures
        if "A or B" in said:
            first, second = (self._score(about, each) for each in shown[-2:])
            return dict(zip(judges.LABELS, (GAIN * first, GAIN * second), strict=True))
        score = self._score(about, shown[-1])
        if "yes or no" in said.lower():
            return {"Yes": GAIN * (score - 0.5), "No": GAIN * (0.5 - score)}
        positions = np.linspace(0, 1, len(choices))
        return {each: -((GAIN * (score - position)) ** 2) for each, position in zip(choices, positions, strict=True)}

    def _scored(self, about: str, shown: str | bytes) -> float:
        """Return an object's score by the name of a question, 0 to 1: of one without a measure, the mean of all."""
        kind = sampler.OBJECT_KINDS[self._experiment.objects]
        found = _measured(shown) if isinstance(shown, bytes) else kind.describe(shown)
        scores = {each.name: each.of(getattr(found, each.measure)) for each in self._experiment.simulated.scores}
        return scores.get(about, float(np.mean(list(scores.values()))))


def _measured(picture: bytes) -> Any:
    with Image.open(io.BytesIO(picture)) as opened:
        return sampler.describe_image(np.asarray(opened.convert("RGB")))


def _said(messages: Sequence[Mapping[str, Any]]) -> tuple[str, list[bytes]]:
    """Return the words of a chat, and its pictures."""
    words, pictures = [], []
    for message in messages:
        content = message["content"]
        parts: list[dict[str, Any]] = [{"text": content}] if isinstance(content, str) else content
        for part in parts:
            if "text" in part:
                words.append(part["text"])
            else:
                pictures.append(base64.b64decode(part["image_url"]["url"].partition(",")[2]))
    return "\n".join(words), pictures

"""Which fields a server obeys is seen by what they do: servers that obey, refuse and ignore each of them."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from prefmh_web.endpoints.errors import RateLimited
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.negotiation import alters_the_law, negotiate
from tests.support.models import Script, chat_reply, reply, send, status

WORDS = ["sea", "wave", "moon", "night", "salt", "wind", "ship", "star"]
# No two are as likely.
LOGITS = np.linspace(1.0, 0.0, len(WORDS))
OBEYED, REFUSED, IGNORED, UNTOLD = "obeyed", "refused", "ignored", "cannot be told"
FIELDS = (
    "max_tokens", "temperature", "top_p", "top_k", "min_p", "seed", "penalties", "log-probabilities", "confinement",
    "system role", "thinking off", "rare label",
)  # fmt: skip
# Their names in a request to vLLM.
NAMED = {"penalties": "frequency_penalty", "log-probabilities": "logprobs", "confinement": "structured_outputs"}


@dataclass
class Speaker:
    """A model of eight words that draws each token by itself, behind a server that passes over some fields.

    Args:
        ignores: fields that it does not read.
        counts: whether it tells how many tokens it reads and writes.
    """

    ignores: tuple[str, ...] = ()
    counts: bool = True

    def __call__(self, body: dict) -> dict:
        body = {name: value for name, value in body.items() if name not in self.ignores}
        if choices := body.get("structured_outputs"):
            return chat_reply(choices["choice"][0])
        rng = np.random.default_rng(body.get("seed"))
        logits, said = LOGITS.copy(), []
        for _ in range(body.get("max_tokens", 8)):
            said.append(int(rng.choice(len(WORDS), p=self.law(logits, body))))
            logits[said[-1]] -= body.get("frequency_penalty", 0.0)
        messages = [each for each in body["messages"] if each["role"] != "system" or "system" not in self.ignores]
        top = [{"token": word, "logprob": -math.log(len(WORDS))} for word in WORDS]
        logged = {"logprobs": {"content": [{"token": "sea", "top_logprobs": top}]}} if body.get("logprobs") else {}
        found = chat_reply(" ".join(WORDS[token] for token in said), **logged)
        read = sum(len(message["content"].split()) for message in messages)
        return found | {"usage": {"prompt_tokens": read, "completion_tokens": len(said)} if self.counts else {}}

    def law(self, logits: np.ndarray, body: dict) -> np.ndarray:
        """Return the probability of each word: scaled by the temperature, then cut."""
        scaled = logits / body.get("temperature", 1.0)
        p = np.exp(scaled - scaled.max())
        p /= p.sum()
        order = np.argsort(-p)
        before = np.cumsum(p[order]) - p[order]
        p[order[before >= body.get("top_p", 1.0)]] = 0
        if top_k := body.get("top_k"):
            p[order[top_k:]] = 0
        p[p < body.get("min_p", 0.0) * p.max()] = 0
        return p / p.sum()


def findings(endpoint: Endpoint) -> dict[str, str]:
    endpoint.refresh_from_db()
    return {seen["field"]: seen["effect"] for seen in endpoint.profile["fields"]}


def evidence(endpoint: Endpoint, field: str) -> str:
    return next(seen["evidence"] for seen in endpoint.profile["fields"] if seen["field"] == field)


# None of its words is a label.
ALL_OBEYED = dict.fromkeys(FIELDS, OBEYED) | {"thinking off": UNTOLD, "rare label": UNTOLD}


def test_a_server_that_obeys_everything(scripted: Endpoint, script: Script) -> None:
    script.answer = Speaker()
    assert negotiate(scripted) is None
    assert findings(scripted) == ALL_OBEYED
    assert alters_the_law(scripted) == ""
    # What it cost stands there, the requests that others are compared with included.
    assert scripted.profile["requests"] == len(script.requests)
    assert sum(seen["requests"] for seen in scripted.profile["fields"]) + 4 == len(script.requests)
    assert evidence(scripted, "top_k") == "4 seeds gave 4 different replies, and 1 with top_k = 1"


@pytest.mark.parametrize(
    "field", [field for field in FIELDS if field not in ("system role", "thinking off", "seed", "rare label")]
)
def test_a_field_that_is_passed_over_is_found_out_whatever_the_status(scripted, script: Script, field: str) -> None:
    script.answer = Speaker(ignores=(NAMED.get(field, field),))
    negotiate(scripted)
    # A text that stays the same may repeat no token; and without log-probabilities the reply says nothing of them.
    effect = {"penalties": UNTOLD, "log-probabilities": REFUSED}.get(field, IGNORED)
    assert findings(scripted) == ALL_OBEYED | {field: effect}
    shapes = field in ("temperature", "top_p", "top_k", "min_p")
    assert (f"ignores {field}" in alters_the_law(scripted)) == shapes


def test_a_seed_or_a_system_message_that_is_passed_over_is_found_out(scripted: Endpoint, script: Script) -> None:
    script.answer = Speaker(ignores=("seed", "system"))
    negotiate(scripted)
    assert findings(scripted) == ALL_OBEYED | {"seed": IGNORED, "system role": IGNORED}
    # Other seeds than the judge's own change no law.
    assert alters_the_law(scripted) == ""


@pytest.mark.parametrize("field", ["temperature", "top_p", "top_k", "min_p"])
def test_without_seeds_a_field_that_is_passed_over_is_found_out_too(scripted, script: Script, field: str) -> None:
    script.answer = Speaker(ignores=("seed", field))
    negotiate(scripted)
    assert findings(scripted)[field] == IGNORED


def test_a_server_that_always_says_the_same_cannot_be_told(scripted: Endpoint, script: Script) -> None:
    script.answer = lambda body: chat_reply("The sea is wide.") | {"usage": {}}
    negotiate(scripted)
    found = findings(scripted)
    told = ("temperature", "top_p", "top_k", "min_p", "seed", "penalties", "max_tokens", "system role")
    assert {found[field] for field in told} == {UNTOLD}
    assert found["confinement"] == IGNORED


def test_what_was_not_tried_to_the_end_leaves_no_profile(scripted: Endpoint, script: Script) -> None:
    script.answer = Speaker()
    negotiate(scripted)
    script.faults.append(status(429, Retry_After="9"))
    assert isinstance(negotiate(scripted), RateLimited)
    scripted.refresh_from_db()
    assert scripted.profile == {}


def test_a_real_server_gets_its_profile(llama: Endpoint) -> None:
    assert negotiate(llama) is None
    found = findings(llama)
    obeyed = {"max_tokens", "temperature", "top_p", "top_k", "min_p", "seed", "log-probabilities", "confinement"}
    assert {field for field in found if found[field] == OBEYED} >= obeyed | {"system role"}, llama.profile
    assert found["penalties"] in (OBEYED, UNTOLD)
    assert found["thinking off"] == UNTOLD


def test_a_server_whose_samplers_are_fixed_is_found_out(llama: Endpoint, script: Script) -> None:
    """A gateway that says it is llama.cpp, and has its own samplers."""
    script.pages["/props"] = lambda handler: reply(handler, {"default_generation_settings": {"n_ctx": 4096}})
    script.pages["/version"] = lambda handler: send(handler, 404, b"{}")
    script.answer = Speaker(ignores=("temperature", "top_k"))
    llama.base_url = script.url
    llama.save()
    negotiate(llama)
    found = findings(llama)
    assert (found["temperature"], found["top_k"], found["top_p"]) == (IGNORED, IGNORED, OBEYED)
    assert "ignores temperature" in alters_the_law(llama)

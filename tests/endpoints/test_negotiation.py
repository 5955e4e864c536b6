"""Which fields a server obeys is seen by what they do: servers that obey, refuse and ignore each of them.

The check of a rare label over HTTP: servers that sample truly, that truncate, sharpen or flatten; and a real one.
"""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from prefmh_web.endpoints.dialects import Dialect
from prefmh_web.endpoints.errors import RateLimited
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.negotiation import alters_the_law, negotiate
from prefmh_web.endpoints.tilted_label import MOST_REQUESTS, rare_label
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


TOKENS = ("A", "B", "Well", "I")


@dataclass
class Voter:
    """A model of four tokens whose server may sample from another law than it tells.

    Args:
        logits: of its tokens.
        tells: whether it tells log-probabilities, which are those before any change.
        top_k, top_p, min_p: truncations, after the temperature; without effect as they stand.
        power: of the temperature that it samples at.
        confines: whether it confines its replies, where it is asked to.
        before: whether it truncates before the temperature.
    """

    logits: tuple[float, ...] = (2.5, 0.0, 0.5, -1.0)
    tells: bool = True
    top_k: int = 4
    top_p: float = 1.0
    min_p: float = 0.0
    sharpened: float = 1.0
    confines: bool = True
    before: bool = False

    def __call__(self, body: dict) -> dict:
        logits = np.array(self.logits)
        if body.get("logprobs"):
            if not self.tells:
                return chat_reply("A")
            logs = logits - math.log(np.exp(logits).sum())
            top = [{"token": token, "logprob": float(log)} for token, log in zip(TOKENS, logs, strict=True)]
            return chat_reply("A", logprobs={"content": [{"token": "A", "top_logprobs": top}]})
        if self.confines and body.get("structured_outputs"):
            logits[2:] = -np.inf
        temperature = body["temperature"] / self.sharpened
        law = (
            self.cut(_softmax(logits)) ** (1 / temperature) if self.before else self.cut(_softmax(logits / temperature))
        )
        drawn = np.random.default_rng(body["seed"]).choice(len(TOKENS), p=law / law.sum())
        return chat_reply(TOKENS[drawn])

    def cut(self, law: np.ndarray) -> np.ndarray:
        order = np.argsort(-law)
        kept = (np.cumsum(law[order]) - law[order] < self.top_p) & (np.arange(len(law)) < self.top_k)
        law[order[~kept]] = 0
        law[law < self.min_p * law.max()] = 0
        return law


def _softmax(logits: np.ndarray) -> np.ndarray:
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def found(endpoint, script, voter, **fields):
    for name, value in fields.items():
        setattr(endpoint, name, value)
    script.answer = voter
    seen, failure = rare_label(endpoint)
    assert failure is None
    assert seen.requests == len(script.requests)
    return seen


@pytest.mark.parametrize("dialect", [Dialect.VLLM, Dialect.OPENAI])
def test_a_server_that_samples_truly_obeys(scripted, script, dialect):
    seen = found(scripted, script, Voter(confines=dialect is Dialect.VLLM), dialect=dialect)
    assert seen.effect == OBEYED, seen
    assert "its log-probability says" in seen.evidence


@pytest.mark.parametrize(
    ("law", "told"),
    [
        ({"top_p": 0.95}, "truncated or sharper"),
        ({"min_p": 0.05}, "truncated or sharper"),
        ({"top_k": 1}, "truncated or sharper"),
        ({"sharpened": 2.0}, "truncated or sharper"),
        ({"top_p": 0.9, "before": True}, "truncated or sharper"),
        ({"sharpened": 0.5}, "flatter"),
    ],
    ids=str,
)
def test_a_server_that_truncates_sharpens_or_flattens_is_found(scripted, script, law, told):
    seen = found(scripted, script, Voter(**law))
    assert (seen.effect, told in seen.evidence) == (IGNORED, True), seen


class TestWithoutLogProbabilities:
    def test_a_rare_label_that_never_comes_when_it_is_cooler_was_taken_away(self, scripted, script):
        seen = found(scripted, script, Voter(logits=(1.0, 0.0, 0.0, 0.0), tells=False, top_p=0.7))
        assert (seen.effect, "and never in" in seen.evidence) == (IGNORED, True), seen
        assert seen.requests < MOST_REQUESTS

    @pytest.mark.parametrize("logits", [(1.0, 0.0, 0.0, 0.0), (9.0, 0.0, 0.0, 0.0)])
    def test_otherwise_it_cannot_be_told(self, scripted, script, logits):
        seen = found(scripted, script, Voter(logits=logits, tells=False))
        assert seen.effect == UNTOLD, seen

    def test_a_model_that_says_no_label_cannot_be_told_and_costs_little(self, scripted, script):
        script.answer = lambda body: chat_reply("Well")
        seen, failure = rare_label(scripted)
        assert (seen.effect, failure) == (UNTOLD, None)
        assert len(script.requests) <= 40

    def test_a_model_that_takes_no_temperature_is_not_asked(self, scripted, script):
        seen = found(scripted, script, Voter(), dialect=Dialect.OPENAI_REASONING)
        assert (seen.effect, seen.requests) == (UNTOLD, 0)


def test_the_verdict_stands_in_the_profile_with_its_cost_and_refuses_the_judge(scripted, script):
    script.answer = Voter(min_p=0.05)
    assert negotiate(scripted) is None
    scripted.refresh_from_db()
    fields = {each["field"]: each for each in scripted.profile["fields"]}
    assert fields["rare label"]["effect"] == IGNORED
    assert 100 < fields["rare label"]["requests"] < MOST_REQUESTS
    assert scripted.profile["requests"] == len(script.requests)
    # By itself, whatever was seen of the fields.
    scripted.profile = {"fields": [fields["rare label"]]}
    assert "does not sample from its own law" in alters_the_law(scripted)
    scripted.profile = {"fields": [fields["rare label"] | {"effect": UNTOLD}]}
    assert alters_the_law(scripted) == ""


def test_a_server_that_is_busy_leaves_no_verdict(scripted, script):
    script.answer = Voter()
    script.strikes = lambda body: "single letter" in str(body["messages"])
    script.faults.append(status(429, Retry_After="9"))
    assert isinstance(negotiate(scripted), RateLimited)
    scripted.refresh_from_db()
    assert scripted.profile == {}


def test_what_it_refuses_is_said(scripted, script):
    script.answer = Voter()
    script.strikes = lambda body: not body.get("logprobs")
    script.faults.append(status(400, b"no such temperature"))
    seen, _ = rare_label(scripted)
    assert (seen.effect, "no such temperature" in seen.evidence) == (REFUSED, True)


def test_a_real_server_obeys(llama):
    seen, failure = rare_label(llama)
    assert failure is None
    assert seen.effect == OBEYED, seen

"""The check of a rare label over HTTP: servers that sample truly, that truncate, sharpen or flatten; and a real one."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from prefmh_web.endpoints.dialects import Dialect
from prefmh_web.endpoints.errors import RateLimited
from prefmh_web.endpoints.negotiation import alters_the_law, negotiate
from prefmh_web.endpoints.tilted_label import MOST_REQUESTS, rare_label
from tests.support.models import chat_reply, status

OBEYED, IGNORED, UNTOLD, REFUSED = "obeyed", "ignored", "cannot be told", "refused"
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

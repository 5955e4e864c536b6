"""What a real server is and can do, and what a scripted one pretends; and which fields of a request servers obey.

A field is seen by what it does: servers that obey and pass over each of them.
"""

import itertools
import json
from dataclasses import dataclass

import numpy as np
import pytest
from yarl import URL

from prefmh_web.endpoints import judge_calls
from prefmh_web.endpoints.abilities import fields, probe
from prefmh_web.endpoints.calls import called
from prefmh_web.endpoints.errors import RateLimited
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.servers import Dialect, dialect_of_host
from sampler.judges import Exhibit, Picture
from tests.support.campaigns import picture
from tests.support.models import (
    WIDTH,
    Script,
    chat_reply,
    cut,
    logged,
    model_server,
    port_from,
    raw,
    returns,
    status,
    write_model,
    write_projector,
)

OBEYED, REFUSED, IGNORED, UNTOLD = "obeyed", "refused", "ignored", "cannot be told"


ALL = dict.fromkeys(("independent replies", "confinement", "log-probabilities", "token ids", "images"), True)


def seen(report) -> dict[str, bool]:
    return {each.field: each.effect == OBEYED for each in report.seen}


def test_a_real_server_is_known_and_tried(llama: Endpoint) -> None:
    llama.dialect = Dialect.OPENAI
    report = probe(llama)
    assert report.failure is None
    assert report.dialect == Dialect.LLAMA_CPP
    # Its model reads no pictures, and the server says so.
    assert seen(report) == ALL | {"images": False}
    assert report.seconds > 0
    llama.refresh_from_db()
    assert (llama.dialect, llama.can_confine, llama.can_images) == (Dialect.LLAMA_CPP, True, False)
    assert llama.tested_at is not None


def test_a_real_server_that_sees_pictures_is_known_to_and_judges_them(make_endpoint, tmp_path) -> None:
    projector = write_projector(tmp_path / "eyes.gguf", WIDTH)
    shown = [Exhibit("a picture", Picture("image/png", picture(colour, (64, 64)))) for colour in ("red", "blue")]
    with model_server(write_model(tmp_path / "tiny.gguf"), port_from(22_000), projector) as url:
        endpoint = make_endpoint(url, dialect=Dialect.LLAMA_CPP)
        report = probe(endpoint)
        endpoint.refresh_from_db()
        asked = judge_calls.Pair("images", "Which is darker?", *shown)
        votes = called(judge_calls.votes_by_sampling(endpoint, asked, [True, False], np.random.default_rng(1)))
    assert (report.failure, seen(report)["images"], endpoint.can_images) == (None, True, True)
    assert votes.failure is None
    assert len(votes.cast) == 2


def test_a_server_that_ignores_what_it_is_told_is_found_out(scripted: Endpoint, script: Script) -> None:
    # Status 200, and always the same words, whatever seed, choice, picture or token ids were sent.
    script.answer = lambda body: chat_reply("The sea is wide.")
    report = probe(scripted)
    assert report.dialect == Dialect.VLLM
    assert seen(report) == dict.fromkeys(
        ("independent replies", "confinement", "log-probabilities", "token ids", "images"), False
    )
    words = {each.field: each.evidence for each in report.seen}
    assert "copies" in words["independent replies"]
    assert "'The sea is wide.'" in words["confinement"]
    assert "token ids" in words["token ids"]
    scripted.refresh_from_db()
    assert (scripted.can_vary, scripted.can_confine) == (False, False)


OTHER_PAGES = {
    "a page of HTML": raw(b"<!doctype html><title>Welcome</title>"),
    "an error of the server": status(500, b"Traceback"),
    "a bad gateway": status(502),
    "not allowed": status(405),
    "too many": status(429),
    "another JSON": returns({"detail": "hello"}),
    "a list": raw(b"[1, 2]"),
    "a redirect": status(302, Location="http://127.0.0.1/login"),
    "a cut": cut,
    "deep JSON": raw(b"[" * 100_000),
}


@pytest.mark.parametrize("name", OTHER_PAGES)
def test_what_is_no_answer_at_one_place_is_no_end(scripted: Endpoint, script: Script, name: str) -> None:
    # A gateway that answers everything it does not know in its own way, before a vLLM.
    script.pages.update(dict.fromkeys(("/props", "/get_server_info"), OTHER_PAGES[name]))
    script.answer = writer
    scripted.dialect = Dialect.OPENAI
    report = probe(scripted)
    assert report.failure is None
    assert report.dialect == Dialect.VLLM


def test_a_server_of_another_kind_is_taken_for_openais(scripted: Endpoint, script: Script) -> None:
    script.pages.update(dict.fromkeys(("/props", "/get_server_info", "/version"), OTHER_PAGES["a page of HTML"]))
    script.answer = writer
    report = probe(scripted)
    assert (report.failure, report.dialect) == (None, Dialect.OPENAI)
    assert [path for path, _ in report.attempts] == [
        "/props", "/get_server_info", "/version", "/api/version"
    ]  # fmt: skip
    assert all("Welcome" in words for _, words in report.attempts[:3])


@pytest.mark.parametrize(
    ("path", "body", "dialect"),
    [
        ("/api/version", {"version": "0.12.11"}, Dialect.OLLAMA),
    ],
)
def test_a_server_is_known_by_what_only_it_has(scripted, script: Script, path: str, body: dict, dialect) -> None:
    script.pages.update({"/version": OTHER_PAGES["not allowed"], path: returns(body)})
    script.answer = writer
    assert probe(scripted).dialect == dialect


@pytest.mark.parametrize(
    ("base_url", "dialect"),
    [
        ("https://api.anthropic.com/v1", Dialect.ANTHROPIC),
        ("https://generativelanguage.googleapis.com/v1beta/openai", Dialect.GEMINI),
        ("https://openrouter.ai/api/v1", Dialect.OPENROUTER),
        ("https://mine.openai.azure.com", Dialect.AZURE),
        ("https://api.openai.com/v1", Dialect.OPENAI),
    ],
)
def test_a_provider_is_known_by_its_host(base_url: str, dialect: Dialect) -> None:
    assert dialect_of_host(URL(base_url).host) == dialect
    assert dialect_of_host("openai.azure.com.example.org") is None


def test_a_model_that_thinks_first_is_known_by_the_field_it_refuses(scripted: Endpoint, script: Script) -> None:
    refusal = b'{"error": {"message": "Unsupported parameter: \'max_tokens\'. Use \'max_completion_tokens\' instead."}}'
    script.pages["/version"] = OTHER_PAGES["not allowed"]
    script.faults.append(status(400, refusal))
    script.answer = lambda body: chat_reply(f"The sea, {body['seed']}")
    report = probe(scripted)
    assert (report.failure, report.dialect) == (None, Dialect.OPENAI_REASONING)
    assert seen(report)["independent replies"] is True
    assert seen(report)["log-probabilities"] is False
    assert all("temperature" not in body for body in script.requests[1:])
    scripted.refresh_from_db()
    assert scripted.dialect == Dialect.OPENAI_REASONING


def writer(body: dict, tokenises: bool = True, reads_files: bool = False) -> dict:
    """Answer as a vLLM that can do everything, or all but one thing."""
    if "messages" in body and "max_tokens" not in body:
        return {"tokens": [5, 6, 7]} if tokenises else {"detail": "Not Found"}
    if "tokens" in body:
        return {"prompt": "the sea"} if tokenises else {"detail": "Not Found"}
    if "prompt" in body:
        choice = {"token_ids": [7, 2], "prompt_token_ids": body["prompt"], "finish_reason": "stop"}
        return {"choices": [choice], "usage": {"prompt_tokens": len(body["prompt"]), "completion_tokens": 2}}
    if body.get("logprobs"):
        return chat_reply("A", logprobs=logged("A", [{"token": token, "logprob": -1.0} for token in ("A", "B")]))
    said = body.get("structured_outputs", {"choice": [f"The sea, {body['seed']}"]})["choice"][0]
    content = body["messages"][-1]["content"]
    pictures = sum(part["type"] == "image_url" for part in content) if isinstance(content, list) else 0
    read = len(json.dumps(body["messages"])) // 4 if reads_files else 60 + 100 * pictures
    return chat_reply(said) | {"usage": {"prompt_tokens": read, "completion_tokens": 2}}


@pytest.mark.parametrize(
    ("answer", "missing"),
    [
        (writer, {}),
        # Token ids go in and come out, and neither a prompt nor a text can be made of them.
        (lambda body: writer(body, tokenises=False), {"token ids": False}),
        # A picture is a long word to it.
        (lambda body: writer(body, reads_files=True), {"images": False}),
    ],
    ids=["all", "no tokeniser", "files as words"],
)
def test_a_tick_is_for_what_was_tried(scripted: Endpoint, script: Script, answer, missing: dict) -> None:
    script.answer = answer
    report = probe(scripted)
    assert report.failure is None
    assert seen(report) == ALL | missing
    scripted.refresh_from_db()
    assert scripted.can_token_ids == seen(report)["token ids"]


@pytest.mark.parametrize("fault", [status(401), status(500), cut, raw(b"<html>")])
def test_a_test_that_fails_leaves_no_tick_of_an_earlier_one(scripted, script: Script, fault) -> None:
    script.answer = writer
    probe(scripted)
    script.faults.append(fault)
    assert probe(scripted).failure is not None
    scripted.refresh_from_db()
    kept = {name for name in ("vary", "confine", "images", "token_ids") if getattr(scripted, f"can_{name}")}
    assert kept == set()
    assert scripted.tested_at is None


def test_a_program_is_tested_by_pairs(make_endpoint, script: Script) -> None:
    endpoint = make_endpoint(script.url, dialect=Dialect.PROGRAM, dialect_is_declared=True)
    answers = itertools.cycle("AB")
    script.answer = lambda body: {"choice": next(answers), "version": "1"}
    report = probe(endpoint)
    assert report.failure is None
    assert seen(report) == dict.fromkeys(ALL, False) | {"independent replies": True, "images": True}
    assert {frozenset(body) for body in script.requests} == {frozenset(("question", "first", "second"))}
    script.answer = lambda body: {"choice": "A"}
    assert seen(probe(endpoint))["independent replies"] is False


WORDS = ["sea", "wave", "moon", "night", "salt", "wind", "ship", "star"]
# No two are as likely.
LOGITS = np.linspace(1.0, 0.0, len(WORDS))
FIELDS = (
    "max_tokens", "temperature", "top_p", "top_k", "min_p", "seed", "penalties", "system role", "thinking off",
)  # fmt: skip
# Their names in a request to vLLM.
NAMED = {"penalties": "frequency_penalty"}


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
        rng = np.random.default_rng(body.get("seed"))
        logits, said = LOGITS.copy(), []
        for _ in range(body.get("max_tokens", 8)):
            said.append(int(rng.choice(len(WORDS), p=self.law(logits, body))))
            logits[said[-1]] -= body.get("frequency_penalty", 0.0)
        messages = [each for each in body["messages"] if each["role"] != "system" or "system" not in self.ignores]
        found = chat_reply(" ".join(WORDS[token] for token in said))
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
    found, failure = fields(endpoint)
    assert failure is None
    return {each.field: each.effect for each in found}


ALL_OBEYED = dict.fromkeys(FIELDS, OBEYED) | {"thinking off": UNTOLD}


def test_a_server_that_obeys_everything(scripted: Endpoint, script: Script) -> None:
    script.answer = Speaker()
    found, _ = fields(scripted)
    assert {each.field: each.effect for each in found} == ALL_OBEYED
    assert "4 seeds gave 4 different replies, and 1 with top_k = 1" in [each.evidence for each in found]


@pytest.mark.parametrize("field", ["max_tokens", "temperature", "top_p", "top_k", "min_p", "penalties"])
def test_a_field_that_is_passed_over_is_found_out_whatever_the_status(scripted, script: Script, field: str) -> None:
    script.answer = Speaker(ignores=(NAMED.get(field, field),))
    # A text that stays the same may repeat no token.
    assert findings(scripted) == ALL_OBEYED | {field: UNTOLD if field == "penalties" else IGNORED}


def test_a_seed_or_a_system_message_that_is_passed_over_is_found_out(scripted: Endpoint, script: Script) -> None:
    script.answer = Speaker(ignores=("seed", "system"))
    assert findings(scripted) == ALL_OBEYED | {"seed": IGNORED, "system role": IGNORED}


@pytest.mark.parametrize("field", ["temperature", "top_p", "top_k", "min_p"])
def test_without_seeds_a_field_that_is_passed_over_is_found_out_too(scripted, script: Script, field: str) -> None:
    script.answer = Speaker(ignores=("seed", field))
    assert findings(scripted)[field] == IGNORED


def test_a_server_that_always_says_the_same_cannot_be_told(scripted: Endpoint, script: Script) -> None:
    script.answer = lambda body: chat_reply("The sea is wide.") | {"usage": {}}
    found = findings(scripted)
    told = ("temperature", "top_p", "top_k", "min_p", "seed", "penalties", "max_tokens", "system role")
    assert {found[field] for field in told} == {UNTOLD}


def test_what_is_not_tried_to_the_end_says_why(scripted: Endpoint, script: Script) -> None:
    script.answer = Speaker()
    script.faults.append(status(429, Retry_After="9"))
    assert isinstance(fields(scripted)[1], RateLimited)


def test_a_real_server_obeys_its_fields(llama: Endpoint) -> None:
    found = findings(llama)
    obeyed = {"max_tokens", "temperature", "top_p", "top_k", "min_p", "seed", "system role"}
    assert {field for field in found if found[field] == OBEYED} >= obeyed, found
    assert found["penalties"] in (OBEYED, UNTOLD)
    assert found["thinking off"] == UNTOLD

"""What a real server is and can do, and what a scripted one pretends."""

import itertools
import json

import pytest
from yarl import URL

from prefmh_web.endpoints import loop
from prefmh_web.endpoints.client import Client
from prefmh_web.endpoints.errors import Refused, Unreachable
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.probe import probe
from prefmh_web.endpoints.replies import Identity
from prefmh_web.endpoints.servers import ChatRequest, ComparedPair, Dialect, dialect_of_host
from tests.support.models import (
    Script,
    chat_reply,
    cut,
    logged,
    raw,
    returns,
    status,
)

OBEYED = "obeyed"


ALL = dict.fromkeys(("independent replies", "constrained replies", "log-probabilities", "token ids", "images"), True)


def tried(endpoint: Endpoint) -> dict[str, bool]:
    """Return what an endpoint was seen to be able to do, in a test that it passed."""
    seen, failure = probe(endpoint)
    assert failure is None
    return {each.field: each.effect == OBEYED for each in seen}


def test_a_real_server_is_known_and_tried(llama: Endpoint) -> None:
    llama.dialect = Dialect.OPENAI
    # Its model reads no pictures, and the server says so.
    assert tried(llama) == ALL | {"images": False}
    llama.refresh_from_db()
    assert (llama.dialect, llama.can_constrain, llama.can_images) == (Dialect.LLAMA_CPP, True, False)
    assert llama.tested_at is not None


def test_a_server_that_ignores_what_it_is_told_is_found_out(scripted: Endpoint, script: Script) -> None:
    # Status 200, and always the same words, whatever seed, choice, picture or token ids were sent.
    script.answer = lambda body: chat_reply("The sea is wide.")
    seen, _ = probe(scripted)
    assert scripted.dialect == Dialect.VLLM
    assert {each.field: each.effect == OBEYED for each in seen} == dict.fromkeys(ALL, False)
    words = {each.field: each.evidence for each in seen}
    assert "copies" in words["independent replies"]
    assert "'The sea is wide.'" in words["constrained replies"]
    assert "token ids" in words["token ids"]
    scripted.refresh_from_db()
    assert (scripted.can_vary, scripted.can_constrain) == (False, False)


OTHER_PAGES = {
    "a page of HTML": raw(b"<!doctype html><title>Welcome</title>"),
    "an error of the server": status(500, b"Traceback"),
    "a bad gateway": status(502),
    "not allowed": status(405),
    "too many": status(429),
    "another JSON": returns({"detail": "hello"}),
    "a list": raw(b"[1, 2]"),
    "a redirect": status(302, Location="http://127.0.0.1/login"),
    "deep JSON": raw(b"[" * 100_000),
}


def test_after_a_failed_connection_nothing_more_is_asked(scripted: Endpoint, script: Script) -> None:
    script.pages["/props"] = cut
    script.answer = writer
    seen, failure = probe(scripted)
    assert (seen, type(failure), scripted.totals.requests) == ([], Unreachable, 1)
    assert not script.requests


def test_an_error_in_a_list_is_read(scripted: Endpoint, script: Script) -> None:
    # As Google sends it, with any status.
    found = json.dumps([{"error": {"code": 400, "message": "API key not valid", "status": "INVALID_ARGUMENT"}}])
    script.faults.append(raw(found.encode()))
    failure = probe(scripted)[1]
    assert isinstance(failure, Refused)
    assert "400: API key not valid" in failure.reason


def test_a_server_of_another_kind_is_taken_for_openais(scripted: Endpoint, script: Script) -> None:
    script.pages.update(dict.fromkeys(("/props", "/get_server_info", "/version"), OTHER_PAGES["a page of HTML"]))
    script.answer = writer
    tried(scripted)
    assert scripted.dialect == Dialect.OPENAI


@pytest.mark.parametrize("before", [Dialect.VLLM, Dialect.OPENAI])
def test_a_server_that_has_no_time_to_tell_its_kind_is_what_it_was(scripted: Endpoint, script: Script, before) -> None:
    scripted.dialect = before
    script.pages["/version"] = OTHER_PAGES["too many"]
    script.answer = writer
    tried(scripted)
    assert scripted.dialect == before


def test_a_server_is_known_by_what_only_it_has(scripted, script: Script) -> None:
    script.pages.update({"/version": OTHER_PAGES["not allowed"], "/api/version": returns({"version": "0.12.11"})})
    script.answer = writer
    probe(scripted)
    assert scripted.dialect == Dialect.OLLAMA


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
    can = tried(scripted)
    assert (can["independent replies"], can["log-probabilities"]) == (True, False)
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
    can = tried(scripted)
    assert can == ALL | missing
    scripted.refresh_from_db()
    assert scripted.can_token_ids == can["token ids"]


@pytest.mark.parametrize("fault", [status(401), status(500), cut, raw(b"<html>")])
def test_a_test_that_fails_leaves_no_tick_of_an_earlier_one(scripted, script: Script, fault) -> None:
    script.answer = writer
    probe(scripted)
    script.faults.append(fault)
    assert probe(scripted)[1] is not None
    scripted.refresh_from_db()
    kept = {name for name in ("vary", "constrain", "images", "token_ids") if getattr(scripted, f"can_{name}")}
    assert kept == set()
    assert scripted.tested_at is None


def test_a_program_is_tested_by_pairs(make_endpoint, script: Script) -> None:
    endpoint = make_endpoint(script.url, dialect=Dialect.PROGRAM, dialect_is_declared=True)
    answers = itertools.cycle("AB")
    script.answer = lambda body: {"choice": next(answers), "version": "1"}
    assert tried(endpoint) == dict.fromkeys(ALL, False) | {"independent replies": True, "images": True}
    assert {frozenset(body) for body in script.requests} == {frozenset(("question", "first", "second"))}
    # One that prefers A, or says nothing else: four answers do not tell. A number is a version as well.
    script.answer = lambda body: {"choice": "A", "version": 2}
    assert tried(endpoint)["independent replies"] is False
    assert endpoint.can_vary is None
    reply = loop.run(Client(endpoint).ask(ChatRequest("", compared=ComparedPair("Which?", "one", "other"))))
    assert reply.identity == Identity("program", "2")

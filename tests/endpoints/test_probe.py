"""The one-click test: what a real server can do, and what a scripted one pretends."""

import pytest

from prefmh_web.endpoints import breaker
from prefmh_web.endpoints.dialects import Dialect
from prefmh_web.endpoints.errors import RateLimited, Refused, Unreachable
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.probe import probe
from tests.support.scripted_server import Script, chat_reply, status


def seen(report) -> dict[str, bool]:
    return {finding.check: finding.passed for finding in report.findings}


def test_a_real_server_is_known_and_tried(llama: Endpoint) -> None:
    llama.dialect = Dialect.OPENAI
    report = probe(llama)
    assert report.failure is None
    assert report.dialect == Dialect.LLAMA_CPP
    # Its model reads no pictures, and the server says so.
    assert seen(report) == {
        "vary": True, "confine": True, "log-probabilities": True, "token ids": True, "images": False
    }  # fmt: skip
    assert report.seconds > 0
    assert report.tokens_in > 0
    llama.refresh_from_db()
    assert (llama.dialect, llama.can_confine, llama.can_images) == (Dialect.LLAMA_CPP, True, False)
    assert llama.tested_at is not None


def test_a_server_that_ignores_what_it_is_told_is_found_out(scripted: Endpoint, script: Script) -> None:
    # Status 200, and always the same words, whatever seed, choice, picture or token ids were sent.
    script.answer = lambda body: chat_reply("The sea is wide.")
    report = probe(scripted)
    assert report.dialect == Dialect.VLLM
    assert seen(report) == dict.fromkeys(("vary", "confine", "log-probabilities", "token ids", "images"), False)
    words = {finding.check: finding.words for finding in report.findings}
    assert "copies" in words["vary"]
    assert "'The sea is wide.'" in words["confine"]
    assert "token ids" in words["token ids"]
    scripted.refresh_from_db()
    assert (scripted.can_vary, scripted.can_confine) == (False, False)


@pytest.mark.parametrize(("fault", "kind"), [(status(401), Refused), (status(429, Retry_After="9"), RateLimited)])
def test_a_server_that_does_not_answer_is_reported_and_nothing_kept(scripted, script: Script, fault, kind) -> None:
    script.faults.append(fault)
    report = probe(scripted)
    assert isinstance(report.failure, kind)
    assert report.findings == ()
    scripted.refresh_from_db()
    assert scripted.tested_at is None


def test_a_resting_circuit_is_no_obstacle(llama: Endpoint) -> None:
    for _ in range(5):
        breaker.failed(llama, Unreachable("the server cannot be reached"))
    assert probe(llama).failure is None
    llama.refresh_from_db()
    assert not llama.is_resting

"""Judges of further kinds, from Start to the replay of the record; and laws that nobody can verify."""

import itertools
import json
import zipfile
from collections.abc import Callable

import pytest

import sampler
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.models import Campaign, Vote
from prefmh_web.endpoints.dialects import Dialect
from tests.flows.test_model_costs import JUDGE, registered
from tests.support.campaigns import assert_record_is_whole, assert_replay_passes, export_to, make_config, make_draft
from tests.support.models import scripted_server, status

REQUESTS = itertools.count()
UNVERIFIED = "law of the sampler not verified"


def asked(messages: list[dict], temperature: float, seed: int, **fields) -> dict:
    """Return what the known judge answers to the same question in the words of vLLM."""
    return JUDGE({"messages": messages, "temperature": temperature, "seed": seed, **fields})


def ollama(body: dict) -> dict:
    """Answer as Ollama does."""
    options = body["options"]
    found = asked(body["messages"], options["temperature"], options["seed"], logprobs=body.get("logprobs"))
    choice = found["choices"][0]
    logged = (choice.get("logprobs") or {}).get("content")
    return {"model": body["model"], "message": choice["message"], "done": True, "prompt_eval_count": 50,
            "eval_count": 1} | ({"logprobs": logged} if logged else {})  # fmt: skip


def anthropic(body: dict) -> dict:
    """Answer as Anthropic does: without a seed, and with its thoughts before its answer."""
    messages = [{"role": "user", "content": "\n".join(block["text"] for block in body["messages"][0]["content"])}]
    said = asked(messages, body["temperature"], next(REQUESTS))["choices"][0]["message"]["content"]
    content = [{"type": "thinking", "thinking": "A, or B?", "signature": "s"}, {"type": "text", "text": said}]
    return {"model": "claude-1", "content": content, "usage": {"input_tokens": 50, "output_tokens": 9}}


def openai(body: dict) -> dict:
    """Answer as a server of an unknown kind does."""
    return JUDGE(body) | {"model": "hosted-1"}


@pytest.fixture
def campaign(researcher, client, settings, idle_tasks):
    """Return a campaign that a server of some kind judges, having pressed Start."""
    client.force_login(researcher)

    def of(
        dialect: Dialect,
        answer: Callable[[dict], dict],
        profile: dict | None = None,
        thinking: int | None = None,
        **source,
    ) -> Campaign:
        asks = {"kind": "model", "endpoint": "A model", "temperature": 0.7} | source
        judge = {"question": "Which is darker?", "votes": 3, "source": asks}
        config = sampler.parse_config(make_config(judges=[judge], chains=2, steps=10))
        with scripted_server(answer) as script:
            script.pages["/version"] = status(404)
            fields = {"dialect": dialect, "dialect_is_declared": True, "thinking_tokens": thinking}
            registered(researcher, script, settings, profile=profile or {}, **fields)
            made = make_draft(researcher, config=config.model_dump(mode="json"))
            lifecycle.start(made)
            idle_tasks()
        made.refresh_from_db()
        return made

    return of


def judge_in(path) -> dict:
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("judges.json"))[0]


@pytest.mark.parametrize("votes", ["sampled", "log-probabilities"])
def test_ollama_judges_and_the_record_replays(campaign, tmp_path, votes: str) -> None:
    finished = campaign(Dialect.OLLAMA, ollama, votes=votes)
    assert finished.status == Campaign.Status.FINISHED
    assert_record_is_whole(finished)
    path = export_to(finished, tmp_path)
    assert_replay_passes(path)
    judge = judge_in(path)
    assert (judge["path"], judge["temperature"], judge["request"]["options"]["temperature"]) == ("/api/chat", 0.7, 0.7)
    assert "law" not in judge


def test_one_that_is_accepted_stands_on_the_page_and_in_the_record(campaign, client, tmp_path) -> None:
    finished = campaign(Dialect.ANTHROPIC, anthropic, law_unverified=True)
    assert finished.status == Campaign.Status.FINISHED
    assert UNVERIFIED in client.get(finished.get_absolute_url()).content.decode()
    path = export_to(finished, tmp_path)
    assert_replay_passes(path)
    judge = judge_in(path)
    assert (judge["law"], judge["path"]) == (UNVERIFIED, "/messages")
    assert judge["identities"][0]["model"] == "claude-1"


def test_accepting_does_not_help_a_server_that_is_seen_to_truncate(campaign) -> None:
    def truncating(body: dict) -> dict:
        found = openai(body)
        if not body.get("logprobs") and not JUDGE.is_asked_about_two(body):
            found["choices"][0]["message"]["content"] = f"word{body['seed'] // 1000 % 2}"
        return found

    with pytest.raises(NotPossible, match="truncates"):
        campaign(Dialect.OPENAI, truncating, law_unverified=True)


def test_a_server_whose_test_saw_it_ignore_the_temperature_is_refused(campaign) -> None:
    seen = {"field": "temperature", "effect": "ignored", "evidence": "4 seeds gave 4 different replies", "requests": 4}
    profile = {"tested_at": "2026-11-23T21:00:00+00:00", "requests": 30, "fields": [seen]}
    with pytest.raises(NotPossible, match="its last test saw that it ignores temperature: 4 seeds"):
        campaign(Dialect.OLLAMA, ollama, profile=profile)


@pytest.mark.parametrize(
    ("dialect", "thinking", "source", "words"),
    [
        (Dialect.ANTHROPIC, None, {"law_unverified": False}, "accept at the question that the sampling cannot be"),
        (Dialect.OPENAI_REASONING, None, {}, "Set the temperature to 1"),
        (Dialect.OPENAI, 2000, {}, "has no field for thinking"),
        (Dialect.ANTHROPIC, 500, {"temperature": 1}, "Raise “Thinking tokens at most” to 1,024"),
        (Dialect.ANTHROPIC, 2000, {}, "takes no temperature but 1 while it thinks"),
        (Dialect.OLLAMA, 2000, {"votes": "log-probabilities"}, "Let its votes be sampled"),
        (Dialect.OLLAMA, 2000, {"law_unverified": False}, "accept at the question that the sampling cannot be"),
    ],
)
def test_what_a_judge_cannot_be_is_refused_with_what_to_do(campaign, dialect, thinking, source, words) -> None:
    answer = {Dialect.ANTHROPIC: anthropic, Dialect.OLLAMA: ollama}.get(dialect, openai)
    with pytest.raises(NotPossible, match=words):
        campaign(dialect, answer, thinking=thinking, **{"law_unverified": True} | source)
    assert not Vote.objects.exists()

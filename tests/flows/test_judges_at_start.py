"""Start tests the models that a campaign asks, and refuses those whose votes could not have the law of a judge's.

Judges of further kinds, from Start to the replay of the record; and laws that nobody can verify.
"""

import json
import math
import zipfile
from collections.abc import Callable

import numpy as np
import pytest
from django.urls import reverse

import sampler
from prefmh_web.campaigns import lifecycle, tasks
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.models import Campaign, Vote
from prefmh_web.endpoints.dialects import Dialect
from prefmh_web.endpoints.models import Endpoint
from tests.console.test_endpoints import signed_in
from tests.flows.test_model_costs import JUDGE, by_model
from tests.support.campaigns import (
    assert_record_is_whole,
    assert_replay_passes,
    export_to,
    make_config,
    make_draft,
    registered,
)
from tests.support.models import KnownJudge, Speaking, chat_reply, completed, reply, scripted_server, send, status

__all__ = ["signed_in"]


TWO = "text\nThe red house stood there.\nThe grey sea lay there.\n"
# A vote for the worse of the two has probability 1 / (1 + e^3.5) = 0.029.
SCORES = {"The red house stood there.": 0.0, "The grey sea lay there.": 3.5}
RARE = 1 / (1 + math.exp(3.5))


def registered_at(owner, url: str, **changes) -> Endpoint:
    """Return an endpoint as the form saves it: nobody has pressed Test."""
    return Endpoint.objects.create(owner=owner, name="A model", base_url=url, model="tiny", timeout_s=20, **changes)


def draft(owner, judge: dict, file: str = TWO, **changes) -> Campaign:
    config = make_config(
        judges=[judge], space={"kind": "catalog", "objects": "texts"}, kernel={"kind": "independent"}, **changes
    )
    return make_draft(owner, file=file, config=sampler.parse_config(config).model_dump(mode="json"))


def press_start(client, campaign: Campaign, idle_tasks) -> str:
    """Press Start, let all tasks come to rest, and return the campaign's page."""
    client.post(reverse("console:start", args=[campaign.pk]))
    idle_tasks()
    campaign.refresh_from_db()
    return client.get(campaign.get_absolute_url()).content.decode()


def truncating(body: dict, obeys: bool) -> dict:
    """Answer as a server that keeps tokens of at least a twentieth of the likeliest one's probability.

    Args:
        obeys: whether it leaves that when it is told to: min_p = 0.
    """
    plain = KnownJudge(SCORES)
    if obeys and body.get("min_p") == 0.0:
        return completed(body) if "n_predict" in body else plain(body)
    if plain.is_asked_about_two(body) and not body.get("logprobs"):
        logits = plain.logits(body["messages"][-1]["content"])
        kept = [label for label, logit in logits.items() if logit >= max(logits.values()) + math.log(0.05)]
        return chat_reply(kept[0])
    if obeys or body.get("structured_outputs"):
        return plain(body)
    return three_words(body)


def three_words(body: dict) -> dict:
    """Answer a plain question with one of three words, and say that there are seventeen others."""
    words = [f"word{number}" for number in range(20)]
    said = words[int(np.random.default_rng(body["seed"]).integers(3))]
    top = [{"token": word, "logprob": math.log(0.2 if place < 3 else 0.4 / 17)} for place, word in enumerate(words)]
    return chat_reply(said, logprobs={"content": [{"token": said, "top_logprobs": top}]})


def like_llama_cpp(script) -> None:
    """Let a server answer as llama.cpp does where it is asked which kind it is."""
    script.pages["/props"] = lambda handler: reply(handler, {"default_generation_settings": {"n_ctx": 4096}})
    script.pages["/version"] = lambda handler: send(handler, 404, b"{}")


def test_an_endpoint_that_nobody_tested_does_not_vote_by_its_default_truncation(signed_in, researcher, idle_tasks):
    # Its default is min-p 0.05: a vote of probability 0.029 would never be cast.
    with scripted_server(lambda body: truncating(body, obeys=True)) as script:
        like_llama_cpp(script)
        registered_at(researcher, script.url)
        campaign = draft(researcher, by_model(budget=40, temperature=1.0), chains=10, steps=6)
        press_start(signed_in, campaign, idle_tasks)
        for _ in range(5):
            tasks.sweep()
            idle_tasks()
    votes = list(Vote.objects.select_related("comparison__current", "comparison__proposal"))
    for_worse = sum(SCORES[chosen(vote)] == 0.0 for vote in votes)
    assert len(votes) > 500
    # Binomial(votes, RARE); four standard deviations happen once in 16,000 runs. None at all is the default's law.
    spread = math.sqrt(len(votes) * RARE * (1 - RARE))
    assert abs(for_worse - len(votes) * RARE) < 4 * spread, f"{for_worse} of {len(votes)} votes are for the worse text"
    assert len(votes) * RARE > 4 * spread


def chosen(vote: Vote) -> str:
    return vote.comparison.standing(vote.chosen_side, vote.proposal_side).content


@pytest.mark.parametrize(("votes", "starts"), [("sampled", False), ("log-probabilities", True)])
def test_a_server_of_an_unknown_kind_may_only_be_read(signed_in, researcher, idle_tasks, votes, starts):
    with scripted_server(KnownJudge(SCORES)) as script:
        script.pages["/version"] = lambda handler: send(handler, 404, b"{}")
        registered_at(researcher, script.url)
        campaign = draft(researcher, by_model(votes, temperature=1.0), chains=2, steps=2)
        page = press_start(signed_in, campaign, idle_tasks)
    assert (campaign.status != Campaign.Status.DRAFT) == starts
    assert ("nobody can say whether a server of this kind truncates" in page) != starts


def test_the_longest_prompt_of_a_question_must_fit_into_the_context(signed_in, researcher, llama_url, idle_tasks):
    registered_at(researcher, llama_url)
    words = ["dark house moon red sea " * 20, "cat old and was the " * 21]
    # Each fits, and the shorter pairs do; the two longest do not fit together.
    file = "text\n" + "\n".join([*words, "The red house.", "The old sea."]) + "\n"
    campaign = draft(researcher, by_model(temperature=1.0), file=file, chains=1, steps=1)
    page = press_start(signed_in, campaign, idle_tasks)
    assert campaign.status != Campaign.Status.DRAFT
    longer = "text\n" + "\n".join([word * 6 for word in words] + ["The red house.", "The old sea."]) + "\n"
    campaign = draft(researcher, by_model(temperature=1.0), file=longer, chains=1, steps=1, seed=7)
    page = press_start(signed_in, campaign, idle_tasks)
    assert campaign.status == Campaign.Status.DRAFT
    assert "the two longest texts" in page
    assert "“A model”" in page


OLLAMA, ANTHROPIC = Speaking(JUDGE, Dialect.OLLAMA), Speaking(JUDGE, Dialect.ANTHROPIC)
UNVERIFIED = "law of the sampler not verified"


def anthropic(body: dict) -> dict:
    """Answer as Anthropic does, with its thoughts before its answer."""
    reply = ANTHROPIC(body)
    return reply | {"content": [{"type": "thinking", "thinking": "A, or B?", "signature": "s"}, *reply["content"]]}


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
            registered(researcher, script.url, settings, profile=profile or {}, **fields)
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
    finished = campaign(Dialect.OLLAMA, OLLAMA, votes=votes)
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
    assert judge["identities"][0]["model"] == "m"


def test_accepting_does_not_help_a_server_that_is_seen_to_truncate(campaign) -> None:
    def truncating(body: dict) -> dict:
        found = JUDGE(body)
        if not body.get("logprobs") and not JUDGE.is_asked_about_two(body):
            found["choices"][0]["message"]["content"] = f"word{body['seed'] // 1000 % 2}"
        return found

    with pytest.raises(NotPossible, match="truncates"):
        campaign(Dialect.OPENAI, truncating, law_unverified=True)


def test_a_server_whose_test_saw_it_ignore_the_temperature_is_refused(campaign) -> None:
    seen = {"field": "temperature", "effect": "ignored", "evidence": "4 seeds gave 4 different replies", "requests": 4}
    profile = {"tested_at": "2026-11-23T21:00:00+00:00", "requests": 30, "fields": [seen]}
    with pytest.raises(NotPossible, match="its last test saw that it ignores temperature: 4 seeds"):
        campaign(Dialect.OLLAMA, OLLAMA, profile=profile)


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
    answer = {Dialect.ANTHROPIC: anthropic, Dialect.OLLAMA: OLLAMA}.get(dialect, JUDGE)
    with pytest.raises(NotPossible, match=words):
        campaign(dialect, answer, thinking=thinking, **{"law_unverified": True} | source)
    assert not Vote.objects.exists()

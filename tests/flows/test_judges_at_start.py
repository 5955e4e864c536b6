"""Start tests the models that a campaign asks, and refuses those whose votes could not have a judge's distribution.

Judges of further kinds, from Start to the replay of the record; and distributions that nobody can verify.
"""

import json
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from django.urls import reverse

from prefmh_web.campaigns.model_judges.judges import UNTESTED, UNVERIFIED
from prefmh_web.campaigns.models import Campaign, NotPossible, Vote
from prefmh_web.endpoints import truth
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.servers import Dialect
from tests.console.test_endpoints import signed_in
from tests.flows.test_model_costs import JUDGE, by_model
from tests.support.campaigns import make_config, make_draft, registered, start_campaign
from tests.support.models import (
    Answer,
    KnownJudge,
    Script,
    Speaking,
    cut,
    reply,
    returns,
    scripted_server,
    status,
)
from tests.support.records import assert_replay_passes, export_to

__all__ = ["signed_in"]


TWO = "text\nThe red house stood there.\nThe grey sea lay there.\n"
# A vote for the worse of the two has probability 1 / (1 + e^3.5) = 0.029.
SCORES = {"The red house stood there.": 0.0, "The grey sea lay there.": 3.5}


def registered_at(owner, url: str, **changes) -> Endpoint:
    """Return an endpoint as the form saves it: nobody has pressed Test."""
    return Endpoint.objects.create(owner=owner, name="A model", base_url=url, model="tiny", timeout_s=20, **changes)


def draft(owner, judge: dict, file: str = TWO, **changes) -> Campaign:
    config = make_config(
        judges=[judge], space={"kind": "catalog", "objects": "texts"}, kernel={"kind": "independent"}, **changes
    )
    return make_draft(owner, file=file, config=config)


def press_start(client, campaign: Campaign, idle_tasks) -> str:
    """Press Start, let all tasks come to rest, and return the campaign's page."""
    client.post(reverse("console:start", args=[campaign.pk]))
    idle_tasks()
    campaign.refresh_from_db()
    return client.get(campaign.get_absolute_url()).content.decode()


def like_llama_cpp(script) -> None:
    """Let a server answer as llama.cpp does where it is asked which kind it is."""
    script.pages["/props"] = lambda handler: reply(handler, {"default_generation_settings": {"n_ctx": 4096}})
    script.pages["/version"] = status(404)


@pytest.mark.parametrize(("votes", "starts"), [("sampled", False), ("log-probabilities", True)])
@pytest.mark.parametrize(
    ("page", "words"),
    [
        (status(404), "nobody can say whether a server of this kind truncates"),
        (returns({"version": "0"}), "is not tested. Press Test on the endpoint"),
    ],
    ids=["unknown kind", "vLLM"],
)
def test_what_nobody_has_tested_may_only_be_read(signed_in, researcher, idle_tasks, votes, starts, page, words):
    with scripted_server(KnownJudge(SCORES)) as script:
        script.pages["/version"] = page
        registered_at(researcher, script.url)
        campaign = draft(researcher, by_model(votes, temperature=1.0), chains=2, steps=2)
        shown = press_start(signed_in, campaign, idle_tasks)
    assert (campaign.status != Campaign.Status.DRAFT) == starts
    assert (words in shown) != starts
    if starts:
        frozen = campaign.judges.get().frozen
        # Where p is not told, no vote is sampled in its place.
        assert (frozen["distribution"], bool(frozen["profile"]["samples_untruncated"])) == (UNTESTED, False)


NO_PAIR = [{"field": field, "effect": "cannot be told", "evidence": "none of 16 pairs"} for field in truth.DISTRIBUTION]
# Of the likelier text in the campaign's own pair: .818 at temperature 1.
NEAR = {"The red house stood there.": 0.0, "The grey sea lay there.": 1.5}


@dataclass(frozen=True)
class Telling(KnownJudge):
    """A judge whose server tells logits that are so many times as steep."""

    told: float = 1.0

    def logits(self, prompt: str) -> dict[str, float]:
        return {reply: logit / self.told for reply, logit in super().logits(prompt).items()}

    def __call__(self, body: dict) -> dict:
        if not body.get("logprobs"):
            return super().__call__(body)
        return KnownJudge(self.scores, self.bias, self.others, self.constrains)(body)


class TestOwnPairs:
    """Where the test of an endpoint has found no pair, Start looks at the campaign's own."""

    @pytest.fixture
    def start(self, signed_in, researcher, settings, idle_tasks):
        def start(told: float, votes: str, **caps) -> tuple[Campaign, str]:
            with scripted_server(Telling(NEAR, told=told)) as script:
                profile = {"requests": 50, "fields": NO_PAIR}
                registered(researcher, script.url, settings, profile=profile, input_price=1.0, output_price=1.0)
                made = draft(researcher, by_model(votes, temperature=1.0), chains=2, steps=2)
                Campaign.objects.filter(pk=made.pk).update(**caps)
                shown = signed_in.get(made.get_absolute_url()).content.decode()
                assert f"at most {truth.MAX_TRUTH} requests, which cost at most" in shown
                page = press_start(signed_in, made, idle_tasks)
            return made, page

        return start

    @pytest.mark.parametrize("votes", ["sampled", "log-probabilities"])
    def test_a_truthful_server_votes_and_the_test_counts(self, start, votes):
        campaign, _ = start(1.0, votes)
        assert campaign.status != Campaign.Status.DRAFT
        judge = campaign.judges.get()
        assert ("distribution" in judge.frozen, judge.frozen["profile"]["samples_untruncated"]) == (False, True)
        assert {row["field"]: row["effect"] for row in judge.frozen["negotiated"]["fields"]}["truth"] == "obeyed"
        assert 200 < campaign.model_usage.get().requests < truth.MAX_TRUTH + 20

    @pytest.mark.parametrize("votes", ["sampled", "log-probabilities"])
    def test_one_that_tells_another_distribution_does_not(self, start, votes):
        campaign, page = start(2.6, votes)
        assert campaign.status == Campaign.Status.DRAFT
        assert "does not sample from the distribution that it tells" in page


def test_the_longest_prompt_of_a_question_must_fit_into_the_context(
    signed_in, researcher, llama_url, settings, idle_tasks
):
    registered(researcher, llama_url, settings, dialect=Dialect.LLAMA_CPP)
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


def anthropic(body: dict) -> dict:
    """Answer as Anthropic does to a chat completion: with thoughts that it does not tell."""
    return ANTHROPIC(body) | {"model": "claude-1", "usage": {"prompt_tokens": 50, "completion_tokens": 9}}


@contextmanager
def declared_server(owner, settings, answer: Answer, dialect: Dialect, **fields) -> Iterator[Script]:
    """Serve as a kind that only its owner can tell, and register it."""
    with scripted_server(answer) as script:
        script.pages["/version"] = status(404)
        registered(owner, script.url, settings, dialect=dialect, dialect_is_declared=True, **fields)
        yield script


@pytest.fixture
def campaign(researcher, client, settings):
    """Return a campaign that a server of some kind judges, having pressed Start."""
    client.force_login(researcher)

    def of(
        dialect: Dialect,
        answer: Answer,
        profile: dict | None = None,
        thinking: int | None = None,
        **source,
    ) -> Campaign:
        asks = {"kind": "model", "endpoint": "A model", "temperature": 0.7} | source
        judge = {"question": "Which is darker?", "votes": 3, "source": asks}
        told = ({"profile": profile} if profile else {}) | {"thinking_tokens": thinking}
        with declared_server(researcher, settings, answer, dialect, **told):
            return start_campaign(researcher, config=make_config(judges=[judge], chains=2, steps=10))

    return of


def judge_in(path) -> dict:
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("judges.json"))[0]


def test_one_that_is_accepted_stands_on_the_page_and_in_the_record(campaign, client, tmp_path) -> None:
    finished = campaign(Dialect.ANTHROPIC, anthropic, distribution_unverified=True)
    assert finished.status == Campaign.Status.FINISHED
    assert UNVERIFIED in client.get(finished.get_absolute_url()).content.decode()
    path = export_to(finished, tmp_path)
    assert_replay_passes(path)
    judge = judge_in(path)
    assert judge["distribution"] == UNVERIFIED
    assert judge["identities"][0]["model"] == "claude-1"


@pytest.mark.parametrize("dialect", [Dialect.OLLAMA, Dialect.OPENAI])
@pytest.mark.parametrize("votes", ["sampled", "log-probabilities"])
def test_accepting_does_not_help_a_server_that_is_seen_to_truncate(campaign, dialect, votes) -> None:
    seen = {"field": "rare label", "effect": "ignored", "evidence": "B came 0 times in 120 replies"}
    answer = OLLAMA if dialect == Dialect.OLLAMA else JUDGE
    with pytest.raises(NotPossible, match="does not sample from the distribution that it tells: B came 0 times"):
        campaign(
            dialect, answer, profile={"requests": 300, "fields": [seen]}, distribution_unverified=True, votes=votes
        )


def test_a_server_whose_test_saw_it_ignore_the_temperature_is_refused(campaign) -> None:
    seen = {"field": "temperature", "effect": "ignored", "evidence": "4 seeds gave 4 different replies"}
    profile = {"tested_at": "2026-11-23T21:00:00+00:00", "requests": 30, "fields": [seen]}
    with pytest.raises(NotPossible, match="its last test saw that it ignores temperature: 4 seeds"):
        campaign(Dialect.OLLAMA, OLLAMA, profile=profile)


@pytest.mark.parametrize(
    ("dialect", "thinking", "source", "words"),
    [
        (
            Dialect.ANTHROPIC,
            None,
            {"distribution_unverified": False},
            "accept at the question that the sampling cannot be",
        ),
        (Dialect.OPENAI_REASONING, None, {}, "Set the temperature to 1"),
        (Dialect.OPENAI, 2000, {}, "has no field for thinking"),
        (Dialect.ANTHROPIC, 500, {"temperature": 1}, "Raise “Thinking tokens at most” to 1,024"),
        (Dialect.ANTHROPIC, 2000, {}, "takes no temperature but 1 while it thinks"),
        (Dialect.OLLAMA, 2000, {"votes": "log-probabilities"}, "Let its votes be sampled"),
        (
            Dialect.OLLAMA,
            2000,
            {"distribution_unverified": False},
            "accept at the question that the sampling cannot be",
        ),
    ],
)
def test_what_a_judge_cannot_be_is_refused_with_what_to_do(campaign, dialect, thinking, source, words) -> None:
    answer = {Dialect.ANTHROPIC: anthropic, Dialect.OLLAMA: OLLAMA}.get(dialect, JUDGE)
    with pytest.raises(NotPossible, match=words):
        campaign(dialect, answer, thinking=thinking, **{"distribution_unverified": True} | source)
    assert not Vote.objects.exists()


class TestProgram:
    """A program of the researcher's: its answers may be copies of one another."""

    @pytest.fixture
    def start(self, researcher, settings):
        def start(votes: int, accepts: bool = False, **changes) -> Campaign:
            source = {"kind": "model", "endpoint": "A model"} | ({"distribution_unverified": True} if accepts else {})
            judge = {"question": "Which is darker?", "votes": votes, "source": source}
            profile = {"requests": 0, "fields": []}
            with declared_server(
                researcher, settings, lambda body: {"choice": "A"}, Dialect.PROGRAM, profile=profile
            ) as script:
                # It knows POST alone.
                script.pages |= dict.fromkeys(("/props", "/v1/models", "/get_server_info"), cut)
                return start_campaign(researcher, config=make_config(judges=[judge], chains=2, steps=3) | changes)

        return start

    @pytest.mark.parametrize(("votes", "accepts"), [(1, False), (3, True)])
    def test_it_has_one_vote_on_a_pair_or_as_many_as_its_owner_answers_for(self, start, votes, accepts):
        campaign = start(votes, accepts)
        assert campaign.status == Campaign.Status.FINISHED
        assert campaign.judges.get().frozen["distribution"] == UNVERIFIED

    def test_more_are_refused_with_what_to_do(self, start):
        with pytest.raises(NotPossible, match="Let it have one vote on a pair, or accept"):
            start(3)

    def test_it_rates_nothing(self, start):
        with pytest.raises(NotPossible, match="a program compares two objects, and rates none"):
            start(1, rule={"kind": "pointwise", "form": "separate"})

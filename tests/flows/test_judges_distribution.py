"""The votes in the record have their model's distribution: for each kind of server, drawn and sampled.

Each study compares two texts, in both orders, so there are two probabilities of a vote for the text shown first. Over
all votes under one order, sum (x - p) / sqrt(n p (1 - p)) tends to a standard normal, although n depends on the votes:
the sum is a martingale. The two are squared and added, and compared with chi-square on two degrees of freedom. A server
that truncates must fail the same test.
"""

import math
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from scipy import stats

from prefmh_web.campaigns.models import Campaign, Side, Vote
from prefmh_web.endpoints.servers import Dialect
from tests.flows.test_judges_at_start import draft, like_llama_cpp, press_start, registered_at, signed_in
from tests.flows.test_model_costs import QUESTION
from tests.support.campaigns import TRUE_DISTRIBUTION, swept
from tests.support.models import KnownJudge, Speaking, Truncating, scripted_server
from tests.support.records import assert_replay_passes, export_to

__all__ = ["signed_in"]

FIRST, SECOND = "The red house stood there.", "The grey sea lay there."
TWO = f"text\n{FIRST}\n{SECOND}\n"
SCORES, BIAS = {FIRST: 0.0, SECOND: 0.8}, 0.2
HONEST, TRUNCATES = KnownJudge(SCORES, BIAS), Truncating(SCORES, BIAS)
# Votes under each order that a study has at least: of the rarer vote, five or more are expected.
MIN_VOTES = 25
# Under the distribution, one of fifty tests falls under this with chance 5e-5.
MIN_P_VALUE = 1e-6
SAMPLED = list(Dialect)
# Those that tell log-probabilities.
DRAWN = [dialect for dialect in Dialect if dialect.server.has_log_probabilities]
CASES = [(dialect, "sampled") for dialect in SAMPLED] + [(dialect, "log-probabilities") for dialect in DRAWN]
# Those that may not be sampled where their log-probabilities do not tell p, for nobody knows whether they truncate.
ONLY_DRAWN = [dialect for dialect in DRAWN if not dialect.server.why_untruncated]
# Of a vote for the text that is shown first, by text.
Chances = dict[str, float]


def judged(owner, dialect: Dialect, url: str, votes: str) -> Campaign:
    """Return a draft whose judge is the model at an address, at another temperature than 1 where it takes one."""
    tested = {"profile": TRUE_DISTRIBUTION, "samples_untruncated": bool(dialect.server.why_untruncated)}
    registered_at(owner, url, dialect=dialect, dialect_is_declared=True, concurrency=16, **tested)
    source = {"kind": "model", "endpoint": "A model", "temperature": temperature_of(dialect), "votes": votes}
    if not dialect.server.why_untruncated:
        source["distribution_unverified"] = True
    return draft(owner, {"question": QUESTION, "votes": 20, "source": source}, file=TWO, chains=5, steps=4)


def temperature_of(dialect: Dialect) -> float:
    return 0.8 if dialect.server.sets_temperature else 1.0


def votes_of(client, campaign: Campaign, idle_tasks, folder) -> list[Vote]:
    """Let a campaign come to its end, replay its export, and return its votes."""
    page = press_start(client, campaign, idle_tasks)
    assert swept(campaign).status == Campaign.Status.FINISHED, page
    assert_replay_passes(export_to(campaign, folder))
    return list(Vote.objects.select_related("comparison__current", "comparison__proposal"))


def p_value(votes: list[Vote], chances: Chances) -> float:
    """Return how probable votes as far from these chances are, if these are theirs."""
    statistic = 0.0
    for text, chance in chances.items():
        chosen = [chose_first(vote) for vote in votes if shown_first(vote) == text]
        assert len(chosen) >= MIN_VOTES
        statistic += (sum(chosen) - len(chosen) * chance) ** 2 / (len(chosen) * chance * (1 - chance))
    return float(stats.chi2.sf(statistic, len(chances)))


def shown_first(vote: Vote) -> str:
    text: str = vote.comparison.state_on(Side.FIRST, vote.proposal_side).content
    return text


def chose_first(vote: Vote) -> bool:
    return vote.chosen_side == Side.FIRST


def drawn_from(vote: Vote) -> float:
    """Return the logged probability of a vote for the text that was shown first."""
    assert vote.preference is not None
    return vote.preference if vote.proposal_side == Side.FIRST else 1 - vote.preference


def chances_of(judge: KnownJudge, temperature: float) -> Chances:
    return {x: judge.preference(x, y, temperature, True) for x, y in ((FIRST, SECOND), (SECOND, FIRST))}


@pytest.mark.parametrize(("dialect", "votes"), CASES)
def test_votes_have_the_distribution_of_the_model(signed_in, researcher, idle_tasks, tmp_path, dialect, votes):
    with scripted_server(Speaking(HONEST, dialect)) as script:
        logged = votes_of(signed_in, judged(researcher, dialect, script.url, votes), idle_tasks, tmp_path)
    chances = chances_of(HONEST, temperature_of(dialect))
    assert p_value(logged, chances) > MIN_P_VALUE
    for vote in logged:
        if votes == "sampled":
            assert vote.preference is None
        else:
            assert drawn_from(vote) == pytest.approx(chances[shown_first(vote)])


@pytest.mark.parametrize("votes", ["sampled", "log-probabilities"])
def test_a_server_that_truncates_fails_the_same_test(signed_in, researcher, idle_tasks, tmp_path, votes):
    # Since its test was made. What differs between the kinds of servers is how they are asked, not this.
    with scripted_server(Speaking(TRUNCATES, Dialect.VLLM)) as script:
        logged = votes_of(signed_in, judged(researcher, Dialect.VLLM, script.url, votes), idle_tasks, tmp_path)
    assert p_value(logged, chances_of(HONEST, temperature_of(Dialect.VLLM))) < MIN_P_VALUE


def test_a_server_that_truncates_what_it_tells_casts_no_vote_of_unknown_distribution(signed_in, researcher, idle_tasks):
    [dialect, *_] = ONLY_DRAWN
    with scripted_server(Speaking(TRUNCATES, dialect)) as script:
        campaign = judged(researcher, dialect, script.url, "log-probabilities")
        page = press_start(signed_in, campaign, idle_tasks)
    assert campaign.status == Campaign.Status.RUNNING
    assert not Vote.objects.exists()
    assert "not among the most probable replies: p is not known" in page


class Between:
    """What stands between the application and a real server: it passes everything on, and may change it before.

    Args:
        changes: fields of a vote's request that it sets to something else.
    """

    def __init__(self, url: str, **changes: Any) -> None:
        self._url, self._changes = url, changes
        self.votes: list[dict[str, Any]] = []

    def __call__(self, body: dict[str, Any]) -> dict[str, Any]:
        """Pass a request on to where it belongs."""
        if "prompt" in body:
            return self._answer(self._url.removesuffix("/v1") + "/completion", body)
        is_vote = all(text in str(body) for text in SCORES)
        if is_vote and not body.get("logprobs"):
            self.votes.append(body)
            body = body | self._changes
        return self._answer(f"{self._url}/chat/completions", body)

    def _answer(self, url: str, body: dict[str, Any]) -> dict[str, Any]:
        # It answers pictures, which it is tried with, with an error.
        found: dict[str, Any] = httpx.post(url, json=body, timeout=60, trust_env=False).json()
        return found

    def chances(self, messages: Callable[[str, str], list[dict[str, Any]]], temperature: float) -> Chances:
        """Return the model's chances, as its own log-probabilities at temperature 1 say.

        Args:
            messages: what is sent where the first text stands before the second.
        """
        found: Chances = {}
        for shown in ((FIRST, SECOND), (SECOND, FIRST)):
            asked = {"messages": messages(*shown), "max_tokens": 1, "logprobs": True, "top_logprobs": 20}
            fields = {"temperature": 1.0, "samplers": ["temperature"], "top_k": 0, "min_p": 0.0, "top_p": 1.0}
            # Where the one token that is drawn ends the reply, llama.cpp tells no probabilities.
            replies = (
                self._answer(f"{self._url}/chat/completions", asked | fields | {"seed": seed}) for seed in range(20)
            )
            told = next(filter(None, (reply["choices"][0].get("logprobs") for reply in replies)))
            tops = told["content"][0]["top_logprobs"]
            logs = {top["token"]: top["logprob"] for top in tops}
            found[shown[0]] = 1 / (1 + math.exp((logs["B"] - logs["A"]) / temperature))
        return found


@pytest.mark.parametrize(
    ("changes", "has_the_distribution"),
    [({}, True), ({"samplers": ["min_p", "temperature"], "min_p": 0.9}, False)],
    ids=["as it is told", "truncated"],
)
def test_votes_of_a_real_server_have_the_distribution_of_its_model(
    signed_in, researcher, idle_tasks, tmp_path, llama_url, changes, has_the_distribution
):
    between = Between(llama_url, **changes)
    with scripted_server(between) as script:
        like_llama_cpp(script)
        campaign = judged(researcher, Dialect.LLAMA_CPP, script.url, "sampled")
        logged = votes_of(signed_in, campaign, idle_tasks, tmp_path)
    chances = between.chances(messages_like(between.votes[0]), temperature_of(Dialect.LLAMA_CPP))
    assert (p_value(logged, chances) > MIN_P_VALUE) == has_the_distribution


def messages_like(body: dict[str, Any]) -> Callable[[str, str], list[dict[str, Any]]]:
    """Return what a vote's request says of two texts, whichever order it was in."""
    words = str(body["messages"])
    before = (FIRST, SECOND) if words.index(FIRST) < words.index(SECOND) else (SECOND, FIRST)

    def messages(first: str, second: str) -> list[dict[str, Any]]:
        def put(content: str) -> str:
            marked = content.replace(before[0], "\0").replace(before[1], "\1")
            return marked.replace("\0", first).replace("\1", second)

        return [message | {"content": put(message["content"])} for message in body["messages"]]

    return messages


def test_votes_drawn_from_what_a_real_server_tells_have_the_distribution_of_its_model(
    signed_in, researcher, idle_tasks, tmp_path, llama_url
):
    between = Between(llama_url)
    with scripted_server(between) as script:
        like_llama_cpp(script)
        campaign = judged(researcher, Dialect.LLAMA_CPP, script.url, "log-probabilities")
        logged = votes_of(signed_in, campaign, idle_tasks, tmp_path)
        asked = next(body for body in script.requests if body.get("logprobs") and FIRST in str(body))
    chances = between.chances(messages_like(asked), temperature_of(Dialect.LLAMA_CPP))
    assert p_value(logged, chances) > MIN_P_VALUE
    for vote in logged:
        # What a real server computes depends a little on what it computes beside.
        assert drawn_from(vote) == pytest.approx(chances[shown_first(vote)], abs=1e-3)

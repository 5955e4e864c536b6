"""Votes of model judges: what is asked, what faults do to them, and what is counted. Their distribution as the record
has it is tested in `flows/test_judges_distribution.py`.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from prefmh_web.endpoints import judge_calls, limits
from prefmh_web.endpoints.calls import called
from prefmh_web.endpoints.errors import (
    BadReply,
    NeedsAttention,
    NotReported,
    RateLimited,
    Refused,
    ServerError,
    TimedOut,
    TryLater,
    Unable,
    Unparsable,
    Unreachable,
)
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.servers import Dialect
from sampler.judges import Picture, RatingScale, ShownObject, rating_prompt
from tests.endpoints.conftest import CURRENT, KNOWN, PROPOSAL, pair, pair_of, z_score
from tests.support.models import (
    KnownJudge,
    Script,
    chat_reply,
    cut,
    hiding,
    logged,
    raw,
    returns,
    says,
    slow,
    status,
    votes_asked,
)

SEED = 20261121


def rng(seed: int = SEED) -> np.random.Generator:
    return np.random.default_rng(seed)


def by_log_probabilities(endpoint: Endpoint, asked: judge_calls.Pair, first, draws, known=None) -> judge_calls.Answers:
    return called(judge_calls.votes(endpoint, asked, first, draws, draws.random(len(first)), known=known))


def by_sampling(endpoint: Endpoint, asked: judge_calls.Pair, first, draws) -> judge_calls.Answers:
    return called(judge_calls.votes(endpoint, asked, first, draws))


def test_replies_that_are_asked_again_leave_the_distribution_alone(scripted: Endpoint, script: Script) -> None:
    # Three replies in ten are no label, and nothing constrains them.
    temperature, wanted = 0.4, 300
    others = {"Well": math.log(0.3 / 0.7 * 2) * temperature}
    script.answer = KnownJudge(KNOWN.scores, KNOWN.bias, others, constrains=False)
    scripted.can_constrain = False
    votes = by_sampling(scripted, pair(temperature), [True] * wanted, rng())
    expected = KNOWN.preference(PROPOSAL, CURRENT, temperature, True)
    # Beyond four standard deviations once in 16,000 runs.
    assert abs(z_score(sum(v.value for v in votes.given), len(votes.given), expected)) < 4
    again = sum(v.attempts - 1 for v in votes.given)
    assert scripted.totals.unreadable == again + judge_calls.MAX_ATTEMPTS * (wanted - len(votes.given)) > 0


class TestWhatIsAsked:
    def test_each_vote_is_shown_as_it_was_drawn_with_a_seed_of_its_own(self, scripted, script: Script) -> None:
        votes = by_sampling(scripted, pair(), [True, False, True, True], rng())
        assert [vote.proposal_first for vote in votes.given] == [True, False, True, True]
        assert [vote.index for vote in votes.given] == [0, 1, 2, 3]
        seeds = sorted(body["seed"] for body in script.requests)
        assert len(set(seeds)) == 4
        assert min(np.diff(seeds)) > 1000
        firsts = [
            b["messages"][1]["content"].index(PROPOSAL) < b["messages"][1]["content"].index(CURRENT)
            for b in script.requests
        ]
        assert sorted(firsts) == [False, True, True, True]

    def test_a_label_means_the_object_that_stood_there(self, scripted, script: Script) -> None:
        script.faults.extend([says("A")] * 4)
        votes = by_sampling(scripted, pair(), [True, False, False, True], rng())
        assert [vote.value for vote in votes.given] == [True, False, False, True]

    def test_log_probabilities_cost_one_request_for_each_presentation(self, scripted, script: Script) -> None:
        first = [True, False, False, True, True]
        votes = by_log_probabilities(scripted, pair(0.5), first, rng())
        assert len(script.requests) == 2
        # Where raw and processed log-probabilities are the same.
        assert all(body["temperature"] == 1.0 and "structured_outputs" not in body for body in script.requests)
        for vote in votes.given:
            known = KNOWN.preference(PROPOSAL, CURRENT, 0.5, vote.proposal_first)
            assert vote.preference == pytest.approx(known)
        # Their own stream: the same votes again, and no request for what is known.
        found = {vote.proposal_first: vote.preference for vote in votes.given}
        again = by_log_probabilities(scripted, pair(0.5), first, rng(), found)
        assert again.given == votes.given
        assert len(script.requests) == 2

    @pytest.mark.parametrize(
        ("lacks", "way", "told"),
        [
            ("can_vary", by_sampling, "copies"),
            ("can_log_probabilities", by_log_probabilities, "no log-probabilities"),
        ],
    )
    def test_what_a_server_cannot_do_is_not_asked_of_it(self, scripted, script: Script, lacks, way, told) -> None:
        setattr(scripted, lacks, False)
        votes = way(scripted, pair(), [True], rng())
        assert isinstance(votes.failure, Unable)
        assert told in votes.failure.reason
        assert script.requests == []

    def test_pictures_are_not_sent_to_a_model_that_does_not_see_them(self, scripted, script: Script) -> None:
        scripted.can_images = False
        drawn = ShownObject("CC", Picture("image/png", b"red"))
        blind = pair_of("molecules", "Which is safer?", drawn, drawn)
        for way in (by_sampling, by_log_probabilities):
            assert "does not see pictures" in way(scripted, blind, [True], rng()).failure.reason
        assert script.requests == []


PASSING = [
    (status(500), ServerError, "500"),
    (status(503, b"busy", Retry_After="7"), ServerError, "503"),
    (status(429, b"slow down", Retry_After="30"), RateLimited, "429"),
    (cut, Unreachable, "cut"),
    (slow, TimedOut, "within 1 s"),
    (raw(b"<html>garbage"), BadReply, "not a JSON object"),
    (raw(b"x" * (9 * 2**20)), BadReply, "longer than 8 MiB"),
]
STAYING = [
    (status(400, b"unknown field"), Refused, "unknown field"),
    (status(401), Refused, "401"),
]
UNPARSABLE = [says(None), says(""), says("A or B"), says("I prefer A because it is darker."), says("<think>")]


class TestFaults:
    @pytest.mark.parametrize(("fault", "kind", "words"), PASSING + STAYING)
    def test_a_fault_casts_no_vote_and_says_why(self, scripted, script: Script, fault, kind, words: str) -> None:
        scripted.timeout_s = 1
        script.faults.append(fault)
        votes = by_sampling(scripted, pair(), [True], rng())
        assert votes.given == ()
        assert type(votes.failure) is kind
        assert words in votes.failure.reason
        assert isinstance(votes.failure, TryLater) == ((fault, kind, words) in PASSING)
        scripted.refresh_from_db()
        assert words in scripted.last_error
        assert scripted.totals.failed == scripted.totals.requests == 1
        # As if the pause that the server asked for were over.
        scripted.open_until = None
        limits.forget()
        assert by_sampling(scripted, pair(), [True], rng()).failure is None

    @pytest.mark.parametrize("code", [200, 429])
    def test_a_server_that_is_busy_says_when_to_ask_again(self, scripted, script: Script, code: int) -> None:
        script.faults.append(status(code, b'{"error": {"code": 429, "message": "busy"}}', Retry_After="30"))
        failure = by_sampling(scripted, pair(), [True], rng()).failure
        assert (type(failure), failure.retry_after) == (RateLimited, 30.0)

    def test_a_server_that_is_down_is_unreachable(self, make_endpoint) -> None:
        votes = by_sampling(make_endpoint("http://127.0.0.1:9/v1"), pair(), [True, False], rng())
        assert type(votes.failure) is Unreachable
        assert votes.failure.retry_after > 0

    @pytest.mark.parametrize("fault", UNPARSABLE)
    def test_what_is_no_label_is_asked_again_a_few_times_and_never_guessed(self, scripted, script, fault) -> None:
        script.faults.extend([fault] * judge_calls.MAX_ATTEMPTS)
        votes = by_sampling(scripted, pair(), [True], rng())
        assert votes.given == ()
        assert type(votes.failure) is Unparsable
        assert isinstance(votes.failure, NeedsAttention)
        assert len({body["seed"] for body in script.requests}) == judge_calls.MAX_ATTEMPTS
        assert scripted.totals.unreadable == judge_calls.MAX_ATTEMPTS
        # A vote counts the replies it took.
        script.faults.extend([fault, says(" b. ")])
        votes = by_sampling(scripted, pair(), [True], rng())
        assert votes.failure is None
        assert (votes.given[0].attempts, votes.given[0].value) == (2, False)

    def test_votes_cast_beside_a_fault_are_kept_with_their_places(self, scripted, script: Script) -> None:
        scripted.concurrency = 1
        script.faults.extend([says("A"), *[says("neither")] * judge_calls.MAX_ATTEMPTS, says("B")])
        votes = by_sampling(scripted, pair(), [True, True, True], rng())
        assert [(vote.index, vote.value) for vote in votes.given] == [(0, True), (2, False)]
        assert isinstance(votes.failure, Unparsable)

    def test_after_a_fault_that_passes_the_rest_is_not_begun(self, scripted, script: Script) -> None:
        scripted.concurrency = 1
        script.faults.extend([says("A"), status(500)])
        votes = by_sampling(scripted, pair(), [True] * 6, rng())
        assert len(votes.given) == 1
        assert len(script.requests) == 2

    def test_log_probabilities_that_are_missing_or_wrong_are_refused(self, scripted, script: Script) -> None:
        script.faults.extend([says("A"), says("A")])
        votes = by_log_probabilities(scripted, pair(), [True, False], rng())
        assert isinstance(votes.failure, Unable)
        assert "no log-probabilities" in votes.failure.reason
        script.answer = KnownJudge(KNOWN.scores, others={"Well": 3.0})
        shy = by_log_probabilities(scripted, pair(), [True], rng())
        assert isinstance(shy.failure, Unable)
        assert "something else than A or B" in shy.failure.reason
        # Sampled votes have the distribution that p would have had.
        assert by_sampling(scripted, pair(), [True], rng()).failure is None


# They sum to 1.56.
TOO_MUCH = logged("A", [{"token": "A", "logprob": -0.2}, {"token": "B", "logprob": -0.3}])


class TestNoDistribution:
    """A reply whose log-probabilities are no distribution: neither they nor its token are ever counted."""

    def test_it_is_asked_for_once_more(self, scripted, script: Script) -> None:
        script.faults.append(returns(chat_reply("A", logprobs=TOO_MUCH)))
        votes = by_log_probabilities(scripted, pair(), [True], rng())
        assert votes.sound == (False, True)
        assert votes.given[0].preference == pytest.approx(KNOWN.preference(PROPOSAL, CURRENT, 1.0, True))

    def test_after_two_no_vote_is_drawn_and_one_may_be_sampled(self, scripted, script: Script) -> None:
        script.faults.extend([returns(chat_reply("A", logprobs=TOO_MUCH))] * 2)
        refused = by_log_probabilities(scripted, pair(), [True], rng())
        assert (refused.given, refused.sound) == ((), (False, False))
        # What they have cost counts.
        assert scripted.totals.tokens_in == 2 * 50
        assert isinstance(refused.failure, NotReported)
        assert "the reported probabilities sum to 1.56" in refused.failure.reason
        script.faults.extend([returns(chat_reply("A", logprobs=TOO_MUCH))] * 2)
        scripted.samples_untruncated = True
        votes = called(judge_calls.votes(scripted, pair(), [True], rng(), [0.5]))
        assert votes.failure is None
        assert [(vote.preference, vote.attempts) for vote in votes.given] == [(None, 1)]


class TestRatings:
    SCALE = RatingScale(1, 10)

    def rated(self) -> judge_calls.RatingRequest:
        return judge_calls.RatingRequest(
            rating_prompt("texts", "How dark is it?", self.SCALE), ShownObject(CURRENT), self.SCALE
        )

    def test_ratings_are_whole_numbers_on_the_scale(self, scripted, script: Script) -> None:
        scripted.concurrency = 1
        script.faults.extend([says("7"), says("I'd say 8"), says('"8".'), says("10")])
        ratings = called(judge_calls.ratings(scripted, self.rated(), 3, rng()))
        assert [each.value for each in ratings.given] == [7, 8, 10]
        assert scripted.totals.unreadable == 1
        assert script.requests[0]["structured_outputs"] == {"choice": list(self.SCALE.answers)}

    def test_detectors_are_asked_greedily_and_say_yes_or_no(self, scripted, script: Script) -> None:
        scripted.can_vary = False
        script.faults.extend([says("Yes."), says("no"), says("I see one"), says('"YES"')])
        question = "Is a red mushroom in the image? Answer yes or no."
        found = [called(judge_calls.detection(scripted, question, ShownObject("a mushroom"), rng())) for _ in range(3)]
        assert [each.given[0].value for each in found] == [1, 0, 1]
        assert scripted.totals.unreadable == 1
        assert {body["temperature"] for body in script.requests} == {0}
        assert script.requests[0]["structured_outputs"] == {"choice": ["yes", "no"]}
        [message] = script.requests[0]["messages"]
        assert message["content"].startswith(question)

    def test_a_model_that_takes_no_temperature_does_not_detect(self, scripted, script: Script) -> None:
        scripted.dialect = Dialect.OPENAI_REASONING
        found = called(
            judge_calls.detection(scripted, "Is it there? Answer yes or no.", ShownObject("a mushroom"), rng())
        )
        assert isinstance(found.failure, Unable)
        assert "takes no temperature but 1" in found.failure.reason
        assert not script.requests


# Votes drawn from p where it is told and sampled where it is not have one distribution: that of a sampled vote.


MIXED_SEED, MIXED_VOTES, MIXED_TEMPERATURE = 20261122, 600, 0.5
# With the proposal first, B has probability 0.32 at temperature 1, and is not listed; with it second, both labels are.
LISTED = 0.4


@pytest.fixture
def hides(scripted: Endpoint, script: Script) -> Endpoint:
    script.answer = hiding(KNOWN, LISTED)
    # As *Test* has seen it.
    scripted.samples_untruncated = True
    return scripted


def z_scores(
    cast: Callable[[Sequence[bool], np.random.Generator], Sequence[judge_calls.ModelAnswer]],
) -> dict[bool, float]:
    """Return, by order, how many standard deviations the votes for the proposal lie off their Binomial mean."""
    draws = np.random.default_rng(MIXED_SEED)
    votes = cast([index % 2 == 0 for index in range(MIXED_VOTES)], draws)
    found = {}
    for first in (True, False):
        said = [vote.value for vote in votes if vote.proposal_first == first]
        found[first] = z_score(sum(said), len(said), KNOWN.preference(PROPOSAL, CURRENT, MIXED_TEMPERATURE, first))
    return found


def test_the_mixture_has_the_distribution_of_a_sampled_vote(hides: Endpoint, script: Script) -> None:
    def cast(first: Sequence[bool], draws: np.random.Generator) -> Sequence[judge_calls.ModelAnswer]:
        votes = called(judge_calls.votes(hides, pair(MIXED_TEMPERATURE), first, draws, draws.random(MIXED_VOTES)))
        assert votes.failure is None
        assert [vote.index for vote in votes.given] == list(range(MIXED_VOTES))
        assert {(vote.proposal_first, vote.preference is None) for vote in votes.given} == {
            (True, True),
            (False, False),
        }
        return votes.given

    # 4 standard deviations happen once in 16,000 runs.
    assert all(abs(z) < 4 for z in z_scores(cast).values())
    assert len(votes_asked(script)) == 2 + MIXED_VOTES // 2


def test_a_vote_for_the_label_that_is_listed_would_be_noticed(hides: Endpoint) -> None:
    def cast(first: Sequence[bool], draws: np.random.Generator) -> Sequence[judge_calls.ModelAnswer]:
        # So that none is sampled.
        hides.samples_untruncated = None
        uniforms = draws.random(MIXED_VOTES)
        told = called(judge_calls.votes(hides, pair(MIXED_TEMPERATURE), first, draws, uniforms)).given
        rest = [index for index in range(MIXED_VOTES) if first[index]]
        return [*told, *(judge_calls.ModelAnswer(index, 1, 0, True) for index in rest)]

    assert abs(z_scores(cast)[True]) > 4


def test_what_was_sampled_once_is_not_asked_for_again(hides: Endpoint, script: Script) -> None:
    draws = np.random.default_rng(MIXED_SEED)
    votes = called(
        judge_calls.votes(hides, pair(MIXED_TEMPERATURE), [True] * 3, draws, draws.random(3), sampled={True})
    )
    assert [vote.preference for vote in votes.given] == [None] * 3
    assert len(votes_asked(script)) == 3

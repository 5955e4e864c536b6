"""What asking models for a whole campaign will take: requests, tokens and price, before it starts and while it runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models import Max
from django.db.models.functions import Length

import sampler
from prefmh_web.campaigns.lifecycle.model_start import wants_own_pairs
from prefmh_web.campaigns.models import Campaign, ModelUsage
from prefmh_web.campaigns.monitoring.judging import money
from prefmh_web.endpoints import probe, truth
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.probe import Most
from prefmh_web.endpoints.servers import Dialect

# Of more votes, the mean takes seconds to compute.
_LARGEST_BUDGET = 64


@dataclass(frozen=True)
class Tokens:
    """What a request has on average, and where that was seen."""

    read: float
    written: float
    seen: str

    def __str__(self) -> str:
        return f"{self.read:.0f} in, {self.written:.0f} out ({self.seen})"


@dataclass(frozen=True)
class Estimate:
    """What one judge will take, or the writing of texts.

    Args:
        question: empty where texts are written.
        most: the requests if no step is decided early and every reply can be read.
        expected: the mean where it is known, over all preferences from 0 to 1 alike, for base ratio 1.
        seconds: of an answered request to the endpoint so far, on average; None where none was.
        chains: that ask at the same time at most.
        wasted: how many of the expected ones bring a vote that no step needs, because all are asked for at once.
        tokens: of a request; None while none has been made.
        test: what Start takes for a test with this campaign's own pairs; None where it makes none.
        picture_tokens: of one picture of a prompt at most, as the documentation of the server's kind says; 0 where
            there is none, or it does not say.
    """

    question: str
    endpoint: Endpoint
    most: int
    expected: float | None
    tokens: Tokens | None
    picture_tokens: int = 0
    wasted: float | None = None
    is_at_once: bool = False
    seconds: float | None = None
    chains: int = 1
    test: Most | None = None

    @property
    def hours(self) -> str:
        """At the endpoint's measured speed, with as many requests at a time as it takes and chains ask."""
        if self.seconds is None:
            return "not measured yet"
        each = self.seconds / max(1, min(self.endpoint.concurrency, self.chains)) / 3600
        about = "" if self.expected is None else f", {each * self.expected:.2g} expected"
        return f"at most {each * self.most:.2g}{about}"

    @property
    def wasted_requests(self) -> int | None:
        return None if self.wasted is None else round(self.wasted)

    @property
    def expected_requests(self) -> int | None:
        return None if self.expected is None else round(self.expected)

    @property
    def price(self) -> str:
        """At most, and as expected; “price unknown” rather than a wrong figure."""
        endpoint, tokens = self.endpoint, self.tokens
        if endpoint.input_price is None or endpoint.output_price is None:
            return "price unknown: the endpoint has none"
        if endpoint.input_price == endpoint.output_price == 0:
            return "nothing"
        if tokens is None:
            return "price unknown until a request has been made"
        each = (tokens.read * endpoint.input_price + tokens.written * endpoint.output_price) / 1e6
        about = "" if self.expected is None else f", {money(each * self.expected)} expected"
        return f"at most {money(each * self.most)}{about}"


def estimates_of(campaign: Campaign) -> list[Estimate]:
    """Return what each model of a campaign will take; empty where none is asked."""
    return [] if not asks_models(campaign) else list(_estimates(campaign))


def asks_models(campaign: Campaign) -> bool:
    """Say whether a campaign asks models of endpoints, or has them write."""
    return campaign.backend == "served-texts" or any(
        isinstance(judge.source, sampler.ModelSource) for judge in campaign.config.judges
    )


def _estimates(campaign: Campaign) -> Iterator[Estimate]:
    config = campaign.config
    endpoints = {endpoint.name: endpoint for endpoint in Endpoint.objects.filter(owner=campaign.owner_id)}
    if isinstance(config.space, sampler.ServedTextsConfig) and config.space.model in endpoints:
        writer = endpoints[config.space.model]
        # Both texts that a step may lead to are written while it is open, and each takes two requests.
        texts = config.chains_at_most * 2 * config.steps
        tokens, seconds = _tokens(campaign, ModelUsage.PROPOSALS, writer), writer.totals.mean_seconds
        yield Estimate("", writer, 2 * texts, None, tokens, seconds=seconds, chains=config.chains_at_most)
    for place, judge in enumerate(config.judges):
        if isinstance(judge.source, sampler.ModelSource) and judge.source.endpoint in endpoints:
            endpoint = endpoints[judge.source.endpoint]
            most = _most_requests(campaign, config, judge)
            tokens, picture = _tokens(campaign, place, endpoint), _picture_tokens(campaign, judge.source, endpoint)
            needed, is_at_once = _expected(config, judge), _is_at_once(config, judge)
            expected = most if is_at_once and not _tells_p(judge) else needed
            wasted = None if not is_at_once or needed is None else most - needed
            speed = endpoint.totals.mean_seconds, config.chains_at_most
            test = _test(campaign, endpoint)
            yield Estimate(judge.question, endpoint, most, expected, tokens, picture, wasted, is_at_once, *speed, test)


def _test(campaign: Campaign, endpoint: Endpoint) -> Most | None:
    if not campaign.is_draft or not wants_own_pairs(campaign, endpoint):
        return None
    longest = campaign.states.aggregate(longest=Max(Length("content"), default=0))["longest"]
    found = probe.most(endpoint, truth.MOST_TRUE, longest)
    # What objects take that are still to be made, or are pictures, is not known.
    return found if longest and campaign.object_kind.name in ("texts", "markdown") else Most(found.requests, None)


def _most_requests(campaign: Campaign, config: sampler.ChainConfig, judge: sampler.JudgeConfig) -> int:
    steps = config.chains_at_most * config.steps
    if config.rule.evidence == "ratings":
        # An object keeps its ratings: each proposal is rated, and each start.
        rated = steps + config.chains_at_most
        objects = rated if config.generates else min(rated, campaign.states.count())
        return objects * judge.votes
    if _tells_p(judge):
        # One for each order in which the pair is shown.
        return steps * (1 if judge.order.startswith("proposal") else min(2, judge.votes))
    return steps * judge.votes


def _expected(config: sampler.ChainConfig, judge: sampler.JudgeConfig) -> float | None:
    """Return the mean number of requests with early stopping that can be needed, where the rule has that figure."""
    is_alone = len(config.judges) == 1 and judge.votes <= _LARGEST_BUDGET
    if not is_alone or config.rule.evidence == "ratings" or _tells_p(judge):
        return None
    votes = sampler.step_votes((judge.votes,))
    return None if votes is None else votes * config.chains_at_most * config.steps


def _is_at_once(config: sampler.ChainConfig, judge: sampler.JudgeConfig) -> bool:
    is_chosen = isinstance(judge.source, sampler.ModelSource) and judge.source.all_at_once
    return is_chosen and config.rule.evidence != "ratings"


def _tells_p(judge: sampler.JudgeConfig) -> bool:
    return isinstance(judge.source, sampler.ModelSource) and judge.source.votes == "log-probabilities"


def _tokens(campaign: Campaign, place: int, endpoint: Endpoint) -> Tokens | None:
    if measured := _measured(campaign, place):
        return measured
    totals = endpoint.totals
    if totals.answered and totals.tokens_in + totals.tokens_out:
        seen = "mean of the endpoint’s requests so far, its test included; Start measures this campaign’s"
        return Tokens(totals.tokens_in / totals.answered, totals.tokens_out / totals.answered, seen)
    return None


def _picture_tokens(campaign: Campaign, source: sampler.ModelSource, endpoint: Endpoint) -> int:
    is_drawn = source.vision is not None and source.vision.molecules in ("picture", "both")
    is_shown = campaign.object_kind.medium == "picture" or is_drawn
    return Dialect(endpoint.dialect).server.picture_tokens if is_shown else 0


def _measured(campaign: Campaign, place: int) -> Tokens | None:
    usage = campaign.model_usage.filter(place=place).first()
    if usage is None or not usage.answered or not usage.tokens_in + usage.tokens_out:
        return None
    return Tokens(usage.tokens_in / usage.answered, usage.tokens_out / usage.answered, "measured in this campaign")

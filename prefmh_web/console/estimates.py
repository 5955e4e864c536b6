"""What asking models for a whole campaign will take: requests, tokens and price, before it starts and while it runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import Max
from django.db.models.functions import Length

import sampler
from prefmh_web.campaigns.lifecycle.model_start import wants_own_pairs
from prefmh_web.campaigns.model_judges.frozen_judges import tells_p
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


def estimates_of(campaign: Campaign) -> list[dict[str, Any]]:
    """Return what each model of a campaign will take, a judge each or the writing of texts, for the template
    `console/_model_estimate.html`; empty where none is asked.

    ``most`` are the requests if no step is decided early and every reply can be read, ``expected`` their mean where it
    is known, over all preferences from 0 to 1 alike, for base ratio 1. Where all votes are asked for at once,
    ``wasted`` of these bring a vote that no step needs. ``test`` is what Start takes for a test with this campaign's
    own pairs, where it makes one. ``picture_tokens`` are those of one picture of a prompt at most, as the documentation
    of the server's kind says; 0 where there is none, or it does not say.
    """
    return [] if not asks_models(campaign) else list(_estimates(campaign))


def asks_models(campaign: Campaign) -> bool:
    """Say whether a campaign asks models of endpoints, or has them write."""
    return campaign.backend == "served-texts" or any(
        isinstance(judge.source, sampler.ModelSource) for judge in campaign.config.judges
    )


def _estimates(campaign: Campaign) -> Iterator[dict[str, Any]]:
    config = campaign.config
    endpoints = {endpoint.name: endpoint for endpoint in Endpoint.objects.filter(owner=campaign.owner_id)}
    if isinstance(config.space, sampler.ServedTextsConfig) and config.space.model in endpoints:
        # Both texts that a step may lead to are written while it is open, and each takes two requests.
        most = 4 * config.chains_at_most * config.steps
        yield _estimate(campaign, ModelUsage.PROPOSALS, endpoints[config.space.model], most, None)
    for place, judge in enumerate(config.judges):
        source = judge.source
        if isinstance(source, sampler.ModelSource) and source.endpoint in endpoints:
            endpoint = endpoints[source.endpoint]
            most, needed = _most_requests(campaign, judge, source), _needed(config, judge, source)
            is_at_once = source.all_at_once and config.rule.evidence != "ratings"
            expected = most if is_at_once and not tells_p(source, config.rule) else needed
            yield _estimate(campaign, place, endpoint, most, expected) | {
                "question": judge.question,
                "picture_tokens": _picture_tokens(campaign, source, endpoint),
                "is_at_once": is_at_once,
                "wasted": None if needed is None else round(most - needed),
                "test": _test(campaign, endpoint),
            }


def _estimate(campaign: Campaign, place: int, endpoint: Endpoint, most: int, expected: float | None) -> dict[str, Any]:
    tokens = _tokens(campaign, place, endpoint)
    return {
        "endpoint": endpoint,
        "most": most,
        "expected": None if expected is None else round(expected),
        "tokens": tokens,
        "hours": _hours(endpoint, campaign.config.chains_at_most, most, expected),
        "price": _price(endpoint, tokens, most, expected),
    }


def _hours(endpoint: Endpoint, chains: int, most: int, expected: float | None) -> str:
    """Return how long requests take at the endpoint's measured speed, as many at a time as it takes and chains ask."""
    seconds = endpoint.totals.mean_seconds
    if seconds is None:
        return "not measured yet"
    each = seconds / max(1, min(endpoint.concurrency, chains)) / 3600
    about = "" if expected is None else f", {each * expected:.2g} expected"
    return f"at most {each * most:.2g}{about}"


def _price(endpoint: Endpoint, tokens: Tokens | None, most: int, expected: float | None) -> str:
    """Return what requests cost at most, and as expected; “price unknown” rather than a wrong figure."""
    if endpoint.input_price is None or endpoint.output_price is None:
        return "price unknown: the endpoint has none"
    if endpoint.input_price == endpoint.output_price == 0:
        return "nothing"
    if tokens is None:
        return "price unknown until a request has been made"
    each = (tokens.read * endpoint.input_price + tokens.written * endpoint.output_price) / 1e6
    about = "" if expected is None else f", {money(each * expected)} expected"
    return f"at most {money(each * most)}{about}"


def _test(campaign: Campaign, endpoint: Endpoint) -> Most | None:
    if not campaign.is_draft or not wants_own_pairs(campaign, endpoint):
        return None
    longest = campaign.states.aggregate(longest=Max(Length("content"), default=0))["longest"]
    found = probe.most(endpoint, truth.MOST_TRUE, longest)
    # What objects take that are still to be made, or are pictures, is not known.
    return found if longest and campaign.object_kind.name in ("texts", "markdown") else Most(found.requests, None)


def _most_requests(campaign: Campaign, judge: sampler.JudgeConfig, source: sampler.ModelSource) -> int:
    config = campaign.config
    steps = config.chains_at_most * config.steps
    if config.rule.evidence == "ratings":
        # An object keeps its ratings: each proposal is rated, and each start.
        rated = steps + config.chains_at_most
        objects = rated if config.generates else min(rated, campaign.states.count())
        return objects * judge.votes
    if tells_p(source, config.rule):
        # One for each order in which the pair is shown.
        return steps * (1 if judge.order.startswith("proposal") else min(2, judge.votes))
    return steps * judge.votes


def _needed(config: sampler.ChainConfig, judge: sampler.JudgeConfig, source: sampler.ModelSource) -> float | None:
    """Return the mean number of requests with early stopping that can be needed, where the rule has that figure."""
    is_alone = len(config.judges) == 1 and judge.votes <= _LARGEST_BUDGET
    if not is_alone or config.rule.evidence == "ratings" or tells_p(source, config.rule):
        return None
    votes = sampler.step_votes((judge.votes,))
    return None if votes is None else votes * config.chains_at_most * config.steps


def _tokens(campaign: Campaign, place: int, endpoint: Endpoint) -> Tokens | None:
    usage, totals = campaign.model_usage.filter(place=place).first(), endpoint.totals
    seen = "mean of the endpoint’s requests so far, its test included; Start measures this campaign’s"
    for counted, where in ((usage, "measured in this campaign"), (totals, seen)):
        if counted and counted.answered and counted.tokens_in + counted.tokens_out:
            return Tokens(counted.tokens_in / counted.answered, counted.tokens_out / counted.answered, where)
    return None


def _picture_tokens(campaign: Campaign, source: sampler.ModelSource, endpoint: Endpoint) -> int:
    is_drawn = source.vision is not None and source.vision.molecules in ("picture", "both")
    is_shown = campaign.object_kind.medium == "picture" or is_drawn
    return Dialect(endpoint.dialect).server.picture_tokens if is_shown else 0

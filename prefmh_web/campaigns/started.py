"""From the record to the sampler's values: plans, positions, comparisons, tallies."""

from collections.abc import Hashable, Iterable
from datetime import datetime
from functools import lru_cache

import sampler
from prefmh_web.campaigns import recipes, writers
from prefmh_web.campaigns.models import Campaign, Chain, Comparison, Judge, State, Vote


def plan_of(campaign: Campaign) -> sampler.Plan:
    """Return the plan of a campaign. A started campaign's is kept in memory, since nothing in it can change.

    Raises:
        sampler.RecipeError: the recipe does not parse or does not fit the catalog.
    """
    if campaign.started_at is None:
        return _build(campaign)
    return _built(campaign.pk, campaign.started_at)


@lru_cache(maxsize=64)
def _built(campaign_id: int, started_at: datetime) -> sampler.Plan:
    return _build(Campaign.objects.get(pk=campaign_id))


def _build(campaign: Campaign) -> sampler.Plan:
    recipe = recipes.recipe_of(campaign)
    if campaign.is_written_by_a_model:
        return recipe.build(model=writers.writer_of(campaign))
    if recipe.generates:
        return recipe.build()
    rows = list(campaign.states.order_by("place").values_list("weight", "neighbours"))
    graph = tuple(tuple(neighbours) for _, neighbours in rows)
    return recipe.build(sampler.Catalog([weight for weight, _ in rows], graph if any(graph) else ()))


def position_of(chain: Chain) -> sampler.Position:
    """Return where a chain stands."""
    return sampler.Position(chain.place, chain.step, state_of(chain.campaign, chain.head))


def state_of(campaign: Campaign, row: State) -> Hashable:
    """Return the sampler's value of a stored object: its place in the catalog, or what its code says.

    Raises:
        ValueError: the code is none that the space reads.
    """
    return row.place if campaign.has_catalog else plan_of(campaign).space.decode(row.code)


def judges_of(campaign: Campaign) -> tuple[Judge, ...]:
    """Return the judges of a started campaign, by place; kept in memory as its plan is."""
    return _judges(campaign.pk, campaign.started_at)


@lru_cache(maxsize=64)
def _judges(campaign_id: int, started_at: datetime) -> tuple[Judge, ...]:
    return tuple(Judge.objects.filter(campaign=campaign_id).select_related("endpoint").order_by("place"))


def uses_models(campaign: Campaign) -> bool:
    """True when some judge of a started campaign is a model."""
    return any(judge.is_model for judge in judges_of(campaign))


def budgets_of(campaign: Campaign) -> tuple[int, ...]:
    """Return N_i of each judge of a started campaign."""
    return tuple(judge.budget for judge in judges_of(campaign))


def rule_of(campaign: Campaign) -> sampler.PointwiseRecipe:
    """Return the rule of a started campaign whose objects are rated; kept in memory as its plan is."""
    return _rule(campaign.pk, campaign.started_at)


@lru_cache(maxsize=64)
def _rule(campaign_id: int, started_at: datetime) -> sampler.PointwiseRecipe:
    return recipes.recipe_of(Campaign.objects.get(pk=campaign_id)).rule


def ratings_of(campaign: Campaign, state: State) -> list[list[int]]:
    """Return an object's ratings so far, by judge and slot."""
    stored = sorted(state.ratings.all(), key=lambda rating: rating.slot)
    return [[rating.value for rating in stored if rating.judge_id == judge.pk] for judge in judges_of(campaign)]


def verdict_by_ratings(comparison: Comparison) -> sampler.Verdict:
    """Return what the ratings stored so far say about a comparison."""
    campaign = comparison.chain.campaign
    ratings = [ratings_of(campaign, state) for state in (comparison.current, comparison.proposal)]
    return sampler.tell_by_ratings(rule_of(campaign), asked_in(comparison), *ratings)


def asked_in(comparison: Comparison) -> sampler.Comparison:
    """Return the sampler's value of a stored comparison. Numbers of rows stand for the objects: all that a verdict
    asks of them is whether they are the same.
    """
    return sampler.Comparison(
        comparison.chain.place,
        comparison.step,
        comparison.current_id,
        comparison.proposal_id,
        comparison.log_r0,
        comparison.uniform,
        budgets_of(comparison.chain.campaign),
    )


def tally_of(campaign: Campaign, counted: Iterable[Vote]) -> sampler.Tally:
    """Return the tally of one comparison's counted votes."""
    place = {judge.pk: judge.place for judge in judges_of(campaign)}
    tally = sampler.Tally.empty(len(place))
    for vote in counted:
        tally = tally.add(place[vote.judge_id], vote.for_proposal)
    return tally

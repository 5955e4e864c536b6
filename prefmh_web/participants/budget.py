"""A budget in answers: a campaign starts only if all that it can ask for fits, and no more than that is ever given.

An answer is a vote of a person, one that came too late included, or an answer to a trial that is no vote. A pair that
is skipped, or whose time runs out, costs nothing.

    needs              what a campaign can ask for
    demand_fit         refuses a start whose budget is too small
    takes_one_more     whether a trial, or a vote that came too late, may be added
    spent              what has been given

The votes that every step can need are set aside from the start, so no trial is ever given in the place of one. Only the
rest is for trials and late votes. How much of that is left is a matter of how many there were; votes that are saved
because a step is decided early do not add to it, for that would depend on what was answered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import ceil

from django.db.models import Sum

import sampler
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.models import Annotator, Campaign, Vote
from prefmh_web.participants.models import Check, ErasedTrials
from prefmh_web.participants.protocol import Protocol
from prefmh_web.participants.recruiting import recruitment_of, terms_of

_ALMOST = 1e-9
"""Shares are decimals that no float holds exactly: 600 votes with a trial after 10 % of them come to 60."""


@dataclass(frozen=True)
class Needs:
    """What a campaign can ask of people.

    Args:
        chains: how many there can be.
        steps: of each, those of a warm-up included.
        votes_a_step: of people, if nothing is decided early.
        trials: to which the declared shares come, beside the votes.
    """

    chains: int
    steps: int
    votes_a_step: int
    trials: int

    @property
    def votes(self) -> int:
        """The votes of all steps."""
        return self.chains * self.steps * self.votes_a_step

    @property
    def answers(self) -> int:
        """The least budget with which a campaign can start."""
        return self.votes + self.trials


@dataclass(frozen=True)
class Spent:
    """The answers that have been given: votes, those among them that came too late, and trials."""

    votes: int
    late: int
    trials: int

    @property
    def answers(self) -> int:
        """All of them."""
        return self.votes + self.trials


def needs(recipe: sampler.Recipe, protocol: Protocol) -> Needs:
    """Return what a campaign can ask of people, by its setup alone."""
    people = [judge for judge in recipe.judges if not isinstance(judge.source, sampler.ModelSource)]
    a_step = sum(judge.budget for judge in people)
    votes = recipe.chains_at_most * recipe.steps * a_step
    return Needs(recipe.chains_at_most, recipe.steps, a_step, _trials(votes, protocol))


def _trials(votes: int, protocol: Protocol) -> int:
    between = ceil(votes * protocol.shares.total - _ALMOST)
    # Of all that is answered, so many for each that is not a repeat while somebody waits.
    waiting = protocol.waiting_share / (1 - protocol.waiting_share)
    return between + ceil((votes + between) * waiting - _ALMOST)


def demand_fit(campaign: Campaign) -> None:
    """Demand that the budget of a campaign, if it has one, covers whatever its chains and shares can ask for.

    Raises:
        NotPossible: it does not; the message says what would.
    """
    recruitment = recruitment_of(campaign)
    if recruitment.budget is None:
        return
    wanted = needs(campaign.readable_recipe, recruitment.parsed_protocol)
    if recruitment.budget < wanted.answers:
        trials = f", and the shares of the protocol come to {wanted.trials} trials beside them" if wanted.trials else ""
        raise NotPossible(
            f"The budget of {recruitment.budget} answers is too small: {wanted.chains} chains of {wanted.steps} steps "
            f"with {wanted.votes_a_step} votes each can take {wanted.votes} votes{trials}. On the page “Participants”, "
            f"set “Budget, in answers” to {wanted.answers} or more or leave it empty; or choose fewer chains, steps or "
            "votes in the setup, or smaller shares on the page “Protocol”."
        )


def takes_one_more(campaign: Campaign) -> bool:
    """Return whether a trial, or a vote that came too late, may be added. Within a transaction: until its end, nobody
    else adds one. Only where there is a budget.
    """
    # Seen without a lock first: where nothing is left, none is held while a pair is looked for.
    if _left(campaign) <= 0:
        return False
    # The last of all locks, see `engine/leases.py`.
    Campaign.objects.select_for_update(no_key=True).values_list("pk").get(pk=campaign.pk)
    return _left(campaign) > 0


def keeps_late(campaign: Campaign) -> Callable[[], bool] | None:
    """Return what says whether a vote that came too late to count is kept; None where every one is."""
    return None if terms_of(campaign).budget is None else partial(takes_one_more, campaign)


def _left(campaign: Campaign) -> int:
    recruitment, recipe = recruitment_of(campaign), campaign.parsed_recipe
    set_aside = needs(recipe, recruitment.parsed_protocol).votes
    return (recruitment.budget or 0) - set_aside - _late(campaign) - _trials_out(campaign)


def spent(campaign: Campaign) -> Spent:
    """Return the answers that people have given until now."""
    votes = Annotator.objects.filter(campaign=campaign).aggregate(given=Sum("votes_cast"))["given"] or 0
    answered = Check.objects.filter(participation__campaign=campaign).exclude(chosen_side="").count()
    return Spent(votes, _late(campaign), answered + _erased(campaign))


def _late(campaign: Campaign) -> int:
    return Vote.objects.filter(annotator__campaign=campaign, number=None).count()


def _trials_out(campaign: Campaign) -> int:
    """Return how many trials were answered or can still be: all but those that were skipped."""
    given = Check.objects.filter(participation__campaign=campaign)
    return given.exclude(chosen_side="", answered_at__isnull=False).count() + _erased(campaign)


def _erased(campaign: Campaign) -> int:
    return ErasedTrials.objects.filter(campaign=campaign).aggregate(all=Sum("trials"))["all"] or 0

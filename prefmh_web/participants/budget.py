"""A budget in answers: a campaign starts only if all that it can ask for fits, and no more than that is ever given.

An answer is a vote of a person, one that came too late included, or an answer to a trial that is no vote. A pair that
is skipped, or whose time runs out, costs nothing.

    needs              what a campaign can ask for
    demand_fit         refuses a start whose budget is too small
    takes_one_more     whether a trial, or a vote that came too late, may be added
    spent              what has been given
    spending_of        what the pages show of it, with what the places cost
    estimate_of        what a draft will take of people
    supply_of          the votes that are still needed, and those that places still bring

The votes that every step can need are set aside from the start, so no trial is ever given in the place of one. Only the
rest is for trials and late votes. How much of that is left is a matter of how many there were; votes that are saved
because a step is decided early do not add to it, for that would depend on what was answered.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from django.db.models import Count, F, Q, Sum

import sampler
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.models import Annotator, Campaign, Vote
from prefmh_web.campaigns.started import started_campaign
from prefmh_web.config import Protocol, Study
from prefmh_web.participants import places
from prefmh_web.participants.models import Check
from prefmh_web.participants.recruiting import terms_of
from sampler.judges import trials_after


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


@dataclass(frozen=True)
class Supply:
    """The votes that a campaign still needs of people, and those that they can still give.

    Args:
        steps: that are not decided.
        most: the votes that these can need.
        expected: those that they need if voters are indifferent; None where that takes too long to work out.
        can_give: of who has a place, the votes that they have not given, and all votes of each free place; None for no
            limit.
        is_full: no place is free.
    """

    steps: int
    most: int
    expected: float | None
    can_give: int | None
    is_full: bool

    @property
    def wanted(self) -> int:
        """The expected votes, or the most where they are not known."""
        return self.most if self.expected is None else math.ceil(self.expected)

    @property
    def is_short(self) -> bool:
        """True where the places do not bring the votes that are expected to be needed."""
        return self.can_give is not None and self.can_give < self.wanted


@dataclass(frozen=True)
class Spending:
    """What the pages show: answers against the budget, and places times pay.

    Args:
        spent: what has been given; None of a draft.
        supply: what is still needed and can be given; None where people have nothing left to judge.
    """

    study: Study
    needs: Needs
    spent: Spent | None
    supply: Supply | None

    @property
    def budget(self) -> int | None:
        """In answers; None for no limit."""
        return self.study.budget

    @property
    def is_too_small(self) -> bool:
        """True where the campaign cannot start with this budget."""
        return self.budget is not None and self.budget < self.needs.answers

    @property
    def places(self) -> int | None:
        """How many people can take part."""
        return self.study.places

    @property
    def place_pay(self) -> str:
        """What a place is paid."""
        return self.study.priced(self.study.place_pay)

    @property
    def cost(self) -> str:
        """What all places cost; empty where that is not known."""
        return self.study.priced(self.study.cost_of_places)

    @property
    def per_vote(self) -> str:
        """What a vote costs if all places are paid and give as many votes as the steps can take."""
        cost, each = self.study.cost_of_places, self.study.votes_each
        bought = self.needs.votes if each is None else min(self.needs.votes, each * (self.places or 0))
        return self.study.priced(cost / bought) if cost and bought else ""


def needs(config: sampler.ChainConfig, protocol: Protocol) -> Needs:
    """Return what a campaign can ask of people, by its setup alone."""
    votes = config.chains_at_most * config.steps * config.votes_a_step
    trials = trials_after(votes, protocol.shares)
    return Needs(config.chains_at_most, config.steps, config.votes_a_step, trials)


def demand_fit(campaign: Campaign) -> None:
    """Demand that the budget of a campaign, if it has one, covers whatever its chains and shares can ask for, and that
    there are places for as many different people as each pair needs.

    Raises:
        NotPossible: one does not; the message says what would do.
    """
    study = campaign.config.study
    wanted, people = needs(campaign.config, study.protocol), max(_asked(campaign), default=0)
    if study.places is not None and study.places < people:
        raise NotPossible(
            f"Each pair needs votes of {people} different people, and there are {study.places} places. On the "
            f"page “Participants”, set “Places” to {people} or more, or ask for fewer votes in the setup."
        )
    if study.budget is None:
        return
    if study.budget < wanted.answers:
        trials = f", and the shares of the protocol come to {wanted.trials} trials beside them" if wanted.trials else ""
        raise NotPossible(
            f"The budget of {study.budget} answers is too small: {wanted.chains} chains of {wanted.steps} steps "
            f"with {wanted.votes_a_step} votes each can take {wanted.votes} votes{trials}. On the page “Participants”, "
            f"set “Budget, in answers” to {wanted.answers} or more or leave it empty; or choose fewer chains, steps or "
            "votes in the setup, or smaller shares on the page “Protocol”."
        )


def demand_covers(campaign: Campaign) -> None:
    """Demand that the budget of a started campaign, if it has one, covers chains as long as its config now says.

    Raises:
        NotPossible: it does not; the message says how many answers would.
    """
    study = campaign.config.study
    wanted = needs(campaign.config, study.protocol)
    if study.budget is not None and study.budget < wanted.answers:
        raise NotPossible(
            f"The budget of {study.budget} answers is too small: {wanted.chains} chains of {wanted.steps} steps "
            f"can take {wanted.answers} answers."
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
    study = campaign.config.study
    set_aside = needs(started_campaign(campaign).config, study.protocol).votes
    return (study.budget or 0) - set_aside - _late(campaign) - _trials_out(campaign)


def spent(campaign: Campaign) -> Spent:
    """Return the answers that people have given until now."""
    votes = Annotator.objects.filter(campaign=campaign).aggregate(given=Sum("votes_cast"))["given"] or 0
    answered = Check.objects.filter(participation__campaign=campaign).exclude(chosen_side="").count()
    return Spent(votes, _late(campaign), answered)


def spending_of(campaign: Campaign, study: Study) -> Spending | None:
    """Return what a campaign can cost; None where there is nothing to say, or its setup cannot be read."""
    is_known = study.budget is not None or study.cost_of_places is not None
    if not (campaign.is_draft or is_known):
        return None
    needed = needs(campaign.config, study.protocol)
    supply = supply_of(campaign, study)
    return Spending(study, needed, None if campaign.is_draft else spent(campaign), supply)


def _late(campaign: Campaign) -> int:
    return Vote.objects.filter(annotator__campaign=campaign, number=None).count()


def _trials_out(campaign: Campaign) -> int:
    """Return how many trials were answered or can still be: all but those that were skipped."""
    given = Check.objects.filter(participation__campaign=campaign)
    return given.exclude(chosen_side="", answered_at__isnull=False).count()


def _asked(campaign: Campaign) -> list[int]:
    """Return N of each judge whose votes are people's."""
    config = campaign.config
    if config.rule.evidence != "votes":
        return []
    return [judge.votes for judge in config.judges if not isinstance(judge.source, sampler.ModelSource)]


def supply_of(campaign: Campaign, study: Study) -> Supply | None:
    """Return the votes that are still needed and can be given; None where people have nothing left to judge."""
    asked, left = _asked(campaign), _steps_left(campaign)
    if not asked or not left:
        return None
    estimate = sampler.estimate(1, left, asked)
    is_full = places.are_all_taken(campaign, study)
    return Supply(left, estimate.most_votes, estimate.votes, _can_give(campaign, study), is_full)


def _steps_left(campaign: Campaign) -> int:
    config = campaign.config
    if campaign.is_draft:
        return config.chains_at_most * config.steps
    if campaign.status == Campaign.Status.FINISHED:
        return 0
    undecided = Sum(F("length") - F("step"), filter=Q(ended_at=None), default=0)
    opened = campaign.chains.aggregate(count=Count("pk"), left=undecided)
    left: int = opened["left"] + (config.chains_at_most - opened["count"]) * config.steps
    return left


def _can_give(campaign: Campaign, study: Study) -> int | None:
    if study.places is None or study.votes_each is None:
        return None
    holders = places.held(campaign, study)
    still = holders.filter(outcome="").aggregate(people=Count("pk"), votes=Sum("annotator__votes_cast", default=0))
    free = max(0, study.places - holders.count())
    owed: int = still["people"] * study.votes_each - still["votes"]
    return free * study.votes_each + max(0, owed)


def estimate_of(campaign: Campaign, study: Study) -> sampler.Estimate | None:
    """Return what a draft will take of people; None where nobody votes."""
    config, asked = campaign.config, _asked(campaign)
    if not asked:
        return None
    pay = study.place_pay
    return sampler.estimate(
        config.chains_at_most,
        config.steps,
        asked,
        burn_in=config.burn_in,
        votes_each=study.votes_each,
        place_pay=None if pay is None else float(pay),
    )

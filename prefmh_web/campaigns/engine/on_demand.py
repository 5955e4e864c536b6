"""The one door through which a chain opens after the start: for somebody who would wait, as the config allows.

    are_possible     whether a campaign may open a further chain; never where their number is fixed
    lock             locks the campaign, so that one chain opens at a time
    open_for         opens one for a person: at once where a file has the objects, else once a task has drawn its start
    open_spare       wants some for people who are there, before they would wait: where a model takes seconds
    wanted           what such a task has to do; forget_needless takes from it what nobody waits for any more
    reserved         gives out numbers of chains whose starts are to be drawn, each to one worker at a time; store_start
                     keeps what was drawn, note_failure why nothing was
    open_drawn       opens those whose starts are drawn, in the order of their numbers, whichever is drawn first
    seekers          for whom of those that wait a chain may open now

When a chain opens may depend on who is there and who waits, and on nothing else: its start, its steps and its uniforms
are functions of the seed and of its number. The campaign's lock is the last of all (`engine/leases.py`): who holds it
waits for nobody.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone

from prefmh_web.campaigns import dispatch, frozen, objects
from prefmh_web.campaigns.engine import transitions, usage
from prefmh_web.campaigns.engine.locks import claim_end, held, unclaimed
from prefmh_web.campaigns.frozen import started_campaign
from prefmh_web.campaigns.models import Campaign, Chain, ChainOnDemand, Comparison, Lease, State, Voter
from prefmh_web.transport import sockets

# Where a chain takes seconds to open, there is a free pair for one in so many of those who are there.
PEOPLE_FOR_ONE_AHEAD = 4
# How long people may read, practise and answer questions before their first pair.
READING = timedelta(minutes=15)
_HAS_NOT_VOTED = Q(votes_cast=0)


def are_possible(campaign: Campaign) -> bool:
    """True when there are fewer chains than there may be, those that are to be opened included. Seen without a lock."""
    return _room(campaign) > 0


def lock(campaign: Campaign) -> bool:
    """Lock a campaign until the transaction ends; False if it opens no further chain."""
    return _locked_status(campaign) == Campaign.Status.RUNNING and are_possible(campaign)


def open_for(voter: Voter) -> None:
    """Open a chain of a locked campaign for somebody who would wait, unless one is on its way to them."""
    if _pending().filter(voter=voter).exists():
        return
    campaign = voter.campaign
    demand = ChainOnDemand.objects.create(campaign=campaign, voter=voter)
    index = campaign.chains.count()
    start = frozen.start(campaign, index)
    if start is None:
        dispatch.open_chains(campaign)
    else:
        _open(demand, index, start)


def open_spare(campaign: Campaign) -> None:
    """Demand so many chains that all newcomers find a free pair, and one in four of all who are there another."""
    with transaction.atomic():
        if not lock(campaign):
            return
        missing = min(_needed_soon(campaign) - _free_soon(campaign), _room(campaign))
        # One is on its way to each person at most.
        provided = ChainOnDemand.objects.filter(voter=OuterRef("pk"), chain__isnull=True)
        people = _here(campaign).filter(~Exists(provided)).order_by("-pk")[: max(missing, 0)]
        ChainOnDemand.objects.bulk_create(
            ChainOnDemand(campaign=campaign, voter=person, is_ahead=True) for person in people
        )
    if missing > 0:
        dispatch.open_chains(campaign)


def wanted() -> QuerySet[ChainOnDemand]:
    """Chains of running campaigns that are to be opened, those first that were wanted first."""
    found = ChainOnDemand.objects.filter(chain__isnull=True, campaign__status=Campaign.Status.RUNNING)
    return found.order_by("pk")


def forget_needless() -> None:
    """Take back what was wanted for people who have a pair by now, or have lost access; not what is being drawn."""
    live = Lease.objects.filter(voter=OuterRef("voter"), ended_at__isnull=True)
    needless = Q(voter__removed_at__isnull=False) | Q(Exists(live), is_ahead=False)
    wanted().filter(needless, index=None).delete()


@contextmanager
def reserved(campaign: Campaign, most: int) -> Iterator[Mapping[int, ChainOnDemand]]:
    """Claim up to so many demands whose starts are to be drawn; yield them by their numbers, and free them after.

    A model takes seconds over a start, and may be paid for it, so no two workers draw the same one. A number stays with
    its demand: if the worker dies or the model fails, the next one draws for the same number.
    """
    until = claim_end()
    mine = _claimed(campaign, most, until)
    with held(ChainOnDemand, [each.pk for each in mine.values()], until):
        yield mine


def store_start(demand: ChainOnDemand, start: State) -> None:
    """Keep what was drawn for a demand, unless another worker has done so after this one was given up."""
    ChainOnDemand.objects.filter(pk=demand.pk, chain__isnull=True, start_code="").update(
        start_code=start.code, start_content=start.content
    )


def note_failure(campaign: Campaign, demands: Collection[ChainOnDemand], seconds: float, reason: str) -> None:
    """Leave demands whose starts are not drawn alone for a while, and show on the campaign's page why."""
    wanted().filter(pk__in=[each.pk for each in demands], start_code="").update(
        claimed_until=timezone.now() + timedelta(seconds=seconds), waits_because=reason[:300]
    )
    sockets.notify(sockets.watchers(campaign.pk))


def open_drawn(campaign: Campaign) -> None:
    """Open the chains whose starts are drawn, in the order of their numbers, up to the first that is not."""
    with transaction.atomic():
        if _locked_status(campaign) != Campaign.Status.RUNNING:
            return
        index = campaign.chains.count()
        for demand in wanted().filter(campaign=campaign, index__gte=index).order_by("index"):
            if demand.index != index or not demand.start_code:
                return
            start = objects.made(campaign, index, 0, demand.start_code, demand.start_content)
            start.save(force_insert=True)
            _open(demand, index, start.pk)
            index += 1


def seekers(campaign: Campaign, voter_ids: Sequence[int]) -> set[int]:
    """Return for whom of those that wait a chain may open now, in the order in which they came."""
    room = _room(campaign)
    if room <= 0:
        return set()
    provided = set(_pending().filter(campaign=campaign).values_list("voter", flat=True))
    return set([pk for pk in voter_ids if pk not in provided][:room])


def _claimed(campaign: Campaign, most: int, until: datetime) -> dict[int, ChainOnDemand]:
    with transaction.atomic():
        # Two workers would give the same number twice.
        Campaign.objects.select_for_update(no_key=True).get(pk=campaign.pk)
        waiting = wanted().filter(campaign=campaign)
        following = campaign.chains.count() + waiting.filter(index__isnull=False).count()
        # Numbers that were given out come first: no later chain opens before them.
        first = waiting.filter(unclaimed(), start_code="").order_by(F("index").asc(nulls_last=True), "pk")[:most]
        found, lost = dict[int, ChainOnDemand](), 0
        for demand in first:
            # What was left alone has nothing under way.
            lost += demand.claimed_until is not None and not demand.waits_because
            demand.waits_because = ""
            if demand.index is None:
                demand.index, following = following, following + 1
            demand.claimed_until = until
            found[demand.index] = demand
        ChainOnDemand.objects.bulk_update(found.values(), ["index", "claimed_until", "waits_because"])
        # Whoever claimed these did not end the claim.
        usage.note_lost_texts(campaign, lost)
    return found


def _room(campaign: Campaign) -> int:
    started = started_campaign(campaign)
    if not started.config.opens_on_demand:
        return 0
    still_wanted = ChainOnDemand.objects.filter(campaign=campaign, chain__isnull=True).count()
    return started.config.chains_at_most - campaign.chains.count() - still_wanted


def _here(campaign: Campaign) -> QuerySet[Voter]:
    """Return who has a page open, and who has just joined and may be reading before their first pair."""
    now = timezone.now()
    is_here = Q(online_until__gt=now) | (_HAS_NOT_VOTED & Q(joined_at__gt=now - READING))
    return Voter.objects.filter(is_here, campaign=campaign, removed_at=None)


def _needed_soon(campaign: Campaign) -> int:
    """Return how many free pairs there should be for those who are here."""
    live = Lease.objects.filter(voter=OuterRef("pk"), ended_at__isnull=True)
    here = _here(campaign)
    new = here.filter(_HAS_NOT_VOTED, ~Exists(live)).count()
    # Those who are new will soon have voted, and a chain takes as long to open.
    return new + math.ceil(here.count() / PEOPLE_FOR_ONE_AHEAD)


def _free_soon(campaign: Campaign) -> int:
    """Return how many pairs somebody may be asked about now, or once a proposal is drawn that is on its way."""
    free = Comparison.objects.filter(chain__campaign=campaign, verdict__isnull=True, is_askable=True).count()
    open_ones = Comparison.objects.filter(chain=OuterRef("pk"), verdict__isnull=True)
    proposing = campaign.chains.filter(~Exists(open_ones), step__lt=F("length"))
    if campaign.is_warming_up:
        # The others wait for the end of the warm-up.
        proposing = proposing.filter(step__lt=campaign.warm_up)
    return free + proposing.count() + ChainOnDemand.objects.filter(campaign=campaign, chain__isnull=True).count()


def _locked_status(campaign: Campaign) -> str:
    locked = Campaign.objects.select_for_update(no_key=True).values_list("status", flat=True)
    return str(locked.get(pk=campaign.pk))


def _pending() -> QuerySet[ChainOnDemand]:
    """Demands that have brought nobody a pair yet: without a chain, or its first proposal is being drawn."""
    open_ones = Comparison.objects.filter(chain=OuterRef("chain"), verdict__isnull=True)
    proposes = Q(chain__votes=0, chain__step__lt=F("chain__length")) & ~Exists(open_ones)
    return ChainOnDemand.objects.filter(Q(chain__isnull=True) | proposes)


def _open(demand: ChainOnDemand, index: int, start_id: int) -> None:
    length = started_campaign(demand.campaign).config.steps
    chain = Chain(campaign=demand.campaign, index=index, length=length)
    chain.start_id = chain.head_id = start_id
    demand.opened_at = timezone.now()
    transitions.begin_chain(chain)
    demand.chain = chain
    # They are the chain's and its start's own from now on.
    demand.index, demand.start_code, demand.start_content = None, "", ""
    demand.save(update_fields=["chain", "opened_at", "index", "start_code", "start_content"])

"""The next proposals of chains: drawn when they are needed, or ahead of time where a model takes its time over them.

    propose         one chain, by a kernel that is quick
    write           chains of a campaign that wait for a model: as many at once as it makes in one call
    prefetch        the two proposals each open step may lead to, drawn while people vote on it
    open_wanted     chains that people wait for

Kernels run outside any transaction, and new objects are encoded there. A chain that a model is at work for is claimed
(`claimed`), and nobody else has anything drawn for it meanwhile; one that the model failed is marked with the reason,
and tried again later.

`prepare_pictures` has one of the site's image models make the pictures of what the sampler draws, before anybody is
asked about them. Where a campaign's objects are no such pictures, nothing happens. `sampler` draws latents without the
model. Only the worker of the queue “gpu” makes pictures; every other process finds them among the files, under a name
that follows from the state's code. So a state that is there already needs no second picture, and one that two workers
make at once is one file. A row that names a picture, of a state or of a prefetched proposal, is written after the file:
where there is a row, there is a file.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery
from django.utils import timezone

import sampler
from prefmh_web.campaigns import dispatch, objects
from prefmh_web.campaigns.engine import on_demand, transitions, usage
from prefmh_web.campaigns.engine.locks import claim_end, held, unclaimed
from prefmh_web.campaigns.frozen import plan_of, position_of, space_of, state_of
from prefmh_web.campaigns.models import Campaign, Chain, ChainOnDemand, Comparison, PrefetchedProposal, State
from prefmh_web.endpoints.errors import EndpointError, TryLater, Unable
from prefmh_web.endpoints.local import local_decoder
from prefmh_web.objects import media
from prefmh_web.transport import sockets

logger = logging.getLogger(__name__)

# The sweep comes every five seconds, and a proposal is quick.
OVERDUE = timedelta(seconds=8)
_ATTENTION_PAUSE_S = 60
# Texts are written together, pictures made one by one: other campaigns come in between.
_TEXTS_AT_ONCE = 64


def propose(chain_id: int) -> None:
    """Run the kernel for a chain's next step and open the comparison."""
    chain = Chain.objects.select_related("campaign", "head").get(pk=chain_id)
    # A hint may come twice, and a kernel may take seconds.
    is_open = chain.comparisons.filter(verdict__isnull=True).exists()
    has_steps = chain.step < chain.length and not chain.waits_for_others
    if chain.campaign.is_running and has_steps and not is_open:
        drawn = sampler.ask(plan_of(chain.campaign), position_of(chain))
        transitions.open_comparison(chain_id, drawn, objects.proposed(chain, drawn))


def write(campaign_id: int) -> None:
    """Open the next comparison of chains that wait: prefetched ones, and the rest by one call of the model."""
    campaign = Campaign.objects.get(pk=campaign_id)
    if not campaign.is_running:
        return
    with claimed(_waiting_in(campaign)[: _at_once(campaign)], texts=1) as mine:
        may_go_on = _open_next(campaign, mine)
    if may_go_on and _waiting_in(campaign).exists():
        dispatch.write(campaign)


def prefetch(campaign_id: int) -> None:
    """Draw what the next step of each open comparison will propose, for either outcome, where that is not drawn yet."""
    campaign = Campaign.objects.get(pk=campaign_id)
    # What somebody waits for comes first.
    if not campaign.is_running or _waiting_in(campaign).exists():
        return
    most = _at_once(campaign)
    missing = _not_prefetched(campaign.chains.filter(unclaimed()))
    with claimed({comparison.chain for comparison, _ in missing[:most]}, texts=2) as mine:
        is_drawn = _draw_ahead(campaign, _not_prefetched(Chain.objects.filter(pk__in=mine))[:most])
    # Steps may have been decided meanwhile, and their chains have waited for what is there now.
    if (is_drawn and len(missing) > most) or _waiting_in(campaign).filter(pk__in=mine).exists():
        dispatch.write(campaign)


def open_wanted(campaign_id: int) -> None:
    """Open the chains of a campaign that are still wanted: as many at once as one call of its model serves."""
    on_demand.forget_needless()
    campaign = Campaign.objects.get(pk=campaign_id)
    # Drawn by a worker that died before it could open them.
    on_demand.open_drawn(campaign)
    is_more_wanted = True
    while is_more_wanted:
        with on_demand.reserved(campaign, _at_once(campaign)) as mine:
            is_more_wanted = _starts_are_drawn(campaign, mine)
        on_demand.open_drawn(campaign)


def open_spare_chains() -> None:
    """Demand chains ahead of time in running campaigns where a model makes the objects, and takes seconds over it."""
    for campaign in Campaign.objects.filter(status=Campaign.Status.RUNNING).defer("tuning"):
        if campaign.config.opens_on_demand and campaign.is_made_by_a_model:
            on_demand.open_spare(campaign)


def unopened_chains() -> QuerySet[Chain]:
    """Chains of running campaigns that have steps left and no comparison open.

    Not those that wait for the others at the end of the warm-up.
    """
    open_ones = Comparison.objects.filter(verdict__isnull=True).values("chain")
    found = Chain.objects.filter(~Q(pk__in=open_ones), campaign__status=Campaign.Status.RUNNING, step__lt=F("length"))
    return found.filter(_walks_are_known("campaign"))


def waiting_chains() -> QuerySet[Chain]:
    """Those of them that nobody is seeing to."""
    return unopened_chains().filter(unclaimed())


def is_overdue(campaign: Campaign) -> bool:
    """True when a chain of the campaign has been without a pair for longer than the sweep takes to find that.

    Not while a model is at work for it, which may take its time.
    """
    since = timezone.now() - OVERDUE
    decided = Comparison.objects.filter(chain=OuterRef("pk"), step=OuterRef("step"), decided_at__lt=since)
    waits_for_long = Exists(decided) | Q(step=0, campaign__started_at__lt=since)
    return unopened_chains().filter(~are_claimed(), waits_for_long, campaign=campaign).exists()


def chains_to_hint() -> Iterator[Chain]:
    """Yield the waiting chains; where a model makes proposals, one for its campaign.

    None where the model is at work for another chain of the campaign: whoever has it work gives the next hint. Else a
    model that is slower than the sweep would find more and more of them.
    """
    seen_to = set(Chain.objects.filter(are_claimed()).values_list("campaign", flat=True))
    for chain in waiting_chains().select_related("campaign").defer("campaign__tuning"):
        if chain.campaign.is_made_by_a_model:
            if chain.campaign_id in seen_to:
                continue
            seen_to.add(chain.campaign_id)
        yield chain


def are_claimed() -> Q:
    """What holds for chains that somebody is at work for."""
    return Q(claimed_until__gt=timezone.now(), texts_claimed__gt=0)


@contextmanager
def claimed(chains: Iterable[Chain], texts: int) -> Iterator[list[int]]:
    """Claim those of the chains that are free and have not moved; yield their keys, and free them at the end.

    What is to be done for them is read once they are claimed: somebody may have done it just before.

    Args:
        texts: how many are to be written for each.
    """
    until = claim_end()
    mine = []
    for chain in chains:
        # A guarded update: of two processes that see the same chain free, one gets it.
        free = Chain.objects.filter(unclaimed(), pk=chain.pk, step=chain.step, claimed_until=chain.claimed_until)
        with transaction.atomic():
            if free.update(claimed_until=until, texts_claimed=texts, waits_because=""):
                mine.append(chain.pk)
                # Whoever claimed it did not end the claim.
                usage.note_lost_texts(chain.campaign, chain.texts_claimed if chain.claimed_until else 0)
    with held(Chain, mine, until):
        yield mine


def _at_once(campaign: Campaign) -> int:
    return 1 if campaign.backend == "rendered-images" else _TEXTS_AT_ONCE


def _walks_are_known(campaign: str) -> Q:
    """Return what holds where it is known how far the step after `step` walks."""
    is_chosen = Q(**{f"{campaign}__warm_up": 0}) | Q(**{f"{campaign}__walk_length__isnull": False})
    return is_chosen | Q(step__lt=F(f"{campaign}__warm_up"))


def _waiting_in(campaign: Campaign) -> QuerySet[Chain]:
    return waiting_chains().filter(campaign=campaign).order_by("step", "index")


def _open_next(campaign: Campaign, keys: Collection[int]) -> bool:
    """Open the next comparison of claimed chains, of those that have none open; False if that cannot go on now."""
    chains = list(unopened_chains().filter(pk__in=keys).select_related("head").order_by("step", "index"))
    # After they were looked for: it may have been chosen just then how far they walk.
    campaign.refresh_from_db(fields=["walk_length"])
    for chain in chains:
        chain.campaign = campaign
    try:
        left = [chain for chain in chains if not _open_prefetched(chain)]
        written = left[: usage.texts_that_fit(campaign, len(left))]
        drawn = _drawn(campaign, [position_of(chain) for chain in written])
        for chain, comparison in zip(written, drawn, strict=True):
            _open(chain, comparison)
    except EndpointError as failure:
        # Those that are next in turn would fare no better.
        _rest(campaign, Q(pk__in=keys) | unclaimed(), _pause_after(failure), failure.reason)
        return False
    except Exception:
        _rest(campaign, Q(pk__in=keys), _ATTENTION_PAUSE_S, "the proposal came to nothing; the server's log says why")
        raise
    return len(written) == len(left)


def _pause_after(failure: EndpointError) -> float:
    return failure.retry_after if isinstance(failure, TryLater) else _ATTENTION_PAUSE_S


def _rest(campaign: Campaign, which: Q, seconds: float, reason: str) -> None:
    """Leave chains that are not open alone for a while, and say why."""
    Chain.objects.filter(which, pk__in=unopened_chains().filter(campaign=campaign)).update(
        claimed_until=timezone.now() + timedelta(seconds=seconds), texts_claimed=0, waits_because=reason[:300]
    )
    sockets.notify(sockets.watchers(campaign.pk))


def _drawn(campaign: Campaign, positions: Sequence[sampler.Position[Any]]) -> Sequence[sampler.Comparison[Any]]:
    """Return the comparisons that follow, with all that their proposals need to be shown.

    Raises:
        EndpointError: the model does not make them.
    """
    if not positions:
        return ()
    with usage.counted(campaign.pk, usage.PROPOSALS):
        drawn = sampler.ask_many(plan_of(campaign), positions)
        prepare_pictures(campaign, [asked.proposal for asked in drawn])
    return drawn


def _open_prefetched(chain: Chain) -> bool:
    found = PrefetchedProposal.objects.filter(chain=chain, step=chain.step + 1, state=chain.head).first()
    if found is None:
        return False
    proposal = sampler.Proposal(space_of(chain.campaign).decode(found.code), found.log_r0)
    reached_at = chain.comparisons.get(step=chain.step).decided_at
    drawn = sampler.ask(sampler.given(plan_of(chain.campaign), proposal), position_of(chain))
    _open(chain, drawn, is_in_time=reached_at is not None and found.drawn_at <= reached_at)
    return True


def _open(chain: Chain, drawn: sampler.Comparison[Any], is_in_time: bool = False) -> None:
    """Open a chain's comparison.

    Args:
        is_in_time: whether the proposal was there before the step was reached.
    """
    proposal = objects.proposed(chain, drawn)
    # As one: no crash leaves a chain claimed whose step is open, and whoever the opening sends a hint finds it free.
    with transaction.atomic():
        if transitions.open_comparison(chain.pk, drawn, proposal):
            free = {"claimed_until": None, "waits_because": "", "prefetched": F("prefetched") + int(is_in_time)}
            Chain.objects.filter(pk=chain.pk).update(**free)
    _discard(chain.campaign, PrefetchedProposal.objects.filter(chain=chain, step__lte=drawn.step))


def _discard(campaign: Campaign, stale: QuerySet[PrefetchedProposal]) -> None:
    # By their keys: what has become stale since keeps its picture until it is discarded itself.
    some = PrefetchedProposal.objects.filter(pk__in=list(stale.values_list("pk", flat=True)))
    discard_pictures(campaign, some)
    some.delete()


def _not_prefetched(chains: QuerySet[Chain]) -> list[tuple[Comparison, int]]:
    """Return the open comparisons of chains with the keys of the states from which the next step is not drawn yet."""
    open_ones = Comparison.objects.filter(chain__in=chains, verdict__isnull=True, step__lt=F("chain__length"))
    open_ones = open_ones.filter(_walks_are_known("chain__campaign"), chain__ended_at=None)
    there = set(PrefetchedProposal.objects.filter(chain__in=chains).values_list("chain", "step", "state"))
    return [
        (comparison, state)
        for comparison in open_ones.select_related("chain").order_by("step", "pk")
        for state in (comparison.current_id, comparison.proposal_id)
        if (comparison.chain_id, comparison.step + 1, state) not in there
    ]


def _draw_ahead(campaign: Campaign, missing: Sequence[tuple[Comparison, int]]) -> bool:
    """Draw them, as far as a cap lets them be drawn; return whether there is something new."""
    missing = missing[: usage.texts_that_fit(campaign, len(missing), is_ahead=True)]
    if not missing:
        return False
    # After they were looked for: it may have been chosen just then how far they walk.
    campaign.refresh_from_db(fields=["walk_length"])
    states = State.objects.in_bulk({state for _, state in missing})
    positions = [
        sampler.Position(comparison.chain.index, comparison.step, state_of(campaign, states[state]))
        for comparison, state in missing
    ]
    try:
        drawn = _drawn(campaign, positions)
    except EndpointError:
        # Nobody waits for it yet: when somebody does, `write` tries, and says why if it cannot.
        return False
    space = space_of(campaign)
    prefetched = [
        PrefetchedProposal(
            chain=comparison.chain,
            step=comparison.step + 1,
            state_id=state,
            code=space.encode(asked.proposal),
            log_r0=asked.log_r0,
        )
        for (comparison, state), asked in zip(missing, drawn, strict=True)
    ]
    PrefetchedProposal.objects.bulk_create(prefetched, ignore_conflicts=True)
    # Steps that were opened while the model worked.
    opened = Comparison.objects.filter(chain=OuterRef("chain"), step=OuterRef("step"))
    _discard(campaign, PrefetchedProposal.objects.filter(Exists(opened), chain__campaign=campaign))
    return True


def _starts_are_drawn(campaign: Campaign, wanted: Mapping[int, ChainOnDemand]) -> bool:
    """Draw the starts of chains, outside any transaction, and store them; False if the model does not make them."""
    # The lowest numbers first: no later chain opens before them.
    indices = sorted(wanted)[: usage.texts_that_fit(campaign, len(wanted))]
    if not indices:
        return False
    try:
        with usage.counted(campaign.pk, usage.PROPOSALS):
            drawn = sampler.begin_many(plan_of(campaign), indices)
            prepare_pictures(campaign, [position.state for position in drawn])
        for position in drawn:
            row = objects.starting(campaign, position.chain, position.state)
            on_demand.store_start(wanted[position.chain], row)
    except EndpointError as failure:
        # Wanted still: the sweep tries again.
        demands = [wanted[index] for index in indices]
        on_demand.note_failure(campaign, demands, _pause_after(failure), failure.reason)
        return False
    return True


def prepare_pictures(campaign: Campaign, states: Iterable[Hashable]) -> None:
    """Store the pictures of states that have none yet, so that people can be asked about them.

    Raises:
        Unable: the model cannot be run here, or gave no picture, or there is no room for it. What was made before that
            is stored.
    """
    described = campaign.config.space
    if not isinstance(described, sampler.ServedImagesConfig):
        return
    space = space_of(campaign)
    for state in states:
        code = space.encode(state)
        name = media.rendered_name(campaign.pk, code)
        # By content as well: a row's code stands before its picture, and SQLite would read all of these.
        is_there = campaign.states.filter(content=space.content(state), picture=name).exists()
        # What a kernel draws afresh, both prefetched proposals of a step propose.
        if is_there or PrefetchedProposal.objects.filter(chain__campaign=campaign, code=code).exists():
            continue
        picture = _rendered(described, state)
        try:
            media.store(name, picture)
        except OSError as error:
            raise Unable(f"the picture cannot be stored: {error.strerror or error}") from error


def discard_pictures(campaign: Campaign, stale: QuerySet[PrefetchedProposal]) -> None:
    """Remove the pictures of prefetched proposals, but those of what their steps did propose, and of the states that
    they move from: one may have become its step's proposal, and one that stays where it is has its state's picture.
    """
    if not isinstance(campaign.config.space, sampler.ServedImagesConfig):
        return
    opened = Comparison.objects.filter(chain=OuterRef("chain"), step=OuterRef("step")).values("proposal")
    found = list(stale.values_list("code", "state", Subquery(opened)))
    kept = campaign.states.filter(pk__in={key for _, *keys in found for key in keys})
    names = {media.rendered_name(campaign.pk, code) for code, *_ in found}
    media.remove_rendered(names - set(kept.values_list("picture", flat=True)))


def clean_up_pictures(campaign: Campaign) -> None:
    """Remove pictures that no state of a campaign has, which a start that failed may have left."""
    if isinstance(campaign.config.space, sampler.ServedImagesConfig):
        media.remove_rendered_but(campaign.pk, keep=set(campaign.states.values_list("picture", flat=True)))


def _rendered(space: sampler.ServedImagesConfig, state: Any) -> bytes:
    """Return the PNG of a latent."""
    try:
        decoder = local_decoder(space.model, space.prompt, space.steps)
        if decoder.dimension != space.dimension:
            raise ValueError(f"its latents have {decoder.dimension} numbers; the setup says {space.dimension}")
        return sampler.png(decoder.pixels(state.vector))
    # PyTorch says by a RuntimeError that the accelerator's memory is full, or that there is no accelerator.
    except (ImportError, OSError, ValueError, ArithmeticError, MemoryError, RuntimeError) as error:
        raise Unable(f"{space.model} makes no pictures here: {error}") from error

"""The next proposals of chains: drawn when they are needed, or ahead of time where a model takes its time over them.

    propose         one chain, by a kernel that is quick
    write           chains of a campaign that wait for a model: all in one call where it writes their texts, one by one
                    where it makes their pictures
    foresee         the two proposals each open step may lead to, drawn while people vote on it

Kernels run outside any transaction. A chain that a model is writing for is marked so (`Chain.waits_until`, or ahead of
time `Chain.foresees_until`), and nobody else writes for it meanwhile; one that it failed is marked with the reason, and
tried again later.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone

import sampler
from prefmh_web.campaigns import hints, live, loop, paintings, plans
from prefmh_web.campaigns.models import Campaign, Chain, Comparison, Draft, State
from prefmh_web.endpoints.errors import EndpointError, TryLater

# A model that has not come back after this was lost in a crash.
_LONGEST_WRITING = timedelta(minutes=10)
_ATTENTION_PAUSE_S = 60
_AT_ONCE = 64
# Whoever waits for a picture gets it once it is made; other campaigns' come in between, and those drawn ahead last.
_PICTURES_AT_ONCE = 1


def propose(chain_id: int) -> None:
    """Run the kernel for a chain's next step and open the comparison."""
    chain = Chain.objects.select_related("campaign", "head").get(pk=chain_id)
    # A hint may come twice, and a kernel may take seconds.
    is_open = chain.comparisons.filter(verdict__isnull=True).exists()
    if chain.campaign.is_running and chain.step < chain.length and not is_open:
        loop.open_comparison(chain_id, sampler.ask(plans.plan_of(chain.campaign), plans.position_of(chain)))


def write(campaign_id: int) -> None:
    """Open the next comparison of chains that wait: from a draft, or by one call of the model for the rest."""
    campaign = Campaign.objects.get(pk=campaign_id)
    if not campaign.is_running:
        return
    left = [chain for chain in _claim(campaign) if not _open_from_draft(chain)]
    if left:
        _written(campaign, left)
    if campaign.is_painted_by_a_model and _waiting_in(campaign).exists():
        hints.write(campaign)


def foresee(campaign_id: int) -> None:
    """Draw what the next step of each open comparison will propose, for either outcome, where that is not drawn yet."""
    campaign = Campaign.objects.get(pk=campaign_id)
    if not campaign.is_running or (campaign.is_painted_by_a_model and _waiting_in(campaign).exists()):
        return
    missing = _missing_drafts(campaign)
    missing, later = missing[: _at_once(campaign)], missing[_at_once(campaign) :]
    with _claimed_ahead(missing) as mine:
        is_drawn = _draw_ahead(campaign, mine)
    # Steps may have been decided meanwhile, and their chains have waited for what is there now.
    if (later and is_drawn and campaign.is_painted_by_a_model) or (mine and _waiting_in(campaign).exists()):
        hints.write(campaign)


def _draw_ahead(campaign: Campaign, missing: Sequence[tuple[Comparison, int]]) -> bool:
    """Draw them; return whether there is something new."""
    if not missing:
        return False
    states = State.objects.in_bulk({state for _, state in missing})
    positions = [
        sampler.Position(comparison.chain.place, comparison.step, plans.state_of(campaign, states[state]))
        for comparison, state in missing
    ]
    plan = plans.plan_of(campaign)
    try:
        drawn = sampler.ask_many(plan, positions)
        paintings.paint(campaign, [asked.proposal for asked in drawn])
    except EndpointError:
        # Nobody waits for it yet: when somebody does, `write` tries, and says why if it cannot.
        return False
    drafts = [
        Draft(
            chain=comparison.chain,
            step=comparison.step + 1,
            state_id=state,
            code=plan.space.encode(asked.proposal),
            log_r0=asked.log_r0,
        )
        for (comparison, state), asked in zip(missing, drawn, strict=True)
    ]
    Draft.objects.bulk_create(drafts, ignore_conflicts=True)
    # Steps that were opened while the model worked.
    opened = Comparison.objects.filter(chain=OuterRef("chain"), step=OuterRef("step"))
    paintings.discard_drafts(Draft.objects.filter(Exists(opened), chain__campaign=campaign), campaign)
    return True


def waiting_chains():
    """Chains of running campaigns that have steps left and no comparison open, and that nobody is seeing to."""
    open_ones = Comparison.objects.filter(verdict__isnull=True).values("chain")
    return Chain.objects.filter(
        ~Q(pk__in=open_ones),
        _is_past("waits_until"),
        _is_past("foresees_until"),
        campaign__status=Campaign.Status.RUNNING,
        step__lt=F("length"),
    )


def chains_to_hint() -> Iterator[Chain]:
    """Yield the waiting chains; where a model makes proposals, one for its campaign.

    None where somebody is making a picture for another chain of the campaign: they will give the next hint. Else a
    model that is slower than the sweep would find more and more of them.
    """
    now, campaigns = timezone.now(), set()
    claimed = Chain.objects.filter(Q(waits_until__gt=now, waits_because="") | Q(foresees_until__gt=now))
    at_work = set(claimed.values_list("campaign", flat=True))
    for chain in waiting_chains().select_related("campaign"):
        if chain.campaign.waits_for_a_model:
            is_seen_to = chain.campaign.is_painted_by_a_model and chain.campaign_id in at_work
            if chain.campaign_id in campaigns or is_seen_to:
                continue
            campaigns.add(chain.campaign_id)
        yield chain


def _is_past(moment: str) -> Q:
    return Q(**{f"{moment}__isnull": True}) | Q(**{f"{moment}__lte": timezone.now()})


def _waiting_in(campaign: Campaign) -> QuerySet[Chain]:
    return waiting_chains().filter(campaign=campaign).order_by("step", "place")


def _at_once(campaign: Campaign) -> int:
    return _PICTURES_AT_ONCE if campaign.is_painted_by_a_model else _AT_ONCE


def _claim(campaign: Campaign) -> list[Chain]:
    until = timezone.now() + _LONGEST_WRITING
    claimed = []
    for chain in _waiting_in(campaign).select_related("head")[: _at_once(campaign)]:
        # Guarded: of two processes that see the same chain waiting, one gets it.
        if Chain.objects.filter(pk=chain.pk, step=chain.step, waits_until=chain.waits_until).update(waits_until=until):
            chain.campaign = campaign
            claimed.append(chain)
    return claimed


@contextmanager
def _claimed_ahead(missing: Sequence[tuple[Comparison, int]]) -> Iterator[list[tuple[Comparison, int]]]:
    """Yield those that nobody else draws meanwhile."""
    until = timezone.now() + _LONGEST_WRITING
    chains = {comparison.chain for comparison, _ in missing}
    mine = [
        chain.pk
        for chain in chains
        if Chain.objects.filter(pk=chain.pk, foresees_until=chain.foresees_until).update(foresees_until=until)
    ]
    try:
        # Looked at again: somebody may have drawn some of them in this very moment.
        there = _drawn_ahead(mine)
        yield [
            (c, state) for c, state in missing if c.chain_id in mine and (c.chain_id, c.step + 1, state) not in there
        ]
    finally:
        Chain.objects.filter(pk__in=mine, foresees_until=until).update(foresees_until=None)


def _open_from_draft(chain: Chain) -> bool:
    draft = Draft.objects.filter(chain=chain, step=chain.step + 1, state=chain.head).first()
    if draft is None:
        return False
    plan = plans.plan_of(chain.campaign)
    proposal = sampler.Proposal(plan.space.decode(draft.code), draft.log_r0)
    reached_at = chain.comparisons.get(step=chain.step).decided_at
    drawn = sampler.ask(sampler.given(plan, proposal), plans.position_of(chain))
    _open(chain, drawn, foreseen=draft.drawn_at <= reached_at)
    return True


def _written(campaign: Campaign, chains: Sequence[Chain]) -> None:
    try:
        drawn = sampler.ask_many(plans.plan_of(campaign), [plans.position_of(chain) for chain in chains])
        paintings.paint(campaign, [asked.proposal for asked in drawn])
    except EndpointError as failure:
        seconds = failure.retry_after if isinstance(failure, TryLater) else _ATTENTION_PAUSE_S
        # Those that are next in turn would fare no better.
        left = [chain.pk for chain in (*chains, *_waiting_in(campaign))]
        Chain.objects.filter(pk__in=left).update(
            waits_until=timezone.now() + timedelta(seconds=seconds), waits_because=failure.reason[:300]
        )
        live.nudge(live.watchers(campaign.pk))
        return
    for chain, comparison in zip(chains, drawn, strict=True):
        _open(chain, comparison)


def _open(chain: Chain, drawn: sampler.Comparison, foreseen: bool = False) -> None:
    loop.open_comparison(chain.pk, drawn)
    Chain.objects.filter(pk=chain.pk).update(waits_until=None, waits_because="", foreseen=F("foreseen") + int(foreseen))
    paintings.discard_drafts(Draft.objects.filter(chain=chain, step__lte=drawn.step), chain.campaign)


def _missing_drafts(campaign: Campaign) -> list[tuple[Comparison, int]]:
    """Return the open comparisons with the keys of the states from which the next step is not drawn yet."""
    open_ones = Comparison.objects.filter(
        _is_past("chain__foresees_until"), chain__campaign=campaign, verdict__isnull=True, step__lt=F("chain__length")
    )
    open_ones = open_ones.select_related("chain").order_by("step", "pk")
    there = _drawn_ahead(campaign.chains.all())
    return [
        (comparison, state)
        for comparison in open_ones
        for state in (comparison.current_id, comparison.proposal_id)
        if (comparison.chain_id, comparison.step + 1, state) not in there
    ]


def _drawn_ahead(chains: Iterable[int] | QuerySet[Chain]) -> set[tuple[int, int, int]]:
    """Return chain, step and state of the drafts that there are."""
    return set(Draft.objects.filter(chain__in=chains).values_list("chain", "step", "state"))

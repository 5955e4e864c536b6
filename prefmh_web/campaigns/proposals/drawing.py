"""The next proposals of chains: drawn when they are needed, or ahead of time where a model takes its time over them.

    propose         one chain, by a kernel that is quick
    write           chains of a campaign that wait for a model: all in one call where it writes their texts, one by one
                    where it makes their pictures
    foresee         the two proposals each open step may lead to, drawn while people vote on it

Kernels run outside any transaction. A chain that a model is writing for is claimed (`claims.py`), and nobody else
writes for it meanwhile; one that it failed is marked with the reason, and tried again later.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone

import sampler
from prefmh_web.campaigns import dispatch, started
from prefmh_web.campaigns.engine import transitions
from prefmh_web.campaigns.models import Campaign, Chain, Comparison, Draft, State
from prefmh_web.campaigns.proposals import claims
from prefmh_web.campaigns.proposals.backends import rendered_images
from prefmh_web.endpoints.errors import EndpointError, TryLater
from prefmh_web.transport import nudges

# The sweep comes every five seconds, and a proposal is quick.
OVERDUE = timedelta(seconds=8)
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
        transitions.open_comparison(chain_id, sampler.ask(started.plan_of(chain.campaign), started.position_of(chain)))


def write(campaign_id: int) -> None:
    """Open the next comparison of chains that wait: from a draft, or by one call of the model for the rest."""
    campaign = Campaign.objects.get(pk=campaign_id)
    if not campaign.is_running:
        return
    with claims.held("waits_until", _waiting_in(campaign)[: _at_once(campaign)]) as mine:
        _open_next(campaign, mine)
    if campaign.is_painted_by_a_model and _waiting_in(campaign).exists():
        dispatch.write(campaign)


def foresee(campaign_id: int) -> None:
    """Draw what the next step of each open comparison will propose, for either outcome, where that is not drawn yet."""
    campaign = Campaign.objects.get(pk=campaign_id)
    if not campaign.is_running or (campaign.is_painted_by_a_model and _waiting_in(campaign).exists()):
        return
    missing = _missing_drafts(campaign.chains.filter(claims.are_free()))
    chains = {comparison.chain for comparison, _ in missing[: _at_once(campaign)]}
    with claims.held("foresees_until", chains) as mine:
        is_drawn = _draw_ahead(campaign, _missing_drafts(Chain.objects.filter(pk__in=mine))[: _at_once(campaign)])
    is_more_to_draw = campaign.is_painted_by_a_model and is_drawn and len(missing) > _at_once(campaign)
    # Steps may have been decided meanwhile, and their chains have waited for what is there now.
    if is_more_to_draw or _waiting_in(campaign).filter(pk__in=mine).exists():
        dispatch.write(campaign)


def _draw_ahead(campaign: Campaign, missing: Sequence[tuple[Comparison, int]]) -> bool:
    """Draw them; return whether there is something new."""
    if not missing:
        return False
    states = State.objects.in_bulk({state for _, state in missing})
    positions = [
        sampler.Position(comparison.chain.place, comparison.step, started.state_of(campaign, states[state]))
        for comparison, state in missing
    ]
    try:
        drawn = _drawn(campaign, positions)
    except EndpointError:
        # Nobody waits for it yet: when somebody does, `write` tries, and says why if it cannot.
        return False
    space = started.plan_of(campaign).space
    drafts = [
        Draft(
            chain=comparison.chain,
            step=comparison.step + 1,
            state_id=state,
            code=space.encode(asked.proposal),
            log_r0=asked.log_r0,
        )
        for (comparison, state), asked in zip(missing, drawn, strict=True)
    ]
    Draft.objects.bulk_create(drafts, ignore_conflicts=True)
    # Steps that were opened while the model worked.
    opened = Comparison.objects.filter(chain=OuterRef("chain"), step=OuterRef("step"))
    rendered_images.discard_drafts(Draft.objects.filter(Exists(opened), chain__campaign=campaign), campaign)
    return True


def unopened_chains() -> QuerySet[Chain]:
    """Chains of running campaigns that have steps left and no comparison open."""
    open_ones = Comparison.objects.filter(verdict__isnull=True).values("chain")
    return Chain.objects.filter(~Q(pk__in=open_ones), campaign__status=Campaign.Status.RUNNING, step__lt=F("length"))


def waiting_chains() -> QuerySet[Chain]:
    """Those of them that nobody is seeing to."""
    return unopened_chains().filter(claims.are_free())


def is_overdue(campaign: Campaign) -> bool:
    """True when a chain of the campaign has been without a pair for longer than the sweep takes to find that.

    Not while a model is at work for it, which may take its time.
    """
    since = timezone.now() - OVERDUE
    decided = Comparison.objects.filter(chain=OuterRef("pk"), step=OuterRef("step"), decided_at__lt=since)
    waits_for_long = Exists(decided) | Q(step=0, campaign__started_at__lt=since)
    return unopened_chains().filter(~claims.are_claimed(), waits_for_long, campaign=campaign).exists()


def chains_to_hint() -> Iterator[Chain]:
    """Yield the waiting chains; where a model makes proposals, one for its campaign.

    None where somebody is making a picture for another chain of the campaign: they will give the next hint. Else a
    model that is slower than the sweep would find more and more of them.
    """
    campaigns: set[int] = set()
    at_work = set(Chain.objects.filter(claims.are_claimed()).values_list("campaign", flat=True))
    for chain in waiting_chains().select_related("campaign"):
        if chain.campaign.waits_for_a_model:
            is_seen_to = chain.campaign.is_painted_by_a_model and chain.campaign_id in at_work
            if chain.campaign_id in campaigns or is_seen_to:
                continue
            campaigns.add(chain.campaign_id)
        yield chain


def _waiting_in(campaign: Campaign) -> QuerySet[Chain]:
    return waiting_chains().filter(campaign=campaign).order_by("step", "place")


def _at_once(campaign: Campaign) -> int:
    return _PICTURES_AT_ONCE if campaign.is_painted_by_a_model else _AT_ONCE


def _open_next(campaign: Campaign, keys: Sequence[int]) -> None:
    """Open the next comparison of claimed chains, of those that have none open."""
    chains = list(unopened_chains().filter(pk__in=keys).select_related("head").order_by("step", "place"))
    for chain in chains:
        chain.campaign = campaign
    try:
        left = [chain for chain in chains if not _open_from_draft(chain)]
        drawn = _drawn(campaign, [started.position_of(chain) for chain in left])
        for chain, comparison in zip(left, drawn, strict=True):
            _open(chain, comparison)
    except EndpointError as failure:
        seconds = failure.retry_after if isinstance(failure, TryLater) else _ATTENTION_PAUSE_S
        # Those that are next in turn would fare no better.
        _rest(campaign, Q(pk__in=keys) | claims.are_free(), seconds, failure.reason)
    except Exception:
        _rest(campaign, Q(pk__in=keys), _ATTENTION_PAUSE_S, "the proposal came to nothing; the server's log says why")
        raise


def _rest(campaign: Campaign, which: Q, seconds: float, reason: str) -> None:
    """Leave chains that are not open alone for a while, and say why."""
    Chain.objects.filter(which, pk__in=unopened_chains().filter(campaign=campaign)).update(
        waits_until=timezone.now() + timedelta(seconds=seconds), waits_because=reason[:300]
    )
    nudges.nudge(nudges.watchers(campaign.pk))


def _drawn(campaign: Campaign, positions: Sequence[sampler.Position]) -> Sequence[sampler.Comparison]:
    """Return the comparisons that follow, the pictures of their proposals stored.

    Raises:
        EndpointError: the model does not make them.
    """
    if not positions:
        return ()
    drawn = sampler.ask_many(started.plan_of(campaign), positions)
    rendered_images.paint(campaign, [asked.proposal for asked in drawn])
    return drawn


def _open_from_draft(chain: Chain) -> bool:
    draft = Draft.objects.filter(chain=chain, step=chain.step + 1, state=chain.head).first()
    if draft is None:
        return False
    plan = started.plan_of(chain.campaign)
    proposal = sampler.Proposal(plan.space.decode(draft.code), draft.log_r0)
    reached_at = chain.comparisons.get(step=chain.step).decided_at
    drawn = sampler.ask(sampler.given(plan, proposal), started.position_of(chain))
    _open(chain, drawn, foreseen=draft.drawn_at <= reached_at)
    return True


def _open(chain: Chain, drawn: sampler.Comparison, foreseen: bool = False) -> None:
    # As one: no crash leaves a chain claimed whose step is open, and whoever the opening sends a hint finds it free.
    with transaction.atomic():
        if transitions.open_comparison(chain.pk, drawn):
            Chain.objects.filter(pk=chain.pk).update(
                waits_until=None, waits_because="", foreseen=F("foreseen") + int(foreseen)
            )
    rendered_images.discard_drafts(Draft.objects.filter(chain=chain, step__lte=drawn.step), chain.campaign)


def _missing_drafts(chains: QuerySet[Chain]) -> list[tuple[Comparison, int]]:
    """Return the open comparisons of chains with the keys of the states from which the next step is not drawn yet."""
    open_ones = Comparison.objects.filter(chain__in=chains, verdict__isnull=True, step__lt=F("chain__length"))
    there = set(Draft.objects.filter(chain__in=chains).values_list("chain", "step", "state"))
    return [
        (comparison, state)
        for comparison in open_ones.select_related("chain").order_by("step", "pk")
        for state in (comparison.current_id, comparison.proposal_id)
        if (comparison.chain_id, comparison.step + 1, state) not in there
    ]

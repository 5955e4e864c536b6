"""The next proposals of chains: drawn when they are needed, or ahead of time where a model takes its time over them.

    propose         one chain, by a kernel that is quick
    write           all chains of a campaign that wait, in one call of the model that writes their texts
    foresee         the two proposals each open step may lead to, drawn while people vote on it

Kernels run outside any transaction. A chain that a model is writing for is marked so (`Chain.waits_until`); one that it
failed is marked with the reason, and tried again later.
"""

from collections.abc import Sequence
from datetime import timedelta

from django.db.models import F, Q
from django.utils import timezone

import sampler
from prefmh_web.campaigns import live, loop, plans
from prefmh_web.campaigns.models import Campaign, Chain, Comparison, Draft, State
from prefmh_web.endpoints.errors import EndpointError, TryLater

# A model that has not come back after this was lost in a crash.
_LONGEST_WRITING = timedelta(minutes=10)
_ATTENTION_PAUSE_S = 60
_AT_ONCE = 64


def propose(chain_id: int) -> None:
    """Run the kernel for a chain's next step and open the comparison."""
    chain = Chain.objects.select_related("campaign", "head").get(pk=chain_id)
    # A hint may come twice, and a kernel may take seconds.
    is_open = chain.comparisons.filter(verdict__isnull=True).exists()
    if chain.campaign.is_running and chain.step < chain.length and not is_open:
        loop.open_comparison(chain_id, sampler.ask(plans.plan_of(chain.campaign), plans.position_of(chain)))


def write(campaign_id: int) -> None:
    """Open the next comparison of every chain that waits: from a draft, or by one call of the model for the rest."""
    campaign = Campaign.objects.get(pk=campaign_id)
    if not campaign.is_running:
        return
    left = [chain for chain in _claim(campaign) if not _open_from_draft(chain)]
    if left:
        _written(campaign, left)


def foresee(campaign_id: int) -> None:
    """Draw what the next step of each open comparison will propose, for either outcome, where that is not drawn yet."""
    campaign = Campaign.objects.get(pk=campaign_id)
    missing = _missing_drafts(campaign)[:_AT_ONCE] if campaign.is_running else []
    if not missing:
        return
    positions = [
        sampler.Position(comparison.chain.place, comparison.step, plans.state_of(campaign, state))
        for comparison, state in missing
    ]
    plan = plans.plan_of(campaign)
    try:
        drawn = sampler.ask_many(plan, positions)
    except EndpointError:
        # Nobody waits for it yet: when somebody does, `write` tries, and says why if it cannot.
        return
    drafts = [
        Draft(
            chain=comparison.chain,
            step=comparison.step + 1,
            state=state,
            code=plan.space.encode(asked.proposal),
            log_r0=asked.log_r0,
        )
        for (comparison, state), asked in zip(missing, drawn, strict=True)
    ]
    Draft.objects.bulk_create(drafts, ignore_conflicts=True)
    # Steps that were reached while the model wrote.
    Draft.objects.filter(chain__campaign=campaign, step__lte=F("chain__step")).delete()


def waiting_chains():
    """Chains of running campaigns that have steps left and no comparison open, and that nobody is seeing to."""
    open_ones = Comparison.objects.filter(verdict__isnull=True).values("chain")
    return Chain.objects.filter(
        ~Q(pk__in=open_ones),
        Q(waits_until__isnull=True) | Q(waits_until__lte=timezone.now()),
        campaign__status=Campaign.Status.RUNNING,
        step__lt=F("length"),
    )


def _claim(campaign: Campaign) -> list[Chain]:
    until = timezone.now() + _LONGEST_WRITING
    claimed = []
    for chain in waiting_chains().filter(campaign=campaign).select_related("head")[:_AT_ONCE]:
        # Guarded: of two processes that see the same chain waiting, one gets it.
        if Chain.objects.filter(pk=chain.pk, step=chain.step, waits_until=chain.waits_until).update(waits_until=until):
            chain.campaign = campaign
            claimed.append(chain)
    return claimed


def _open_from_draft(chain: Chain) -> bool:
    draft = Draft.objects.filter(chain=chain, step=chain.step + 1, state=chain.head).first()
    if draft is None:
        return False
    plan = plans.plan_of(chain.campaign)
    proposal = sampler.Proposal(plan.space.decode(draft.code), draft.log_r0)
    _open(chain, sampler.ask(sampler.given(plan, proposal), plans.position_of(chain)), foreseen=True)
    return True


def _written(campaign: Campaign, chains: Sequence[Chain]) -> None:
    try:
        drawn = sampler.ask_many(plans.plan_of(campaign), [plans.position_of(chain) for chain in chains])
    except EndpointError as failure:
        seconds = failure.retry_after if isinstance(failure, TryLater) else _ATTENTION_PAUSE_S
        Chain.objects.filter(pk__in=[chain.pk for chain in chains]).update(
            waits_until=timezone.now() + timedelta(seconds=seconds), waits_because=failure.reason[:300]
        )
        live.nudge(live.watchers(campaign.pk))
        return
    for chain, comparison in zip(chains, drawn, strict=True):
        _open(chain, comparison)


def _open(chain: Chain, drawn: sampler.Comparison, foreseen: bool = False) -> None:
    loop.open_comparison(chain.pk, drawn)
    Chain.objects.filter(pk=chain.pk).update(waits_until=None, waits_because="", foreseen=F("foreseen") + foreseen)
    Draft.objects.filter(chain=chain, step__lte=drawn.step).delete()


def _missing_drafts(campaign: Campaign) -> list[tuple[Comparison, State]]:
    open_ones = Comparison.objects.filter(chain__campaign=campaign, verdict__isnull=True, step__lt=F("chain__length"))
    open_ones = open_ones.select_related("chain", "current", "proposal").order_by("step", "pk")
    there = set(Draft.objects.filter(chain__campaign=campaign).values_list("chain", "step", "state"))
    return [
        (comparison, state)
        for comparison in open_ones
        for state in (comparison.current, comparison.proposal)
        if (comparison.chain_id, comparison.step + 1, state.pk) not in there
    ]

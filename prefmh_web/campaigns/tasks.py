"""Work outside the request: reading catalogs, proposing, finding what a crash left behind.

A message is only a hint that there is work. Each task reads from the database what is to be done, and run twice it
does nothing more.
"""

from celery import shared_task
from django.db.models import Exists, F, OuterRef

import sampler
from prefmh_web.campaigns import catalogs, judging, loop, plans
from prefmh_web.campaigns.models import Campaign, Catalog, Chain, Comparison


@shared_task
def read_catalog(catalog_id: int, revision: int) -> None:
    """Read an uploaded file into states."""
    catalogs.read(catalog_id, revision)


@shared_task
def propose(chain_id: int) -> None:
    """Run the kernel for a chain's next step, outside any transaction, and open the comparison."""
    chain = Chain.objects.select_related("campaign", "head").get(pk=chain_id)
    campaign = chain.campaign
    if not campaign.is_running or chain.step == chain.length:
        return
    loop.open_comparison(chain_id, sampler.ask(plans.plan_of(campaign), plans.position_of(chain)))


@shared_task
def judge(comparison_id: int, judge_id: int) -> None:
    """Let a model cast its votes on a comparison."""
    judging.take_turn(comparison_id, judge_id)


@shared_task
def sweep() -> None:
    """Queue every chain that waits for a proposal, every model that waits for its turn and every catalog that waits
    to be read; finish what is done.
    """
    for chain_id in waiting_chains().values_list("pk", flat=True):
        propose.delay(chain_id)
    for comparison_id, judge_id in judging.waiting():
        judge.delay(comparison_id, judge_id)
    for catalog_id, revision in Catalog.objects.filter(status=Catalog.Status.READING).values_list("pk", "revision"):
        if not catalogs.is_being_read(catalog_id):
            read_catalog.delay(catalog_id, revision)
    for campaign in Campaign.objects.filter(status=Campaign.Status.RUNNING):
        loop.finish_if_done(campaign)


def waiting_chains():
    """Chains of running campaigns that have steps left and no comparison open."""
    undecided = Comparison.objects.filter(chain=OuterRef("pk"), verdict__isnull=True)
    return Chain.objects.filter(
        ~Exists(undecided),
        campaign__status=Campaign.Status.RUNNING,
        step__lt=F("length"),
    )

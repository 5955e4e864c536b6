"""The entry points of the workers: reading catalogs, proposing, asking models, finding what a crash left behind.

A message is only a hint that there is work. Each task reads from the database what is to be done, and run twice it
does nothing more.
"""

from collections.abc import Callable
from typing import Any

from celery import shared_task

from prefmh_web.campaigns import catalogs, dispatch
from prefmh_web.campaigns.engine import leases, on_demand, transitions, usage
from prefmh_web.campaigns.engine.locks import unclaimed
from prefmh_web.campaigns.lifecycle import changes, judge_trials, status
from prefmh_web.campaigns.model_judges import asker, turns
from prefmh_web.campaigns.models import Campaign, Catalog, NotPossible
from prefmh_web.campaigns.proposals import drawing, scoring
from prefmh_web.endpoints import probe
from prefmh_web.participants import completion, erasure, limits


def _task(name: str, work: Callable[..., None]) -> Any:
    """Return a task of this module that does what another one offers."""
    return shared_task(name=f"{__name__}.{name}")(work)


read_catalog = _task("read_catalog", catalogs.read)
propose = _task("propose", drawing.propose)
choose_length = _task("choose_length", changes.choose_length)
open_chains = _task("open_chains", drawing.open_wanted)
delete = _task("delete", status.finish_deletion)
score = _task("score", scoring.score)
measure = _task("measure", scoring.measure)


@shared_task
def write(campaign_id: int) -> None:
    """Let a model write the next proposals of a campaign's chains, and then those that may follow."""
    drawing.write(campaign_id)
    drawing.prefetch(campaign_id)


@shared_task
def start(campaign_id: int) -> None:
    """Start a campaign whose models are run or asked by this worker; why that is not possible shows on its page."""
    campaign = Campaign.objects.filter(pk=campaign_id).first()
    if campaign is None:
        # Deleted meanwhile.
        return
    try:
        status.start(campaign)
    except NotPossible as reason:
        status.note_trouble(campaign, str(reason))
    except Exception:
        status.note_trouble(campaign, "It could not be started; the server's log says why.")
        raise


@shared_task
def judge(comparison_id: int, judge_id: int) -> None:
    """Let a model cast its votes on a comparison."""
    asker.take(comparison_id, judge_id)


@shared_task
def judge_whatever_waits() -> None:
    """Let models cast the votes that nobody is asking them for."""
    for comparison_id, judge_id in turns.waiting():
        dispatch.turn(comparison_id, judge_id)


@shared_task
def judge_trial(trial_id: int) -> None:
    """Ask a model about the next sample pair of a trial."""
    try:
        judge_trials.step(trial_id)
    except Exception:  # whatever it is, whoever waits for the trial is told; it is raised all the same
        judge_trials.note_trouble(trial_id)
        raise


@shared_task
def run_test(test_id: int) -> None:
    """Test an endpoint."""
    try:
        probe.run(test_id)
    except Exception:  # whatever it is, whoever waits for the test is told; it is raised all the same
        probe.note_trouble(test_id)
        raise


@shared_task
def pause_at_cap(campaign_id: int) -> None:
    """Pause a campaign that has come to a cap on what models may take."""
    for campaign in usage.stopped().filter(pk=campaign_id):
        status.pause_at_cap(campaign)


@shared_task
def sweep() -> None:
    """Queue every chain that waits for a proposal or to be opened, every warm-up that is over, every model that waits
    for its turn, every object without a score, every trial of a judge, every test of an endpoint, every catalog that
    waits to be read and every campaign that is being deleted; pause what has come to a cap; finish what is done; remove
    files that were left on their way.
    """
    for campaign in usage.stopped():
        status.pause_at_cap(campaign)
    for chain in drawing.chains_to_hint():
        dispatch.propose(chain)
    drawing.open_spare_chains()
    for campaign in Campaign.objects.filter(pk__in=on_demand.wanted().values("campaign")):
        dispatch.open_chains(campaign)
    for campaign in changes.warm_ups_over():
        dispatch.choose_length(campaign)
    if next(turns.waiting(), None):
        dispatch.turns_wait()
    for campaign in scoring.waiting():
        dispatch.score(campaign)
    for trying in judge_trials.waiting().select_related("campaign"):
        dispatch.judge_trial(trying)
    probe.look_after()
    unread = Catalog.objects.filter(unclaimed(), status=Catalog.Status.READING)
    for catalog_id, revision in unread.values_list("pk", "revision"):
        dispatch.read_catalog(catalog_id, revision)
    for campaign in Campaign.objects.filter(status=Campaign.Status.RUNNING):
        transitions.finish_if_done(campaign)
    for campaign in status.being_deleted():
        dispatch.delete(campaign)
    catalogs.remove_leftovers()


@shared_task
def sweep_leases() -> None:
    """End the leases whose time is over, so that their pairs go to somebody else; find room nobody has noted."""
    leases.expire()
    leases.refresh_where_nobody_is_asked()


@shared_task
def settle_parts() -> None:
    """Settle how the parts of people ended who have gone without looking; give the places of those away to others.
    Forget those who wanted to be forgotten and are paid by now.
    """
    completion.settle_overdue()
    limits.take_from_absent()
    erasure.carry_out()

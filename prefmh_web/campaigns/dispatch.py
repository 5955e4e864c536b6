"""Hints that there is work: Celery tasks, called by name once the transaction that made the work has committed.

The database is the to-do list. A hint that is lost, doubled or late changes nothing: `tasks.sweep` finds the work.
So nobody waits for one to be sent (`transport/publishing.py`). By name, because the tasks import the modules that give
the hints.
"""

from django.db import transaction

from prefmh_web.campaigns import started, writers
from prefmh_web.campaigns.models import Campaign, Chain, Comparison
from prefmh_web.transport import publishing

GPU, ENDPOINTS = "gpu", "endpoints"


def propose(chain: Chain) -> None:
    """Hint that a chain waits for its next proposal."""
    if chain.campaign.waits_for_a_model:
        write(chain.campaign)
    else:
        _after_commit("prefmh_web.campaigns.tasks.propose", chain.pk)


def write(campaign: Campaign) -> None:
    """Hint that a model has proposals to make, or to foresee."""
    queue = GPU if writers.is_run_here(campaign) else ENDPOINTS
    _after_commit("prefmh_web.campaigns.tasks.write", campaign.pk, queue=queue)


def start(campaign: Campaign) -> None:
    """Hint that a campaign is to be started where its models are run or asked."""
    queue = GPU if writers.is_run_here(campaign) else ENDPOINTS
    _after_commit("prefmh_web.campaigns.tasks.start", campaign.pk, queue=queue)


def judge(comparison: Comparison) -> None:
    """Hint that models have votes to cast on a comparison."""
    for judge in started.judges_of(comparison.chain.campaign):
        if judge.is_model:
            turn(comparison.pk, judge.pk)


def turn(comparison_id: int, judge_id: int) -> None:
    """Hint that one model has votes to cast on a comparison."""
    _after_commit("prefmh_web.campaigns.tasks.judge", comparison_id, judge_id)


def read_catalog(catalog_id: int, revision: int) -> None:
    """Hint that a file waits to be read."""
    _after_commit("prefmh_web.campaigns.tasks.read_catalog", catalog_id, revision)


def _after_commit(task: str, *arguments: int, queue: str | None = None) -> None:
    # robust: what is stored stays stored, whatever becomes of a hint. A lambda: Django cannot log a failed partial.
    transaction.on_commit(lambda: publishing.publish(publishing.Hint(task, arguments, queue)), robust=True)

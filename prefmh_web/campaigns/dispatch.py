"""What follows a commit: hints to workers, notifications to open pages, lines in the log.

A hint is a Celery task called by name, since the tasks import the modules that give hints. The database is the to-do
list: a hint that is lost, doubled or late changes nothing, because `tasks.sweep` finds the work. So nobody waits for
one to be sent (`transport/publishing.py`). Nothing here happens when the transaction is rolled back.
"""

import logging

from django.db import transaction

from prefmh_web.campaigns.frozen import started_campaign
from prefmh_web.campaigns.models import Campaign, Chain, Comparison, JudgeTrial, Vote
from prefmh_web.transport import publishing, sockets

logger = logging.getLogger(__name__)

GPU, ENDPOINTS, SCORES = "gpu", "endpoints", "scores"
# Which queue's worker makes the proposals of each backend; the kernel's are made by any worker.
_QUEUES = {"served-texts": ENDPOINTS, "own-texts": GPU, "rendered-images": GPU}


def step_opened(comparison: Comparison) -> None:
    """A comparison was opened."""
    _log("step opened", comparison)
    refresh(comparison.chain.campaign)


def answers_wanted(comparison: Comparison) -> None:
    """A new comparison takes answers: ask the models that judge, or the scorers that it waits for, and draw ahead
    what the next step may propose.
    """
    judge(comparison)
    started = started_campaign(comparison.chain.campaign)
    if started.config.needed_scorers:
        score(comparison.chain.campaign)
    if started.backend in _QUEUES:
        write(comparison.chain.campaign)


def vote_stored(comparison: Comparison, vote: Vote) -> None:
    """A vote was stored. Neither who cast it nor for which side is logged: logs have more readers than the record."""
    _log("vote" if vote.counted else "late vote", comparison, number=vote.number)
    if vote.counted:
        # Waiting voters look again even without a verdict: this vote may have made room for another.
        refresh(comparison.chain.campaign)


def step_decided(comparison: Comparison) -> None:
    """A step was accepted or rejected."""
    if comparison.decided_at is not None:
        seconds = (comparison.decided_at - comparison.opened_at).total_seconds()
        _log("step decided", comparison, verdict=str(comparison.verdict), seconds=round(seconds, 3))


def place_returned(campaign_id: int, *voter_ids: int) -> None:
    """Somebody's place on a comparison has become free; they themselves are to look again if they are named."""
    sockets.notify(*map(sockets.voter, voter_ids), sockets.voters(campaign_id))


def propose(chain: Chain) -> None:
    """Hint that a chain waits for its next proposal."""
    if started_campaign(chain.campaign).backend in _QUEUES:
        write(chain.campaign)
    else:
        _hint("propose", chain.pk)


def open_chains(campaign: Campaign) -> None:
    """Hint that chains are to be opened for people who wait."""
    queue = _QUEUES.get(started_campaign(campaign).backend)
    _hint("open_chains", campaign.pk, queue=queue)


def choose_length(campaign: Campaign) -> None:
    """Hint that a chain has come to the end of the warm-up, perhaps the last one."""
    sockets.notify(sockets.watchers(campaign.pk))
    _hint("choose_length", campaign.pk)


def write(campaign: Campaign) -> None:
    """Hint that a model has proposals to make, now or ahead of time."""
    _hint("write", campaign.pk, queue=_QUEUES[started_campaign(campaign).backend])


def start(campaign: Campaign) -> None:
    """Hint that a campaign is to be started where its models are run or asked."""
    _hint("start", campaign.pk, queue=_QUEUES.get(campaign.backend, ENDPOINTS))


def delete(campaign: Campaign) -> None:
    """Hint that the rows of a campaign are to be deleted."""
    _hint("delete", campaign.pk)


def judge_trial(trial: JudgeTrial) -> None:
    """Hint that a trial of a judge has a pair to ask about, where the campaign's models are run or asked."""
    queue = ENDPOINTS if trial.campaign is None else _QUEUES.get(trial.campaign.backend, ENDPOINTS)
    _hint("judge_trial", trial.pk, queue=queue)


def judge(comparison: Comparison) -> None:
    """Hint that models have votes to cast on a comparison."""
    for judge in started_campaign(comparison.chain.campaign).judges:
        if judge.is_model:
            turn(comparison.pk, judge.pk)


def turn(comparison_id: int, judge_id: int) -> None:
    """Hint that one model has votes to cast on a comparison."""
    _hint("judge", comparison_id, judge_id)


def turns_wait() -> None:
    """Hint that there are turns that nobody takes: one message for all, since most are only next in line."""
    _hint("judge_whatever_waits")


def pause_at_cap(campaign: Campaign) -> None:
    """Hint that a campaign has come to a cap on what models may take."""
    sockets.notify(sockets.watchers(campaign.pk))
    _hint("pause_at_cap", campaign.pk)


def score(campaign: Campaign) -> None:
    """Hint that a campaign has objects without a score."""
    _hint("score", campaign.pk, queue=SCORES)


def measure(campaign: Campaign) -> None:
    """Hint that a campaign has objects that are to be measured, because somebody looks at them."""
    _hint("measure", campaign.pk)


def read_catalog(catalog_id: int, revision: int) -> None:
    """Hint that a file waits to be read."""
    _hint("read_catalog", catalog_id, revision)


def refresh(campaign: Campaign) -> None:
    """Pages of voters and of researchers may have something else to show: a pair, or the campaign's end."""
    sockets.notify(sockets.voters(campaign.pk), sockets.watchers(campaign.pk))


def _hint(task: str, *arguments: int, queue: str | None = None) -> None:
    # robust: what is stored stays stored, whatever becomes of a hint. A lambda: Django cannot log a failed partial.
    transaction.on_commit(
        lambda: publishing.publish(publishing.TaskMessage(f"prefmh_web.tasks.{task}", arguments, queue)), robust=True
    )


def _log(message: str, comparison: Comparison, **fields: object) -> None:
    if not logger.isEnabledFor(logging.INFO):
        return
    chain = comparison.chain
    about = {"campaign": chain.campaign_id, "chain": chain.index, "step": comparison.step, **fields}
    # robust: a full log disk must not undo a vote.
    transaction.on_commit(lambda: logger.info(message, extra=about), robust=True)

"""A line in the log for every vote and every verdict, with its campaign, chain and step, once it is in the record.

Watches the models from outside, so that the loop's one door stays free of it.
"""

import logging

from django.db import transaction
from django.db.models.signals import post_save
from django.dispatch import receiver

from prefmh_web.campaigns.models import Comparison, Vote

logger = logging.getLogger(__name__)


@receiver(post_save, sender=Vote)
def log_vote(instance: Vote, created: bool, **_) -> None:
    """Log a stored vote. Neither who cast it nor for which side: logs are kept by more people than the record."""
    if created:
        _after_commit("vote" if instance.counted else "late vote", instance.comparison, number=instance.number)


@receiver(post_save, sender=Comparison)
def log_comparison(instance: Comparison, created: bool, **_) -> None:
    """Log an opened step, and a decided one with how long it was open."""
    if instance.verdict is not None:
        seconds = (instance.decided_at - instance.opened_at).total_seconds()
        _after_commit("step decided", instance, verdict=str(instance.verdict), seconds=round(seconds, 3))
    elif created:
        _after_commit("step opened", instance)


def _after_commit(message: str, comparison: Comparison, **fields) -> None:
    if not logger.isEnabledFor(logging.INFO):
        return
    chain = comparison.chain
    about = {"campaign": chain.campaign_id, "chain": chain.place, "step": comparison.step, **fields}
    # robust: a full log disk must not undo a vote.
    transaction.on_commit(lambda: logger.info(message, extra=about), robust=True)

"""What models have under way: votes asked of them, and proposals drawn ahead."""

from django.db import models
from django.db.models import Q
from django.utils import timezone

from prefmh_web.campaigns.models.campaign import Judge
from prefmh_web.campaigns.models.objects import State
from prefmh_web.campaigns.models.steps import Chain, Comparison


class Turn(models.Model):
    """A model's turn on a comparison, while its votes are asked for or wait to be. Written by `model_judges/turns.py`.

    While `asked` is above 0, so many votes are on their way; whoever asks for them moves `until` ahead while they work
    (`turn_claims.py`), and `state` is the object being rated, where the rule rates. Otherwise `reason` says why
    there are none: they are asked for again at `until`, or, where that is null, once somebody has seen to it.
    """

    comparison = models.ForeignKey(Comparison, models.CASCADE, related_name="turns")
    judge = models.ForeignKey(Judge, models.CASCADE, related_name="turns")
    asked = models.PositiveIntegerField(default=0)
    # What it may come to while it is under way, where there is a cap on that: reserved for it.
    reserved_requests = models.PositiveBigIntegerField(default=0)
    reserved_cost = models.FloatField(default=0)
    state = models.ForeignKey(State, models.CASCADE, null=True, related_name="+")
    until = models.DateTimeField(null=True)
    reason = models.CharField(max_length=300, blank=True)
    since = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("comparison", "judge"), name="turn_once_per_judge"),
            models.CheckConstraint(
                name="turn_asks_or_says_why", condition=Q(asked=0) ^ Q(asked__gt=0, until__isnull=False, reason="")
            ),
        )

    def __str__(self) -> str:
        return f"turn of judge {self.judge_id} on {self.comparison_id}"

    @property
    def is_suspended(self) -> bool:
        return self.asked == 0 and self.until is None


class PrefetchedProposal(models.Model):
    """A proposal drawn ahead: what the kernel makes of `state` at `step`, should the chain stand there."""

    chain = models.ForeignKey(Chain, models.CASCADE, related_name="prefetched_proposals")
    step = models.PositiveIntegerField()
    state = models.ForeignKey(State, models.CASCADE, related_name="+")
    code = models.TextField()
    log_r0 = models.FloatField()
    drawn_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("chain", "step", "state"), name="prefetched_once_per_state"),)

    def __str__(self) -> str:
        return f"prefetched proposal of step {self.step} of {self.chain}"

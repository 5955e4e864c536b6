"""What models answer about pairs that people were shown once more. Never a vote: nothing on a vote's path reads it."""

from django.db import models
from django.db.models import Q

from prefmh_web.campaigns.models.campaign import Judge
from prefmh_web.campaigns.models.steps import Comparison


class RepeatQuestion(models.Model):
    """A decided pair put to a model in both orders, apart from its chain. Written by `model_judges/repeated.py`.

    `lead` is the mean of its two answers: 1 if both are for the proposal, 0 if both are for the current object; of the
    probabilities where the server tells them. It is null until there are two, and for ever where `reason` says why.
    """

    comparison = models.ForeignKey(Comparison, models.CASCADE, related_name="+")
    judge = models.ForeignKey(Judge, models.CASCADE, related_name="repeat_questions")
    lead = models.FloatField(null=True)
    reason = models.CharField(max_length=300, blank=True, default="")
    tries = models.PositiveSmallIntegerField(default=0)
    answered_at = models.DateTimeField(null=True)
    # While somebody asks, or after a failure: until when nobody else need try; and what is set aside meanwhile.
    until = models.DateTimeField(null=True)
    reserved_requests = models.PositiveIntegerField(default=0)
    reserved_cost = models.FloatField(default=0)

    class Meta:
        ordering = ("pk",)
        constraints = (
            models.UniqueConstraint(fields=("comparison", "judge"), name="repeat_question_once"),
            models.CheckConstraint(
                name="repeat_lead_in_range", condition=Q(lead__isnull=True) | Q(lead__gte=0, lead__lte=1)
            ),
        )

    def __str__(self) -> str:
        return f"question {self.pk} about a repeat"

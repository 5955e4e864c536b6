"""Rounds of further steps, by which chains become longer than declared. Written only by `engine/rounds.py`."""

from django.db import models

from prefmh_web.campaigns.models.campaign import Campaign


class FurtherRound(models.Model):
    """A round that was opened: every chain that was not ended walks so many steps more."""

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="rounds")
    # From 1.
    number = models.PositiveIntegerField()
    steps = models.PositiveIntegerField()
    opened_at = models.DateTimeField()
    # How many chains there were, and how many of them had not been ended.
    chains = models.PositiveIntegerField()
    walking = models.PositiveIntegerField()
    # People's votes that had counted, the answers that were left of the budget, and how many the round can take.
    votes = models.PositiveBigIntegerField()
    answers_left = models.PositiveBigIntegerField()
    answers_needed = models.PositiveBigIntegerField()

    class Meta:
        ordering = ("number",)
        constraints = (
            models.UniqueConstraint(fields=("campaign", "number"), name="round_once_per_number"),
            models.CheckConstraint(
                name="round_is_paid_for", condition=models.Q(answers_needed__lte=models.F("answers_left"))
            ),
        )

    def __str__(self) -> str:
        return f"round {self.number} of {self.campaign_id}"

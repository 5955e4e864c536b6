"""The seats of a panel: named people, each of whom is a judge of their own."""

from django.db import models

from prefmh_web.campaigns.models.campaign import Campaign


class Seat(models.Model):
    """One seat, by its number from 1. Its link and its person carry the same number.

    The name is for the campaign's owner alone: neither voters' pages nor the record have it.
    """

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="seats")
    number = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=120, blank=True)
    # How often the researcher has noted that this person was reminded, and when the last time was.
    reminders = models.PositiveIntegerField(default=0)
    reminded_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("number",)
        constraints = (models.UniqueConstraint(fields=("campaign", "number"), name="seat_once_per_campaign"),)

    def __str__(self) -> str:
        return f"seat {self.number} of {self.campaign_id}"

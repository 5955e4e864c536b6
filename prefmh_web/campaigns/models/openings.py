"""Chains that open while a campaign runs. Written only by `engine/openings.py`."""

from django.db import models
from django.db.models import Q

from prefmh_web.campaigns.models.campaign import Campaign
from prefmh_web.campaigns.models.people import Annotator
from prefmh_web.campaigns.models.steps import Chain

# Chains that a campaign started with.
OF_THE_START = Q(opening__isnull=True)


class ChainOpening(models.Model):
    """Why a chain opened after the start: for this person, who would have waited, or soon would. Without a chain, it is
    still to be opened.
    """

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="openings")
    annotator = models.ForeignKey(Annotator, models.PROTECT, related_name="+")
    # For somebody who had no need of it yet: see `openings.look_ahead`.
    is_ahead = models.BooleanField(default=False)
    wanted_at = models.DateTimeField(auto_now_add=True)
    # Where a model makes the start: the chain's number, who draws its start until when, and what was drawn.
    place = models.PositiveIntegerField(null=True)
    claimed_until = models.DateTimeField(null=True)
    start_code = models.TextField(blank=True, default="")
    start_content = models.TextField(blank=True, default="")
    chain = models.OneToOneField(Chain, models.CASCADE, null=True, related_name="opening")
    opened_at = models.DateTimeField(null=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("annotator",), condition=Q(chain__isnull=True), name="opening_one_wanted_per_annotator"
            ),
            models.UniqueConstraint(
                fields=("campaign", "place"), condition=Q(chain__isnull=True), name="opening_one_start_per_number"
            ),
            models.CheckConstraint(
                name="opening_whole",
                condition=Q(chain__isnull=True, opened_at__isnull=True)
                | Q(chain__isnull=False, opened_at__isnull=False),
            ),
        )

    def __str__(self) -> str:
        return f"{self.chain or 'a chain'} for annotator {self.annotator_id}"

"""What asking models has come to in a campaign, and how far it may go. Written by `engine/spending.py` and
`lifecycle/caps.py` only.
"""

from django.conf import settings
from django.db import models

from prefmh_web.campaigns.models.campaign import Campaign


class ModelUsage(models.Model):
    """What one judge of a campaign has taken, or the writing of its proposals: requests, tokens, seconds, cost.

    The cost is in the currency of the endpoints' prices, at the prices of the time. `seconds` are those of answered
    requests; `unreadable` replies, neither label nor rating, are among the answered. `unpriced` requests had tokens,
    and no known price. `repeated` bounds the requests that were made again because whoever had claimed them died: see
    `engine/spending.py`.
    """

    # In `place`, beside the places of judges.
    PROPOSALS = -1

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="model_usage")
    place = models.SmallIntegerField()
    requests = models.PositiveBigIntegerField(default=0)
    failed = models.PositiveBigIntegerField(default=0)
    unreadable = models.PositiveBigIntegerField(default=0)
    unpriced = models.PositiveBigIntegerField(default=0)
    tokens_in = models.PositiveBigIntegerField(default=0)
    tokens_out = models.PositiveBigIntegerField(default=0)
    seconds = models.FloatField(default=0)
    cost = models.FloatField(default=0)
    repeated = models.PositiveBigIntegerField(default=0, db_default=0)
    # The largest of one request: by these, what the next one may cost.
    most_tokens_in = models.PositiveBigIntegerField(default=0)
    most_tokens_out = models.PositiveBigIntegerField(default=0)

    class Meta:
        ordering = ("place",)
        constraints = (models.UniqueConstraint(fields=("campaign", "place"), name="model_usage_once_per_judge"),)

    def __str__(self) -> str:
        return f"{self.requests} requests of judge {self.place} in {self.campaign_id}"

    @property
    def answered(self) -> int:
        return self.requests - self.failed

    @property
    def is_of_proposals(self) -> bool:
        return self.place == self.PROPOSALS


class CapChange(models.Model):
    """What a started campaign's caps were changed to, by whom and when."""

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="cap_changes")
    changed_at = models.DateTimeField(auto_now_add=True)
    changed_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    cost_cap = models.DecimalField(max_digits=12, decimal_places=2, null=True)
    request_cap = models.PositiveBigIntegerField(null=True)

    class Meta:
        ordering = ("pk",)

    def __str__(self) -> str:
        return f"caps of {self.campaign_id}: {self.cost_cap}, {self.request_cap} requests"

"""What asking models has come to in a campaign. Written by `engine/spending.py` only."""

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
    # Its default is the database's too: `engine/spending.py` inserts without it.
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

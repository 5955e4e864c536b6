"""What models thought before they voted. No verdict depends on it."""

from django.db import models

from prefmh_web.campaigns.models.campaign import Judge
from prefmh_web.campaigns.models.steps import Vote


class VoteReason(models.Model):
    """The reason of one vote, or its beginning. Written by `model_judges/reasons.py`."""

    vote = models.OneToOneField(Vote, models.CASCADE, primary_key=True, related_name="reason")
    judge = models.ForeignKey(Judge, models.CASCADE, related_name="reasons")
    text = models.TextField()
    is_cut = models.BooleanField(default=False)

    class Meta:
        ordering = ("pk",)

    def __str__(self) -> str:
        return f"reason of vote {self.vote_id}"

"""The researcher's texts in the further languages of a campaign."""

from django.db import models

from prefmh_web.campaigns.models.campaign import Campaign


class Translation(models.Model):
    """All texts of a campaign in one of its further languages. Written only by `participants/wording.py`."""

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="translations")
    language = models.CharField(max_length=12)
    # By the text in the campaign's first language: a text that changes there has none any more.
    texts = models.JSONField(default=dict)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("campaign", "language"), name="translation_once_per_language"),)

    def __str__(self) -> str:
        return f"{self.language} of {self.campaign_id}"

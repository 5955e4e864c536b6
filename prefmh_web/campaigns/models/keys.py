"""Keys by which a program that creates campaigns finds again those that it has created."""

from django.conf import settings
from django.db import models

from prefmh_web.campaigns.models.campaign import Campaign


class CreationKey(models.Model):
    """The key under which a campaign was created. Under one key an owner has one campaign."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    key = models.CharField(max_length=100)
    campaign = models.OneToOneField(Campaign, models.CASCADE, related_name="+")

    class Meta:
        constraints = (models.UniqueConstraint(fields=("owner", "key"), name="creation_key_once_per_owner"),)

    def __str__(self) -> str:
        return self.key

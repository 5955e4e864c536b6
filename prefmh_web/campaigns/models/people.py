"""Who takes part: researchers beside the owner, links, and the people who vote."""

from __future__ import annotations

import secrets

from django.conf import settings
from django.db import models
from django.urls import reverse

from prefmh_web.campaigns.models.campaign import Campaign


class Membership(models.Model):
    """A researcher who may see somebody else's campaign, and perhaps run it."""

    class Role(models.TextChoices):
        VIEWER = "viewer", "may watch and download"
        MANAGER = "manager", "may also start, pause and invite"

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=7, choices=Role, default=Role.VIEWER)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("campaign", "user"), name="member_once_per_campaign"),)

    def __str__(self) -> str:
        return f"{self.user} in {self.campaign_id}"


def new_invitation_token() -> str:
    return secrets.token_urlsafe(16)


class Invitation(models.Model):
    """A link that lets people join a campaign as annotators."""

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="invitations")
    token = models.CharField(max_length=43, unique=True, default=new_invitation_token)
    created_at = models.DateTimeField(auto_now_add=True)
    # One person only, if set; whoever opens it next is turned away.
    is_single_use = models.BooleanField(default=False)
    revoked_at = models.DateTimeField(null=True)
    # Of the demo: whoever joins by it is a program, and pages and record say so.
    is_simulated = models.BooleanField(default=False)
    # Of a panel: whoever opens it is this panelist, by their number, in every browser.
    panelist = models.PositiveSmallIntegerField(null=True)

    def __str__(self) -> str:
        return f"invitation to {self.campaign_id}"

    def get_absolute_url(self) -> str:
        return reverse("voting:welcome", args=[self.token])

    @property
    def admits_anybody(self) -> bool:
        """True while whoever opens it may join, those who were shown out and come with another browser included."""
        return not (self.is_single_use or self.revoked_at)


class Annotator(models.Model):
    """A person who votes in one campaign, known by their session only."""

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="annotators")
    # The link they came by; null for those who joined before links were noted.
    invitation = models.ForeignKey("Invitation", models.PROTECT, null=True, related_name="annotators")
    joined_at = models.DateTimeField(auto_now_add=True)
    # Set when access is withdrawn: no more pairs, no more votes; what they voted stays.
    removed_at = models.DateTimeField(null=True)
    # A page renews this every half minute while its socket is open.
    online_until = models.DateTimeField(null=True)
    # Set when a lease ran out unanswered: no more pairs until the person shows that they are there.
    resting = models.BooleanField(default=False)
    # How many votes they have cast.
    votes_cast = models.PositiveIntegerField(default=0)
    # Of a panel: which panelist they are. It never changes.
    panelist = models.PositiveSmallIntegerField(null=True)
    # Since when nothing is to say any more who they are, and since when nothing does: in between, they are to be paid.
    # Written only by `participants/erasure.py`.
    erasure_requested_at = models.DateTimeField(null=True)
    erased_at = models.DateTimeField(null=True)
    # Not stored: whether a pair is theirs, as the engine saw it when it read this row.
    holds_a_lease = True

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("campaign", "panelist"), condition=models.Q(panelist__isnull=False), name="panelist_joined_once"
            ),
            models.CheckConstraint(
                name="erased_on_request",
                condition=models.Q(erased_at__isnull=True) | models.Q(erasure_requested_at__isnull=False),
            ),
        )
        indexes = (
            models.Index(
                fields=("campaign",),
                condition=models.Q(erasure_requested_at__isnull=False, erased_at__isnull=True),
                name="annotator_to_be_erased",
            ),
        )

    def __str__(self) -> str:
        return f"annotator {self.pk}"

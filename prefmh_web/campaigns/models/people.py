"""Who takes part: researchers beside the owner, links, and the people who vote.

Voters' numbers: each campaign's own, from 1, in the order in which people joined it.

They are what pages, the API and the record call people, and what the moments of attention checks are drawn by. Nobody
is ever removed from the table, and whoever a platform sends joins while the campaign's row is locked, so a number stays
what it is.
"""

from __future__ import annotations

import secrets
from typing import Any, TypeVar

from django.conf import settings
from django.db import models
from django.db.models import Count, Model, OuterRef, QuerySet, Subquery
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


def new_invitation_token() -> str:
    return secrets.token_urlsafe(16)


class Invitation(models.Model):
    """A link that lets people join a campaign as voters."""

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

    def get_absolute_url(self) -> str:
        return reverse("voting:welcome", args=[self.token])

    @property
    def admits_anybody(self) -> bool:
        """True while whoever opens it may join, those who were shown out and come with another browser included."""
        return not (self.is_single_use or self.revoked_at)


class Voter(models.Model):
    """A person who votes in one campaign, known by their session only."""

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="voters")
    # The link they came by; null for those who joined before links were noted.
    invitation = models.ForeignKey("Invitation", models.PROTECT, null=True, related_name="voters")
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
                name="voter_to_be_erased",
            ),
        )


# Beyond it, databases refuse to count; nobody is there.
_MOST = 2**31
Numbered = TypeVar("Numbered", bound=Model)


def number_of(voter: Voter) -> int:
    """Return somebody's number."""
    return Voter.objects.filter(campaign=voter.campaign_id, pk__lte=voter.pk).count()


def numbers_in(campaign: Campaign) -> dict[int, int]:
    """Return everybody's number by their primary key."""
    return {pk: number for number, pk in enumerate(_everybody(campaign), start=1)}


def key_of(campaign: Campaign, number: int) -> int | None:
    """Return the primary key of the person of a number; None if there is nobody."""
    if not 0 < number < _MOST:
        return None
    return next(iter(_everybody(campaign)[number - 1 : number]), None)


def with_numbers(found: QuerySet[Numbered], path: str) -> QuerySet[Numbered, Any]:
    """Return rows with the number of whom each refers to by this path, as `voter_number`; None for nobody."""
    earlier = Voter.objects.filter(campaign=OuterRef(f"{path}__campaign"), pk__lte=OuterRef(path)).order_by()
    numbered: QuerySet[Any, Any] = found.annotate(
        voter_number=Subquery(earlier.values("campaign").annotate(all=Count("pk")).values("all"))
    )
    return numbered


def _everybody(campaign: Campaign) -> QuerySet[Voter, int]:
    return Voter.objects.filter(campaign=campaign).order_by("pk").values_list("pk", flat=True)

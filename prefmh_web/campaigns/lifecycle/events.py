"""The door through which a researcher's deeds in a started campaign are noted, where no other table says them.

Starts, caps, extensions, links, parked steps and ended warm-ups have rows of their own; `record/events.py` reads those.
"""

from __future__ import annotations

from django.contrib.auth.models import User

from prefmh_web.campaigns.models import Campaign, CampaignEvent, Membership


def note(campaign_id: int, kind: CampaignEvent.Kind, by: User | None = None, **detail: object) -> None:
    """Note a deed, in the transaction that does it. Nothing is noted of a draft: its setup is all that counts.

    Args:
        by: who did it; the record has their role.
        detail: what was changed; no name of a person, no code and no address, for it becomes part of the record.
    """
    campaign = Campaign.objects.filter(pk=campaign_id, started_at__isnull=False).first()
    if campaign is None:
        return
    if by is not None:
        detail |= {"by": _role(by, campaign)}
    words = "; ".join(f"{name}={value}" for name, value in detail.items())
    CampaignEvent.objects.create(campaign=campaign, kind=kind, by=by, detail=words)


def _role(user: User, campaign: Campaign) -> str:
    if user.pk == campaign.owner_id:
        return "owner"
    is_member = Membership.objects.filter(campaign=campaign, user=user.pk).exists()
    return "manager" if is_member and not user.is_superuser else "admin"

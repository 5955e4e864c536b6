"""The door through which a researcher's deeds in a started campaign are noted, where no other table says them.

Starts, caps, extensions, links, parked steps and ended warm-ups have rows of their own; `record/events.py` reads those.
"""

from __future__ import annotations

from prefmh_web.campaigns.models import Campaign, CampaignEvent


def note(campaign_id: int, kind: CampaignEvent.Kind, **detail: object) -> None:
    """Note a deed, in the transaction that does it. Nothing is noted of a draft: its setup is all that counts.

    Args:
        detail: what was changed; no name of a person, no code and no address, for it becomes part of the record.
    """
    if Campaign.objects.filter(pk=campaign_id, started_at__isnull=False).exists():
        words = "; ".join(f"{name}={value}" for name, value in detail.items())
        CampaignEvent.objects.create(campaign_id=campaign_id, kind=kind, detail=words)

"""A model that a judge's server has turned to counts as that judge from now on, by a researcher's decision."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction

from prefmh_web.campaigns import events
from prefmh_web.campaigns.model_judges import turns
from prefmh_web.campaigns.models import Campaign


def accept(campaign: Campaign, by: User) -> None:
    """Accept the models whose replies have been dropped, and ask the stopped judges again."""
    stopped = campaign.judges.exclude(stopped_because="")
    with transaction.atomic():
        new = stopped.filter(identities__accepted_at=None, identities__isnull=False)
        places = list(new.values_list("place", flat=True))
        turns.try_again(campaign, accepting=True)
        if places:
            judges = " ".join(map(str, sorted(set(places))))
            events.note(campaign.pk, events.Kind.MODEL_ACCEPTED, by, {"judges": judges})

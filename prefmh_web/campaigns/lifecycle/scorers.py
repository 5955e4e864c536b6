"""The scorers of a campaign: which ones it starts with, and what a researcher does about one that fails.

A model that a judge's server has turned to counts as that judge from now on, by a researcher's decision.
"""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction

from prefmh_web.campaigns import dispatch, events
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.model_judges import turns
from prefmh_web.campaigns.models import Campaign, CampaignScorer, Score
from prefmh_web.scorers import Scorer, offered


def chosen(campaign: Campaign) -> list[Scorer]:
    """Return the scorers that a setup names: those that steps wait for first, if there are such.

    Raises:
        NotPossible: this site does not offer one of them for these objects.
    """
    names = campaign.config.all_scorers
    found = offered(campaign.object_kind.name) if names else {}
    if missing := [name for name in names if name not in found]:
        raise NotPossible(
            f"The scorer “{missing[0]}” is not offered for {campaign.object_kind.nouns} here. Declare it in SCORERS, "
            "or choose another in the setup."
        )
    return [found[name] for name in names]


def freeze(campaign: Campaign) -> None:
    """Keep what the scorers of a setup say of themselves now. In the transaction of the start.

    Raises:
        NotPossible: as `chosen` does.
    """
    rows = [
        CampaignScorer(campaign=campaign, place=place, name=scorer.name, frozen=scorer.description())
        for place, scorer in enumerate(chosen(campaign))
    ]
    if rows:
        CampaignScorer.objects.bulk_create(rows)
        dispatch.score(campaign)


def try_again(campaign: Campaign) -> int:
    """Ask the scorers again that have stopped, and about the objects that have none of their numbers; return how many
    objects these are.
    """
    with transaction.atomic():
        without, _ = Score.objects.filter(scorer__campaign=campaign, value__isnull=True).delete()
        campaign.scorers.update(stopped_because="", is_complete=False)
        events.note(campaign.pk, events.Kind.SCORERS_ASKED)
        dispatch.score(campaign)
    return without


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

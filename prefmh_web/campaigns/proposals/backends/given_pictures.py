"""Pairs of pictures that a command has stored: nothing is made, and a start without them is refused.

A setup that is copied to another campaign names the pictures and does not bring them.
"""

from collections.abc import Hashable, Iterable

import sampler
from prefmh_web.campaigns.models import Campaign
from prefmh_web.campaigns.proposals.backends.backend import Backend
from prefmh_web.endpoints.errors import Unable
from prefmh_web.objects import media


class GivenPictures(Backend):
    """Proposals by the sampler alone, on pairs of stored pictures."""

    def prepare(self, campaign: Campaign, states: Iterable[Hashable]) -> None:
        """Look whether the pictures of all pairs are stored.

        Raises:
            Unable: one is not.
        """
        space = campaign.parsed_recipe.space
        if not isinstance(space, sampler.PairsRecipe):
            raise TypeError(f"campaign {campaign.pk} has no pairs")
        for number, pair in enumerate(space.pairs):
            for content in pair:
                if not media.is_stored(media.given_name(campaign.pk, content)):
                    raise Unable(
                        f"picture {content} of pair {number} is not stored for this campaign; have the pairs made by "
                        "manage.py experiment compare --people"
                    )

"""An object of a campaign as a row, as the sampler's state, and as what presenters take.

An object that a chain makes is stored once, under the number of the step that proposed it, in the transaction that
opens the step. It is encoded before that transaction: that may take long, and locks are held for a short time only.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import sampler
from prefmh_web.campaigns.models import Campaign, Chain, State
from prefmh_web.campaigns.started.plans import decoder_of, space_of
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.objects import StoredObject, media
from prefmh_web.objects.kind import Pixels
from sampler.judges import Exhibit


@dataclass(frozen=True)
class _Decoded:
    """The image that a campaign's space makes of a code. Two are equal if they make the same one."""

    campaign_id: int
    code: str
    space: sampler.GeneratedImages = field(compare=False)

    def __call__(self) -> Pixels:
        return self.space.pixels(self.space.decode(self.code))


def stored(row: State) -> StoredObject:
    """Return a row as the presenters of objects take it."""
    picture, pixels = row.picture.name or "", None
    if row.campaign.object_kind.is_picture and not picture:
        pixels = _Decoded(row.campaign_id, row.code, decoder_of(row.campaign))
    # Of a catalog's objects, which have a weight, the pictures are the researcher's own.
    return StoredObject(row.content, picture, row.media_type, bool(picture) and row.weight is None, pixels)


def exhibit(row: State, endpoint: Endpoint) -> Exhibit:
    """Return an object as the model behind an endpoint gets it."""
    return row.campaign.object_kind.exhibit(stored(row), sees_pictures=bool(endpoint.can_images))


def starting(campaign: Campaign, chain: int, state: Hashable) -> State:
    """Return the row of the state that a chain starts at; not saved yet if the chain has made it."""
    return _row(campaign, chain, 0, state)


def proposed(chain: Chain, drawn: sampler.Comparison[Any]) -> State:
    """Return the row of a step's proposal, not saved yet if it is new; the chain's head where it proposes to stay."""
    return chain.head if drawn.is_identity else _row(chain.campaign, chain.place, drawn.step, drawn.proposal)


def _row(campaign: Campaign, chain: int, step: int, state: Any) -> State:
    recipe = campaign.parsed_recipe
    if not recipe.generates:
        return State.objects.get(campaign=campaign, place=state)
    space = space_of(campaign)
    code = space.encode(state)
    # Rendered before the step is opened: see `proposals/backends/rendered_images.py`.
    is_rendered = isinstance(recipe.space, sampler.ServedImagesRecipe)
    return State(
        campaign=campaign,
        place=sampler.state_number(chain, step, recipe.chains_at_most),
        content=space.content(state),
        code=code,
        picture=media.rendered_name(campaign.pk, code) if is_rendered else "",
        media_type="image/png" if is_rendered else "",
    )

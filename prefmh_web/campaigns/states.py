"""From the sampler's values to rows: finding a catalog's objects, storing those that chains make.

An object that a chain makes is stored once, under the number of the step that proposed it, in the transaction that
opens the step.
"""

from collections.abc import Hashable

import sampler
from prefmh_web.campaigns import started
from prefmh_web.campaigns.models import Campaign, Chain, State
from prefmh_web.objects import media


def starting(campaign: Campaign, chain: int, state: Hashable) -> State:
    """Return the row of the state a chain starts at."""
    return _row(campaign, chain, 0, state)


def proposed(chain: Chain, drawn: sampler.Comparison) -> State:
    """Return the row of a step's proposal; the chain's head where it proposes to stay."""
    return chain.head if drawn.is_identity else _row(chain.campaign, chain.place, drawn.step, drawn.proposal)


def unsaved(campaign: Campaign, chain: int, step: int, state: Hashable) -> State:
    """Return the row of a state that a chain made, not stored yet."""
    space = started.plan_of(campaign).space
    code = space.encode(state)
    # Painted before the step is opened: see `proposals/backends/rendered_images.py`.
    picture = media.painted_name(campaign.pk, code) if campaign.is_painted_by_a_model else ""
    return State(
        campaign=campaign,
        place=sampler.state_number(chain, step, campaign.recipe["chains"]),
        content=space.content(state),
        code=code,
        picture=picture,
        media_type="image/png" if picture else "",
    )


def _row(campaign: Campaign, chain: int, step: int, state: Hashable) -> State:
    if campaign.has_catalog:
        return State.objects.get(campaign=campaign, place=state)
    row = unsaved(campaign, chain, step, state)
    row.save(force_insert=True)
    return row

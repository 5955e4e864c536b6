"""Pictures that one of the site's image models makes of what the sampler draws, before anybody is asked about them.

    prepare     make those of some states
    discard     remove those of proposals that nothing will come of
    clean_up    remove what a start that failed has left

Where a campaign's objects are no such pictures, nothing happens. `sampler` draws latents without the model. Only the
worker of the queue “gpu” makes pictures; every other process finds them among the files, under a name that follows from
the state's code. So a state that is there already needs no second picture, and one that two workers make at once is one
file. A row that names a picture, of a state or of a prefetched proposal, is written after the file: where there is a
row, there is a file.
"""

from collections.abc import Hashable, Iterable
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery

import sampler
from prefmh_web.campaigns.frozen import space_of
from prefmh_web.campaigns.models import Campaign, Comparison, PrefetchedProposal
from prefmh_web.endpoints.errors import Unable
from prefmh_web.endpoints.local import local_decoder
from prefmh_web.objects import media


def prepare(campaign: Campaign, states: Iterable[Hashable]) -> None:
    """Store the pictures of states that have none yet, so that people can be asked about them.

    Raises:
        Unable: the model cannot be run here, or gave no picture, or there is no room for it. What was made before that
            is stored.
    """
    described = campaign.config.space
    if not isinstance(described, sampler.ServedImagesConfig):
        return
    space = space_of(campaign)
    for state in states:
        code = space.encode(state)
        name = media.rendered_name(campaign.pk, code)
        # By content as well: a row's code stands before its picture, and SQLite would read all of these.
        is_there = campaign.states.filter(content=space.content(state), picture=name).exists()
        # What a kernel draws afresh, both prefetched proposals of a step propose.
        if is_there or PrefetchedProposal.objects.filter(chain__campaign=campaign, code=code).exists():
            continue
        picture = _rendered(described, state)
        try:
            media.store(name, picture)
        except OSError as error:
            raise Unable(f"the picture cannot be stored: {error.strerror or error}") from error


def discard(campaign: Campaign, stale: QuerySet[PrefetchedProposal]) -> None:
    """Remove the pictures of prefetched proposals, but those of what their steps did propose, and of the states that
    they move from: one may have become its step's proposal, and one that stays where it is has its state's picture.
    """
    if not isinstance(campaign.config.space, sampler.ServedImagesConfig):
        return
    opened = Comparison.objects.filter(chain=OuterRef("chain"), step=OuterRef("step")).values("proposal")
    found = list(stale.values_list("code", "state", Subquery(opened)))
    kept = campaign.states.filter(pk__in={key for _, *keys in found for key in keys})
    names = {media.rendered_name(campaign.pk, code) for code, *_ in found}
    media.remove_rendered(names - set(kept.values_list("picture", flat=True)))


def clean_up(campaign: Campaign) -> None:
    """Remove pictures that no state of a campaign has, which a start that failed may have left."""
    if isinstance(campaign.config.space, sampler.ServedImagesConfig):
        media.remove_rendered_but(campaign.pk, keep=set(campaign.states.values_list("picture", flat=True)))


def _rendered(space: sampler.ServedImagesConfig, state: Any) -> bytes:
    """Return the PNG of a latent."""
    try:
        decoder = local_decoder(space.model, space.prompt, space.steps)
        if decoder.dimension != space.dimension:
            raise ValueError(f"its latents have {decoder.dimension} numbers; the setup says {space.dimension}")
        return sampler.png(decoder.pixels(state.vector))
    # PyTorch says by a RuntimeError that the accelerator's memory is full, or that there is no accelerator.
    except (ImportError, OSError, ValueError, ArithmeticError, MemoryError, RuntimeError) as error:
        raise Unable(f"{space.model} makes no pictures here: {error}") from error

"""The pictures that one of the site's image models makes of states: stored before anybody is asked about them.

`sampler` draws latents without the model. Only the worker of the queue “gpu” paints; every other process finds the
picture among the files, under a name that follows from the state's code. So a state that is there already needs no
second picture, and one that two workers paint at once is one file.

A row that names a picture, of a state or of a draft, is written after the file: where there is a row, there is a file.
"""

from collections.abc import Hashable, Iterable

from django.db.models import OuterRef, Subquery

import sampler
from prefmh_web.campaigns import recipes, started
from prefmh_web.campaigns.models import Campaign, Comparison, Draft
from prefmh_web.endpoints.errors import Unable
from prefmh_web.endpoints.local.models import local_decoder
from prefmh_web.objects import media


def paint(campaign: Campaign, states: Iterable[Hashable]) -> None:
    """Store the pictures of states that have none yet; those of campaigns that no model paints need none.

    Raises:
        Unable: the model cannot be run here, or gave no picture, or there is no room for it. What was painted before
            that is stored.
    """
    if not campaign.is_painted_by_a_model:
        return
    space = started.plan_of(campaign).space
    for state in states:
        code = space.encode(state)
        name = media.painted_name(campaign.pk, code)
        # By content as well: a row's code stands before its picture, and SQLite would read all of them to get there.
        is_there = campaign.states.filter(content=space.content(state), picture=name).exists()
        # What a kernel draws afresh, both drafts of a step propose.
        if not is_there and not Draft.objects.filter(chain__campaign=campaign, code=code).exists():
            _store(name, _painted(campaign, state))


def remove_unnamed(campaign: Campaign) -> None:
    """Remove pictures that no state of a campaign has, which a start that failed may have left."""
    media.remove_painted_but(campaign.pk, keep=set(campaign.states.values_list("picture", flat=True)))


def discard_drafts(drafts: Iterable[Draft], campaign: Campaign) -> None:
    """Delete drafts that nothing will come of, with their pictures."""
    stale = list(drafts)
    if campaign.is_painted_by_a_model:
        names = {media.painted_name(campaign.pk, draft.code) for draft in stale}
        media.remove_painted(names - _pictures_beside(campaign, stale))
    Draft.objects.filter(pk__in=[draft.pk for draft in stale]).delete()


def _pictures_beside(campaign: Campaign, drafts: Iterable[Draft]) -> set[str]:
    """Return the pictures of what the drafts' steps did propose, and of the states that the drafts move from.

    One draft may have become its step's proposal, and one that stays where it is has its state's picture.
    """
    opened = Comparison.objects.filter(chain=OuterRef("chain"), step=OuterRef("step")).values("proposal")
    of = Draft.objects.filter(pk__in=[draft.pk for draft in drafts])
    keys = {key for pair in of.values_list("state", Subquery(opened)) for key in pair}
    return set(campaign.states.filter(pk__in=keys).values_list("picture", flat=True))


def _store(name: str, picture: bytes) -> None:
    try:
        media.store(name, picture)
    except OSError as error:
        raise Unable(f"the picture cannot be stored: {error.strerror or error}") from error


def _painted(campaign: Campaign, state: Hashable) -> bytes:
    """Return the PNG of a state."""
    space = recipes.recipe_of(campaign).space
    try:
        decoder = local_decoder(space.model, space.prompt, space.steps)
        if decoder.dimension != space.dimension:
            raise ValueError(f"its latents have {decoder.dimension} numbers; the setup says {space.dimension}")
        return sampler.png(decoder.pixels(state.vector))
    # PyTorch says by a RuntimeError that the accelerator's memory is full, or that there is no accelerator.
    except (ImportError, OSError, ValueError, ArithmeticError, MemoryError, RuntimeError) as error:
        raise Unable(f"{space.model} makes no pictures here: {error}") from error

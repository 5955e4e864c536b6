"""Where proposals come from: a class for each source, in `BACKENDS` under the name of `Campaign.backend`.

    Backend           the kernel, which is the sampler alone, within milliseconds
    ServedTexts       texts that a language model writes, many in one call
    RenderedImages    pictures that an image model makes of what the sampler draws, one at a time

To add one: write a `Backend`, register it below, say in `Campaign.backend` which spaces it serves and in `dispatch`
which queue its worker reads.
"""

from collections.abc import Collection, Hashable, Iterable
from typing import Any

from django.db.models import OuterRef, Subquery

import sampler
from prefmh_web.campaigns.frozen import space_of
from prefmh_web.campaigns.models import Campaign, Comparison, PrefetchedProposal
from prefmh_web.endpoints.errors import Unable
from prefmh_web.endpoints.local.models import local_decoder
from prefmh_web.objects import media


class Backend:
    """Proposals by the sampler alone: each is drawn when it is needed, and nothing has to be prepared."""

    is_slow = False
    """Whether a proposal may take seconds. Then it is drawn by a worker of its own queue, and ahead of time."""
    batch_size = 1
    """How many chains one call serves."""

    @property
    def is_one_by_one(self) -> bool:
        """Whether slow proposals are made one at a time, so that other campaigns come in between."""
        return self.is_slow and self.batch_size == 1

    def prepare(self, campaign: Campaign, states: Iterable[Hashable]) -> None:
        """Make what has to be there before anybody is asked about these states of the sampler.

        Raises:
            EndpointError: it cannot be made. What was made before that is stored.
        """

    def discard(self, campaign: Campaign, stale: Collection[PrefetchedProposal]) -> None:
        """Delete prefetched proposals that nothing will come of."""
        PrefetchedProposal.objects.filter(pk__in=[each.pk for each in stale]).delete()

    def clean_up(self, campaign: Campaign) -> None:
        """Remove what a start that failed may have left."""


class ServedTexts(Backend):
    """Proposals whose kernel calls a language model (`endpoints.writers`), behind an endpoint or run by the site."""

    is_slow = True
    batch_size = 64


class RenderedImages(Backend):
    """Proposals whose pictures one of the site's image models makes, one at a time, before anybody is asked about them.

    `sampler` draws latents without the model. Only the worker of the queue “gpu” renders; every other process finds the
    picture among the files, under a name that follows from the state's code. So a state that is there already needs no
    second picture, and one that two workers render at once is one file.

    A row that names a picture, of a state or of a prefetched proposal, is written after the file: where there is a row,
    there is a file.
    """

    is_slow = True
    batch_size = 1

    def prepare(self, campaign: Campaign, states: Iterable[Hashable]) -> None:
        """Store the pictures of states that have none yet.

        Raises:
            Unable: the model cannot be run here, or gave no picture, or there is no room for it.
        """
        space = space_of(campaign)
        for state in states:
            code = space.encode(state)
            name = media.rendered_name(campaign.pk, code)
            # By content as well: a row's code stands before its picture, and SQLite would read all of these.
            is_there = campaign.states.filter(content=space.content(state), picture=name).exists()
            # What a kernel draws afresh, both prefetched proposals of a step propose.
            prefetched = PrefetchedProposal.objects.filter(chain__campaign=campaign, code=code)
            if not is_there and not prefetched.exists():
                _store(name, _rendered(campaign, state))

    def discard(self, campaign: Campaign, stale: Collection[PrefetchedProposal]) -> None:
        """Delete prefetched proposals that nothing will come of, with their pictures."""
        names = {media.rendered_name(campaign.pk, each.code) for each in stale}
        media.remove_rendered(names - _pictures_beside(campaign, stale))
        super().discard(campaign, stale)

    def clean_up(self, campaign: Campaign) -> None:
        """Remove pictures that no state of a campaign has, which a start that failed may have left."""
        media.remove_rendered_but(campaign.pk, keep=set(campaign.states.values_list("picture", flat=True)))


BACKENDS: dict[str, Backend] = {
    "kernel": Backend(),
    "served-texts": ServedTexts(),
    "own-texts": ServedTexts(),
    "rendered-images": RenderedImages(),
}


def backend_of(campaign: Campaign) -> Backend:
    """Return where a campaign's proposals come from."""
    return BACKENDS[campaign.backend]


def _pictures_beside(campaign: Campaign, stale: Iterable[PrefetchedProposal]) -> set[str]:
    """Return the pictures of what these proposals' steps did propose, and of the states that they move from.

    One of them may have become its step's proposal, and one that stays where it is has its state's picture.
    """
    opened = Comparison.objects.filter(chain=OuterRef("chain"), step=OuterRef("step")).values("proposal")
    of = PrefetchedProposal.objects.filter(pk__in=[each.pk for each in stale])
    keys = {key for pair in of.values_list("state", Subquery(opened)) for key in pair}
    return set(campaign.states.filter(pk__in=keys).values_list("picture", flat=True))


def _store(name: str, picture: bytes) -> None:
    try:
        media.store(name, picture)
    except OSError as error:
        raise Unable(f"the picture cannot be stored: {error.strerror or error}") from error


def _rendered(campaign: Campaign, state: Any) -> bytes:
    """Return the PNG of a latent."""
    space = campaign.config.space
    if not isinstance(space, sampler.ServedImagesConfig):
        raise TypeError(f"campaign {campaign.pk} has no image model")
    try:
        decoder = local_decoder(space.model, space.prompt, space.steps)
        if decoder.dimension != space.dimension:
            raise ValueError(f"its latents have {decoder.dimension} numbers; the setup says {space.dimension}")
        return sampler.png(decoder.pixels(state.vector))
    # PyTorch says by a RuntimeError that the accelerator's memory is full, or that there is no accelerator.
    except (ImportError, OSError, ValueError, ArithmeticError, MemoryError, RuntimeError) as error:
        raise Unable(f"{space.model} makes no pictures here: {error}") from error

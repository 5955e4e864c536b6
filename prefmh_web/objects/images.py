"""Images, from their files or made on the spot; and patterns of this program's own where there are none yet."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import sampler
from prefmh_web.objects import media
from prefmh_web.objects.kind import Media, Medium, ObjectKind, Pixels, RenderOptions, StoredObject
from sampler.judges import Picture, ShownObject

_PREVIEW_SIDE = 160
_SEED = 5


@dataclass(frozen=True)
class Pattern:
    """Makes the pattern of this number, 0 or 1."""

    number: int

    def __call__(self) -> Pixels:
        return _drawn(self.number)


class Images(ObjectKind):
    """Images; their content is the name of a file, or one that is made of a code."""

    name = "images"
    noun = "image"
    nouns = "images"
    source = "file"
    samples = (StoredObject("a pattern", pixels=Pattern(0)), StoredObject("another pattern", pixels=Pattern(1)))
    medium: Medium = "picture"
    in_line = ("colourfulness {colourfulness:.0f}", "contrast {contrast:.2f}", "symmetry {symmetry:.2f}")

    def shown_object(self, shown: StoredObject, sees_pictures: bool) -> ShownObject:
        """Return the picture, without a name that could tell anything."""
        picture = self.media(shown, RenderOptions(raster=True))
        return ShownObject(text="", picture=Picture(picture.media_type, picture.body))

    def media(self, shown: StoredObject, look: RenderOptions, other: StoredObject | None = None) -> Media:
        """Return the picture, made smaller where it is wanted small and is not a file of somebody's own.

        Raises:
            OSError: its file cannot be read.
        """
        if shown.picture and not (shown.is_rendered and look.small):
            return Media(media.stored(shown.picture), shown.media_type)
        return Media(_encoded(shown, look.small), "image/webp" if look.small else "image/png")

    def measured(self, shown: StoredObject) -> Pixels:
        """Return the pixels.

        Raises:
            OSError: its file cannot be read.
        """
        return _pixels(shown)


@lru_cache(maxsize=256)
def _encoded(shown: StoredObject, small: bool) -> bytes:
    return sampler.preview(_pixels(shown), _PREVIEW_SIDE) if small else sampler.png(_pixels(shown))


def _pixels(shown: StoredObject) -> Pixels:
    if shown.pixels is not None:
        return shown.pixels()
    return media.pixels_in(shown.picture)


@lru_cache
def _drawn(number: int) -> Pixels:
    space = sampler.ImagesConfig().build()
    rng = sampler.stream(_SEED, number, 0, sampler.Purpose.START)
    return space.pixels(space.start(rng, number))

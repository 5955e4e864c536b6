"""Images, from their files or made on the spot."""

import logging
from dataclasses import asdict
from functools import lru_cache
from typing import Any

import sampler
from prefmh_web.objects import media
from prefmh_web.objects.images.samples import Pattern
from prefmh_web.objects.kind import Look, Measures, Media, Medium, Pixels, StoredObject, in_one_line
from sampler.judges import Exhibit, Picture

logger = logging.getLogger(__name__)

_LINE = ("colourfulness {colourfulness:.0f}", "contrast {contrast:.2f}", "symmetry {symmetry:.2f}")
_PREVIEW_SIDE = 160


class Images:
    """Images; their content is the name of a file, or one that is made of a code."""

    name = "images"
    noun = "image"
    nouns = "images"
    source = "file"
    samples = (StoredObject("a pattern", pixels=Pattern(0)), StoredObject("another pattern", pixels=Pattern(1)))
    has_differences = False
    medium: Medium = "picture"
    is_a_button = True

    def options(self, left: str, right: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return nothing: the picture, which has an address, shows everything."""
        return {}, {}

    def excerpts(self, left: str, right: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return nothing: a small picture shows the whole object."""
        return {}, {}

    def exhibit(self, shown: StoredObject, sees_pictures: bool) -> Exhibit:
        """Return the picture, without a name that could tell anything."""
        picture = self.media(shown, Look(raster=True))
        return Exhibit(text="", picture=Picture(picture.media_type, picture.body))

    def media(self, shown: StoredObject, look: Look, beside: StoredObject | None = None) -> Media:
        """Return the picture, made smaller where it is wanted small and is not a file of somebody's own.

        Raises:
            OSError: its file cannot be read.
        """
        if shown.picture and not (shown.is_rendered and look.small):
            return Media(media.stored(shown.picture), shown.media_type)
        return Media(_encoded(shown, look.small), "image/webp" if look.small else "image/png")

    def measures(self, shown: StoredObject) -> Measures:
        """Return what is measured of an image.

        Raises:
            OSError: its file cannot be read.
        """
        return _measures(shown)

    def line(self, shown: StoredObject) -> str:
        """Return colourfulness, contrast and symmetry, or that the picture cannot be read."""
        try:
            return in_one_line(_LINE, self.measures(shown))
        except OSError:
            # A lost file is for whoever runs the server to mend, and no reason to show nothing of a whole campaign.
            logger.exception("the picture %s cannot be read", shown.picture)
            return "its picture cannot be read"


@lru_cache(maxsize=256)
def _encoded(shown: StoredObject, small: bool) -> bytes:
    return sampler.preview(_pixels(shown), _PREVIEW_SIDE) if small else sampler.png(_pixels(shown))


@lru_cache(maxsize=2048)
def _measures(shown: StoredObject) -> Measures:
    return asdict(sampler.describe_image(_pixels(shown)))


def _pixels(shown: StoredObject) -> Pixels:
    if shown.pixels is not None:
        return shown.pixels()
    return media.pixels_in(shown.picture)

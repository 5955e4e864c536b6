"""What every kind of object offers to the pages, to models and to tables. Plain values in, plain values out.

To add a kind: write a file like the ones here, with a subclass of `ObjectKind`; list it in `OBJECT_KINDS`; put two
templates into `templates/objects/<name>/`:

    option.html      one of the two objects to choose from: `option`, as `options` returned it, and `address`; on the
                     page of a step also `label`, which says which it is
    thumbnail.html   an object in a table: `state`, whose `content` it may show, and `address`; in a table of pairs
                     also `excerpt`, as `excerpts` returned it

A third, `card.html`, is for a kind that its thumbnail does not show well: `state` is a sample with its `option`.

`address` is where a browser gets what `media` returns. Whatever `option.html` shows
scrolls in its card where it is long, together with the other one; a picture whose frame has the class `zoomable` can be
enlarged, together with the other one.

The setup shows a kind by the first of its `samples`, drawn by `card.html` or `thumbnail.html`. Both stand in
the preview until a campaign has objects of its own.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

import sampler
from sampler.judges import ShownObject

Pixels = npt.NDArray[np.uint8]
"""An image, sRGB, shape (height, width, 3)."""
Medium: TypeAlias = Literal["words", "picture", "sound"]
"""What an object is for whoever judges it."""
Measures = Mapping[str, float | int | str | None]
"""What can be measured of an object, by name; None where it has no value."""

logger = logging.getLogger(__name__)
_NAMED = re.compile(r"\{(\w+)")


@dataclass(frozen=True)
class StoredObject:
    """One object as it is stored.

    Args:
        content: what identifies it: the text, the SMILES, or the name of an image or a recording.
        picture: the name of its file in the storage, a picture or a recording; empty if it has none.
        media_type: of that file.
        is_rendered: the file is a model's whole picture, and is made smaller where little of it is shown.
        pixels: makes the image of an object without a file; equal for equal images, since results are kept by it.
        told: names and texts that a scorer's program gets beside the object, such as the prompt that it answers.
    """

    content: str
    picture: str = ""
    media_type: str = ""
    is_rendered: bool = False
    pixels: Callable[[], Pixels] | None = None
    told: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class RenderOptions:
    """How a picture is wanted: for a dark ground, with what differs marked, small, or as pixels and no drawing."""

    dark: bool = False
    marked: bool = False
    small: bool = False
    raster: bool = False


@dataclass(frozen=True)
class Media:
    """What a browser or a model can show or play, with its media type."""

    body: bytes
    media_type: str


class ObjectKind:
    """A kind of object. As it stands here, it is shown by its content alone, or by what `media` returns."""

    name: str
    """What configs call the kind; the folder of its templates, and a CSS class."""
    noun: str
    """One such object, in a sentence."""
    nouns: str
    """Several of them."""
    source: str
    """What gives one object in an uploaded file: a row, or a file."""
    samples: tuple[StoredObject, StoredObject]
    """Two short objects that show what the kind is like; without files, and with different contents."""
    has_differences = False
    """True when a pair can be shown with what differs marked."""
    medium: Medium = "words"
    """How the object is judged: as words; as a picture, which a model must see; or as sound, which no model hears.

    A molecule is words, its SMILES, though people are shown a drawing.
    """
    is_a_button = True
    """True when a press anywhere on an object chooses it. False for what is read in parts, with lists and tables, or
    has buttons of its own: then the button to choose it stands below.
    """
    in_line: tuple[str, ...]
    """What `line` says, each part with the name of its measure in braces."""

    def options(self, left: str, right: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what `option.html` shows of either object of a pair, by their contents, beside its address."""
        return {}, {}

    def excerpts(self, left: str, right: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what `thumbnail.html` shows of either object of a pair: the part that differs, where both are long."""
        return {}, {}

    def shown_object(self, shown: StoredObject, sees_pictures: bool) -> ShownObject:
        """Return the object as a model gets it.

        Raises:
            OSError: the file of its picture cannot be read.
            ValueError: the object is sound.
        """
        return ShownObject(text=shown.content)

    def media(self, shown: StoredObject, look: RenderOptions, other: StoredObject | None = None) -> Media | None:
        """Return the object's picture or recording; None for a kind without.

        Args:
            other: the object that it is seen beside.

        Raises:
            OSError: the file of its picture cannot be read.
        """
        return None

    def measured(self, shown: StoredObject) -> Any:
        """Return what `sampler` measures of an object: here its content.

        Raises:
            OSError: the file of its picture or recording cannot be read.
        """
        return shown.content

    def measures(self, shown: StoredObject) -> Measures:
        """Return every measure by name, several names in one cell; `sampler`'s descriptions say in which units.

        Raises:
            OSError: as `measured` does.
        """
        return _measures(self, shown)

    def line(self, shown: StoredObject) -> str:
        """Return the measures that matter most, in one line; those without a value are left out."""
        try:
            return in_one_line(self.in_line, self.measures(shown))
        except OSError:
            # A lost file is for whoever runs the server to fix, and no reason to show nothing of a whole campaign.
            what = "recording" if self.medium == "sound" else "picture"
            logger.exception("the %s %s cannot be read", what, shown.picture)
            return f"its {what} cannot be read"


@lru_cache(maxsize=8192)
def _measures(kind: ObjectKind, shown: StoredObject) -> Measures:
    found = asdict(sampler.OBJECT_KINDS[kind.name].describe(kind.measured(shown)))
    return {name: "; ".join(each) if isinstance(each, tuple) else each for name, each in found.items()}


def in_one_line(parts: tuple[str, ...], measures: Measures) -> str:
    """Fill each part with the measure that it names, and leave out those whose measure has no value."""
    names = [_NAMED.findall(part)[0] for part in parts]
    return " · ".join(
        # The names of what is counted end in s: 1 word, 2 words.
        part.format(**measures)
        .replace("%", " %")
        .removesuffix("s" if measures[name] == 1 and part.startswith("{" + name + "}") else "")
        for part, name in zip(parts, names, strict=True)
        if measures[name] is not None
    )

"""The pictures of objects: molecules drawn as SVG; images as they were uploaded or painted, or made on the spot."""

from dataclasses import dataclass
from functools import lru_cache

from django.http import Http404, HttpRequest, HttpResponse

import sampler
from prefmh_web.campaigns import started
from prefmh_web.campaigns.models import Campaign, State
from prefmh_web.objects import media

# An object never changes once its campaign has started, so a browser may keep its picture.
_KEEP = "private, max-age=86400, immutable"
_PREVIEW_SIDE = 160


@dataclass(frozen=True)
class Look:
    """How a picture is wanted: for a dark ground, with what differs marked, small, or as pixels and no drawing."""

    dark: bool = False
    marked: bool = False
    small: bool = False
    raster: bool = False

    @classmethod
    def of(cls, request: HttpRequest) -> "Look":
        """Read the address's query: `dark`, `marked` and `small`, each present or not."""
        return cls(**{name: name in request.GET for name in ("dark", "marked", "small")})


def picture_response(state: State, look: Look, beside: State | None = None) -> HttpResponse:
    """Return the picture as a response. Who may see it is the caller's to check.

    Raises:
        Http404: texts have no picture, or its file is lost.
    """
    if state.campaign.objects_kind == "texts":
        raise Http404("This object has no picture.")
    try:
        body, media_type = picture(state, look, beside)
    except FileNotFoundError as error:
        raise Http404("The file of this picture is lost.") from error
    headers = {"Cache-Control": _KEEP, "X-Content-Type-Options": "nosniff"}
    return HttpResponse(body, content_type=media_type, headers=headers)


def picture(state: State, look: Look, beside: State | None = None) -> tuple[bytes, str]:
    """Return the picture of a molecule or an image and its media type.

    Args:
        beside: the object it is seen beside: a molecule is drawn in the same orientation.
    """
    if state.campaign.objects_kind == "molecules" and look.raster:
        return sampler.molecule_png(state.content), "image/png"
    if state.campaign.objects_kind == "molecules":
        return _drawing(state.content, beside.content if beside else None, look).encode(), "image/svg+xml"
    if state.campaign.is_painted_by_a_model and look.small:
        return _reduced(state.picture.name), "image/webp"
    if state.picture:
        with state.picture.open() as file:
            return file.read(), state.media_type
    return _decoded(state.campaign, state.code, look.small), "image/webp" if look.small else "image/png"


def _drawing(smiles: str, beside: str | None, look: Look) -> str:
    if beside is None:
        return sampler.draw_molecule(smiles, dark=look.dark)
    # Taken in one order, so that both halves of a pair find the drawing that the first of them has made.
    first, second = sorted((smiles, beside))
    return _pair(first, second, look.marked, look.dark)[smiles != first]


@lru_cache(maxsize=256)
def _pair(first: str, second: str, marked: bool, dark: bool) -> tuple[str, str]:
    return sampler.draw_pair(first, second, marked=marked, dark=dark)


@lru_cache(maxsize=256)
def _reduced(name: str) -> bytes:
    return sampler.preview(media.pixels_in(name), _PREVIEW_SIDE)


@lru_cache(maxsize=256)
def _decoded(campaign: Campaign, code: str, small: bool) -> bytes:
    space = started.plan_of(campaign).space
    pixels = space.pixels(space.decode(code))
    return sampler.preview(pixels, _PREVIEW_SIDE) if small else sampler.png(pixels)

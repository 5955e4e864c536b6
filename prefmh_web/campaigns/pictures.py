"""The picture of an object that has one: a molecule drawn as SVG, an image as it was re-encoded."""

from django.http import Http404, HttpResponse

import sampler
from prefmh_web.campaigns.models import State

# An object never changes once its campaign has started, so a browser may keep its picture.
_KEEP = "private, max-age=86400, immutable"


def picture_response(state: State) -> HttpResponse:
    """Return the picture as a response. Who may see it is the caller's to check.

    Raises:
        Http404: texts have no picture.
    """
    if state.campaign.objects_kind == "molecules":
        body, media_type = sampler.draw_molecule(state.content), "image/svg+xml"
    elif state.picture:
        body, media_type = state.picture.read(), state.media_type
    else:
        raise Http404("This object has no picture.")
    headers = {"Cache-Control": _KEEP, "X-Content-Type-Options": "nosniff"}
    return HttpResponse(body, content_type=media_type, headers=headers)

"""Pictures of objects that no campaign has stored."""

from django.contrib.auth.decorators import login_required
from django.core.signing import BadSignature
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from prefmh_web.console import unstored
from prefmh_web.objects import OBJECT_KINDS, media


@login_required
@require_safe
def picture(request: HttpRequest, signed: str) -> HttpResponse:
    """Send the picture of an object whose address a page of ours has made."""
    try:
        found = unstored.read(signed)
    except BadSignature as error:
        raise Http404("There is no such picture.") from error
    kind = OBJECT_KINDS[found.kind]
    return media.response(request, kind, found.stored, found.stored_beside)

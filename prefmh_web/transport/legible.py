"""Requests that no page sends and that cannot be read: refused before any view, with the reason.

Browsers send UTF-8. A request may name any of Python's codecs instead, and some of them make, of plain bytes, what no
database and no page can hold (half a surrogate pair, say), or fail in ways of their own. So may the headers inside a
form of several parts.
"""

import codecs
import errno
import logging
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, UnreadablePostError

logger = logging.getLogger(__name__)

# What Django's and Python's parsers raise for headers that mean nothing.
UNREADABLE = (ValueError, TypeError, LookupError)
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class Legible:
    """Middleware that answers 415 to other charsets than UTF-8, 400 to a form that cannot be read, 507 to one for
    which there is no room.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return _refusal(request) or self._get_response(request)


def no_room() -> HttpResponse:
    return plain("There is no room for this upload on the server's disk. Tell whoever runs it.", 507)


def is_no_room(error: OSError) -> bool:
    """True for what is raised when a disk, or somebody's share of it, is full."""
    return error.errno in _NO_ROOM


def plain(reason: str, status: int) -> HttpResponse:
    return HttpResponse(f"{reason}\n", status=status, content_type="text/plain; charset=utf-8")


def _refusal(request: HttpRequest) -> HttpResponse | None:
    if request.encoding and codecs.lookup(request.encoding).name != "utf-8":
        return plain("This site reads UTF-8 only.", 415)
    if request.method != "POST":
        return None
    try:
        # Read here, where what goes wrong can be told apart from what goes wrong in a view.
        _ = request.POST
    except UnreadablePostError:
        raise
    except UNREADABLE:
        logger.warning("a form cannot be read", exc_info=True)
        return plain("This form cannot be read.", 400)
    except OSError as error:
        if is_no_room(error):
            logger.exception("no room for an upload")
            return no_room()
        if error.errno == errno.ENAMETOOLONG:
            return plain("The file's name is too long. Rename it and upload it again.", 400)
        raise
    return None

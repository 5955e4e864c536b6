"""Requests that cannot be read, or for which the disk has no room: refused before any view, with the reason.

Browsers send UTF-8. A request may name any of Python's codecs instead, and some of them make, of plain bytes, what no
database and no page can hold (half a surrogate pair, say), or fail in ways of their own. So may the headers inside a
form of several parts.
"""

from __future__ import annotations

import codecs
import errno
import logging
from collections.abc import Callable

from django.db import Error as DatabaseError
from django.http import HttpRequest, HttpResponse, JsonResponse, UnreadablePostError
from django.http.multipartparser import MultiPartParserError

logger = logging.getLogger(__name__)

# What Django's and Python's parsers raise for headers that mean nothing.
UNREADABLE = (ValueError, TypeError, LookupError, MultiPartParserError)
_API = "/api/"
_REASONS = {404: "There is no such address", 405: "This address does not take this method"}


class Legible:
    """Middleware that answers 415 to other charsets than UTF-8, 400 to a form that cannot be read, 507 to one for
    which there is no room.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = _illegible(request) or self._get_response(request)
        if request.path.startswith(_API) and response.status_code >= 400 and not _is_json(response):
            response = _for_programs(response)
        # Pages show what is going on now, and people share computers: what may be kept says so itself.
        response.setdefault("Cache-Control", "no-store")
        return response

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Answer 507 where the disk takes no data."""
        if not (trouble := disk_trouble(error)):
            return None
        logger.error("a request was not carried out: %s", trouble, extra={"path": request.path})
        told = f"Nothing was saved: {trouble}. Tell whoever runs this site, and try again then."
        return refusal(request.path, told, 507)


def no_room(path: str) -> HttpResponse:
    return refusal(path, "There is no room for this upload on the server's disk. Tell whoever runs it.", 507)


def refusal(path: str, reason: str, status: int) -> HttpResponse:
    """Return why a request to this path is refused: a line of text, and in the API its one shape of problems."""
    if path.startswith(_API):
        problem = {"message": reason, "path": "", "line": None, "column": None}
        return JsonResponse({"problems": [problem]}, status=status)
    return HttpResponse(f"{reason}\n", status=status, content_type="text/plain; charset=utf-8")


def _is_json(response: HttpResponse) -> bool:
    return response.headers.get("Content-Type", "").startswith("application/json")


def _for_programs(response: HttpResponse) -> HttpResponse:
    """Return what Django has answered in words for people, such as “not found”, in the API's shape."""
    reason = _REASONS.get(response.status_code, response.reason_phrase)
    told = refusal(_API, f"{reason}. /api/docs names every address.", response.status_code)
    if "Allow" in response:
        told["Allow"] = response["Allow"]
    return told


def _illegible(request: HttpRequest) -> HttpResponse | None:
    if request.encoding and codecs.lookup(request.encoding).name != "utf-8":
        return refusal(request.path, "This site reads UTF-8 only.", 415)
    if request.method != "POST":
        return None
    try:
        # Read here, where what goes wrong can be told apart from what goes wrong in a view.
        _ = request.POST
    except UnreadablePostError:
        raise
    except UNREADABLE:
        logger.warning("a form cannot be read", exc_info=True)
        return refusal(request.path, "This form cannot be read.", 400)
    except OSError as error:
        if is_no_room(error):
            logger.exception("no room for an upload")
            return no_room(request.path)
        if error.errno == errno.ENAMETOOLONG:
            return refusal(request.path, "The file's name is too long. Rename it and upload it again.", 400)
        raise
    return None


_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# As SQLite and PostgreSQL say it.
_SAID = {
    "disk is full": "the disk is full",
    "No space left on device": "the disk is full",
    "disk I/O error": "the disk cannot be read or written",
    "readonly database": "the database cannot be written",
    "unable to open database file": "the database's file cannot be opened",
}


def is_no_room(error: OSError) -> bool:
    """True for what is raised when a disk, or somebody's share of it, is full."""
    return error.errno in _NO_ROOM


def disk_trouble(error: BaseException) -> str:
    """Return what an error says of the disk, in a few words; empty where it is about something else."""
    if isinstance(error, OSError):
        return "the disk is full" if is_no_room(error) else ""
    if not isinstance(error, DatabaseError):
        return ""
    return next((told for said, told in _SAID.items() if said in str(error)), "")

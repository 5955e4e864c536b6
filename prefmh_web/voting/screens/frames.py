"""The HTML of a screen, most of it from memory.

The templates are the only source of the HTML, and rendering them takes several times as long as all that differs from
one pair to the next. So what they give around a pair is rendered once for each question, kind of object and language,
with marks in place of what differs, and every pair is filled in there. What is kept is a function of what it is kept
by, so it is never out of date.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from django.template.loader import render_to_string
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language

from prefmh_web.campaigns.models import Side
from prefmh_web.objects import OBJECT_KINDS
from prefmh_web.participants.options import MARKS, NAMES, Option

# Of this process, and found in nothing else that a template shows.
_SECRET = secrets.token_hex(8)
_MARK = re.compile(rf"mark{_SECRET}([a-z_]+)0")


class Progress(NamedTuple):
    """What stands below a screen: how far the person is, and all."""

    votes: int
    percent: int
    votes_each: int | None
    minutes: float | None
    minutes_each: int | None


def progress_html(progress: Progress) -> SafeString:
    """Return how far one is, in the language that is spoken."""
    return _progress_html(progress, get_language())


# People of one campaign have cast about as many votes.
@lru_cache(maxsize=1024)
def _progress_html(progress: Progress, _language: str) -> SafeString:
    return render_to_string("voting/_progress.html", progress._asdict())


def html_of(name: str, standing: str, shown: Mapping[str, Any], progress: Progress) -> SafeString:
    """Return the fragment that pages swap in by its id.

    Args:
        name: of the screen.
        standing: what it says, in one word.
        shown: what its template shows.
    """
    below, options = progress_html(progress), shown.get("options")
    if options is None or shown["context"] or any(option.own is not None for option in options):
        return _rendered(name, standing, shown, below)
    look = bool(shown.get("must_be_answered")), shown["is_stacked"], options[0].is_short, shown["objects_lang"]
    parts = list(_frame(name, standing, shown["question"], shown["kind"].name, *look, get_language()))
    values = {"lease": str(shown["lease"].key), "progress": below} | _filled_in(*options)
    parts[1::2] = [values[part] for part in parts[1::2]]
    return mark_safe("".join(parts))  # noqa: S308 - all of it is rendered or escaped


def _rendered(name: str, standing: str, shown: Mapping[str, Any], progress: SafeString) -> SafeString:
    screen = {"name": name, "standing": standing, "context": shown, "progress": progress}
    return render_to_string("voting/_screen.html", {"screen": screen})


def _filled_in(first: Option, second: Option) -> dict[str, str]:
    return {
        "first_content": escape(first.content),
        "first_html": first.html,
        "second_content": escape(second.content),
        "second_html": second.html,
    }


@lru_cache(maxsize=256)
def _frame(
    name: str,
    standing: str,
    question: str,
    kind: str,
    must_be_answered: bool,
    is_stacked: bool,
    is_short: bool,
    objects_lang: str,
    _language: str,
) -> tuple[str, ...]:
    """Return HTML and, between two pieces of it, the name of what is filled in there."""
    options = [
        {
            "side": side,
            "name": NAMES[side],
            "mark": MARKS[side],
            "content": _mark(f"{side}_content"),
            "html": _mark(f"{side}_html"),
            "own": None,
            "is_short": is_short,
        }
        for side in (Side.FIRST, Side.SECOND)
    ]
    shown = {
        "lease": {"key": _mark("lease")},
        "question": question,
        "kind": OBJECT_KINDS[kind],
        "options": options,
        "context": (),
        "must_be_answered": must_be_answered,
        "is_stacked": is_stacked,
        "objects_lang": objects_lang,
    }
    return tuple(_MARK.split(_rendered(name, standing, shown, _mark("progress"))))


def _mark(name: str) -> SafeString:
    return mark_safe(f"mark{_SECRET}{name}0")  # noqa: S308 - letters and figures

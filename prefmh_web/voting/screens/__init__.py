"""The screens of the voting page. Page load, form post and socket all ask here what to show and what was done.

To add one: write a file like `idle.py` and its template, and list it in `SCREENS`, before those that it goes before.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from django.db import IntegrityError
from django.utils import translation

from prefmh_web.campaigns.engine.transactions import together
from prefmh_web.campaigns.frozen import started_campaign
from prefmh_web.campaigns.models import Annotator
from prefmh_web.voting.screens import frames
from prefmh_web.voting.screens.check import Check
from prefmh_web.voting.screens.done import Done
from prefmh_web.voting.screens.idle import Idle
from prefmh_web.voting.screens.pair import Pair
from prefmh_web.voting.screens.screen import Response, ResponseError, Screen
from prefmh_web.voting.visit import Visit, visit_by, visit_of

SCREENS: tuple[Screen, ...] = (Pair(), Check(), Done(), Idle())


@dataclass(frozen=True)
class ShownScreen:
    """The screen that one person sees."""

    visit: Visit
    screen: Screen

    @property
    def standing(self) -> str:
        """What the screen says, in one word."""
        return self.screen.standing(self.visit)

    @cached_property
    def context(self) -> Mapping[str, object]:
        """What the screen's template shows."""
        return self.screen.context(self.visit)

    def html(self) -> str:
        """Return the fragment that pages swap in by its id."""
        with translation.override(started_campaign(self.visit.campaign).config.language):
            return frames.html_of(self.name, self.standing, self.context, self._progress)

    @property
    def progress(self) -> str:
        """What stands below the screen: how far the person is, and all."""
        return frames.progress_html(self._progress)

    @property
    def name(self) -> str:
        """Which screen it is."""
        return self.screen.name

    @property
    def _progress(self) -> frames.Progress:
        visit = self.visit
        return frames.Progress(visit.votes, visit.percent, visit.votes_each, visit.minutes, visit.minutes_each)


def screen_for(annotator_id: int) -> ShownScreen:
    """Return what to show, leasing a question to the annotator if there is one for them."""
    return _shown(visit_of(annotator_id))


def _shown(visit: Visit) -> ShownScreen:
    return ShownScreen(visit, next(screen for screen in SCREENS if screen.is_due(visit)))


def screen_after(response: Response, annotator: Annotator) -> ShownScreen:
    """Do what a response asks, and return what to show then: in one transaction, since most responses are votes, and
    what a vote costs is paid by a person who waits.

    Raises:
        Comparison.DoesNotExist: the annotator was never shown what the response is about.
    """

    def respond_and_look() -> ShownScreen:
        response.respond(annotator)
        return _shown(visit_by(annotator))

    try:
        shown, has_passed_over = together(respond_and_look)
    except IntegrityError:
        # Another page of the same person was as quick. Alone, both find what there is; a response may be repeated.
        response.respond(annotator)
        return screen_for(annotator.pk)
    # One more look, which waits for what somebody else held at that moment.
    return screen_for(annotator.pk) if has_passed_over else shown


def response_in(fields: Mapping[str, object]) -> Response:
    """Read one message from an annotator's page, by socket or by form post.

    Raises:
        ResponseError: a field is not what a page of ours would send; the message names it.
    """
    choice = fields.get("choice")
    for screen in SCREENS:
        if choice in screen.choices:
            return screen.parse(fields)
    *others, last = (each for screen in SCREENS for each in screen.choices)
    raise ResponseError(f"choice must be {', '.join(others)} or {last}")


__all__ = ["SCREENS", "Response", "ResponseError", "ShownScreen", "response_in", "screen_after", "screen_for"]

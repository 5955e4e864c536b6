"""The screens of the voting page. Page load, form post and socket all ask here what to show.

    pair    two objects and one question; what comes back is a vote or a skip
    check   the same for a trial between two pairs, which is no vote
    done    the person's part is over: thanks, the code, and the way back to where they came from
    idle    the person rests, the next pair is not there yet, or the campaign is paused or over

The templates are the only source of the HTML, and rendering them takes several times as long as all that differs from
one pair to the next. So what they give around a pair is rendered once for each question, kind of object and language,
with marks in place of what differs, and every pair is filled in there. What is kept is a function of what it is kept
by, so it is never out of date.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple

from django.core.cache import cache
from django.db import IntegrityError
from django.db.models import Sum
from django.template.loader import render_to_string
from django.urls import reverse_lazy
from django.utils import translation
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language

from prefmh_web.campaigns.engine import leases, locks
from prefmh_web.campaigns.engine.locks import together
from prefmh_web.campaigns.frozen import limits_of, started_campaign
from prefmh_web.campaigns.models import Campaign, Lease, Side, Voter
from prefmh_web.campaigns.objects import MARKS, NAMES, Pair, leased_pair, shown
from prefmh_web.campaigns.proposals import drawing
from prefmh_web.config import Outcome
from prefmh_web.objects import OBJECT_KINDS
from prefmh_web.participants import attention, completion, limits, stages
from prefmh_web.participants.models import AttentionCheck
from prefmh_web.voting.responses import Response

# What is the same for all pages of a campaign is asked once in so many seconds by each process: how much is decided,
# which is a sum over every chain, and whether the making of pairs is held up.
ASKED_EVERY_S = 1.0
# Of this process, and found in nothing else that a template shows.
_SECRET = secrets.token_hex(8)
_MARK = re.compile(rf"mark{_SECRET}([a-z_]+)0")


class Progress(NamedTuple):
    """What stands below a screen: how far the person is, and how much of the campaign is decided."""

    votes: int
    percent: int
    votes_per_person: int | None
    minutes: float | None
    minutes_per_person: int | None


@dataclass(frozen=True)
class Screen:
    """What one person sees.

    Args:
        lease: the pair that they may answer.
        check: the trial that comes before their next pair.
        outcome: how their part has ended, if it has.
        how_far: what stands below.
    """

    voter: Voter
    lease: Lease | None
    check: AttentionCheck | None
    outcome: Outcome | None
    how_far: Progress

    @property
    def name(self) -> str:
        """Which it is; the first of these that is there is shown."""
        if self.lease:
            return "pair"
        return "check" if self.check else "done" if self.outcome else "idle"

    @property
    def status(self) -> str:
        """What it says, in one word: a CSS class, and how pages tell one screen from another."""
        if self.lease or self.check:
            return "pair"
        if self.outcome:
            return "done"
        if not self.voter.campaign.is_running:
            return self.voter.campaign.status
        return "resting" if self.voter.resting else "waiting"

    @cached_property
    def context(self) -> Mapping[str, Any]:
        """What its template, `templates/voting/screens/<name>.html`, gets as `shown`. At the end of a part, asking for
        it settles how the part ended.
        """
        campaign = self.voter.campaign
        if self.lease:
            return _pair(self.lease, leased_pair(self.lease, campaign), campaign)
        if self.check:
            told = {"must_be_answered": self.check.kind == AttentionCheck.Kind.INSTRUCTED}
            return _pair(self.check, attention.shown_pair(self.check, campaign), campaign) | told
        asked = limits_of(campaign)
        if self.outcome:
            end = completion.end_participation(self.voter, self.outcome)
            more = asked.recruiter.knows_people and stages.ask_last_questions(self.voter, end.outcome)
            return {"end": end, "votes": self.how_far.votes, "is_asked_more": more}
        config = started_campaign(campaign).config
        return {
            "status": self.status,
            "is_stalled": self.status == "waiting" and is_stalled(campaign),
            "lease_seconds": config.answering.seconds,
            "wait_minutes": asked.wait_minutes,
            "wait_is_paid": config.study.protocol.wait_is_paid,
        }

    def html(self) -> str:
        """Return the fragment that pages swap in by its id."""
        with translation.override(started_campaign(self.voter.campaign).config.language):
            return html_of(self.name, self.status, self.context, self.how_far)

    @property
    def progress(self) -> str:
        """What stands below, as HTML."""
        return _progress_html(self.how_far, get_language())


def _pair(key_of: Lease | AttentionCheck, pair: Pair, campaign: Campaign) -> dict[str, Any]:
    return {
        "lease": key_of,
        **shown(pair, campaign, lambda side: reverse_lazy("voting:picture", args=[key_of.key, side])),
    }


def screen_for(voter_id: int) -> Screen:
    """Return what to show, leasing a question to the voter if there is one for them."""
    return _look(locks.person(voter_id))


def screen_after(response: Response, voter: Voter) -> Screen:
    """Do what a response asks, and return what to show then: in one transaction, since most responses are votes, and
    what a vote costs is paid by a person who waits.

    Raises:
        Comparison.DoesNotExist: the voter was never shown what the response is about.
    """

    def respond_and_look() -> Screen:
        response.respond(voter)
        return _look(voter)

    try:
        screen, has_passed_over = together(respond_and_look)
    except IntegrityError:
        # Another page of the same person was as quick. Alone, both find what there is; a response may be repeated.
        response.respond(voter)
        return screen_for(voter.pk)
    # One more look, which waits for what somebody else held at that moment.
    return screen_for(voter.pk) if has_passed_over else screen


def _look(voter: Voter) -> Screen:
    """Return the screen of somebody whom the engine has just read with their campaign."""
    campaign, started = voter.campaign, started_campaign(voter.campaign)
    asked, lease, check, minutes, over = started.limits, None, None, None, None
    if asked.ends_parts:
        minutes = limits.minutes_done(voter)
        over = limits.reached(voter, minutes)
    # A wait can have ended a part, and an extension lets a finished campaign go on for those who have not ended.
    if over is None and (asked.wait_minutes is not None or campaign.steps_added):
        over = limits.settled(voter)
    if over:
        # The pair on the screen may still be answered.
        lease = leases.live_lease_of(voter) if voter.holds_a_lease else None
    elif voter.holds_a_lease or not asked.has_checks or (check := attention.due(voter)) is None:
        lease = leases.take(voter, asked.votes_per_person)
        if asked.wait_minutes is not None:
            limits.note_wait(voter, is_waiting=not (lease or voter.resting or voter.removed_at))
    outcome = None if lease or check else over or completion.outcome_due(voter)
    config = started.config
    percent = _percent(campaign, None if started.config.opens_on_demand else config.chains * config.steps)
    how_far = Progress(voter.votes_cast, percent, asked.votes_per_person, minutes, asked.active_minutes)
    return Screen(voter, lease, check, outcome, how_far)


def _percent(campaign: Campaign, steps: int | None) -> int:
    """Return how many percent of the steps are decided.

    Args:
        steps: how many there are; None where that changes, because chains open, or get longer, while the campaign runs.
    """

    def sums() -> dict[str, int]:
        return campaign.chains.aggregate(decided=Sum("step", default=0), opened=Sum("length", default=0))

    found: Any = cache.get_or_set(f"sums-{campaign.pk}", sums, ASKED_EVERY_S) if campaign.is_running else sums()
    total = found["opened"] if steps is None else steps
    return 100 * found["decided"] // total if total else 0


def is_stalled(campaign: Campaign) -> bool:
    """True when there may be no pair because one could not be made for some time."""
    return bool(cache.get_or_set(f"held-up-{campaign.pk}", partial(drawing.is_overdue, campaign), ASKED_EVERY_S))


# People of one campaign have cast about as many votes.
@lru_cache(maxsize=1024)
def _progress_html(progress: Progress, _language: str) -> SafeString:
    return render_to_string("voting/_progress.html", progress._asdict())


def html_of(name: str, status: str, shown: Mapping[str, Any], progress: Progress) -> SafeString:
    """Return the fragment of a screen, in the language that is spoken.

    Args:
        name: of the screen.
        status: what it says, in one word.
        shown: what its template shows.
    """
    below, options = _progress_html(progress, get_language()), shown.get("options")
    if options is None or shown["context"] or any(option.own is not None for option in options):
        return _rendered(name, status, shown, below)
    look = {"question": shown["question"], "is_stacked": shown["is_stacked"], "objects_lang": shown["objects_lang"]}
    look["must_be_answered"] = bool(shown.get("must_be_answered"))
    parts = list(_frame(name, status, shown["kind"].name, options[0].is_short, get_language(), **look))
    values = {"lease": str(shown["lease"].key), "progress": below}
    for option in options:
        values |= {f"{option.side}_content": escape(option.content), f"{option.side}_html": option.html}
    parts[1::2] = [values[part] for part in parts[1::2]]
    return mark_safe("".join(parts))  # noqa: S308 - all of it is rendered or escaped


def _rendered(name: str, status: str, shown: Mapping[str, Any], progress: SafeString) -> SafeString:
    screen = {"name": name, "status": status, "context": shown, "progress": progress}
    return render_to_string("voting/_screen.html", {"screen": screen})


@lru_cache(maxsize=256)
def _frame(name: str, status: str, kind: str, is_short: bool, _language: str, **look: str | bool) -> tuple[str, ...]:
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
        "kind": OBJECT_KINDS[kind],
        "options": options,
        "context": (),
    }
    return tuple(_MARK.split(_rendered(name, status, shown | look, _mark("progress"))))


def _mark(name: str) -> SafeString:
    return mark_safe(f"mark{_SECRET}{name}0")  # noqa: S308 - letters and figures

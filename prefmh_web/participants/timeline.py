"""What happened to one person, in order, as far as its times are stored."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter

from prefmh_web.campaigns.models import Annotator, Lease, Vote
from prefmh_web.participants.models import Answer, Check, Consent, Event, Participation
from prefmh_web.participants.recruiting import recruitment_of


@dataclass(frozen=True)
class Moment:
    """Something that happened.

    Args:
        at: when.
        what: in a few words.
        detail: what else there is to say; empty for nothing.
    """

    at: datetime
    what: str
    detail: str = ""


def timeline_of(annotator: Annotator, part: Participation | None) -> list[Moment]:
    """Return what happened to somebody, the oldest first."""
    moments = [*_way(annotator, part), *_pairs(annotator), *_events(annotator)]
    if part:
        moments += [*_consents(part), *_answers(part), *_checks(part)]
    return sorted(moments, key=attrgetter("at"))


def _way(annotator: Annotator, part: Participation | None) -> Iterator[Moment]:
    yield Moment(annotator.joined_at, "joined")
    if part and part.placed_at:
        yield Moment(part.placed_at, "came to the votes", "has a place since then")
    if part and part.finished_at:
        yield Moment(part.finished_at, "part settled", part.get_outcome_display())
    if annotator.removed_at:
        yield Moment(annotator.removed_at, "may vote no more")


def _pairs(annotator: Annotator) -> Iterator[Moment]:
    timed = dict(Vote.objects.filter(annotator=annotator).values_list("key", "elapsed_ms"))
    late = set(Vote.objects.filter(annotator=annotator, number=None).values_list("key", flat=True))
    asked = Lease.objects.filter(annotator=annotator).order_by("issued_at", "key")
    columns = ("key", "comparison__chain__place", "comparison__step", "judge__place", "issued_at", "ended_at", "ending")
    for key, chain, step, judge, issued_at, ended_at, ending in asked.values_list(*columns):
        end = _ENDINGS[ending]
        if ending == Lease.Ending.VOTED:
            end += _after(timed.get(key)) + (", too late to count" if key in late else "")
        elif ending == Lease.Ending.SKIPPED and annotator.removed_at and ended_at >= annotator.removed_at:
            end = "taken back when the part ended"
        yield Moment(issued_at, f"pair of chain {chain}, step {step}, judge {judge}", end)


_ENDINGS = {
    None: "on the screen",
    Lease.Ending.VOTED: "answered",
    Lease.Ending.SKIPPED: "skipped",
    Lease.Ending.EXPIRED: "ran out without an answer",
}


def _after(elapsed_ms: int | None) -> str:
    return "" if elapsed_ms is None else f" after {elapsed_ms / 1000:.1f} s"


def _checks(part: Participation) -> Iterator[Moment]:
    shown = Check.objects.filter(participation=part).select_related(
        "lease__comparison__chain", "lease__judge", "common__comparison__chain", "common__judge"
    )
    votes = Vote.objects.filter(annotator=part.annotator_id).values_list("key", "chosen_side")
    voted: dict[uuid.UUID | None, str] = dict(votes)
    for check in shown:
        said = _said(check, voted.get(check.lease_id, ""))
        yield Moment(check.shown_at, _trial(check), said + _after(check.elapsed_ms))


def _trial(check: Check) -> str:
    repeated = check.common or (check.lease if check.kind == Check.Kind.REPEAT else None)
    if repeated is None:
        return f"gold check, pair {(check.gold or 0) + 1}" if check.kind == Check.Kind.GOLD else "attention check"
    which = "repeat of their pair of" if check.kind == Check.Kind.REPEAT else "pair that everybody is asked, of"
    asked = repeated.comparison
    return f"{which} chain {asked.chain.place}, step {asked.step}, judge {repeated.judge.place}"


def _said(check: Check, voted_side: str) -> str:
    if not check.chosen_side:
        return "skipped" if check.answered_at else "on the screen"
    agreed = check.agrees_with(voted_side)
    if agreed is not None:
        return "answered as before" if agreed else "answered otherwise than before"
    return {None: "answered", True: "passed", False: "failed"}[check.is_passed]


def _consents(part: Participation) -> Iterator[Moment]:
    for consent in Consent.objects.filter(participation=part):
        said = "agreed" if consent.agreed else "did not agree"
        yield Moment(consent.answered_at, f"consent: {said}", f"text {consent.version[:8]}")


def _answers(part: Participation) -> Iterator[Moment]:
    questions = recruitment_of(part.campaign).parsed_protocol.questions
    last = {question.name for question in questions if question.is_last}
    pages: dict[str, datetime] = {}
    # The questions of one page are answered together.
    for answer in Answer.objects.filter(participation=part).order_by("answered_at"):
        pages.setdefault("last questions" if answer.name in last else "questions", answer.answered_at)
    for page, at in pages.items():
        yield Moment(at, f"answered the {page}")


def _events(annotator: Annotator) -> Iterator[Moment]:
    for event in Event.objects.filter(annotator=annotator).select_related("by"):
        by = event.by.get_username() if event.by else "somebody whose account is gone"
        if event.kind == Event.Kind.NOTE:
            yield Moment(event.at, f"note by {by}", event.text)
        else:
            pay = {None: "", True: "Paid in full. ", False: "Not paid. "}[event.is_paid]
            yield Moment(
                event.at, f"part ended by {by}", f"{pay}{event.get_reason_display().capitalize()}: {event.text}"
            )

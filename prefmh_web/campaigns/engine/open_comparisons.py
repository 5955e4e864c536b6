"""Which question a person is asked next, and whether a question has room for one more vote.

Each vote brings a look at the open comparisons, so they are read as rows of one statement, in SQL that both databases
speak, and not as objects: most of what a look costs would be making those.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta

from django.db import connection
from django.utils import timezone

import sampler
from prefmh_web.campaigns import started
from prefmh_web.campaigns.engine import capacity
from prefmh_web.campaigns.models import Annotator, Campaign, Judge, Turn

# How long a skipped question is kept from the person who skipped it, so that others come first.
SKIP_REST = timedelta(seconds=20)
# Those at the front have room; of the rest, read when this person has answered all of these, few statements shall tell.
_FIRST_LOOK, _LOOKS_GROW, _LONGEST_LOOK = 8, 8, 512

_OPEN = """
    SELECT c.id, c.step, h.place, c.log_r0, c.uniform
    FROM campaigns_comparison c JOIN campaigns_chain h ON h.id = c.chain_id
    WHERE c.verdict IS NULL AND
"""
_NEXT_OPEN = (
    _OPEN + "c.is_askable AND h.campaign_id = %s AND (c.step, h.place) > (%s, %s) ORDER BY c.step, h.place LIMIT %s"
)
_ONE_OPEN = _OPEN + "c.id = %s"
# A row for each open comparison, and one for each of its counted votes and of its leases.
_WHAT_HAPPENED = """
    SELECT o.id, o.step, o.place, o.log_r0, o.uniform, 'open' AS what, NULL AS judge_id, NULL AS annotator_id
    FROM open o
    UNION ALL
    SELECT o.id, o.step, o.place, o.log_r0, o.uniform,
        CASE WHEN v.chosen_side = v.proposal_side THEN 'for' ELSE 'against' END, v.judge_id, v.annotator_id
    FROM open o JOIN campaigns_vote v ON v.comparison_id = o.id WHERE v.number IS NOT NULL
    UNION ALL
    SELECT o.id, o.step, o.place, o.log_r0, o.uniform,
        CASE WHEN l.ending IS NULL THEN 'live' WHEN l.ending = 'skipped' AND l.ended_at > %s THEN 'resting'
            ELSE l.ending END, l.judge_id, l.annotator_id
    FROM open o JOIN annotate_lease l ON l.comparison_id = o.id
    ORDER BY 2, 3
"""

_WANTED = """
    SELECT m.status, m.status = 'running' AND EXISTS (
        SELECT 1 FROM campaigns_comparison c JOIN campaigns_chain h ON h.id = c.chain_id
        WHERE c.verdict IS NULL AND c.is_askable AND h.campaign_id = m.id
    ) FROM campaigns_campaign m WHERE m.id = %s
"""


@dataclass
class Question:
    """An open comparison: how often each judge was asked, and who was. Judges and people by their numbers."""

    campaign: Campaign
    pk: int
    step: int
    place: int
    log_r0: float
    uniform: float
    leases: int = 0
    """How many leases there were, ended ones included."""
    _counted: list[tuple[int, bool]] = field(default_factory=list)
    _live: Counter[int] = field(default_factory=Counter)
    _turns: dict[int, int] = field(default_factory=dict)
    _barred: set[tuple[int, int]] = field(default_factory=set)
    _expired: set[tuple[int, int]] = field(default_factory=set)
    _askable: tuple[bool, ...] | None = None

    def note(self, what: str, judge_id: int | None, annotator_id: int | None) -> None:
        """Take in one row of `_WHAT_HAPPENED`."""
        self._askable = None
        if what in ("for", "against"):
            self._counted.append((judge_id, what == "for"))
        elif what != "open":
            self.leases += 1
            self._live[judge_id] += what == "live"
        if what in ("for", "against", "resting"):
            self._barred.add((annotator_id, judge_id))
        elif what == "expired":
            self._expired.add((annotator_id, judge_id))

    def note_turn(self, judge_id: int, votes: int) -> None:
        """Take in a model's turn and the votes that it may bring."""
        self._turns[judge_id] = votes

    def asked(self, judge: Judge) -> int:
        """Return how many votes a judge has counted or promised."""
        return sum(judge_id == judge.pk for judge_id, _ in self._counted) + self._live[judge.pk]

    def is_barred(self, annotator: Annotator, judge: Judge) -> bool:
        """True when the annotator's vote on this question has counted, or they have just skipped it."""
        return (annotator.pk, judge.pk) in self._barred

    def has_expired(self, annotator: Annotator, judge: Judge) -> bool:
        """True when the annotator had a lease on this question whose time ran out."""
        return (annotator.pk, judge.pk) in self._expired

    def has_room(self, judge: Judge) -> bool:
        """True when one more vote for this judge cannot make any vote late; for certain if the comparison is locked.

        There is none for people while a model that is asked first has votes to cast.
        """
        return self._can_use_from(judge) and not self._waits_for_a_model()

    def has_room_for_somebody(self) -> bool:
        """True when some person may be asked; see `has_room`."""
        return any(self.has_room(judge) for judge in started.judges_of(self.campaign) if not judge.is_model)

    def _waits_for_a_model(self) -> bool:
        asked_first = [judge for judge in started.judges_of(self.campaign) if judge.is_asked_first]
        return any(judge.pk in self._turns or self._can_use_from(judge) for judge in asked_first)

    def _can_use_from(self, judge: Judge) -> bool:
        if self._askable is None:
            place = {judge.pk: judge.place for judge in started.judges_of(self.campaign)}
            tally = sampler.Tally.empty(len(place))
            for judge_id, for_proposal in self._counted:
                tally = tally.add(place[judge_id], for_proposal)
            out = self._live + Counter(self._turns)
            self._askable = capacity.askable(self.campaign, self.log_r0, self.uniform, tally, out)
        return self._askable[judge.place]


def questions_for(annotator: Annotator) -> Iterator[tuple[Question, Judge]]:
    """Yield what this annotator may be asked, best first: the chain furthest behind, then the judge least asked.

    Nothing here looks at what was answered, only at how often. It is seen without a lock; who leases a question
    looks again under one.
    """
    campaign = annotator.campaign
    judges = [judge for judge in started.judges_of(campaign) if not judge.is_model]
    after, size = (-1, -1), _FIRST_LOOK
    while questions := _read(campaign, _NEXT_OPEN, campaign.pk, *after, size):
        for question in questions:
            for judge in sorted(judges, key=lambda judge: (question.asked(judge) / judge.budget, judge.place)):
                if not question.is_barred(annotator, judge) and question.has_room(judge):
                    yield question, judge
        if len(questions) < size:
            return
        after, size = (questions[-1].step, questions[-1].place), min(size * _LOOKS_GROW, _LONGEST_LOOK)


def is_somebody_wanted(campaign_id: int, status: str) -> bool:
    """True when whoever waits should look again: some comparison has room, or the status is no longer this one.

    A guess where models judge too, and without regard to who has answered what.
    """
    with connection.cursor() as cursor:
        cursor.execute(_WANTED, [campaign_id])
        status_now, is_wanted = cursor.fetchone()
    return bool(is_wanted) or status_now != status


def question_on(comparison_id: int, campaign: Campaign) -> Question | None:
    """Return the question as it stands now; None once the comparison is decided."""
    return next(iter(_read(campaign, _ONE_OPEN, comparison_id)), None)


def _read(campaign: Campaign, which: str, *values: int) -> list[Question]:
    """Return the open comparisons that a statement finds, in its order."""
    found: dict[int, Question] = {}
    rested = connection.ops.adapt_datetimefield_value(timezone.now() - SKIP_REST)
    with connection.cursor() as cursor:
        cursor.execute(f"WITH open AS ({which}) {_WHAT_HAPPENED}", [*values, rested])
        for pk, step, place, log_r0, uniform, *happened in cursor.fetchall():
            if pk not in found:
                found[pk] = Question(campaign, pk, step, place, log_r0, uniform)
            found[pk].note(*happened)
    if found and started.uses_models(campaign):
        turns = Turn.objects.filter(comparison__in=found).values_list("comparison_id", "judge_id", "asked", "until")
        for pk, judge_id, asked, until in turns:
            found[pk].note_turn(judge_id, capacity.on_their_way(asked, until))
    return list(found.values())

"""Open comparisons as they stand: what was answered, who is being asked, and how many more votes can be used.

    on           how one stands now, for certain if it is locked
    seen         how several stand, and which votes models have cast on them
    wanted_by    those that a person may be asked about, best first, seen without a lock
    takers       who of those that wait should look again
    waiting_for  which judges each of them waits for

Each vote brings a look at the open comparisons, so they are read as rows of one statement, and not as objects: most of
what a look costs would be making those.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property, lru_cache
from uuid import UUID

from django.utils import timezone

import sampler
from prefmh_web.campaigns.engine import sql
from prefmh_web.campaigns.engine.sql import Condition
from prefmh_web.campaigns.frozen import StartedCampaign, started_campaign
from prefmh_web.campaigns.models import Campaign, Comparison, Judge, Vote, Voter

# How long a skipped comparison is kept from the person who skipped it, so that others come first.
SKIP_COOLDOWN = timedelta(seconds=20)
# Those at the front mostly have room. The rest are read, in few statements, if this person has answered all of those.
_FIRST_LOOK, _LOOKS_GROW, _LONGEST_LOOK = 8, 8, 512


@dataclass
class OpenComparison:
    """An open comparison: how often each judge was asked, and who was. Judges and people by their numbers."""

    campaign: StartedCampaign
    pk: int
    step: int
    index: int
    log_r0: float
    uniform: float
    leases: int = 0
    """How many leases there were, ended ones included."""
    _counted: list[tuple[int, bool]] = field(default_factory=list)
    _live: Counter[int] = field(default_factory=Counter)
    _turns: dict[int, int] = field(default_factory=dict)
    _answered: set[tuple[int | None, int]] = field(default_factory=set)
    _resting: set[tuple[int | None, int]] = field(default_factory=set)
    _expired: set[tuple[int | None, int]] = field(default_factory=set)

    def note(self, what: str, judge_id: int, voter_id: int | None, votes: int = 1) -> None:
        """Take in one row of `_WHAT_HAPPENED`, or what has just been done."""
        if what in ("for", "against"):
            self._counted.append((judge_id, what == "for"))
            self._answered.add((voter_id, judge_id))
        elif what == "turn":
            self._turns[judge_id] = votes
        elif what != "open":
            self.leases += 1
            if what == "live":
                self._live[judge_id] += 1
            elif what == "resting":
                self._resting.add((voter_id, judge_id))
            elif what == "expired":
                self._expired.add((voter_id, judge_id))
        self._forget()

    def note_ended(self, judge_id: int) -> None:
        """Take in that a live lease has just ended."""
        self._live[judge_id] -= 1
        self._forget()

    def note_turn_over(self, judge_id: int) -> None:
        """Take in that a turn of a model has just ended."""
        self._turns.pop(judge_id, None)
        self._forget()

    def _forget(self) -> None:
        for name in ("tally", "_can_use"):
            self.__dict__.pop(name, None)

    @cached_property
    def tally(self) -> sampler.Tally:
        """The votes that count."""
        tally = sampler.Tally.empty(len(self.campaign.judges))
        for judge_id, for_proposal in self._counted:
            tally = tally.add(self.campaign.judge(judge_id).index, for_proposal)
        return tally

    @property
    def counted(self) -> int:
        """How many votes count."""
        return len(self._counted)

    def is_unchanged(self) -> Condition | None:
        """Return the condition under which all that is known here still holds; None where counts do not tell that:
        with several judges, or models among them.
        """
        if len(self.campaign.judges) > 1 or self.campaign.uses_models:
            return None
        return sql.is_as_seen(self.pk, self.leases, self._live.total(), self.counted)

    def asked(self, judge: Judge) -> int:
        """Return how many votes a judge has counted or promised."""
        return self.tally.votes_cast[judge.index] + self._live[judge.pk]

    def has_answered(self, voter_id: int | None, judge: Judge) -> bool:
        """True when the voter's vote for this judge counts."""
        return voter_id is not None and (voter_id, judge.pk) in self._answered

    def can_count(self, vote: Vote) -> bool:
        """True when the judge has votes left and the person, if it is one, has cast none that counts."""
        judge = self.campaign.judge(vote.judge_id)
        return self.tally.votes_cast[judge.index] < judge.max_votes and not self.has_answered(vote.voter_id, judge)

    def is_barred(self, voter_id: int, judge: Judge) -> bool:
        """True when the voter's vote on this comparison counts, or they have just skipped it."""
        return self.has_answered(voter_id, judge) or (voter_id, judge.pk) in self._resting

    def in_turn(self, panelist: int | None) -> list[Judge]:
        """The judges that a person is, the one least asked first: a panelist is their own judges only."""
        theirs = [judge for judge in self.campaign.people if judge.panelist == panelist]
        return sorted(theirs, key=lambda judge: (self.asked(judge) / judge.max_votes, judge.index))

    def give_to(self, voter_id: int, panelist: int | None = None) -> bool:
        """Count this person as asked, if there is a question for them; False if there is none."""
        for judge in self.in_turn(panelist):
            if not self.is_barred(voter_id, judge) and self.has_room(judge):
                self.note("live", judge.pk, voter_id)
                return True
        return False

    def has_expired(self, voter: Voter, judge: Judge) -> bool:
        """True when the voter had a lease on this comparison whose time ran out."""
        return (voter.pk, judge.pk) in self._expired

    def has_room(self, judge: Judge) -> bool:
        """True when one more vote of a person for this judge cannot make any vote late.

        There is none for people while a model that is asked first has votes to cast.
        """
        return self._can_use[judge.index] and not self._is_kept_for_a_model()

    def has_room_for_somebody(self) -> bool:
        """True when some person may be asked; see `has_room`."""
        return any(self.has_room(judge) for judge in self.campaign.people)

    def room(self, judge_id: int, most: int) -> int:
        """Return how many votes, up to `most`, may be asked of a judge at once such that none of them can be late.

        All of them where the config has them asked at once; then those that come after the verdict are wasted. Not
        while a person has the pair: theirs would be.
        """
        judge = self.campaign.judge(judge_id)
        if judge.index in self.campaign.asked_at_once and not self._live.total():
            return most
        index = judge.index
        promised = list(self._promised)
        for found in range(most):
            if not self._askable(promised)[index]:
                return found
            promised[index] += 1
        return most

    def _is_kept_for_a_model(self) -> bool:
        first = [judge for judge in self.campaign.judges if judge.is_asked_first]
        return any(judge.pk in self._turns or self._can_use[judge.index] for judge in first)

    @cached_property
    def _can_use(self) -> tuple[bool, ...]:
        return self._askable(self._promised)

    @property
    def _promised(self) -> list[int]:
        """Votes on their way, by judge: leases of people and models' turns."""
        return [self._live[judge.pk] + self._turns.get(judge.pk, 0) for judge in self.campaign.judges]

    def _askable(self, promised: list[int]) -> tuple[bool, ...]:
        tally = self.tally
        return _askable(
            self.log_r0, self.uniform, tally.votes_for, tally.votes_cast, tuple(promised), self.campaign.max_votes
        )


# A function of these values alone, and everybody who looks for a pair asks it again of the same comparisons.
_askable = lru_cache(maxsize=10_000)(sampler.askable)


def on(comparison_id: int, campaign: Campaign) -> OpenComparison | None:
    """Return how a comparison stands now; None once it is decided, or its chain was ended at it."""
    return next(iter(_read(started_campaign(campaign), sql.ONE_OPEN, comparison_id)), None)


@dataclass(frozen=True)
class ComparisonSnapshot:
    """How locked comparisons stand, and the votes that models have cast on them.

    Args:
        opened: those that are not decided, by their keys.
        keys: of the votes of models, by comparison.
        slots: of these votes, by comparison and judge.
    """

    opened: Mapping[int, OpenComparison]
    keys: Mapping[int, set[UUID]]
    slots: Mapping[tuple[int, int], set[int]]


def seen(comparisons: Collection[Comparison]) -> ComparisonSnapshot:
    """Return how locked comparisons stand: one statement for the votes, and one for each campaign."""
    campaigns: dict[int, tuple[Campaign, list[int]]] = {}
    for each in comparisons:
        campaigns.setdefault(each.chain.campaign_id, (each.chain.campaign, []))[1].append(each.pk)
    opened = {
        found.pk: found
        for campaign, keys in campaigns.values()
        for found in _read(started_campaign(campaign), sql.SOME_OPEN, keys)
    }
    stored: defaultdict[int, set[UUID]] = defaultdict(set)
    slots: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
    for comparison, judge, slot, key in sql.VOTES_OF_MODELS.rows([each.pk for each in comparisons]):
        stored[comparison].add(UUID(str(key)))
        slots[comparison, judge].add(slot)
    return ComparisonSnapshot(opened, stored, slots)


def wanted_by(voter: Voter) -> Iterator[tuple[OpenComparison, Judge]]:
    """Yield what this voter may be asked, best first: the chain furthest behind, then the judge least asked.

    Nothing here looks at what was answered, only at how often. It is seen without a lock; who leases a comparison
    looks again under one.
    """
    campaign = started_campaign(voter.campaign)
    for seen in _askable_in(campaign):
        for judge in seen.in_turn(voter.panelist):
            if not seen.is_barred(voter.pk, judge) and seen.has_room(judge):
                yield seen, judge


def takers(campaign: Campaign, waiting: Sequence[tuple[int, str]]) -> set[int]:
    """Return which of the people who wait should look again: as many as there is room for, first come, first served.

    Beside them those whose page shows another status than the campaign has now. Seen without a lock; who leases one
    looks again.

    Args:
        waiting: those who wait, in the order in which they came, each with the status that their page shows.
    """
    [(status_now, is_wanted)] = sql.WANTED.rows(campaign.pk)
    found = {voter_id for voter_id, status in waiting if status != status_now}
    voter_ids = [voter_id for voter_id, status in waiting if status == status_now]
    outdated, started = len(found), started_campaign(campaign)
    panelists: dict[int, int | None] = {}
    if started.is_panel:
        panelists = dict(Voter.objects.filter(pk__in=voter_ids).values_list("pk", "panelist"))
    for opened in _askable_in(started) if is_wanted else ():
        for voter_id in voter_ids:
            if voter_id not in found and opened.give_to(voter_id, panelists.get(voter_id)):
                found.add(voter_id)
            if not opened.has_room_for_somebody():
                break
        if len(found) == outdated + len(voter_ids):
            break
    return found


def waiting_for(campaign: Campaign) -> Iterator[tuple[OpenComparison, list[Judge]]]:
    """Yield the open comparisons about which somebody may be asked now, each with the judges that it waits for."""
    started = started_campaign(campaign)
    for opened in _askable_in(started):
        if judges := [judge for judge in started.people if opened.has_room(judge)]:
            yield opened, judges


def _askable_in(campaign: StartedCampaign) -> Iterator[OpenComparison]:
    """Yield the comparisons that have room for somebody, the chain furthest behind first; few in the first look."""
    after, size = (-1, -1), _FIRST_LOOK
    while found := _read(campaign, sql.NEXT_OPEN, campaign.pk, *after, size):
        yield from found
        if len(found) < size:
            return
        after, size = (found[-1].step, found[-1].index), min(size * _LOOKS_GROW, _LONGEST_LOOK)


def _read(campaign: StartedCampaign, which: str, *values: int | list[int]) -> list[OpenComparison]:
    """Return the open comparisons that a statement finds, in its order."""
    found: dict[int, OpenComparison] = {}
    now = timezone.now()
    moments = [now - SKIP_COOLDOWN]
    moments += [now] if campaign.uses_models else []
    statement = sql.open_comparisons(which, with_turns=campaign.uses_models)
    for pk, step, index, log_r0, uniform, *what in statement.rows(*values, *moments):
        if pk not in found:
            found[pk] = OpenComparison(campaign, pk, step, index, log_r0, uniform)
        found[pk].note(*what)
    return list(found.values())

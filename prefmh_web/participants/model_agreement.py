"""Whether models agree with people on the pairs that people were shown once more. Reads only.

A hidden repeat is no vote (`checks.py`), so what people answer there has moved no chain. Agreement on it is that of a
model's votes, which the campaign has anyway, with answers that decided nothing; where its question says so, a model is
asked about more of these pairs (`repeats_for_models.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from prefmh_web.campaigns.models import Campaign, Judge, Lease, Side, Vote
from prefmh_web.campaigns.monitoring.judging import MOST_PAIRS, Share
from prefmh_web.participants.models import Check, CommonPair
from prefmh_web.participants.repeats import open_pairs

_OBJECTS = tuple(f"{whose}__comparison__{which}" for whose in ("lease", "common") for which in ("current", "proposal"))
_Pair = tuple[int, int]
"""Two objects by the keys of their rows, the smaller one first."""


@dataclass(frozen=True)
class OnRepeats:
    """One model judge on the pairs of its question that people were shown once more.

    Args:
        agreed: pairs on which most of its votes and most of people's answers are for the same object; None where
            there is none.
        unasked: pairs on which it has neither a vote nor an answer.
        beside: pairs on which it has no vote and was asked all the same, for this comparison.
    """

    judge: Judge
    agreed: Share | None
    unasked: int
    beside: int = 0


def on_repeats(campaign: Campaign) -> Sequence[OnRepeats]:
    """Return how the models of a campaign agree with people on hidden repeats; empty where nothing was repeated.

    Pairs on which either side has as many for each object count as asked, and for neither.
    """
    models = [judge for judge in campaign.judges.select_related("endpoint") if judge.is_model]
    theirs = _repeated(campaign) if models else {}
    return [_of(judge, theirs[judge.question]) for judge in models if judge.question in theirs]


def _of(judge: Judge, theirs: dict[_Pair, int]) -> OnRepeats:
    votes = _votes(judge, theirs)
    beside = {pair: lead for pair, lead in _beside(judge).items() if pair in theirs and pair not in votes}
    mine = votes | beside
    alike = [(mine[pair] > 0) == (margin > 0) for pair, margin in theirs.items() if margin and mine.get(pair)]
    return OnRepeats(judge, Share(sum(alike), len(alike)) if alike else None, len(theirs) - len(mine), len(beside))


def unasked(campaign: Campaign, judge: Judge) -> list[int]:
    """Return the comparisons of pairs that people answered once more by a model's question, on which it has no vote and
    which are open in no chain; one for each pair.
    """
    undecided = open_pairs(campaign.pk)
    found: dict[_Pair, int] = {}
    for shown, is_for_proposal in _answers(campaign):
        pair, _ = _oriented(shown.comparison.current_id, shown.comparison.proposal_id, is_for_proposal)
        contents = frozenset((shown.comparison.current.content, shown.comparison.proposal.content))
        if shown.judge.question == judge.question and contents not in undecided:
            found.setdefault(pair, shown.comparison_id)
    voted, asked = _votes(judge, found), _put(judge)
    return [comparison for pair, comparison in found.items() if pair not in voted and pair not in asked]


def _repeated(campaign: Campaign) -> dict[str, dict[_Pair, int]]:
    """Return, by question and pair, by how many answers the first object leads; the last `MOST_PAIRS` answers."""
    margins: defaultdict[str, defaultdict[_Pair, int]] = defaultdict(lambda: defaultdict(int))
    for shown, is_for_proposal in _answers(campaign):
        pair, sign = _oriented(shown.comparison.current_id, shown.comparison.proposal_id, is_for_proposal)
        margins[shown.judge.question][pair] += sign
    return {question: dict(pairs) for question, pairs in margins.items()}


def _answers(campaign: Campaign) -> Iterator[tuple[Lease | CommonPair, bool]]:
    """Yield what says which pair and question an answered repeat had, and whether it was for the proposal."""
    found = Check.objects.filter(participation__campaign=campaign, kind__in=(Check.Kind.REPEAT, Check.Kind.COMMON))
    found = found.exclude(chosen_side="")
    found = found.select_related("lease__judge", "common__judge", *_OBJECTS)
    for check in found.order_by("-answered_at")[:MOST_PAIRS]:
        # A common pair is shown with the current object on the left, before it is swapped.
        if (shown := check.common or check.lease) is None:
            continue
        proposal_side = check.lease.proposal_side if check.lease else Side.RIGHT
        is_for_proposal = (check.chosen_side == proposal_side) != check.is_swapped
        yield shown, is_for_proposal


def _put(judge: Judge) -> set[_Pair]:
    """Return the pairs that a model is asked about beside its votes, answered or not."""
    found = judge.repeat_questions.values_list("comparison__current", "comparison__proposal")
    return {_oriented(current, proposal, True)[0] for current, proposal in found}


def _beside(judge: Judge) -> dict[_Pair, float]:
    """Return by how much the first object of each pair leads in a model's answers beside its votes; 0 for a tie."""
    found = judge.repeat_questions.filter(lead__isnull=False)
    leads: dict[_Pair, float] = {}
    for current, proposal, lead in found.values_list("comparison__current", "comparison__proposal", "lead"):
        pair, sign = _oriented(current, proposal, True)
        leads[pair] = 0.0 if lead is None else sign * (lead - 0.5)
    return leads


def _votes(judge: Judge, among: Collection[_Pair]) -> dict[_Pair, int]:
    """Return by how many of a model's counted votes the first object of each pair leads, in whichever chain."""
    keys = {key for pair in among for key in pair}
    votes = Vote.objects.filter(judge=judge, number__isnull=False, comparison__verdict__isnull=False)
    votes = votes.filter(comparison__current__in=keys, comparison__proposal__in=keys)
    margins: defaultdict[_Pair, int] = defaultdict(int)
    columns = ("comparison__current", "comparison__proposal", "chosen_side", "proposal_side")
    for current, proposal, chosen, proposal_side in votes.values_list(*columns):
        pair, sign = _oriented(current, proposal, chosen == proposal_side)
        if pair in among:
            margins[pair] += sign
    return dict(margins)


def _oriented(current: int, proposal: int, is_for_proposal: bool) -> tuple[_Pair, int]:
    """Return a pair, and 1 if an answer is for its first object, else -1."""
    preferred = proposal if is_for_proposal else current
    pair = (min(current, proposal), max(current, proposal))
    return pair, 1 if preferred == pair[0] else -1

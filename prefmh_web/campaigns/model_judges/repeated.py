"""Asking models about pairs that people were shown once more, where the recipe allows a number of pairs for it.

    put       the questions that are wanted, as many as the judge's number leaves
    waiting   those that nobody asks
    ask       one of them, in both orders

The answers are no votes: they stand in a table that nothing on a vote's path reads, and no turn is taken for them.
What they take counts as the judge's, under the same caps; where these leave no room, nothing is asked, and no campaign
pauses for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

import sampler
from prefmh_web.campaigns.engine import caps, spending
from prefmh_web.campaigns.model_judges import freezing, frozen_judges
from prefmh_web.campaigns.model_judges.kinds.kind import Asking
from prefmh_web.campaigns.model_judges.kinds.pairs import pair_of, unseeded
from prefmh_web.campaigns.models import Campaign, Judge, RepeatQuestion
from prefmh_web.campaigns.started import started_campaign
from prefmh_web.endpoints import accounting, judge_calls
from prefmh_web.endpoints.errors import TryLater
from prefmh_web.endpoints.identity import Admitted
from prefmh_web.endpoints.models import Endpoint

MOST_TRIES = 3
_BOTH_ORDERS = (True, False)
_MOST_REQUESTS = len(_BOTH_ORDERS) * judge_calls.MOST_ASKS
# Drawn votes are not looked at, only the probabilities that they are drawn from.
_ANY_NUMBERS = (0.5, 0.5)


def most_pairs(recipe: sampler.Recipe, place: int) -> int:
    """Return about how many repeated pairs a recipe's judge may be asked."""
    source = recipe.judges[place].source
    return source.repeats if isinstance(source, sampler.ModelSource) else 0


def put(judge: Judge, most: int, comparisons: Sequence[int]) -> None:
    """Put questions about these pairs, as many as are left of the most."""
    with transaction.atomic():
        # Locked: of two sweeps at once, the second sees what the first has put.
        Judge.objects.select_for_update(no_key=True).get(pk=judge.pk)
        left = max(most - judge.repeat_questions.count(), 0)
        there = set(judge.repeat_questions.values_list("comparison", flat=True))
        new = [pk for pk in comparisons if pk not in there][:left]
        RepeatQuestion.objects.bulk_create(RepeatQuestion(comparison_id=pk, judge=judge) for pk in new)


def waiting() -> list[int]:
    """Return the questions that nobody asks, of campaigns that run."""
    free = Q(until=None) | Q(until__lte=timezone.now())
    found = RepeatQuestion.objects.filter(free, lead=None, reason="", judge__stopped_because="")
    found = found.filter(judge__campaign__status=Campaign.Status.RUNNING, judge__campaign__paused_because="")
    return list(found.values_list("pk", flat=True))


def ask(question_id: int) -> None:
    """Ask a question in both orders, if nobody does and the caps leave room for it."""
    taken = _claimed(question_id)
    if taken is None:
        return
    question, endpoint = taken
    judge, campaign = question.judge, question.judge.campaign
    if freezing.drift(campaign, judge, endpoint):
        # The next turn of the judge says so, and stops it.
        return
    admitted = Admitted(frozen_judges.accepted_rows(judge))
    with accounting.tallied() as tally:
        votes = _votes(question, frozen_judges.asked_endpoint(judge, endpoint), admitted)
    with transaction.atomic():
        _store(question, votes)
        spending.record(campaign.pk, judge.place, tally)


def _claimed(question_id: int) -> tuple[RepeatQuestion, Endpoint] | None:
    with transaction.atomic():
        found = RepeatQuestion.objects.select_for_update(of=("self",)).filter(pk=question_id, lead=None, reason="")
        question = found.select_related("judge__endpoint", "judge__campaign", "comparison__chain__campaign").first()
        now = timezone.now()
        if question is None or (question.until is not None and question.until > now):
            return None
        judge, endpoint = question.judge, question.judge.endpoint
        if endpoint is None or judge.stopped_because or judge.frozen is None or not judge.campaign.is_running:
            return None
        need = caps.reserve_beside(judge.campaign, judge.place, endpoint, _MOST_REQUESTS)
        if need is None:
            return None
        question.tries += 1
        question.until = now + timedelta(seconds=60 + endpoint.timeout_s * judge_calls.MOST_ASKS)
        question.reserved_requests, question.reserved_cost = need.requests, need.cost or 0.0
        question.save()
    return question, endpoint


def _votes(question: RepeatQuestion, endpoint: Endpoint, admitted: Admitted) -> judge_calls.Votes:
    judge = question.judge
    pair = pair_of(Asking(question.comparison, judge, ()), endpoint)
    source = frozen_judges.model_source(started_campaign(judge.campaign).recipe, judge.place)
    if source.votes == "log-probabilities":
        return judge_calls.votes_by_log_probabilities(endpoint, pair, _BOTH_ORDERS, _ANY_NUMBERS, admitted=admitted)
    return judge_calls.votes_by_sampling(endpoint, pair, _BOTH_ORDERS, unseeded(), admitted)


def _store(question: RepeatQuestion, votes: judge_calls.Votes) -> None:
    leads = [float(vote.for_proposal) if vote.preference is None else vote.preference for vote in votes.cast]
    outcome: dict[str, object] = {"until": None, "reserved_requests": 0, "reserved_cost": 0.0}
    if len(leads) == len(_BOTH_ORDERS):
        outcome |= {"lead": sum(leads) / len(leads), "answered_at": timezone.now()}
    elif isinstance(votes.failure, TryLater) and question.tries < MOST_TRIES:
        outcome["until"] = timezone.now() + timedelta(seconds=votes.failure.retry_after)
    else:
        outcome["reason"] = (votes.failure.reason if votes.failure else "the reply is of another model")[:300]
    mine = RepeatQuestion.objects.filter(pk=question.pk, until=question.until)
    mine.update(**outcome)

"""Ratings of one object at a time, where the rule compares ratings.

An object is rated N times by each judge, once and for all: a chain carries the ratings of its state along, and of a
catalog's objects no chain asks for them again; while one chain's turn asks, another that meets the object waits for
what it brings. One object a turn, the current state's before the proposal's.
"""

from __future__ import annotations

import numpy as np
from django.db.models import Q
from django.utils import timezone

import sampler
from prefmh_web.campaigns import dispatch
from prefmh_web.campaigns.engine import transitions
from prefmh_web.campaigns.engine.open_comparisons import Seen
from prefmh_web.campaigns.frozen import started_campaign
from prefmh_web.campaigns.model_judges import frozen_judges
from prefmh_web.campaigns.model_judges.kinds.kind import Answers, Ask, Asking, Rows
from prefmh_web.campaigns.models import Comparison, Judge, Rating, State, Turn
from prefmh_web.campaigns.objects import exhibit
from prefmh_web.endpoints import judge_calls
from prefmh_web.endpoints.identity import Admitted
from prefmh_web.endpoints.models import Endpoint
from sampler import judges as model_judges


class Ratings:
    """A model that rates each object alone."""

    objects = 1

    def wanted(self, comparison: Comparison, judge: Judge, seen: Seen) -> Asking | None:
        """Return the object to rate next and its empty slots; None while another chain's turn asks for its ratings.

        Where nothing is missing, another chain at the same objects may have brought the last rating.
        """
        for state in (comparison.current, comparison.proposal):
            if not _slots_left(state, judge):
                continue
            if _is_being_rated(state, judge):
                # Its ratings serve this chain too; whoever stores them gives the hint.
                return None
            # Looked at again: a turn that was over before we looked for it has brought its ratings meanwhile.
            if left := _slots_left(state, judge):
                return Asking(comparison, judge, left, state)
        transitions.store_ratings(comparison, ())
        return Asking(comparison, judge, ())

    def most_requests(self, answers: int, endpoint: Endpoint) -> int:
        """Return how many requests so many ratings take at most."""
        return judge_calls.MOST_ASKS * answers

    def asks(self, asking: Asking, endpoint: Endpoint) -> Ask:
        """Return what asks for ratings of the object; fewer may come, and the others are asked for another time."""
        judge, state = asking.judge, _rated_in(asking)
        campaign, prompt = asking.comparison.chain.campaign, frozen_judges.prompt_of(judge)
        rated = judge_calls.Rated(
            kind=campaign.object_kind.name,
            criterion=judge.question,
            exhibit=exhibit(state, endpoint, prompt, frozen_judges.vision_of(campaign, judge)),
            scale=_rule(started_campaign(campaign).config.rule).scale,
            temperature=frozen_judges.source_of(campaign, judge).temperature,
            prompt=prompt,
        )

        async def ask(admitted: Admitted) -> Answers:
            # Nobody can ask a server for the same reply again: these seeds only keep replies apart.
            asked = await judge_calls.ratings(endpoint, rated, len(asking.slots), np.random.default_rng(), admitted)
            given = [
                Rating(state=state, judge=judge, slot=slot, value=value, asks=asks)
                for slot, value, asks in zip(asking.slots, asked.given, asked.asks, strict=False)
            ]
            return Answers(given, asked.identities, asked.failure)

        return ask

    def store(self, asking: Asking, comparison: Comparison, answers: Answers, rows: Rows, seen: Seen) -> None:
        """Store those ratings whose identity counts, and tell the other chains at this object."""
        kept = []
        for rating, identity in zip(answers.given, answers.identities, strict=False):
            if identity in rows:
                rating.identity = rows[identity]
                kept.append(rating)
        transitions.store_ratings(comparison, kept)
        if answers.failure is None:
            for other in _others_at(_rated_in(asking), comparison):
                dispatch.judge(other)

    def prompt(
        self, kind: str, question: str, rule: sampler.RuleConfig, *, has_context: bool = False
    ) -> model_judges.Prompt:
        """Return the words of a question about one object."""
        return model_judges.rating_prompt(kind, question, _rule(rule).scale, has_context=has_context)

    def own_prompt(
        self, template: model_judges.PromptTemplate, question: str, rule: sampler.RuleConfig
    ) -> model_judges.OwnPrompt:
        """Return the researcher's words about one object."""
        scale = _rule(rule).scale
        return model_judges.OwnPrompt(template, " ".join(question.split()), self.objects, (scale.lowest, scale.highest))

    def choices(self, rule: sampler.RuleConfig) -> tuple[str, ...]:
        """Return the numbers of the scale."""
        return _rule(rule).scale.answers


def _rule(rule: sampler.RuleConfig) -> sampler.PointwiseConfig:
    if not isinstance(rule, sampler.PointwiseConfig):
        raise TypeError(f"rule {rule.kind} takes no ratings")
    return rule


def _rated_in(asking: Asking) -> State:
    if asking.state is None:
        raise TypeError("a turn of ratings must say which object is rated")
    return asking.state


def _slots_left(state: State, judge: Judge) -> list[int]:
    stored = set(Rating.objects.filter(state=state, judge=judge).values_list("slot", flat=True))
    return [slot for slot in range(judge.max_votes) if slot not in stored]


def _is_being_rated(state: State, judge: Judge) -> bool:
    """Say whether another chain's turn asks for this object's ratings now."""
    # Locked, so that of two chains that come to an object at once, the second sees the first one's turn.
    State.objects.select_for_update(no_key=True).only("pk").get(pk=state.pk)
    return Turn.objects.filter(judge=judge, state=state, asked__gt=0, until__gt=timezone.now()).exists()


def _others_at(state: State, comparison: Comparison) -> list[Comparison]:
    """Return the other open comparisons of an object, which wait for its ratings too."""
    opened = Comparison.objects.filter(Q(current=state) | Q(proposal=state), verdict__isnull=True)
    return list(opened.exclude(pk=comparison.pk).select_related("chain__campaign"))

"""What both ways to vote share: the pair, in which order it is shown, and how votes are stored."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

import sampler
from prefmh_web.campaigns.engine import open_comparisons, transitions
from prefmh_web.campaigns.engine.open_comparisons import Ballot
from prefmh_web.campaigns.model_judges import frozen_judges
from prefmh_web.campaigns.model_judges.kinds.kind import Answers, Asking, Rows
from prefmh_web.campaigns.models import Comparison, Judge, ReplyIdentity, Side
from prefmh_web.campaigns.started import started_campaign
from prefmh_web.campaigns.started.objects import exhibit
from prefmh_web.endpoints import judge_calls
from prefmh_web.endpoints.identity import Admitted
from prefmh_web.endpoints.models import Endpoint
from sampler import judges as model_judges

_KEYS = uuid.UUID("6c1c1d8e-6a52-4d5b-9f0e-6f8f7f3b6f10")


@dataclass(frozen=True)
class PairVote:
    """One vote that came back, and what its p was known from if that was an earlier reply."""

    vote: judge_calls.ModelVote
    known_from: ReplyIdentity | None = None


class PairVotes:
    """A model that prefers one object of a pair. A vote has its slot, and with it its key and its presentation."""

    objects = 2

    def votes(
        self, asking: Asking, pair: judge_calls.Pair, endpoint: Endpoint, admitted: Admitted
    ) -> tuple[judge_calls.Votes, Mapping[bool, ReplyIdentity | None]]:
        """Ask for the votes.

        Returns:
            What came, and, by whether the proposal stood first, the identity of the earlier reply that p is known from.
        """
        raise NotImplementedError

    def wanted(self, comparison: Comparison, judge: Judge) -> Asking:
        """Return the slots without a vote, as many as the comparison can use from this judge."""
        stored = set(comparison.votes.filter(judge=judge).values_list("slot", flat=True))
        left = [slot for slot in range(judge.budget) if slot not in stored]
        opened = open_comparisons.on(comparison.pk, comparison.chain.campaign)
        room = opened.room(judge.pk, most=len(left)) if opened else 0
        return Asking(comparison, judge, left[:room])

    def ask(self, asking: Asking, endpoint: Endpoint, admitted: Admitted) -> Answers:
        """Ask for a vote in each slot, each in the order of presentation that was drawn for it."""
        votes, known_from = self.votes(asking, _pair(asking, endpoint), endpoint, admitted)
        given = [PairVote(vote, None if vote.identity else known_from.get(vote.proposal_first)) for vote in votes.cast]
        return Answers(given, [vote.identity for vote in votes.cast], votes.failure)

    def store(self, asking: Asking, comparison: Comparison, answers: Answers, rows: Rows) -> None:
        """Cast those votes whose identity counts."""
        counting = [each for each in answers.given if each.vote.identity is None or each.vote.identity in rows]
        transitions.cast_votes(comparison, [_ballot(asking, each, rows) for each in counting])

    def prompt(self, kind: str, question: str, rule: sampler.RuleRecipe) -> model_judges.Prompt:
        """Return the words of a question about two objects."""
        return model_judges.pairwise_prompt(kind, question)

    def choices(self, rule: sampler.RuleRecipe) -> tuple[str, ...]:
        """Return the labels of the two objects."""
        return model_judges.LABELS


def step_of(asking: Asking) -> tuple[int, int, int, tuple[int, ...], int]:
    """Return seed, chain, step, budgets and judge: what random numbers of these votes are drawn for."""
    campaign = started_campaign(asking.comparison.chain.campaign)
    chain, step = asking.comparison.chain.place, asking.comparison.step
    return campaign.recipe.seed, chain, step, campaign.budgets, asking.judge.place


def presentations(asking: Asking) -> Sequence[bool]:
    """Return, for each slot, whether the proposal stands first."""
    recipe = started_campaign(asking.comparison.chain.campaign).recipe
    drawn = sampler.presentations_of(*step_of(asking), recipe.judges[asking.judge.place].order)
    return [drawn[slot] for slot in asking.slots]


def unseeded() -> np.random.Generator:
    """Return a generator for the seeds of requests. Nobody can ask a server for the same reply again, so these seeds
    only keep replies apart.
    """
    return np.random.default_rng()


def _pair(asking: Asking, endpoint: Endpoint) -> judge_calls.Pair:
    campaign = asking.comparison.chain.campaign
    return judge_calls.Pair(
        kind=campaign.object_kind.name,
        criterion=asking.judge.question,
        current=exhibit(asking.comparison.current, endpoint),
        proposal=exhibit(asking.comparison.proposal, endpoint),
        temperature=frozen_judges.source_of(campaign, asking.judge).temperature,
        prompt=frozen_judges.prompt_of(asking.judge),
    )


def _ballot(asking: Asking, each: PairVote, rows: Rows) -> Ballot:
    vote, slot = each.vote, asking.slots[each.vote.place]
    first = Side.LEFT
    return Ballot(
        key=uuid.uuid5(_KEYS, f"{asking.comparison.pk}/{asking.judge.pk}/{slot}"),
        judge_id=asking.judge.pk,
        proposal_side=first if vote.proposal_first else first.other,
        chosen_side=first if vote.for_proposal == vote.proposal_first else first.other,
        elapsed_ms=None if vote.seconds is None else round(1000 * vote.seconds),
        slot=slot,
        preference=vote.preference,
        asks=vote.asks,
        identity=rows[vote.identity] if vote.identity else each.known_from,
    )

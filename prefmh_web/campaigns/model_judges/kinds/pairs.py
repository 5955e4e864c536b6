"""What both ways to vote share: the pair, in which order it is shown, and how votes are stored."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

import sampler
from prefmh_web.campaigns.engine import transitions
from prefmh_web.campaigns.engine.open_comparisons import Ballot, Seen
from prefmh_web.campaigns.frozen import started_campaign
from prefmh_web.campaigns.model_judges import frozen_judges
from prefmh_web.campaigns.model_judges.kinds.kind import Answers, Ask, Asking, Rows
from prefmh_web.campaigns.models import Comparison, Judge, ReplyIdentity, Side, Vote
from prefmh_web.campaigns.objects import exhibit, rows_of
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


@dataclass(frozen=True)
class Voting:
    """What asks for some votes.

    Args:
        known_from: by whether the proposal stood first, the identity of the earlier reply that p is known from.
    """

    ask: Callable[[Admitted], Awaitable[judge_calls.Votes]]
    known_from: Mapping[bool, ReplyIdentity | None]


class PairVotes:
    """A model that prefers one object of a pair. A vote has its slot, and with it its key and its presentation."""

    objects = 2

    def voting(self, asking: Asking, pair: judge_calls.Pair, endpoint: Endpoint) -> Voting:
        """Return what asks for the votes."""
        raise NotImplementedError

    def most_requests(self, answers: int, endpoint: Endpoint) -> int:
        """Return how many requests so many votes take at most."""
        raise NotImplementedError

    def wanted(self, comparison: Comparison, judge: Judge, seen: Seen) -> Asking:
        """Return the slots without a vote, as many as the comparison can use from this judge."""
        stored = seen.slots.get((comparison.pk, judge.pk), set())
        left = [slot for slot in range(judge.max_votes) if slot not in stored]
        opened = seen.opened.get(comparison.pk)
        room = opened.room(judge.pk, most=len(left)) if opened else 0
        return Asking(comparison, judge, left[:room])

    def asks(self, asking: Asking, endpoint: Endpoint) -> Ask:
        """Return what asks for a vote in each slot, each in the order of presentation that was drawn for it."""
        voting = self.voting(asking, pair_of(asking, endpoint), endpoint)

        async def ask(admitted: Admitted) -> Answers:
            votes = await voting.ask(admitted)
            given = [
                PairVote(vote, None if vote.identity else voting.known_from.get(vote.proposal_first))
                for vote in votes.cast
            ]
            return Answers(given, [vote.identity for vote in votes.cast], votes.failure, votes.sound)

        return ask

    def store(self, asking: Asking, comparison: Comparison, answers: Answers, rows: Rows, seen: Seen) -> None:
        """Cast those votes whose identity counts."""
        counting = [each for each in answers.given if each.vote.identity is None or each.vote.identity in rows]
        ballots = [_ballot(asking, each, rows) for each in counting]
        transitions.cast_votes(comparison, ballots, seen)

    def prompt(
        self, kind: str, question: str, rule: sampler.RuleConfig, *, has_context: bool = False
    ) -> model_judges.Prompt:
        """Return the words of a question about two objects."""
        return model_judges.pairwise_prompt(kind, question, has_context=has_context)

    def own_prompt(
        self, template: model_judges.PromptTemplate, question: str, rule: sampler.RuleConfig
    ) -> model_judges.OwnPrompt:
        """Return the researcher's words about two objects."""
        return model_judges.OwnPrompt(template, " ".join(question.split()), self.objects)

    def choices(self, rule: sampler.RuleConfig) -> tuple[str, ...]:
        """Return the labels of the two objects."""
        return model_judges.LABELS


def step_of(asking: Asking) -> tuple[int, int, int, tuple[int, ...], int]:
    """Return seed, chain, step, budgets and judge: what random numbers of these votes are drawn for."""
    campaign = started_campaign(asking.comparison.chain.campaign)
    chain, step = asking.comparison.chain.place, asking.comparison.step
    return campaign.seed, chain, step, campaign.budgets, asking.judge.place


def presentations(asking: Asking) -> Sequence[bool]:
    """Return, for each slot, whether the proposal stands first."""
    config = started_campaign(asking.comparison.chain.campaign).config
    drawn = sampler.presentations_of(*step_of(asking), config.judges[asking.judge.place].order)
    return [drawn[slot] for slot in asking.slots]


def told_before(asking: Asking) -> tuple[dict[bool, Vote], set[bool]]:
    """Return, by whether the proposal stood first: a vote that tells p, and which orders have been sampled."""
    mine = asking.comparison.votes.filter(judge=asking.judge).select_related("identity")
    told = {vote.proposal_side == Side.FIRST: vote for vote in mine if vote.preference is not None}
    return told, {vote.proposal_side == Side.FIRST for vote in mine if vote.preference is None}


def unseeded() -> np.random.Generator:
    """Return a generator for the seeds of requests. Nobody can ask a server for the same reply again, so these seeds
    only keep replies apart.
    """
    return np.random.default_rng()


def pair_of(asking: Asking, endpoint: Endpoint) -> judge_calls.Pair:
    """Return the question that a judge is asked."""
    campaign, comparison = asking.comparison.chain.campaign, asking.comparison
    rows = rows_of(campaign, {comparison.current_id, comparison.proposal_id})
    vision, prompt = frozen_judges.vision_of(campaign, asking.judge), frozen_judges.prompt_of(asking.judge)
    source = frozen_judges.source_of(campaign, asking.judge)
    return judge_calls.Pair(
        kind=started_campaign(campaign).object_kind.name,
        criterion=asking.judge.question,
        current=exhibit(rows[comparison.current_id], endpoint, prompt, vision),
        proposal=exhibit(rows[comparison.proposal_id], endpoint, prompt, vision),
        temperature=source.temperature,
        prompt=prompt,
        keeps_reasons=source.reasons,
    )


def _ballot(asking: Asking, each: PairVote, rows: Rows) -> Ballot:
    vote, slot = each.vote, asking.slots[each.vote.place]
    first = Side.FIRST
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
        reason=vote.reason[: Vote.LONGEST_REASON + 1],
    )

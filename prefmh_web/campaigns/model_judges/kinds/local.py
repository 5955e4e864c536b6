"""Votes drawn from the probability p that a model of the site itself gives to each label.

The law is that of `log_probabilities.py`, and so are the numbers that votes are drawn with; a replay knows no
difference. Many comparisons go through the model together (`local_turns.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import sampler
from prefmh_web.campaigns.model_judges.kinds.kind import Answers, Asking
from prefmh_web.campaigns.model_judges.kinds.pairs import (
    PairVote,
    PairVotes,
    pair_of,
    presentations,
    step_of,
    told_before,
)
from prefmh_web.campaigns.models import Vote
from prefmh_web.endpoints import judge_calls
from prefmh_web.endpoints.accounting import Tally
from prefmh_web.endpoints.errors import EndpointError, Unable
from prefmh_web.endpoints.identity import Identity
from prefmh_web.endpoints.local.models import JudgeHere
from prefmh_web.endpoints.models import Endpoint
from sampler import judges

if TYPE_CHECKING:
    # It would bring the spaces, and all that they import.
    from sampler import Tokens


@dataclass(frozen=True)
class Prepared:
    """A turn whose prompts have been read: what the model is to be told, by whether the proposal stands first."""

    asking: Asking
    order: Sequence[bool]
    uniforms: Sequence[float]
    temperature: float
    told: dict[bool, Vote] = field(default_factory=dict)
    prompts: dict[bool, Tokens] = field(default_factory=dict)
    failure: EndpointError | None = None


@dataclass(frozen=True)
class Outcome:
    """What a turn came to, and what it took."""

    answers: Answers
    tally: Tally


class LocalProbabilities(PairVotes):
    """One row of a pass for each order of a pair, and all votes drawn from it."""

    def most_requests(self, answers: int, endpoint: Endpoint) -> int:
        """Return how many rows so many votes take at most."""
        return min(answers, 2)

    def prepared(self, asking: Asking, model: JudgeHere) -> Prepared:
        """Read the prompts that a turn needs: one for each order whose p no vote tells yet."""
        numbers = sampler.draws_of(*step_of(asking))
        pair = pair_of(asking, as_endpoint(asking.judge.local_model))
        told, _ = told_before(asking)
        order = presentations(asking)
        ready = Prepared(asking, order, [numbers[slot] for slot in asking.slots], pair.temperature, told)
        try:
            for first in sorted(set(order) - set(told)):
                ready.prompts[first] = model.judge.read(pair.messages(first))
        except Unable as error:
            return Prepared(asking, order, ready.uniforms, pair.temperature, failure=error)
        return ready

    def outcomes(self, turns: Sequence[Prepared], model: JudgeHere, identity: Identity) -> list[Outcome]:
        """Let many prompts go through the model at once, and draw each turn's votes.

        Raises:
            Unable: the model cannot be run.
        """
        rows = [(turn, first) for turn in turns for first in turn.prompts]
        temperature = turns[0].temperature
        try:
            told = model.judge.preferences([turn.prompts[first] for turn, first in rows], temperature)
        # PyTorch says by a RuntimeError that the accelerator's memory is full, or that there is no accelerator.
        except (ArithmeticError, MemoryError, RuntimeError) as error:
            raise Unable(f"{identity.model} does not judge here: {error}") from error
        found: dict[int, dict[bool, float]] = {id(turn): {} for turn in turns}
        tallies = {id(turn): Tally() for turn in turns}
        for (turn, first), row in zip(rows, told, strict=True):
            found[id(turn)][first] = judges.preference_for_proposal(row.preference.first, first)
            tally = tallies[id(turn)]
            tally.requests, tally.tokens_in = tally.requests + 1, tally.tokens_in + row.tokens
            tally.most_tokens_in = max(tally.most_tokens_in, row.tokens)
        return [Outcome(_answers(turn, found[id(turn)], identity), tallies[id(turn)]) for turn in turns]


def as_endpoint(name: str) -> Endpoint:
    """Return what stands for a model that the site runs itself where an endpoint is asked for. It is never saved.

    It costs nothing, and sees no pictures.
    """
    return Endpoint(name=name, model=name, input_price=0.0, output_price=0.0, can_images=False)


def _answers(turn: Prepared, fresh: dict[bool, float], identity: Identity) -> Answers:
    if turn.failure is not None:
        return Answers((), (), turn.failure)
    known = {first: vote.preference for first, vote in turn.told.items() if vote.preference is not None}
    given = [
        PairVote(
            judge_calls.ModelVote(
                place,
                first,
                judges.drawn_vote(uniform, chances),
                asks=0,
                preference=chances,
                identity=identity if first in fresh else None,
            ),
            known_from=None if first in fresh else turn.told[first].identity,
        )
        for place, (first, uniform) in enumerate(zip(turn.order, turn.uniforms, strict=True))
        for chances in [fresh[first] if first in fresh else known[first]]
    ]
    return Answers(given, [each.vote.identity for each in given], None)

"""Exports of campaigns whose voters are known: planted scores, a planted lean for each source, any orders of judges."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sampler import (
    Catalog,
    Independent,
    Plan,
    Purpose,
    Record,
    Tally,
    Verdict,
    advance,
    ask,
    begin,
    state_number,
    stream,
    tell,
)

Row = dict[str, str]
PEOPLE: dict[str, Any] = {"kind": "people"}
# Of different lengths, so that something can be measured of each.
WORDS = ("ash", "the birch", "a red cedar", "an old elm", "fir", "hazel hedges", "larch", "a maple", "oak", "some pine")
CATALOG = {"kind": "catalog", "objects": "texts", "neighbours": 0}


def model(endpoint: str) -> dict[str, Any]:
    """Return the source of a judge that is a model."""
    return {"kind": "model", "endpoint": endpoint, "temperature": 1.0, "votes": "sampled", "first": False}


@dataclass(frozen=True)
class Voters:
    """A judge and who answers it: prefers by its scores, leans to the left by `lean`, both in nats.

    The scores are a list by the catalog's states, or a function of a generated state.
    """

    scores: Sequence[float] | Callable[[Any], float]
    lean: float = 0.0
    budget: int = 4
    order: str = "random"
    question: str = "Which is darker?"
    source: Mapping[str, Any] = field(default_factory=lambda: PEOPLE)

    def score(self, state: Any) -> float:
        return self.scores(state) if callable(self.scores) else self.scores[state]

    def chooses_left(self, rng: np.random.Generator, left: Any, right: Any) -> bool:
        log_odds = self.score(left) - self.score(right) + self.lean
        return bool(rng.random() < 1 / (1 + np.exp(-log_odds)))

    def proposal_is_left(self, rng: np.random.Generator) -> bool:
        drawn = bool(rng.random() < 0.5)
        return {"proposal-first": True, "proposal-second": False}.get(self.order, drawn)


def twins(scores: Any, lean: float, budget: int = 2, **changes: Any) -> list[Voters]:
    """Return the two judges of a question asked in both orders."""
    return [Voters(scores, lean, budget, order, **changes) for order in ("proposal-first", "proposal-second")]


def exported(judges: Sequence[Voters], contents: Sequence[str] = WORDS, **run: Any) -> Record:
    """Run a campaign that picks from a catalog of as many texts as there are scores; see `run_campaign`."""
    size = len(judges[0].scores)  # type: ignore[arg-type]
    catalog = Catalog(np.ones(size))
    states = [
        {"state": str(state), "weight": "1.0", "neighbours": "", "content": contents[state], "code": ""}
        for state in range(size)
    ]
    plan = Plan(run.get("seed", 1), catalog, Independent(catalog), tuple(judge.budget for judge in judges))
    return run_campaign(plan, CATALOG, judges, states, **run)


def run_campaign(
    plan: Plan[Any],
    space: Mapping[str, Any],
    judges: Sequence[Voters],
    states: Sequence[Row] = (),
    *,
    chains: int = 40,
    steps: int = 25,
    seed: int = 1,
) -> Record:
    """Ask judge after judge, stopping as early as allowed, and return the export.

    Args:
        space: of the recipe.
        states: of a catalog; a generated space's are stored as the application stores them.
    """
    listed = [
        {"question": each.question, "budget": each.budget, "order": each.order, "source": dict(each.source)}
        for each in judges
    ]
    recipe = {"space": space, "judges": listed, "chains": chains, "steps": steps, "seed": seed}
    record = Record(recipe, list(states), [], [], [])
    store = _Store(record, plan, chains, bool(states))
    for chain in range(chains):
        position = begin(plan, chain)
        at = store.number(chain, 0, position.state)
        _add_sample(record, chain, 0, at)
        for _ in range(steps):
            drawn = ask(plan, position)
            proposed = at if drawn.is_identity else store.number(chain, drawn.step, drawn.proposal)
            tally, verdict = _ask_all(record, drawn, judges, seed)
            _add_step(record, drawn, (at, proposed), tally, verdict)
            position = advance(position, drawn, verdict)
            at = proposed if verdict is Verdict.ACCEPT else at
            _add_sample(record, chain, position.step, at)
    return record


@dataclass
class _Store:
    record: Record
    plan: Plan[Any]
    chains: int
    has_catalog: bool

    def number(self, chain: int, step: int, state: Any) -> int:
        if self.has_catalog:
            return int(state)
        number, space = state_number(chain, step, self.chains), self.plan.space
        row = {"state": str(number), "weight": "", "neighbours": ""}
        self.record.states.append(row | {"content": space.content(state), "code": space.encode(state)})
        return number


def _ask_all(record: Record, drawn: Any, judges: Sequence[Voters], seed: int) -> tuple[Tally, Verdict]:
    rng = stream(seed, drawn.chain, drawn.step, Purpose.JUDGES)
    tally, number = Tally.empty(len(judges)), 0
    while (verdict := tell(drawn, tally)) is Verdict.UNDECIDED:
        place = next(i for i, judge in enumerate(judges) if tally.votes_cast[i] < judge.budget)
        judge, number = judges[place], number + 1
        proposal_left = judge.proposal_is_left(rng)
        left, right = (drawn.proposal, drawn.current) if proposal_left else (drawn.current, drawn.proposal)
        chose_left = judge.chooses_left(rng, left, right)
        tally = tally.add(place, chose_left == proposal_left)
        is_model = judge.source["kind"] == "model"
        record.votes.append(
            {
                "chain": str(drawn.chain), "step": str(drawn.step), "number": str(number), "judge": str(place),
                "question": judge.question, "annotator": "" if is_model else f"person {number}",
                "proposal_side": "left" if proposal_left else "right",
                "chosen_side": "left" if chose_left else "right",
                "for_proposal": str(int(chose_left == proposal_left)),
                "endpoint": judge.source["endpoint"] if is_model else "", "slot": str(number) if is_model else "",
            }
        )  # fmt: skip
    return tally, verdict


def _add_step(record: Record, drawn: Any, numbers: tuple[int, int], tally: Tally, verdict: Verdict) -> None:
    record.steps.append(
        {
            "chain": str(drawn.chain), "step": str(drawn.step), "current": str(numbers[0]),
            "proposal": str(numbers[1]), "log_r0": repr(float(drawn.log_r0)),
            "uniform": repr(float(drawn.uniform)), "budgets": " ".join(map(str, drawn.budgets)),
            "votes_cast": " ".join(map(str, tally.votes_cast)), "votes_for": " ".join(map(str, tally.votes_for)),
            "verdict": verdict.value,
        }
    )  # fmt: skip


def _add_sample(record: Record, chain: int, step: int, state: int) -> None:
    content = next(row["content"] for row in reversed(record.states) if row["state"] == str(state))
    record.samples.append({"chain": str(chain), "step": str(step), "state": str(state), "content": content})


def renumbered(record: Record, seed: int = 1) -> Record:
    """Return the same record with other numbers of states, and states.csv in the order of the new numbers."""
    old = [row["state"] for row in record.states]
    new = [str(number) for number in range(len(old))]
    random.Random(seed).shuffle(new)
    number = dict(zip(old, new, strict=True))
    states = [
        row
        | {"state": number[row["state"]], "neighbours": " ".join(number[each] for each in row["neighbours"].split())}
        for row in record.states
    ]
    return replace(
        record,
        states=sorted(states, key=lambda row: int(row["state"])),
        steps=[row | {name: number[row[name]] for name in ("current", "proposal")} for row in record.steps],
        samples=[row | {"state": number[row["state"]]} for row in record.samples],
    )

"""A campaign's record, as the export writes it: the recipe, and one list of rows for each CSV file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sampler import (
    BradleyTerry,
    Catalog,
    Comparison,
    Position,
    Purpose,
    Recipe,
    Tally,
    Verdict,
    advance,
    ask,
    begin,
    parse_recipe,
    stream,
    tell,
)
from tests.support.catalogs import LOPSIDED, two_scores

Row = dict[str, str]

CONTENTS = ("a castle", "a cat", "two\nlines", "42", "a crypt")

RECIPE: dict[str, Any] = {
    "space": {"kind": "catalog", "objects": "texts", "neighbours": 2},
    "kernel": {
        "kind": "mixture",
        "parts": [
            {"weight": 0.3, "kernel": {"kind": "independent"}},
            {"weight": 0.7, "kernel": {"kind": "neighbours"}},
        ],
    },
    "judges": [{"question": "Which one is more gothic?", "budget": 3}, {"question": "Which is kinder?", "budget": 2}],
    "chains": 2,
    "steps": 25,
    "seed": 2026,
}


@dataclass
class Record:
    """The arguments of `sampler.replay`, in its order."""

    recipe: dict[str, Any]
    states: list[Row]
    steps: list[Row]
    votes: list[Row]
    samples: list[Row]

    def tables(self) -> tuple[dict[str, Any], list[Row], list[Row], list[Row], list[Row]]:
        """Return them as positional arguments."""
        return self.recipe, self.states, self.steps, self.votes, self.samples


def text_row(**cells: object) -> Row:
    return {name: str(cell) for name, cell in cells.items()}


def state_rows(catalog: Catalog) -> list[Row]:
    return [
        text_row(
            state=state,
            weight=float(weight),
            neighbours=" ".join(map(str, catalog.neighbours[state])),
            content=CONTENTS[state],
        )
        for state, weight in enumerate(catalog.weights)
    ]


def sample_row(recipe: Recipe, position: Position[int]) -> Row:
    phase = {"phase": recipe.phase_of(position.step)} if recipe.has_phases else {}
    content = CONTENTS[position.state]
    return text_row(chain=position.chain, step=position.step, state=position.state, content=content, **phase)


def _part(recipe: Recipe, comparison: Comparison[int]) -> dict[str, object]:
    if not recipe.has_parts:
        return {}
    part = recipe.part_of(comparison.chain, comparison.step)
    return {"part": "" if part is None else part}


def make_record(open_votes: int | None = None, walk_length: int | None = None, **changes: Any) -> Record:
    """Run the recipe with simulated judges and write its record.

    Args:
        open_votes: when given, the last chain has one more step, still undecided after so many votes.
        walk_length: of the steps after a warm-up.
        changes: of the recipe.
    """
    recipe = parse_recipe(RECIPE | changes | {"steps": RECIPE["steps"] + (open_votes is not None)})
    plan = recipe.build(LOPSIDED, walk_length=walk_length)
    judges = [BradleyTerry(scores.__getitem__) for scores in two_scores(LOPSIDED)]
    record = Record(recipe.model_dump(mode="json"), state_rows(LOPSIDED), [], [], [])
    for chain in range(recipe.chains):
        position = begin(plan, chain)
        record.samples.append(sample_row(recipe, position))
        verdict = Verdict.ACCEPT
        while verdict is not Verdict.UNDECIDED:
            is_extra = position.step == RECIPE["steps"]
            if is_extra and (open_votes is None or chain < recipe.chains - 1):
                break
            comparison = ask(plan, position)
            rng = stream(plan.seed, chain, comparison.step, Purpose.JUDGES)
            tally = Tally.empty(2)
            number = 0
            while (verdict := tell(comparison, tally)) is Verdict.UNDECIDED and not (is_extra and number == open_votes):
                judge = next(i for i in (number % 2, 1 - number % 2) if tally.votes_cast[i] < plan.budgets[i])
                number += 1
                side = "left" if rng.random() < 0.5 else "right"
                other = "right" if side == "left" else "left"
                for_proposal = judges[judge].vote(rng, comparison.current, comparison.proposal)
                tally = tally.add(judge, for_proposal)
                record.votes.append(
                    text_row(
                        chain=chain,
                        step=comparison.step,
                        number=number,
                        judge=judge,
                        question=recipe.judges[judge].question,
                        annotator=f"person {number}",
                        proposal_side=side,
                        chosen_side=side if for_proposal else other,
                        for_proposal=int(for_proposal),
                    )
                )
            record.steps.append(
                text_row(
                    chain=chain,
                    step=comparison.step,
                    current=comparison.current,
                    proposal=comparison.proposal,
                    log_r0=comparison.log_r0,
                    uniform="" if verdict is Verdict.UNDECIDED else comparison.uniform,
                    budgets=" ".join(map(str, comparison.budgets)),
                    votes_cast=" ".join(map(str, tally.votes_cast)),
                    votes_for=" ".join(map(str, tally.votes_for)),
                    verdict="" if verdict is Verdict.UNDECIDED else verdict.value,
                    **_part(recipe, comparison),
                )
            )
            if verdict is not Verdict.UNDECIDED:
                position = advance(position, comparison, verdict)
                record.samples.append(sample_row(recipe, position))
    return record

"""Records compared: strengths, shares of wins and the voters' lean, with intervals over prompts."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from sampler.commands.report.colours import colour_of
from sampler.commands.report.estimates import Estimate, over_samples
from sampler.commands.report.figures import saved
from sampler.commands.report.run_files import RunFiles
from sampler.commands.report.strengths import Strengths, cast_votes, strengths
from sampler.commands.report.table import as_tex
from sampler.diagnostics.choices import Choices, Vote
from sampler.experiments import outputs
from sampler.experiments.comparing import PROPERTY
from sampler.experiments.outputs import OutputError
from sampler.record.cells import escaped

FIGURE = "comparison"
_HEADER = ("record", "name", "column", "value", "low", "high", "count", "note")
_UNITS = (
    "Strengths are natural log-odds of mean 0, fitted together with the voters' lean to what is shown first; only "
    "differences mean anything. Intervals: 95 %, each prompt weighted with all its votes."
)
_DIGITS = 3


@dataclass(frozen=True)
class Result:
    """What the votes say.

    Args:
        question: as it was asked.
        names: of the records, by their id, in their order.
        strength: by id; without a value where the votes have no finite fit.
        share: of the votes that chose it, by id.
        above: by how much the strength of one is above that of another, by their ids.
        lean: to what is shown first, in log-odds.
        votes: how many there are.
        prompts: on how many prompts.
        reason: why there are no strengths; empty where there are.
    """

    question: str
    names: dict[str, str]
    strength: dict[str, Estimate]
    share: dict[str, Estimate]
    above: dict[tuple[str, str], Estimate]
    lean: Estimate
    votes: int
    prompts: int
    reason: str


def write_comparison(run: RunFiles) -> list[Path]:
    """Write table.{csv,md,tex} and the figure of a comparison, and return their paths.

    Raises:
        OutputError: settings.json or a table is malformed.
        MissingExtra: matplotlib is not installed.
    """
    result = result_of(run)
    paths = [run.folder / f"table.{ending}" for ending in ("csv", "md", "tex")]
    with paths[0].open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([_HEADER, *_csv_rows(result)])
    for path, lines in zip(paths[1:], (_markdown(result), _latex(result)), strict=True):
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    if not result.votes:
        return paths
    folder = run.folder / outputs.FIGURES
    folder.mkdir(exist_ok=True)
    return [*paths, *saved(folder, FIGURE, _figure_rows(result), lambda figure: _draw(figure, result))]


def result_of(run: RunFiles) -> Result:
    """Return what the votes in a folder say.

    Raises:
        OutputError: settings.json or a table is malformed.
    """
    try:
        names = {each["id"]: str(each["name"]) for each in run.document["records"]}
        question = str(run.document["question"])
    except (KeyError, TypeError) as error:
        raise OutputError(f"{run.folder / outputs.SETTINGS} is none of a comparison: it lacks {error}") from error
    votes = cast_votes(run, [PROPERTY], lambda pair: pair["prompt"])[PROPERTY]
    fitted = strengths(Choices.of(votes), np.random.default_rng(0))
    return Result(
        question,
        names,
        strength={each: _strength(fitted, each) for each in names},
        share={each: _share(votes, each) for each in names},
        above={(one, other): _above(fitted, one, other) for one, other in combinations(names, 2)},
        lean=_lean(fitted),
        votes=len(votes),
        prompts=len({prompt for *_, prompt in votes}),
        reason=fitted.reason,
    )


def _strength(fitted: Strengths, record: str) -> Estimate:
    if fitted.scores is None or record not in fitted.scores.items:
        return Estimate(None, note=fitted.reason or "no votes")
    place = fitted.scores.items.index(record)
    ends = fitted.scores.low[place], fitted.scores.high[place]
    return _estimate(fitted.scores.estimate[place], *ends, fitted.votes)


def _above(fitted: Strengths, one: str, other: str) -> Estimate:
    if fitted.scores is None or not {one, other} <= set(fitted.scores.items):
        return Estimate(None, note=fitted.reason or "no votes")
    found = fitted.scores.difference(one, other)
    return _estimate(found.estimate, found.low, found.high, fitted.votes)


def _lean(fitted: Strengths) -> Estimate:
    lean = None if fitted.scores is None else fitted.scores.lean
    if lean is None:
        return Estimate(None, note=fitted.reason or "too few votes to tell it")
    return _estimate(lean.log_odds, lean.low, lean.high, lean.votes)


def _share(votes: Sequence[Vote], record: str) -> Estimate:
    mine = [
        (float((left if chose_left else right) == record), prompt)
        for left, right, chose_left, prompt in votes
        if record in (left, right)
    ]
    won, prompts = [value for value, _ in mine], [prompt for _, prompt in mine]
    return over_samples(won, prompts, np.random.default_rng(0), with_spread=False)


def _estimate(value: float, low: float, high: float, count: int) -> Estimate:
    lowest, highest = (None if np.isnan(end) else float(end) for end in (low, high))
    return Estimate(float(value), None, lowest, highest, count)


def _cells(result: Result) -> Iterator[tuple[str, str, Estimate]]:
    """Yield each number with the id of its record (none of the lean) and its column."""
    for record in result.names:
        yield record, "strength", result.strength[record]
        yield record, "share_of_wins", result.share[record]
    for (one, other), difference in result.above.items():
        yield one, f"strength_above_{other}", difference
    yield "", "lean_to_first", result.lean


def _csv_rows(result: Result) -> Iterator[list[str]]:
    for record, column, cell in _cells(result):
        numbers = ("" if number is None else repr(number) for number in (cell.value, cell.low, cell.high))
        name = str(escaped(result.names.get(record, "")))
        yield [record, name, column, *numbers, str(cell.count), cell.note]


def _markdown(result: Result) -> Iterator[str]:
    yield "# Records compared"
    yield ""
    yield f"“{_in_a_cell(result.question)}”: {result.votes:,} votes on {result.prompts:,} prompts."
    yield ""
    yield "| record | strength ↑ | share of wins ↑ |"
    yield "|---|---|---|"
    for record, name in result.names.items():
        yield f"| {_in_a_cell(name)} | {_shown(result.strength[record])} | {_shown(result.share[record])} |"
    yield ""
    if len(result.names) > 2 and not result.reason:
        yield from _differences(result)
    yield from (f"- {note}" for note in _notes(result))


def _differences(result: Result) -> Iterator[str]:
    yield "| difference of strengths | |"
    yield "|---|---|"
    for (one, other), difference in result.above.items():
        yield f"| {_in_a_cell(result.names[one])} above {_in_a_cell(result.names[other])} | {_shown(difference)} |"
    yield ""


def _notes(result: Result) -> Iterator[str]:
    if result.reason:
        yield f"No strengths: {result.reason}."
    elif result.lean.value is not None:
        yield f"Lean to what is shown first: {_shown(result.lean)} in log-odds."
    else:
        yield f"Lean to what is shown first: {result.lean.note}."
    if result.votes and all(cell.low is None for cell in result.share.values()):
        yield "No intervals: with fewer than 15 prompts none can be trusted."
    yield _UNITS


def _latex(result: Result) -> Iterator[str]:
    yield f"% Records compared: {' '.join(result.question.split())}"
    yield from (f"% {note}" for note in _notes(result))
    yield r"\begin{tabular}{@{}lcc@{}}"
    yield r"\toprule"
    yield r"Record & Strength $\uparrow$ & Share of wins $\uparrow$ \\"
    yield r"\midrule"
    for record, name in result.names.items():
        cells = as_tex(name), as_tex(_shown(result.strength[record])), as_tex(_shown(result.share[record]))
        yield " & ".join(cells) + r" \\"
    yield r"\bottomrule"
    yield r"\end{tabular}"


def _shown(cell: Estimate) -> str:
    if cell.value is None:
        return ""
    value = f"{cell.value:.{_DIGITS}f}"
    if cell.low is None or cell.high is None:
        return value
    return f"{value} [{cell.low:.{_DIGITS}f}, {cell.high:.{_DIGITS}f}]"


def _in_a_cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")


def _figure_rows(result: Result) -> Iterator[Sequence[object]]:
    yield "record", "column", "value", "low", "high"
    for record, column, cell in _cells(result):
        if column in ("strength", "share_of_wins"):
            numbers = (cell.value, cell.low, cell.high)
            yield escaped(result.names[record]), column, *("" if each is None else repr(each) for each in numbers)


def _draw(figure: Any, result: Result) -> None:
    """Draw strengths and shares side by side; without a finite fit the shares alone."""
    panels = [("share of wins", result.share, 0.5)]
    if not result.reason:
        panels.insert(0, ("strength (log-odds, mean 0)", result.strength, 0.0))
    figure.set_size_inches(1.6 + 2.6 * len(panels), 0.9 + 0.32 * len(result.names))
    axes_of_all = figure.subplots(1, len(panels), sharey=True, squeeze=False).flat
    for axes, (title, cells, level) in zip(axes_of_all, panels, strict=True):
        axes.axvline(level, color="0.7", linewidth=0.8, linestyle="--")
        for place, cell in enumerate(cells.values()):
            if cell.value is None:
                continue
            if cell.low is not None and cell.high is not None:
                axes.plot([cell.low, cell.high], [place, place], color=colour_of(place), linewidth=1.4)
            axes.plot([cell.value], [place], marker="o", color=colour_of(place), markersize=4)
        axes.set_title(f"{title} ↑")
        # A name of a file is no formula, whatever signs it has.
        axes.set_yticks(range(len(result.names)), list(result.names.values()), parse_math=False)
        axes.set_ylim(len(result.names) - 0.5, -0.5)
        axes.grid(axis="x", color="0.9", linewidth=0.6)
        axes.set_axisbelow(True)
    has_intervals = any(cell.low is not None for cell in result.share.values())
    figure.supxlabel(
        "with 95 % intervals over prompts" if has_intervals else "too few prompts for intervals", fontsize=8
    )

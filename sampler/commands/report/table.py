"""The table of a run: our numbers beside the paper's, as CSV, Markdown and LaTeX.

The paper's Bradley-Terry columns have another reference than the mean (they sum to -.879, -1.059 and -.451), so they
are shown with their mean taken off: only differences can be compared.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sampler.commands.report.estimates import Estimate
from sampler.commands.report.run_files import RunFiles
from sampler.commands.report.strengths import PREFIX
from sampler.experiments.settings import Column, ExperimentMethod

_HEADER = (
    "method", "label", "column", "ours", "spread", "low", "high", "count", "mark", "note",
    "paper", "paper_spread", "paper_mark", "paper_centred", "inexact",
)  # fmt: skip


@dataclass(frozen=True)
class ShownColumn:
    """A column as it is printed: one of the experiment's, of one direction.

    Args:
        key: as cells are found by it.
        label: with the direction's name where there are several.
    """

    key: str
    label: str
    column: Column


@dataclass(frozen=True)
class Cell:
    """Our number and the paper's.

    Args:
        paper: as printed; None where the paper has no such cell.
        paper_centred: less its column's mean, of Bradley-Terry columns only.
    """

    ours: Estimate
    paper: float | None
    paper_spread: float | None
    paper_mark: str
    paper_centred: float | None

    @property
    def compared(self) -> float | None:
        """The paper's number on the scale of ours."""
        return self.paper if self.paper_centred is None else self.paper_centred


@dataclass(frozen=True)
class ResultTable:
    """All cells, by method and column."""

    title: str
    spread: str
    methods: tuple[ExperimentMethod, ...]
    columns: tuple[ShownColumn, ...]
    cells: Mapping[tuple[str, str], Cell]


def made_table(run: RunFiles, measured: Mapping[tuple[str, str], Estimate]) -> ResultTable:
    """Put the measures beside what is published; cells that were not measured are empty."""
    experiment = run.options.of_experiment
    columns = tuple(_columns(run))
    centres = {shown.key: _centre(run, shown.key) for shown in columns if shown.key.startswith(PREFIX)}
    cells = {}
    for method in run.options.chosen:
        for shown in columns:
            ours = measured.get((method.name, shown.key), Estimate(None, note="not measured"))
            if ours.value is None and shown.column.scorer:
                ours = Estimate(None, note=f"no scorer {shown.column.scorer}")
            published = method.published.get(shown.key)
            value = None if published is None else published.value
            centred = None if value is None or shown.key not in centres else value - centres[shown.key]
            spread, mark = (None, "") if published is None else (published.spread, published.mark)
            cells[method.name, shown.key] = Cell(ours, value, spread, mark, centred)
    return ResultTable(experiment.title, experiment.spread, run.options.chosen, columns, cells)


def write_tables(table: ResultTable, folder: Path) -> list[Path]:
    """Write table.csv, table.md and table.tex, and return their paths."""
    paths = [folder / f"table.{ending}" for ending in ("csv", "md", "tex")]
    with paths[0].open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([_HEADER, *_csv_rows(table)])
    for path, lines in zip(paths[1:], (_markdown(table), _latex(table)), strict=True):
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return paths


def write_extra(measured: Mapping[tuple[str, str], Estimate], path: Path) -> Path:
    """Write numbers that the paper's table does not have, a row each, and return the path."""
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["method", "column", "value", "count"])
        rows.writerows([*key, _written(estimate.value), estimate.count] for key, estimate in measured.items())
    return path


def _columns(run: RunFiles) -> Iterator[ShownColumn]:
    for direction in run.options.directions:
        for column in run.options.of_experiment.columns:
            if direction.name:
                yield ShownColumn(f"{column.name}_{direction.name}", f"{column.label} {direction.name}", column)
            else:
                yield ShownColumn(column.name, column.label, column)
    named = {column.name for column in run.options.of_experiment.columns}
    for asked in run.options.of_experiment.compared if run.options.matches else ():
        if (name := PREFIX + asked.name) not in named:
            yield ShownColumn(name, f"BT {asked.name}", Column(name, f"BT {asked.name}", True, 3))


def _centre(run: RunFiles, key: str) -> float:
    """Return the mean of a published column over all methods that the paper has, whichever ran."""
    published = [method.published[key].value for method in run.options.of_experiment.methods if key in method.published]
    return sum(published) / len(published) if published else 0.0


def _csv_rows(table: ResultTable) -> Iterator[list[str]]:
    for method in table.methods:
        for shown in table.columns:
            cell = table.cells[method.name, shown.key]
            ours = cell.ours
            numbers = (ours.value, ours.spread, ours.low, ours.high)
            yield [
                method.name, method.label, shown.key, *map(_written, numbers), str(ours.count), ours.mark, ours.note,
                _written(cell.paper), _written(cell.paper_spread), cell.paper_mark, _written(cell.paper_centred),
                method.inexact,
            ]  # fmt: skip


def _written(number: float | None) -> str:
    return "" if number is None else repr(number)


def _markdown(table: ResultTable) -> Iterator[str]:
    yield f"# {table.title}"
    yield ""
    spread = f" ± {table.spread}" if table.spread else ""
    yield f"Ours{spread} [95 % interval]; in brackets the paper's. An empty cell was not measured."
    yield ""
    yield "| method | " + " | ".join(_headed(shown) for shown in table.columns) + " |"
    yield "|---|" + "---|" * len(table.columns)
    for method in table.methods:
        cells = [_shown(table.cells[method.name, shown.key], shown.column.digits) for shown in table.columns]
        yield f"| {method.label} | " + " | ".join(cells) + " |"
    notes = list(_notes(table))
    if notes:
        yield ""
        yield from (f"- {note}" for note in notes)


def _headed(shown: ShownColumn) -> str:
    return f"{shown.label} {'↑' if shown.column.higher_is_better else '↓'}"


def _shown(cell: Cell, digits: int) -> str:
    """Write a cell for a reader: 0.812 ± 0.030 [0.801, 0.823] (0.817 ± 0.037)."""
    ours, parts = cell.ours, []
    if ours.value is not None:
        parts.append(_number(ours.value, digits) + ours.mark + _behind(ours.spread, digits))
        if ours.low is not None and ours.high is not None:
            parts.append(f"[{_number(ours.low, digits)}, {_number(ours.high, digits)}]")
    if cell.compared is not None:
        parts.append(f"({_number(cell.compared, digits)}{cell.paper_mark}{_behind(cell.paper_spread, digits)})")
    return " ".join(parts)


def _behind(spread: float | None, digits: int) -> str:
    return "" if spread is None else f" ± {_number(spread, digits)}"


def _number(value: float, digits: int) -> str:
    return f"{value:.{digits}f}"


def _notes(table: ResultTable) -> Iterator[str]:
    if any(shown.key.startswith(PREFIX) for shown in table.columns):
        yield "Bradley-Terry strengths are natural log-odds of mean 0; the paper's are shown with their mean taken off."
    for method in table.methods:
        if method.inexact:
            yield f"{method.label}: {method.inexact}."
    empty: dict[str, list[str]] = {}
    for method in table.methods:
        for shown in table.columns:
            note = table.cells[method.name, shown.key].ours.note
            if note:
                empty.setdefault(f"{shown.label}: {note}", []).append(method.label)
    for note, methods in empty.items():
        yield f"{note} ({', '.join(methods)})."


def _latex(table: ResultTable) -> Iterator[str]:
    spread = f" ± {table.spread}" if table.spread else ""
    yield f"% {table.title}: ours{spread} [95 % interval], and the paper's in brackets"
    yield rf"\begin{{tabular}}{{@{{}}l{'c' * len(table.columns)}@{{}}}}"
    yield r"\toprule"
    yield "Method & " + " & ".join(as_tex(_headed(shown)) for shown in table.columns) + r" \\"
    yield r"\midrule"
    for method in table.methods:
        cells = [_shown(table.cells[method.name, shown.key], shown.column.digits) for shown in table.columns]
        yield " & ".join([as_tex(method.label), *map(as_tex, cells)]) + r" \\"
    yield r"\bottomrule"
    yield r"\end{tabular}"


_TEX = str.maketrans(
    {
        "±": r"$\pm$", "†": r"$^{\dagger}$", "‡": r"$^{\ddagger}$", "↑": r"$\uparrow$", "↓": r"$\downarrow$",
        "β": r"$\beta$", "-": r"$-$", "&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$",
        "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}",
    }
)  # fmt: skip


def as_tex(text: str) -> str:
    """Write a text for LaTeX."""
    # A hyphen of a word is one; a minus stands before a digit.
    placed = "".join(
        "\N{MINUS SIGN}" if char == "-" and text[place + 1 : place + 2].isdigit() else char
        for place, char in enumerate(text)
    )
    table = {key: value for key, value in _TEX.items() if key != ord("-")} | {ord("\N{MINUS SIGN}"): "$-$"}
    return placed.translate(table)

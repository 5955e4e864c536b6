"""The table and the figures of a run, made from its folder alone: the same bytes for the same files.

Each says on its first line what it is. The paper's numbers stand beside ours only where size and models are the
paper's. Its Bradley-Terry columns have another reference than the mean (they sum to -.879, -1.059 and -.451), so they
are shown with their mean taken off: only differences can be compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sampler.diagnostics.scores import MIN_CLUSTERS
from sampler.experiments import outputs
from sampler.experiments.metrics import (
    BETTER,
    MEASURES,
    NOT_DIFFERENT,
    PREFIX,
    Cells,
    Estimate,
    RunFiles,
    corpus_scores,
    strength_cells,
)
from sampler.experiments.options import (
    Column,
    ExperimentMethod,
    ExperimentOptions,
    Published,
    selected_steps,
    shown_steps,
)
from sampler.experiments.outputs import COLOURS, Rows, analysis_library, write_csv, write_figure

_HEADER = (
    "method", "label", "column", "ours", "spread", "low", "high", "count", "mark", "note",
    "paper", "paper_spread", "paper_mark", "paper_centred", "inexact",
)  # fmt: skip
_PANELS_IN_A_ROW = 4
Drawing = Callable[[Any, RunFiles, "ResultTable"], None]
"""Draws on an empty figure of matplotlib."""


@dataclass(frozen=True)
class Cell:
    """Our number and the paper's.

    Args:
        paper: as printed; None where the paper has no such cell, or a run is not of its size and models.
        centre: the paper's mean of its column, of Bradley-Terry columns only.
    """

    ours: Estimate
    paper: Published | None
    centre: float | None

    @property
    def compared(self) -> float | None:
        """The paper's number on the scale of ours."""
        return None if self.paper is None else self.paper.value - (self.centre or 0.0)


@dataclass(frozen=True)
class ResultTable:
    """All cells, by method and column.

    Args:
        about: what the numbers are of: size, models, version.
        reference: the label of the method that others are tested against; empty where none is.
        columns: with the direction's name where there are several.
    """

    title: str
    about: str
    reference: str
    spread: str
    methods: tuple[ExperimentMethod, ...]
    columns: tuple[Column, ...]
    cells: Mapping[tuple[str, str], Cell]

    @property
    def has_the_papers(self) -> bool:
        """Whether a number of the paper stands beside ours."""
        return any(cell.paper is not None for cell in self.cells.values())

    def of_column(self, column: Column) -> list[Cell]:
        """Return the cells of a column, in the order of the methods."""
        return [self.cells[method.name, column.name] for method in self.methods]

    def is_among_best(self, cell: Cell, column: Column, rank: int) -> bool:
        """Whether a cell has the best number of ours in its column (rank 0), or the second best (1), of two or more."""
        known = {each.ours.value for each in self.of_column(column) if each.ours.value is not None}
        ranked = sorted(known, reverse=column.higher_is_better)
        return len(ranked) > 1 and cell.ours.value == ranked[rank]


def check_report(experiment: str) -> None:
    """Check before a run begins that its report can be made.

    Raises:
        MissingExtra: a library of the extra [analysis] is not installed.
    """
    for library in ("matplotlib", "sacrebleu") if experiment == "translation" else ("matplotlib",):
        analysis_library(library)


def write_report(folder: Path) -> list[Path]:
    """Write table.{csv,md,tex} and figures/ of a run, and return their paths. What is not there yet stays empty.

    Raises:
        OutputError: settings.json or a table of the run is missing or malformed.
        RecordError: a record cannot be read.
        MissingExtra: a library of the extra [analysis] is not installed.
    """
    run = RunFiles(folder)
    table = made_table(run, MEASURES[run.options.experiment](run) | strength_cells(run))
    written = [folder / f"table.{ending}" for ending in ("csv", "md", "tex")]
    write_csv(written[0], [_HEADER, *_csv_rows(table)])
    for path, lines in zip(written[1:], (_markdown(table), _latex(table)), strict=True):
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    for name, rows, draw in DRAWINGS[run.options.experiment]:
        numbers = list(rows(run, table))
        if len(numbers) > 1:
            written += write_figure(folder / outputs.FIGURES, name, numbers, _titled(draw, run, table))
    if run.options.experiment == "translation":
        written.append(folder / "corpus.csv")
        found = ([*key, _written(each.value), each.count] for key, each in corpus_scores(run).items())
        write_csv(written[-1], [["method", "column", "value", "count"], *found])
    return written


def made_table(run: RunFiles, measured: Cells) -> ResultTable:
    """Put the measures beside what is published; cells that were not measured are empty."""
    experiment, is_the_papers = run.options.of_experiment, _is_the_papers(run)
    columns = tuple(_columns(run.options))
    centres = {column.name: _centre(run, column.name) for column in columns if column.name.startswith(PREFIX)}
    cells = {}
    for method in run.options.chosen:
        for column in columns:
            ours = measured.get((method.name, column.name), Estimate(None, note="not measured"))
            if ours.value is None and column.scorer and column.scorer not in run.document.get("models", {}):
                ours = Estimate(None, note=f"no scorer {column.scorer}")
            published = method.published.get(column.name) if is_the_papers else None
            cells[method.name, column.name] = Cell(ours, published, centres.get(column.name))
    tested = run.options.chosen if run.options.experiment == "translation" else ()
    reference = next((each.label for each in tested if each.name == experiment.reference), "")
    return ResultTable(experiment.title, _about(run), reference, experiment.spread, run.options.chosen, columns, cells)


def _about(run: RunFiles) -> str:
    """Say what a run's numbers are of."""
    sizes = ((name, *pair) for name, pair in _sizes(run.options).items() if pair != (1, 1))
    size = ", ".join(f"{ours:,} of {paper:,} {name}" for name, ours, paper in sizes)
    models = (
        f"{role} {str(model)[:80]}{_stands_in(run, role)}" for role, model in run.document.get("models", {}).items()
    )
    commit = str(run.document.get("commit") or "unknown")[:12]
    return "; ".join([f"{size} of the paper's", *models, f"version {commit}"])


def _sizes(options: ExperimentOptions) -> dict[str, tuple[int, int]]:
    """Return how many there are of what the paper's size has, beside the paper's number."""
    paper = ExperimentOptions.of(options.experiment)
    return {
        "prompts": (sum(options.prompts), sum(paper.prompts)),
        "seeds": (len(options.seeds), len(paper.seeds)),
        "chains a prompt": (options.chains, paper.chains),
        "steps": (options.steps, paper.steps),
        "kept states a chain": (options.keep, paper.keep),
    }


def _is_the_papers(run: RunFiles) -> bool:
    """Say whether a run has the paper's size, and the paper's model in each role that has one."""
    models = run.document.get("models", {})
    is_of_its_size = all(ours == paper for ours, paper in _sizes(run.options).values())
    return bool(models) and is_of_its_size and not any(_stands_in(run, role) for role in models)


def _stands_in(run: RunFiles, role: str) -> str:
    """Return for whom a role's model stands in; empty where it is the paper's."""
    settings = {setting.name: str(setting.value) for setting in run.options.of_experiment.settings}
    wanted, named = settings.get(role, ""), str(run.document["models"][role])
    return f" (stands in for {wanted})" if wanted.lower() not in named.lower() else ""


def _columns(options: ExperimentOptions) -> Iterator[Column]:
    columns = options.of_experiment.columns
    for direction in options.directions:
        for column in columns:
            ending = [direction.name] if direction.name else []
            name, label = "_".join([column.name, *ending]), " ".join([column.label, *ending])
            yield Column(name, label, column.higher_is_better, column.digits, column.scorer)
    for asked in options.of_experiment.compared if options.matches else ():
        if (name := PREFIX + asked.name) not in {column.name for column in columns}:
            yield Column(name, f"BT {asked.name}", higher_is_better=True, digits=3)


def _centre(run: RunFiles, name: str) -> float:
    """Return the mean of a published column over all methods that the paper has, whichever ran."""
    methods = run.options.of_experiment.methods
    published = [method.published[name].value for method in methods if name in method.published]
    return sum(published) / len(published) if published else 0.0


def _csv_rows(table: ResultTable) -> Iterator[list[str]]:
    for method in table.methods:
        for column in table.columns:
            cell = table.cells[method.name, column.name]
            ours, paper = cell.ours, cell.paper
            printed = (paper.value, paper.spread) if paper else (None, None)
            value, spread, centred = map(_written, (*printed, None if cell.centre is None else cell.compared))
            numbers = map(_written, (ours.value, ours.spread, ours.low, ours.high))
            yield [
                method.name, method.label, column.name, *numbers, str(ours.count), ours.mark, ours.note,
                value, spread, paper.mark if paper else "", centred, method.inexact,
            ]  # fmt: skip


def _markdown(table: ResultTable) -> Iterator[str]:
    yield f"# {table.title}: {table.about}"
    yield ""
    yield f"{_key(table)}. An empty cell was not measured."
    yield ""
    yield "| method | " + " | ".join(map(_headed, table.columns)) + " |"
    yield "|---|" + "---|" * len(table.columns)
    for method in table.methods:
        cells = [_marked(table, method, column, "**{}**", "*{}*") for column in table.columns]
        yield f"| {method.label} | " + " | ".join(cells) + " |"
    if notes := [f"- {note}" for note in _notes(table)]:
        yield from ("", *notes)


def _latex(table: ResultTable) -> Iterator[str]:
    yield f"% {table.title}: {table.about}"
    yield f"% {_key(table)}"
    yield rf"\begin{{tabular}}{{@{{}}l{'c' * len(table.columns)}@{{}}}}"
    yield r"\toprule"
    yield "Method & " + " & ".join(as_tex(_headed(column)) for column in table.columns) + r" \\"
    yield r"\midrule"
    for method in table.methods:
        cells = [
            _marked(table, method, column, r"\textbf{{{}}}", r"\underline{{{}}}", as_tex) for column in table.columns
        ]
        yield " & ".join([as_tex(method.label), *cells]) + r" \\"
    yield r"\bottomrule"
    yield r"\end{tabular}"


def _key(table: ResultTable) -> str:
    """Say how a cell is to be read."""
    spread = f" ± {table.spread}" if table.spread else ""
    return f"Ours{spread} [95 % interval]" + ("; in brackets the paper's" if table.has_the_papers else "")


def _headed(column: Column) -> str:
    return f"{column.label} {'↑' if column.higher_is_better else '↓'}"


def _shown(cell: Cell, digits: int) -> str:
    """Write a cell for a reader: 0.812 ± 0.030 [0.801, 0.823] (0.817 ± 0.037)."""

    def number(value: float) -> str:
        text = f"{value:.{digits}f}"
        return text if float(text) else text.removeprefix("-")

    def behind(spread: float | None) -> str:
        return "" if spread is None else f" ± {number(spread)}"

    ours, parts = cell.ours, []
    if ours.value is not None:
        parts.append(number(ours.value) + ours.mark + behind(ours.spread))
        if ours.low is not None and ours.high is not None:
            parts.append(f"[{number(ours.low)}, {number(ours.high)}]")
    if cell.paper is not None and cell.compared is not None:
        parts.append(f"({number(cell.compared)}{cell.paper.mark}{behind(cell.paper.spread)})")
    return " ".join(parts)


def _marked(
    table: ResultTable,
    method: ExperimentMethod,
    column: Column,
    best: str,
    second: str,
    written: Callable[[str], str] = str,
) -> str:
    """Write a cell, within the mark of the best or the second best of its column where it is one of them."""
    cell = table.cells[method.name, column.name]
    text = written(_shown(cell, column.digits))
    for rank, mark in enumerate((best, second)):
        if table.is_among_best(cell, column, rank):
            return mark.format(text)
    return text


def _notes(table: ResultTable) -> Iterator[str]:
    if any(column.name.startswith(PREFIX) for column in table.columns):
        yield "Bradley-Terry strengths are natural log-odds of mean 0; the paper's are shown with their mean taken off."
    if table.reference and len(table.methods) > 1:
        most = {column.label: max(cell.ours.count for cell in table.of_column(column)) for column in table.columns}
        few = ", ".join(label for label, count in most.items() if 0 < count < MIN_CLUSTERS)
        if is_tested := max(most.values()) >= MIN_CLUSTERS:
            # Where all are worse, there is no mark either.
            better = f"{BETTER} is significantly better than {table.reference}"
            yield f"{better}, {NOT_DIFFERENT} not different, no mark worse."
        if few or not is_tested:
            where = f" in {few}" if is_tested else ""
            yield f"No method is tested against {table.reference}{where}: that takes {MIN_CLUSTERS} sentences."
    for method in table.methods:
        if method.inexact:
            yield f"{method.label}: {method.inexact}."
    empty: dict[str, list[str]] = {}
    for method in table.methods:
        for column in table.columns:
            if note := table.cells[method.name, column.name].ours.note:
                empty.setdefault(f"{column.label}: {note}", []).append(method.label)
    for note, methods in empty.items():
        yield f"{note} ({', '.join(methods)})."


_TEX = {
    "±": r"$\pm$", "†": r"$^{\dagger}$", "‡": r"$^{\ddagger}$", "↑": r"$\uparrow$", "↓": r"$\downarrow$",
    "β": r"$\beta$", "\N{MINUS SIGN}": r"$-$", "&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}",
}  # fmt: skip


def as_tex(text: str) -> str:
    """Write a text for LaTeX."""
    # A hyphen of a word is one; a minus stands before a digit.
    return "".join(_TEX.get(char, char) for char in re.sub(r"-(?=\d)", "\N{MINUS SIGN}", text))


def _written(number: float | None) -> str:
    return "" if number is None else repr(number)


def _titled(draw: Drawing, run: RunFiles, table: ResultTable) -> Callable[[Any], None]:
    """Return what draws a figure below the line that says what its numbers are of."""

    def drawn(figure: Any) -> None:
        draw(figure, run, table)
        figure.suptitle(table.about, fontsize=5, wrap=True)

    return drawn


def _dot_rows(run: RunFiles, table: ResultTable) -> Rows:
    """Yield method, column, our number with its interval, and the paper's on the same scale."""
    yield "method", "column", "ours", "low", "high", "paper"
    for column in _measured(table):
        for method, cell in zip(table.methods, table.of_column(column), strict=True):
            numbers = (cell.ours.value, cell.ours.low, cell.ours.high, cell.compared)
            yield method.name, column.name, *map(_written, numbers)


def _draw_dots(figure: Any, run: RunFiles, table: ResultTable) -> None:
    """Draw each column that we have a number for as a panel."""
    drawn = _measured(table)
    across = min(_PANELS_IN_A_ROW, len(drawn))
    down = -(-len(drawn) // across)
    figure.set_size_inches(1.4 + 1.9 * across, down * (0.9 + 0.24 * len(table.methods)) + 0.3)
    rings = "; rings: the paper" if table.has_the_papers else ""
    has_interval = any(cell.ours.low is not None for cell in table.cells.values())
    intervals = ", with 95 % intervals" if has_interval else ""
    figure.supxlabel(f"dots: this run{intervals}{rings}", fontsize=8)
    panels = figure.subplots(down, across, sharey=True, squeeze=False)
    for axes in panels.flat[len(drawn) :]:
        axes.set_axis_off()
    for axes, column in zip(panels.flat, drawn, strict=False):
        for index, cell in enumerate(table.of_column(column)):
            _draw_cell(axes, index, cell)
        axes.set_title(_headed(column))
        axes.set_yticks(range(len(table.methods)), [method.label for method in table.methods])
        axes.set_ylim(len(table.methods) - 0.5, -0.5)
        axes.grid(axis="x", color="0.9", linewidth=0.6)
        axes.set_axisbelow(True)


def _draw_cell(axes: Any, index: int, cell: Cell) -> None:
    ours, colour = cell.ours, COLOURS[index % len(COLOURS)]
    if ours.value is not None:
        if ours.low is not None and ours.high is not None:
            axes.plot([ours.low, ours.high], [index, index], color=colour, linewidth=1.4)
        axes.plot([ours.value], [index], marker="o", color=colour, markersize=4)
    if cell.compared is not None:
        ring = {"markerfacecolor": "none", "markeredgecolor": "0.4", "markersize": 6}
        axes.plot([cell.compared], [index], marker="o", linestyle="none", **ring)


def _measured(table: ResultTable) -> list[Column]:
    return [column for column in table.columns if any(cell.ours.value is not None for cell in table.of_column(column))]


def _radar_rows(run: RunFiles, table: ResultTable) -> Rows:
    """Yield method, column, value and value on the scale from the lowest method (0) to the highest (1)."""
    yield "method", "column", "value", "normalised"
    for column in (column for panel in _radar_panels(run, table).values() for column in panel):
        for method, (value, scaled) in _normalised(table, column).items():
            yield method, column.name, repr(value), repr(scaled)


def _draw_radar(figure: Any, run: RunFiles, table: ResultTable) -> None:
    """Draw two radars side by side, normalised across methods for showing only (L641-651).

    A panel without a number stays empty.
    """
    figure.set_size_inches(7.2, 4.0)
    panels = figure.subplots(1, 2, subplot_kw={"projection": "polar"})
    for axes, (title, columns) in zip(panels, _radar_panels(run, table).items(), strict=True):
        angles = np.linspace(0, 2 * np.pi, len(columns), endpoint=False)
        axes.set_title(title)
        axes.set_theta_offset(np.pi / 2)
        axes.set_xticks(angles, [column.label.removeprefix("BT ").capitalize() for column in columns])
        axes.set_ylim(0, 1.05)
        axes.set_yticks([0.5, 1.0], ["", ""])
        scaled = [_normalised(table, column) for column in columns]
        for number, method in enumerate(table.methods):
            if all(method.name in each for each in scaled):
                values = [each[method.name][1] for each in scaled]
                style = {"color": COLOURS[number % len(COLOURS)], "marker": "o", "markersize": 3}
                axes.plot([*angles, angles[0]], [*values, values[0]], label=method.label, **style)
    legends = [axes.get_legend_handles_labels() for axes in panels]
    figure.legend(*max(legends, key=lambda legend: len(legend[0])), loc="outside lower center", ncols=3)


def _radar_panels(run: RunFiles, table: ResultTable) -> dict[str, list[Column]]:
    columns = {column.name: column for column in table.columns}
    names = [asked.name for asked in run.options.of_experiment.compared]
    panels = {"Pointwise scores": names, "Bradley-Terry strengths": [PREFIX + name for name in names]}
    return {title: [columns[name] for name in wanted] for title, wanted in panels.items()}


def _normalised(table: ResultTable, column: Column) -> dict[str, tuple[float, float]]:
    """Return value and place between the lowest and the highest by method; all at 1 where they do not differ."""
    found = (
        (method.name, cell.ours.value) for method, cell in zip(table.methods, table.of_column(column), strict=True)
    )
    values = {name: value for name, value in found if value is not None}
    low, high = min(values.values(), default=0.0), max(values.values(), default=0.0)
    return {name: (value, (value - low) / (high - low) if high > low else 1.0) for name, value in values.items()}


Steps = Callable[[ExperimentOptions], tuple[int, ...]]


def _trajectory_rows(steps_of: Steps, run: RunFiles, table: ResultTable) -> Rows:
    """Yield step, method and the picture's path in the run's folder, of those that are there."""
    yield "step", "method", "image"
    for step in steps_of(run.options):
        for method in table.methods:
            if (path := _picture(run, method, step)).exists():
                yield step, method.name, path.relative_to(run.folder).as_posix()


def _draw_trajectories(steps_of: Steps, figure: Any, run: RunFiles, table: ResultTable) -> None:
    """Draw the pictures of the first seed, a column for each method and a row for each step (L682, L1425-1436).

    A picture that is missing leaves its place empty.
    """
    steps = steps_of(run.options)
    figure.set_size_inches(1.3 * len(table.methods) + 0.6, 1.3 * len(steps) + 0.7)
    panels = figure.subplots(len(steps), len(table.methods), squeeze=False)
    images = analysis_library("matplotlib.image")
    for row, step in zip(panels, steps, strict=True):
        row[0].set_ylabel(f"{step:,}")
        for axes, method in zip(row, table.methods, strict=True):
            axes.set_xticks([])
            axes.set_yticks([])
            for spine in axes.spines.values():
                spine.set_visible(False)
            if (path := _picture(run, method, step)).exists():
                axes.imshow(images.imread(path), interpolation="none")
    for axes, method in zip(panels[0], table.methods, strict=True):
        axes.set_title(method.label)


def _picture(run: RunFiles, method: ExperimentMethod, step: int) -> Path:
    return run.folder / outputs.IMAGES / outputs.image_name(method.name, run.options.seeds[0], step)


_DOTS = ("measures", _dot_rows, _draw_dots)
DRAWINGS: dict[str, tuple[tuple[str, Callable[[RunFiles, ResultTable], Rows], Drawing], ...]] = {
    "stories": (("radar", _radar_rows, _draw_radar),),
    "images": (
        ("selected", partial(_trajectory_rows, selected_steps), partial(_draw_trajectories, selected_steps)),
        ("trajectories", partial(_trajectory_rows, shown_steps), partial(_draw_trajectories, shown_steps)),
        _DOTS,
    ),
    "molecules": (_DOTS,),
    "translation": (_DOTS,),
}
"""By experiment: each figure's name, the numbers behind it, and how it is drawn."""

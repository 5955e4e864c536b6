"""Tables and figures of a run, made from its folder alone: the same bytes for the same files."""

from __future__ import annotations

from pathlib import Path

from sampler.commands.report.figures import write_figures
from sampler.commands.report.metrics import EXTRAS, MEASURES
from sampler.commands.report.run_files import RunFiles
from sampler.commands.report.strengths import strength_cells
from sampler.commands.report.table import made_table, write_extra, write_tables


def write_report(folder: Path) -> list[Path]:
    """Write table.{csv,md,tex} and figures/ of a run, and return their paths. What is not there yet stays empty.

    Raises:
        OutputError: settings.json or a table of the run is missing or malformed.
        RecordError: a record cannot be read.
        MissingExtra: a library of the extra [analysis] is not installed.
    """
    run = RunFiles(folder)
    table = made_table(run, {**MEASURES[run.options.experiment](run), **strength_cells(run)})
    written = [*write_tables(table, folder), *write_figures(run, table)]
    if run.options.experiment in EXTRAS:
        name, measure = EXTRAS[run.options.experiment]
        written.append(write_extra(measure(run), folder / name))
    return written

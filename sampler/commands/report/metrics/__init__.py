"""What each experiment's table holds, a file for each; a new one is written here and added to `MEASURES`."""

from __future__ import annotations

from collections.abc import Callable

from sampler.commands.report.estimates import Estimate
from sampler.commands.report.metrics import images, molecules, stories, translation
from sampler.commands.report.run_files import RunFiles

Cells = dict[tuple[str, str], Estimate]
"""By method and column; a column of an experiment with directions is COLUMN_DIRECTION."""

MEASURES: dict[str, Callable[[RunFiles], Cells]] = {
    "stories": stories.measure,
    "images": images.measure,
    "molecules": molecules.measure,
    "translation": translation.measure,
}
EXTRAS: dict[str, tuple[str, Callable[[RunFiles], Cells]]] = {"translation": ("corpus.csv", translation.corpus_scores)}
"""Numbers that the paper's tables do not have, by experiment: a file beside the table, and what it holds."""

"""The files of a run's folder: their names, their columns, and how cells are written and read.

    settings.json
    records/METHOD[-DIRECTION]-sSEED.zip    the ordinary exports
    images/METHOD-sSEED/step-000300.png     images only: what was decoded at the steps that figures show
    evaluation/pairs.csv votes.csv scores.csv
    calls.csv
    table.csv table.md table.tex, figures/  what the report makes of all this

The application writes the tables through `Table.row`, a row at a time; `read_table` reads them.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from sampler.record.columns import FLAG, NUMBER, TEXT, WHOLE, WORD, Kind
from sampler.record.tables import Column, Row, Table

SETTINGS = "settings.json"
RECORDS, EVALUATION, FIGURES, IMAGES = "records", "evaluation", "figures", "images"


def _column(name: str, kind: Kind) -> Column:
    return Column(name, kind, "")


PAIRS = Table(
    "pairs",
    "",
    (
        _column("pair", WORD),
        _column("direction", WORD),
        _column("seed", WHOLE),
        _column("prompt", WHOLE),
        _column("match", WHOLE),
        _column("one", WORD),
        _column("one_chain", WHOLE),
        _column("one_step", WHOLE),
        _column("other", WORD),
        _column("other_chain", WHOLE),
        _column("other_step", WHOLE),
    ),
)
"""A row for each match, all of them before the first vote. `pair` is `Match.key`; `one` and `other` are methods; a step
is the one after which the state stood in the chain's record."""
VOTES = Table(
    "votes",
    "",
    (
        _column("pair", WORD),
        _column("property", WORD),
        _column("one_first", FLAG),
        _column("number", WHOLE),
        _column("chose_one", FLAG),
        _column("voter", TEXT),
        _column("asks", WHOLE),
    ),
)
"""A row for each vote of the tournament; the first four columns are its key, and no two rows share it. `number` counts
the votes of a slot from 0; `voter` is an endpoint's name, or a person's number; `asks` is how many replies it took
until one could be read."""
SCORES = Table(
    "scores",
    "",
    (
        _column("method", WORD),
        _column("direction", WORD),
        _column("seed", WHOLE),
        _column("chain", WHOLE),
        _column("step", WHOLE),
        _column("name", WORD),
        _column("value", NUMBER),
        _column("source", TEXT),
        _column("asks", WHOLE),
    ),
)
"""A row for each number that a kept state was given; the first six columns are its key. `name` is what was asked (of
`Experiment.rated`: the rating as it was given, or 1 and 0 for yes and no) or a scorer's role (of `Experiment.scorers`);
`source` is the endpoint's or scorer's name; `asks` is empty for a scorer."""
CALLS = Table(
    "calls",
    "",
    (
        _column("stage", WORD),
        _column("method", WORD),
        _column("role", WORD),
        _column("endpoint", TEXT),
        _column("planned", WHOLE),
        _column("requests", WHOLE),
        _column("repeated", WHOLE),
        _column("unparsable", WHOLE),
        _column("tokens", WHOLE),
        _column("seconds", NUMBER),
        _column("cost", NUMBER),
    ),
)
"""What asking models and scorers took: `stage` is "run", "evaluate" or "score"; a tournament's request counts for the
method that was shown first. `planned` is the sum of `planned_sums`, of stage "score" of `planned_scores`, whose
requests are objects; `requests` are those that were answered and counted, `repeated` those whose reply was lost when a
run was killed and that were asked again; `tokens` are those sent and received; `cost` is empty where no price is
known."""

EVALUATION_TABLES = (PAIRS, VOTES, SCORES)
SCORE_KEY = ("method", "direction", "seed", "chain", "step", "name")
VOTE_KEY = ("pair", "property", "one_first", "number")


class OutputError(ValueError):
    """A file of a run's folder is missing or malformed; the message names it."""


def record_name(method: str, direction: str, seed: int) -> str:
    """Return the name of a campaign's record in the folder `records`."""
    middle = f"-{direction}" if direction else ""
    return f"{method}{middle}-s{seed}.zip"


def image_name(method: str, seed: int, step: int) -> str:
    """Return the path of a decoded image below the folder `images`."""
    return f"{method}-s{seed}/step-{step:06}.png"


def read_table(folder: Path, table: Table) -> Iterator[Row]:
    """Yield the rows of a table of a run, texts without their protecting apostrophe; none where there is no file.

    A last row that was cut off when a run was killed is left out: its line does not end.

    Raises:
        OutputError: the header is another one, or a row is malformed.
    """
    path = table_path(folder, table)
    if not path.exists():
        return
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(_whole_lines(file))
        header = next(rows, None)
        if header != table.header:
            raise OutputError(f"{path} must have the columns {', '.join(map(str, table.header))}, not {header}")
        for line, cells in enumerate(rows, start=2):
            if len(cells) != len(header):
                raise OutputError(f"{path}: row {line} has {len(cells)} cells, not {len(header)}")
            row = dict(zip(header, cells, strict=True))
            table.unescape(row)
            yield row


def table_path(folder: Path, table: Table) -> Path:
    """Return where a table of a run stands: the evaluation's in a folder of their own."""
    return folder / (Path(EVALUATION) / table.file if table in EVALUATION_TABLES else table.file)


def _whole_lines(file: Iterator[str]) -> Iterator[str]:
    for line in file:
        if line.endswith("\n"):
            yield line

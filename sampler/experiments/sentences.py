"""The sentences of the translation experiment: a file of tab-separated values, one sentence a line.

The first line names the columns: `direction` (de-en or en-de), `source`, and, if there are references, `reference`.
Cells are taken as they stand: quotation marks mean nothing, so that the lines of a test set need no quoting. Sentences
of our own, for `--scale laptop`, stand in `sampler/data/translation_sentences.tsv`.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources

from sampler.experiments.options import OptionError
from sampler.experiments.outputs import ExperimentInput
from sampler.experiments.settings import EXPERIMENTS

Sentences = dict[str, list[ExperimentInput]]
"""By direction, in the order of the file."""

LONGEST_SENTENCE = 3_500
"""In characters: with the words of the request, a prompt holds 4,000."""
_COLUMNS = ("direction", "source", "reference")
_OWN_FILE = "translation_sentences.tsv"


def own_sentences() -> Sentences:
    """Return the sentences that this package has, six in each direction, written for it."""
    content = (resources.files("sampler") / "data" / _OWN_FILE).read_bytes()
    return read_sentences(content, _OWN_FILE)


def read_sentences(content: bytes, name: str) -> Sentences:
    """Read such a file.

    Args:
        name: of the file, for messages.

    Raises:
        OptionError: it cannot be read; the message names the line and the column.
    """
    found: Sentences = {direction.name: [] for direction in EXPERIMENTS["translation"].directions}
    seen: dict[tuple[str, str], int] = {}
    for line, row in _rows(content, name):
        direction, source, reference = row["direction"], row["source"], row.get("reference", "")
        if direction not in found:
            raise _wrong(name, line, "direction", f"must be {' or '.join(found)}, not {direction[:40]!r}")
        if not source:
            raise _wrong(name, line, "source", "must not be empty")
        if len(source) > LONGEST_SENTENCE:
            raise _wrong(name, line, "source", f"has {len(source):,} characters; {LONGEST_SENTENCE:,} are possible")
        if (before := seen.setdefault((direction, source), line)) != line:
            raise _wrong(name, line, "source", f"is that of line {before}; each sentence may be there once")
        # Means would mix up sentences with a reference and sentences without.
        if found[direction] and bool(found[direction][0].reference) != bool(reference):
            what = f"must be there for all sentences of {direction} or for none; it differs from the first one"
            raise _wrong(name, line, "reference", what)
        found[direction].append(ExperimentInput(source, reference))
    for direction, sentences in found.items():
        if not sentences:
            raise OptionError("--data", f"must hold a sentence of direction {direction} at least; {name} has none")
    return found


def _rows(content: bytes, name: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the number and the cells of each line that is not empty."""
    try:
        # Sheets may put a mark of the byte order in front.
        lines = content.decode("utf-8-sig").replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise OptionError("--data", f"must be UTF-8; line {line} of {name} is not") from error
    cells = [[cell.strip() for cell in line.split("\t")] for line in lines]
    header = [each.lower() for each in cells[0]]
    if missing := [column for column in _COLUMNS[:2] if column not in header]:
        raise _wrong(name, 1, missing[0], "is missing: the first line names the columns, with a tab between")
    for place, column in enumerate(header):
        if column not in _COLUMNS or column in header[:place]:
            raise _wrong(name, 1, column[:40] or str(place + 1), f"must be one of {', '.join(_COLUMNS)}, each once")
    for line, row in enumerate(cells[1:], start=2):
        if row == [""]:
            continue
        if len(row) != len(header):
            raise OptionError("--data", f"has {len(row)} cells in line {line} of {name}, not {len(header)}")
        yield line, dict(zip(header, row, strict=True))


def _wrong(name: str, line: int, column: str, what: str) -> OptionError:
    return OptionError("--data", f"cannot be used: line {line}, column {column} of {name} {what}")

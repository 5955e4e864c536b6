"""The files of a run's folder: their names and columns, how they are written and read, and settings.json.

    settings.json
    records/METHOD[-DIRECTION]-sSEED.zip    the ordinary exports
    images/METHOD-sSEED/step-000300.png     images only: what was decoded at the steps that figures show
    evaluation/pairs.csv votes.csv scores.csv
    calls.csv
    table.csv table.md table.tex, figures/  what the report makes of all this

Each file is written whole or not at all.

The sentences of the translation experiment: a file of tab-separated values, one sentence a line.

The first line names the columns: `direction` (de-en or en-de), `source`, and, if there are references, `reference`.
Cells are taken as they stand: quotation marks mean nothing, so that the lines of a test set need no quoting. Sentences
of our own, for `--scale laptop`, stand in `sampler/data/translation_sentences.tsv`.

How figures are written: as SVG and PNG with the numbers behind them as CSV, the same bytes for the same numbers."""

from __future__ import annotations

import csv
import importlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any

from sampler.experiments.options import EXPERIMENTS, ExperimentOptions, OptionError, StateKey, TournamentMatch
from sampler.judges import PRESETS
from sampler.record.record import RecordError
from sampler.record.tables import Row, escaped, unescaped

Document = dict[str, Any]
SETTINGS = "settings.json"
RECORDS, FIGURES, IMAGES = "records", "figures", "images"
VERSION = 1
_MAY_DIFFER = "commit"
"""A run may be resumed by a later commit, which changes no setting."""

PAIRS = "evaluation/pairs.csv"
"""A row for each match, all of them before the first vote. `pair` is `TournamentMatch.key`; a step is the one after
which the state stood in the chain's record."""
VOTES = "evaluation/votes.csv"
"""A row for each vote of the tournament; the first four columns are its key, and no two rows share it. `number` counts
the votes of a slot from 0; `voter` is an endpoint's name; `attempts` is how many replies it took until one could be
read."""
SCORES = "evaluation/scores.csv"
"""A row for each number that a kept state was given; the first six columns are its key. `name` is what was asked (of
`Experiment.rated`: the rating as it was given, or 1 and 0 for yes and no) or a scorer's role (of `Experiment.scorers`);
`source` is the endpoint's or scorer's name; `attempts` is empty for a scorer."""
CALLS = "calls.csv"
"""What asking models and scorers took: `stage` is "run", "evaluate" or "score"; a tournament's request counts for the
method that was shown first. `planned` is the sum of `planned_sums`, of stage "score" of `planned_scores`, whose
requests are objects; `requests` are those that were answered and counted, `repeated` those whose reply was lost when a
run was killed and that were asked again; `tokens` are those sent and received; `cost` is empty where no price is
known."""
COLUMNS: Mapping[str, tuple[str, ...]] = {
    PAIRS: (
        "pair", "direction", "seed", "prompt", "match", "one", "one_chain", "one_step", "other", "other_chain",
        "other_step",
    ),
    VOTES: ("pair", "property", "one_first", "number", "chose_one", "voter", "attempts"),
    SCORES: (*StateKey._fields, "name", "value", "source", "attempts"),
    CALLS: (
        "stage", "method", "role", "endpoint", "planned", "requests", "repeated", "unparsable", "tokens", "seconds",
        "cost",
    ),
}  # fmt: skip
SCORE_KEY, VOTE_KEY = COLUMNS[SCORES][:6], COLUMNS[VOTES][:4]


class OutputError(RecordError):
    """A file of a run's folder is missing or malformed; the message names it."""


@dataclass(frozen=True)
class ExperimentInput:
    """One prompt of a direction, and the reference that metrics compare with; empty where there is none."""

    prompt: str
    reference: str = ""


def record_name(method: str, direction: str, seed: int) -> str:
    """Return the name of a campaign's record in the folder `records`."""
    middle = f"-{direction}" if direction else ""
    return f"{method}{middle}-s{seed}.zip"


def image_name(method: str, seed: int, step: int) -> str:
    """Return the path of a decoded image below the folder `images`."""
    return f"{method}-s{seed}/step-{step:06}.png"


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Yield where to write a file that takes its place only once it is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part")
    yield unfinished
    unfinished.replace(path)


def write_table(folder: Path, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a table of a run; texts get the apostrophe that protects from spreadsheets.

    Args:
        rows: a value of each column; None for an empty cell.

    Raises:
        ValueError: a row has another column.
    """
    with replaced(folder / table) as unfinished, unfinished.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS[table])
        writer.writeheader()
        writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)


def read_table(folder: Path, table: str) -> Iterator[Row]:
    """Yield the rows of a table of a run; none where there is no file.

    Raises:
        OutputError: the header is another one, or a row is malformed.
    """
    path = folder / table
    if not path.exists():
        return
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        if tuple(next(rows, ())) != COLUMNS[table]:
            raise OutputError(f"{path} must have the columns {', '.join(COLUMNS[table])}")
        for line, cells in enumerate(rows, start=2):
            if len(cells) != len(COLUMNS[table]):
                raise OutputError(f"{path}: row {line} has {len(cells)} cells, not {len(COLUMNS[table])}")
            yield dict(zip(COLUMNS[table], map(unescaped, cells), strict=True))


def pair_row(match: TournamentMatch) -> dict[str, Any]:
    """Return the row of pairs.csv."""
    one, other = match.one, match.other
    return {
        "pair": match.key, "direction": one.direction, "seed": one.seed, "prompt": match.prompt, "match": match.number,
        "one": one.method, "one_chain": one.chain, "one_step": one.step,
        "other": other.method, "other_chain": other.chain, "other_step": other.step,
    }  # fmt: skip


def settings_document(
    options: ExperimentOptions,
    *,
    inputs: Mapping[str, Sequence[ExperimentInput]] | None = None,
    models: Mapping[str, str] | None = None,
    hashes: Mapping[str, str] | None = None,
    commit: str = "",
) -> Document:
    """Return what settings.json holds: all that a run was made with, each value with its source.

    Numbers, texts, lists and objects only, the words of every prompt among them: a folder is to be understood without
    this program.

    Args:
        inputs: by direction; the report reads references from here.
        models: what answers for each role and scorer, by role, as its server or program names it.
        hashes: SHA-256 of the files that were given, by option.
        commit: of this project.
    """
    experiment = options.of_experiment
    judges = [asked for method in options.chosen for asked in method.judges]
    presets = sorted({asked.preset for asked in (*judges, *experiment.rated, *experiment.compared)} - {""})
    document = {
        "version": VERSION,
        "experiment": experiment.name,
        "title": experiment.title,
        "options": {name: value for name, value in asdict(options).items() if name != "experiment"},
        "settings": [asdict(each) for each in experiment.settings],
        "methods": [asdict(each) for each in options.chosen],
        "prompts": {name: PRESETS[name].template.model_dump(mode="json") for name in presets},
        "rated": [asdict(each) for each in experiment.rated],
        "compared": [asdict(each) for each in experiment.compared],
        "reference": experiment.reference,
        "inputs": {name: [asdict(each) for each in given] for name, given in (inputs or {}).items()},
        "models": dict(models or {}),
        "hashes": dict(hashes or {}),
        "commit": commit,
    }
    # Tuples become lists, as they do in the file, so that a document that was read equals one that was made.
    plain: Document = json.loads(json.dumps(document))
    return plain


def settings_text(document: Document) -> str:
    """Return the file's text: the same for the same document."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def settings_hash(document: Document) -> str:
    """Return the SHA-256 of all that has to be the same when a run is resumed, in hexadecimal."""
    compared = {name: value for name, value in document.items() if name != _MAY_DIFFER}
    return sha256(json.dumps(compared, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def changed_settings(stored: Document, wanted: Document) -> list[str]:
    """Say which settings of a folder differ from those that are wanted now, one sentence each; none where none do."""
    before, now = (dict(_leaves("", document)) for document in (stored, wanted))
    differ = (path for path in sorted(before | now) if path != _MAY_DIFFER and before.get(path) != now.get(path))
    return [f"{path} is {_shown(before, path)} in this folder, and {_shown(now, path)} now" for path in differ]


def options_of(document: Document) -> ExperimentOptions:
    """Return the options that a document was made of.

    Raises:
        OptionError: they do not fit together.
        KeyError, TypeError: it is no such document.
    """
    given: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in document["options"].items()
    }
    return ExperimentOptions(experiment=document["experiment"], **given)


def _cell(value: object) -> object:
    if isinstance(value, str):
        return escaped(value)
    return int(value) if isinstance(value, bool) else value


def _leaves(path: str, value: object) -> Iterator[tuple[str, object]]:
    """Yield the path and the value of each number and text; an entry of a list is called by its name if it has one."""
    if not isinstance(value, dict | list) or not value:
        yield path, value
        return
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in parts:
        name = part["name"] if isinstance(value, list) and isinstance(part, dict) and "name" in part else key
        yield from _leaves(f"{path}.{name}".lstrip("."), part)


def _shown(values: Mapping[str, object], path: str) -> str:
    if path not in values:
        return "not there"
    text = json.dumps(values[path], ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:79]}…"


Sentences = dict[str, list[ExperimentInput]]
"""By direction, in the order of the file."""

LONGEST_SENTENCE = 3_500
"""In characters: with the words of the request, a prompt holds 4,000."""
_SENTENCE_COLUMNS = ("direction", "source", "reference")
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
    for line, row in _sentence_rows(content, name):
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


def text_in(content: bytes, name: str) -> str:
    """Return the text of the file of --data.

    Raises:
        OptionError: it is not UTF-8; the message names the line.
    """
    try:
        # Sheets may put a mark of the byte order in front.
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise OptionError("--data", f"must be UTF-8; line {line} of {name} is not") from error


def _sentence_rows(content: bytes, name: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the number and the cells of each line that is not empty."""
    lines = text_in(content, name).replace("\r\n", "\n").split("\n")
    cells = [[cell.strip() for cell in line.split("\t")] for line in lines]
    header = [each.lower() for each in cells[0]]
    if missing := [column for column in _SENTENCE_COLUMNS[:2] if column not in header]:
        raise _wrong(name, 1, missing[0], "is missing: the first line names the columns, with a tab between")
    for index, column in enumerate(header):
        if column not in _SENTENCE_COLUMNS or column in header[:index]:
            raise _wrong(
                name, 1, column[:40] or str(index + 1), f"must be one of {', '.join(_SENTENCE_COLUMNS)}, each once"
            )
    for line, row in enumerate(cells[1:], start=2):
        if row == [""]:
            continue
        if len(row) != len(header):
            raise OptionError("--data", f"has {len(row)} cells in line {line} of {name}, not {len(header)}")
        yield line, dict(zip(header, row, strict=True))


def _wrong(name: str, line: int, column: str, what: str) -> OptionError:
    return OptionError("--data", f"cannot be used: line {line}, column {column} of {name} {what}")


Rows = Iterable[Sequence[object]]
"""The numbers behind a figure, a header first; no row beside it where there is nothing to draw."""
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's, which people with any colour vision tell apart."""
_STYLE: Mapping[str, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "savefig.dpi": 200,
    # Text stays text, so that it can be searched; names inside the file come from its content.
    "svg.fonttype": "none",
    "svg.hashsalt": "prefmh",
}


def write_csv(path: Path, rows: Rows) -> None:
    """Write rows as a table.

    Raises:
        OSError: the file cannot be written.
    """
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


def write_figure(folder: Path, name: str, rows: Rows, draw: Callable[[Any], None]) -> list[Path]:
    """Write one figure as CSV, SVG and PNG, and return the paths. Files hold no date and no random name.

    Args:
        draw: draws it on an empty figure of matplotlib.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.{ending}" for ending in ("csv", "svg", "png")]
    write_csv(paths[0], rows)
    with analysis_library("matplotlib").rc_context(dict(_STYLE)):
        # A figure of its own, not pyplot's: no window system is asked for and nothing global remembers it.
        figure = analysis_library("matplotlib.figure").Figure(layout="constrained")
        draw(figure)
        for path, metadata in zip(paths[1:], ({"Date": None, "Creator": None}, {"Software": None}), strict=True):
            figure.savefig(path, metadata=metadata)
    return paths


# Libraries of the optional extras [analysis] and [gpu] are imported only where they are used.

# The package is run from its checkout, and is in no registry.
_HOW = "uv run --extra {extra} python -m sampler ..., or pip install -e '.[{extra}]' in the checkout"


class MissingExtra(ImportError):  # noqa: N818 - what is missing is no error of the code
    """A library of an extra is not installed; the message says how to get it."""


def analysis_library(module: str) -> Any:
    """Return a module of the extra [analysis], for example "matplotlib".

    Raises:
        MissingExtra: the library is not installed.
    """
    return _library("analysis", module)


def torch_library() -> Any:
    """Return PyTorch, of the extra [gpu].

    Raises:
        MissingExtra: it is not installed.
    """
    return _library("gpu", "torch")


def _library(extra: str, module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        # A library that is there but lacks one of its own has another problem, and says so itself.
        if not f"{module}.".startswith(f"{error.name}."):
            raise
        library = module.partition(".")[0]
        message = f"{library} is not installed; it comes with the extra [{extra}]: {_HOW.format(extra=extra)}"
        raise MissingExtra(message, name=library) from error

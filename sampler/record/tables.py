"""One table of tables: each CSV file of the record and each of its columns, declared once.

A column says what it holds, what that means, whether it may be empty, and why a changed cell of it cannot be found, if
it cannot. From this come the header and the cells, codebook.csv, `python -m sampler tables`, what a reader takes and
refuses, and the API's pages. What of a file can be worked out again is checked by the function that `checks.CHECKS` has
for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sampler.record.cells import (
    FLAG,
    JSON,
    MEASURE,
    MOMENT,
    NUMBER,
    TEXT,
    WHOLE,
    WHOLES,
    WORD,
    Kind,
    unescaped,
)
from sampler.record.cells import Cell as Cell

Row = dict[str, str]
"""The cells of a row that was read, texts without their protecting apostrophe, by the columns' names."""

# Why a changed cell is not found.
TIME, DURATION = "a time", "a duration"
CLIENT = "what a browser told"
ALONE = "nothing else says it"


@dataclass(frozen=True)
class Column:
    """A column.

    Args:
        name: in the header.
        kind: what its cells hold.
        meaning: in words.
        values: the unit, or which values there are, where the kind does not say it.
        words: all that a cell may be, of a column of words.
        optional: whether a cell may be empty.
        excused: why nothing in the record shows that a cell was changed; empty where that is found.
    """

    name: str
    kind: Kind
    meaning: str
    values: str = ""
    words: tuple[str, ...] = ()
    optional: bool = False
    excused: str = ""

    @property
    def says(self) -> str:
        """The unit, or which values there are."""
        return self.values or ", ".join(self.words) or self.kind.values

    def problem(self, cell: str) -> str:
        """Return why a cell that was read cannot be one of the column; empty if it can."""
        if not cell:
            return "" if self.optional or self.kind is TEXT else f"“{self.name}” is empty"
        if (cell in self.words) if self.words else self.kind.allows(cell):
            return ""
        return f"“{self.name}” must be {self.says}, not “{cell[:60]}”"


@dataclass(frozen=True)
class Table:
    """A CSV file of the record, its columns in order.

    Args:
        name: of the file, without its ending.
        meaning: in words.
        columns: in their order.
        excused: why nothing in it is checked; empty where columns say it for themselves.
    """

    name: str
    meaning: str
    columns: tuple[Column, ...]
    excused: str = ""
    ending: str = "csv"

    @property
    def file(self) -> str:
        """The file's name."""
        return f"{self.name}.{self.ending}"

    @property
    def header(self) -> list[Cell]:
        """The first row."""
        return [column.name for column in self.columns]

    def row(self, **values: Any) -> list[Cell]:
        """Return the cells for a value of each column, in the columns' order.

        Raises:
            KeyError: a column has no value.
            TypeError: a value is of no column.
        """
        ordered = self.ordered(**values)
        return [column.kind.write(value) for column, value in zip(self.columns, ordered, strict=True)]

    def ordered(self, **values: Any) -> list[Any]:
        """Return what is given for each column as it is, in the columns' order: cells, or what will give the cells.

        Raises:
            KeyError: a column has no value.
            TypeError: a value is of no column.
        """
        if len(values) > len(self.columns):
            raise TypeError(f"{self.file} has no column {(values.keys() - set(self.header)).pop()}")
        return [values[column.name] for column in self.columns]

    def values(self, row: Iterable[Cell | None]) -> dict[str, Any]:
        """Return what a row says, by the columns' names, as JSON can say it: empty cells are null, or an empty text."""
        told: dict[str, Any] = {}
        for column, cell in zip(self.columns, row, strict=True):
            is_empty = cell is None or cell == ""
            nothing: Any = {TEXT: "", WHOLES: []}.get(column.kind)
            told[column.name] = nothing if is_empty else column.kind.read(str(cell))
        return told

    def unescape(self, row: Row) -> None:
        """Take the apostrophes from the texts of a row that was read, in place.

        Which `meta_*` columns states.csv has depends on the list, so that those of a row are found by their names.
        """
        for name, cell in row.items():
            if name in self._texts or name.startswith(META):
                row[name] = unescaped(cell)

    @property
    def _texts(self) -> set[str]:
        return {column.name for column in self.columns if column.kind is TEXT}

    def with_columns(self, columns: Iterable[Column]) -> Table:
        """Return the table with further columns."""
        return replace(self, columns=(*self.columns, *columns))

    def excuse(self, column: Column) -> str:
        """Return why a changed cell of a column is not found; empty where it is."""
        return self.excused or column.excused


def _whole(name: str, meaning: str, values: str = "from 0", **more: Any) -> Column:
    return Column(name, WHOLE, meaning, f"whole number, {values}", **more)


def _count(name: str, meaning: str, **more: Any) -> Column:
    return Column(name, WHOLE, meaning, "count", **more)


def _number(name: str, meaning: str, values: str = "", **more: Any) -> Column:
    return Column(name, NUMBER, meaning, values, **more)


def _flag(name: str, meaning: str, **more: Any) -> Column:
    return Column(name, FLAG, meaning, **more)


def _moment(name: str, meaning: str, **more: Any) -> Column:
    return Column(name, MOMENT, meaning, excused=TIME, **more)


def _word(name: str, meaning: str, *words: str, **more: Any) -> Column:
    return Column(name, WORD, meaning, words=words, **more)


def _text(name: str, meaning: str, values: str = "", **more: Any) -> Column:
    return Column(name, TEXT, meaning, values, **more)


def _milliseconds(name: str, meaning: str) -> Column:
    return Column(name, WHOLE, meaning, "milliseconds", optional=True, excused=DURATION)


FIRST, SECOND = "first", "second"
SIDES = (FIRST, SECOND)
_CHAIN = _whole("chain_index", "the chain")
_STEP = _whole("step", "the step of the chain", "from 1")
_STATE = _whole("state_index", "the object, as in states.csv")
_JUDGE = _whole("judge_index", "the judge: its index in campaign.json")
_VOTER = _whole("voter", "number of the voter: in the order in which people joined this campaign", "from 1")
_ENDPOINT = _text("endpoint", "name of the endpoint; empty for a person")
_SLOT = _whole("slot", "which of the N answers of a model this is; empty for a person", optional=True)
_ASKS = _count("asks", "replies that it took; empty for a person, or if unknown", optional=True, excused=ALONE)
_IDENTITY = _whole("identity", "which identity in judges.json the reply had", "from 1", optional=True)
_ELAPSED = _milliseconds("elapsed_ms", "time to answer; for people, from the moment both objects were visible")
_HIDDEN = _milliseconds("hidden_ms", "how much of elapsed_ms the page was in a hidden tab; empty if unknown")
_LEASE = _word(
    "lease", "the pair as a person was handed it; empty of a model", values="UUID", optional=True, excused=ALONE
)
_PROPOSAL_SIDE = _word("proposal_side", "where the proposal stood, in the order of the page or of the prompt", *SIDES)
_CHOSEN_SIDE = _word("chosen_side", "which of the two was chosen", *SIDES)

VOTES = Table(
    "votes",
    "a row for each vote, in the order in which votes counted",
    (
        _CHAIN,
        _STEP,
        _whole(
            "number",
            "position in its step; empty if it came after the verdict, and did not count",
            "from 1",
            optional=True,
        ),
        _JUDGE,
        _text("question", "the judge's question"),
        replace(_VOTER, optional=True, excused="nothing shows who voted"),
        _PROPOSAL_SIDE,
        _CHOSEN_SIDE,
        _flag("for_proposal", "1 if the vote is for the proposal, 0 if it is for the current object"),
        _whole("first_state", "the first of the two objects"),
        _whole("second_state", "the second of the two objects"),
        _whole("chosen_state", "the object that was chosen"),
        _ELAPSED,
        _moment("cast_at", "when the vote was cast"),
        _ENDPOINT,
        _SLOT,
        _number(
            "preference",
            "of a vote for the proposal, if the vote was drawn from it",
            "probability",
            optional=True,
            excused="where the same vote is drawn from it",
        ),
        _ASKS,
        _IDENTITY,
        _LEASE,
        _HIDDEN,
        _word(
            "layout", "how the two stood on the screen", "beside", "stacked", "changed", optional=True, excused=CLIENT
        ),
        _flag("translated", "whether the browser translated the words around the pair", optional=True, excused=CLIENT),
    ),
)
STEPS = Table(
    "steps",
    "a row for each step of each chain",
    (
        _CHAIN,
        _STEP,
        _whole("current_state", "the object at which the chain stood"),
        _whole("proposal_state", "the object that the step proposed"),
        _number("log_r0", "of the base ratio r0", "natural logarithm"),
        _number("uniform", "the random number U; empty while the step is open", "number on [0, 1)", optional=True),
        _word("verdict", "empty while the step is open", "accept", "reject", optional=True),
        _moment("opened_at", "when it opened"),
        _moment("decided_at", "when it had its verdict", optional=True),
        _whole("part_index", "which of several walk lengths the step drew; empty where it drew none", optional=True),
    ),
)
EVIDENCE = Table(
    "evidence",
    "what verdicts were computed from where models rate or scorers decide: a row for each step, and judge or scorer",
    (
        _CHAIN,
        _STEP,
        replace(_JUDGE, optional=True),
        _word("scorer", "the scorer, as in scorers.json", values="name", optional=True),
        _number("current_number", "mean rating, or score, of the current object"),
        _number("proposal_number", "mean rating, or score, of the proposal"),
    ),
)
STATES = Table(
    "states",
    "a row for each object",
    (
        _STATE,
        _whole("object_index", "the first state with the same content: count objects by it"),
        _number(
            "weight",
            "weight in p0, up to a constant factor; empty of an object that a chain made",
            "positive number",
            optional=True,
            excused="of an uploaded list, where nothing drawn depends on it",
        ),
        Column("neighbours", WHOLES, "the similar objects of an uploaded list", optional=True),
        _text(
            "content",
            "the text, the SMILES, or the name of the file",
            excused="of an uploaded list, unless a chain was there",
        ),
        _text("code", "the object in a form from which it can be restored exactly; empty for an uploaded list"),
    ),
)
META = "meta_"
"""In states.csv, what the columns begin with that are an uploaded list's own."""
COLUMNS = Table(
    "columns",
    "the further columns of an uploaded list: a row for each object and column",
    (
        _STATE,
        _text("column", "name of the column, in lower case"),
        _text("value", "the cell, without white space at its ends"),
    ),
)
SAMPLING = "sampling"
"""The phase whose samples are analysed; those of the others are left out."""
SAMPLES = Table(
    "samples",
    "the object of each chain after each step; step 0 is the start",
    (
        _CHAIN,
        _whole("step", "after which step; 0 is the start"),
        _STATE,
        _text("content", "the object, as in states.csv"),
        _word("phase", "what the sample is for: analyse sampling", "burn-in", "warm-up", "settling", SAMPLING),
    ),
)
RATINGS = Table(
    "ratings",
    "a row for each rating by a model",
    (
        _STATE,
        _JUDGE,
        replace(_SLOT, optional=False),
        Column("rating", WHOLE, "the rating, on the scale in campaign.json"),
        _ASKS,
        _ENDPOINT,
        _moment("rated_at", "when the rating was given"),
        _IDENTITY,
    ),
)
SCORES = Table(
    "scores",
    "a row for each object and scorer",
    (
        _STATE,
        _word("scorer", "as in scorers.json", values="name"),
        _number(
            "score",
            "empty if the scorer was asked and gave none",
            optional=True,
            excused="of a program that decides nothing",
        ),
    ),
)
REASONS = Table(
    "reasons",
    "what models thought before they voted, where that is kept",
    (
        _CHAIN,
        _STEP,
        _JUDGE,
        replace(_SLOT, optional=False),
        _text("reason", "what the model's server told of its thinking, the first 2,000 characters"),
        _flag("cut", "1 if there was more"),
    ),
    ALONE,
)
CALLS = Table(
    "calls",
    "what asking models took: a row for each judge, and one for texts that a model wrote",
    (
        replace(_JUDGE, optional=True),
        _count("requests", "requests sent"),
        _count("failed", "requests without a reply"),
        _count("unreadable", "replies that were neither label nor rating"),
        _count("unpriced", "answered requests whose price was not known"),
        Column("tokens_in", WHOLE, "as the server reported them", "tokens"),
        Column("tokens_out", WHOLE, "as the server reported them", "tokens"),
        _number("seconds", "of the answered requests, together", "seconds"),
        _number("cost", "at the prices of the moment", "currency of the endpoints' prices", optional=True),
    ),
    ALONE,
)
EVENTS = Table(
    "events",
    "what happened in the campaign beside its steps and votes, in the order of time",
    (
        _whole("number", "of the event", "from 1"),
        _moment("at", "when"),
        _word(
            "kind", "what was done; the kinds are in docs/record.md", values="word", excused="of most kinds, " + ALONE
        ),
        _word("by", "who did it, where a researcher did", "owner", "manager", "admin", optional=True, excused=ALONE),
        replace(_VOTER, optional=True, excused="of most kinds, " + ALONE),
        Column("data", JSON, "what the kind says", excused="of most kinds, " + ALONE),
    ),
)
"""Ended chains, extensions and openings in it are compared with the rest of the record."""
VOTERS = Table(
    "voters",
    "a row for each person whom a platform has sent",
    (
        _VOTER,
        _moment("joined_at", "when the person joined"),
        _moment("removed_at", "when access was withdrawn; empty if it was not", optional=True),
        _word("stage", "the page that the person has come to", values="word"),
        _word("outcome", "how their participation ended; empty while it goes on", values="word", optional=True),
        _moment("finished_at", "when it ended", optional=True),
        _number(
            "most_a_minute", "above this, a vote is fast; empty where nothing was set", "votes a minute", optional=True
        ),
        _count("fast_votes", "votes that were fast", optional=True),
    ),
    ALONE,
)
LEASES = Table(
    "leases",
    "a row for each pair that such a person was shown",
    (
        _VOTER,
        _CHAIN,
        _STEP,
        _JUDGE,
        _PROPOSAL_SIDE,
        _moment("issued_at", "when the pair was handed out"),
        _moment("ended_at", "when that ended; empty while the pair is open", optional=True),
        _word("ending", "how that ended", "voted", "skipped", "expired", "unasked", optional=True),
        replace(_LEASE, meaning="the pair, as in votes.csv; empty while it is open"),
        _HIDDEN,
    ),
    ALONE,
)
_OF_REPEAT = "of a repeat: the pair that was voted on"
CHECKS = Table(
    "checks",
    "a row for each trial between the pairs that is no vote",
    (
        _VOTER,
        _count("after_votes", "votes that the person had given"),
        _word("kind", "what kind of trial it is", "instructed", "gold", "repeat"),
        _whole("gold_index", "the gold pair, as in protocol.json", optional=True),
        _flag("swapped", "1 if the objects have changed places"),
        _word("expected_side", "the right answer; empty of a repeat", *SIDES, optional=True),
        replace(_CHOSEN_SIDE, meaning="empty without an answer; with answered_at, it was skipped", optional=True),
        _flag("passed", "whether the answer was right; empty without an answer", optional=True),
        _flag("agreed", "of a repeat: whether the same object was chosen as in the vote", optional=True),
        *(replace(column, meaning=_OF_REPEAT, optional=True, excused=ALONE) for column in (_CHAIN, _STEP, _JUDGE)),
        _ELAPSED,
        _moment("shown_at", "when it was shown"),
        _moment("answered_at", "when it was answered", optional=True),
    ),
)
PREFERENCES = Table(
    "preferences",
    "every vote as prompt, chosen and rejected, in the order of votes.csv; no line says who voted",
    (
        _text("prompt", "the question, below the shown columns that both objects have in common"),
        _text("chosen", "the chosen object: its text, its SMILES, or the name of its file"),
        _text("rejected", "the other object"),
        _text("chosen_context", "the shown columns of the chosen object that differ"),
        _text("rejected_context", "the shown columns of the other object that differ"),
        *(replace(column, meaning="as in votes.csv") for column in (_CHAIN, _STEP, _JUDGE, _LEASE, _SLOT)),
        _whole("number", "as in votes.csv; null of a vote that did not count", "from 1", optional=True),
    ),
    ALONE,
    "jsonl",
)
CODEBOOK = Table(
    "codebook",
    "this table",
    (
        _word("file", "the file of this archive", values="name"),
        _word("column", "its column; empty in the row that is about the whole file", values="name", optional=True),
        _word("values", "the unit, or which values there are", values="text"),
        _text("meaning", "what it says"),
    ),
    "it is declared in this program",
)
PROPERTIES = Table(
    "properties",
    "what was measured of each object; beside the record, not part of it",
    (_STATE, _text("content", "the object, as in states.csv")),
    "it can be measured again",
)

TABLES = (VOTES, STEPS, EVIDENCE, STATES, COLUMNS, SAMPLES, RATINGS, SCORES, REASONS, CALLS)
"""Of every record, in the order in which an archive has them."""
OF_PEOPLE = (VOTERS, LEASES, CHECKS)
"""Of a record whose people a platform has sent."""
CHECKED = (*TABLES[:8], EVENTS, CHECKS)
"""What a replay reads."""
CONFIG, JUDGES, TUNING = "campaign.json", "judges.json", "tuning.json"
SCORERS, PROTOCOL, MANIFEST = "scorers.json", "protocol.json", "manifest.json"
_OTHERS: dict[str, tuple[str, str]] = {
    CONFIG: ("JSON", "all that fixes the chains: space, kernel, judges, rule, chains, steps, seed and target"),
    "campaign.yaml": ("YAML", "the campaign as a file to import, without codes, addresses and answers of checks"),
    JUDGES: ("JSON", "what answered each question, as it was fixed at the start"),
    TUNING: ("JSON", "what the warm-up has found and chosen"),
    SCORERS: ("JSON", "what each scorer said of itself at the start"),
    PROTOCOL: ("JSON", "what shaped who voted and on what"),
    "pictures/": ("PNG or WebP", "pictures that were shown, by their objects' numbers in states.csv"),
    "recordings/": ("FLAC or MP3", "recordings that were compared, by their objects' numbers in states.csv"),
    MANIFEST: ("JSON", "each file of the archive by its SHA-256"),
}
EVERY = (*TABLES, EVENTS, *OF_PEOPLE, PREFERENCES, CODEBOOK)
"""All that an archive can have."""
_ENDINGS = {"csv": "CSV", "jsonl": "JSON lines"}
ABOUT = _OTHERS | {table.file: (_ENDINGS[table.ending], table.meaning) for table in EVERY}
"""Of each file: its form and its meaning."""


def meta_names(names: Iterable[str]) -> list[str]:
    """Return what the further columns of an uploaded list are called in states.csv, in their order.

    Whatever is no letter, digit or underscore becomes an underscore, so that programs can use the names as they are;
    of two that are then the same, in whichever case, the later one gets a number.
    """
    found: list[str] = []
    taken: set[str] = set()
    for name in names:
        safe = META + (re.sub(r"\W+", "_", name).strip("_") or "column")
        unique, number = safe, 1
        while unique.casefold() in taken:
            number += 1
            unique = f"{safe}_{number}"
        taken.add(unique.casefold())
        found.append(unique)
    return found


def states_table(names: Iterable[str]) -> Table:
    """Return states.csv of a campaign, whose list has further columns of these names, in the order of the file."""
    given = list(names)
    return STATES.with_columns(
        _text(meta, f"column “{name}” of the uploaded list")
        for name, meta in zip(given, meta_names(given), strict=True)
    )


def with_measures(names: Iterable[str]) -> Table:
    """Return properties.csv with a column for each property that was measured."""
    return PROPERTIES.with_columns(Column(name, MEASURE, "as measured", optional=True) for name in names)


def codebook(files: Mapping[str, Table | None], target: str) -> Iterator[list[Cell]]:
    """Yield the rows of codebook.csv, its header first.

    Args:
        files: of the archive, in its order, each with its table if it is one.
        target: the law that the chains sample, in words, with what each judge's score stands for.

    Raises:
        KeyError: nothing declares a file.
    """
    yield CODEBOOK.header
    yield CODEBOOK.row(file=CONFIG, column="target", values="the law that the chains sample", meaning=target)
    for file, table in files.items():
        values, meaning = ABOUT[file]
        yield CODEBOOK.row(file=file, column="", values=values, meaning=meaning)
        for column in table.columns if table else ():
            yield CODEBOOK.row(file=file, column=column.name, values=column.says, meaning=column.meaning)


def markdown() -> Iterator[str]:
    """Yield all files and columns as lines of Markdown, with what nothing shows to be changed."""
    yield from ("| file | form | meaning |", "|---|---|---|")
    yield from (f"| `{file}` | {form} | {meaning} |" for file, (form, meaning) in ABOUT.items())
    for table in EVERY:
        yield from ("", f"## {table.file}", "", f"{table.meaning[0].upper()}{table.meaning[1:]}.", "")
        yield from ("| column | values | meaning | a changed cell is found |", "|---|---|---|---|")
        for column in table.columns:
            found = f"no: {why}" if (why := table.excuse(column)) else "yes"
            meaning = f"{column.meaning}{'; may be empty' if column.optional else ''}"
            yield f"| `{column.name}` | {column.says} | {meaning} | {found} |"

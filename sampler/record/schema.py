"""The tables of an export: every column once, with how its cells are written and read.

The application writes through `Table.row`, which takes a value for each column, or through `Table.ordered`, which takes
what is a cell already; `reader.py` reads through `Table.unescape`. `docs/record-format.md` says what each column means.

No spreadsheet may run a cell as a formula, and nothing may be lost. A text of unknown origin gets one apostrophe in
front if what a spreadsheet would look at first, behind white space and characters that show nothing, is one of
= + - @ or an apostrophe, in any of their widths; or a semicolon, which starts a new cell where semicolons separate; or
if it begins with a tab, the end of a line or another control character, which spreadsheets skip or split at.

Reading takes one apostrophe away wherever there is one. A text that begins with an apostrophe always gets another, so
nothing is lost, and a record that was written when fewer texts were protected is read alike. Numbers that we write
ourselves are left alone.
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol

Cell = str | int | float | None
"""What `csv.writer` writes: of a number every digit, so that reading gives the same number; of None an empty cell."""

# Most texts begin with one of these, and whoever looks no further saves most of the time.
_PLAIN = frozenset(string.ascii_letters + string.digits)
_DANGEROUS = frozenset("=+-@';")
# White space, and what shows nothing: control and format characters, such as a zero-width space.
_UNSEEN = frozenset(("Cc", "Cf", "Zl", "Zp", "Zs"))
# The minus of mathematics has no narrow form in Unicode's tables.
_MINUS = "\N{MINUS SIGN}"


class Moment(Protocol):
    """A date and time with its zone."""

    def isoformat(self, *, timespec: str) -> str:
        """Return it as ISO 8601 writes it."""
        ...


def escaped(text: str) -> str:
    """Return the cell to write for a text of unknown origin."""
    return text if text[:1] in _PLAIN or not _is_dangerous(text) else f"'{text}"


def unescaped(cell: str) -> str:
    """Return the text of a cell that `escaped` has made."""
    return cell.removeprefix("'")


def _is_dangerous(text: str) -> bool:
    if unicodedata.category(text[:1] or "a") == "Cc":
        return True
    seen = next((character for character in text if unicodedata.category(character) not in _UNSEEN), "")
    # Full-width and small forms are, in this normal form, the plain character.
    return seen == _MINUS or bool(_DANGEROUS.intersection(unicodedata.normalize("NFKC", seen)))


# What a column holds, and the cell that it writes for a value; None is an empty cell.


def _whole(value: int | None) -> Cell:
    return "" if value is None else value


def wholes(values: Iterable[int]) -> str:
    """Return whole numbers, one a judge or neighbour, as the record writes them."""
    return " ".join(map(str, values))


def _number(value: float | None) -> Cell:
    """Write every digit, so that reading gives the same number."""
    return "" if value is None else repr(value)


def numbers(values: Iterable[float]) -> str:
    """Return numbers, one a judge, as the record writes them."""
    return " ".join(map(repr, values))


def _yes_or_no(value: bool) -> Cell:
    return int(value)


def _if_known(value: bool | None) -> Cell:
    return "" if value is None else int(value)


def moment(value: Moment | None) -> str:
    """Return a moment as the record writes it; empty if there is none."""
    return "" if value is None else value.isoformat(timespec="milliseconds")


def _word(value: str) -> Cell:
    """Write one of our own words, which no spreadsheet can mistake."""
    return value


def _measure(value: float | str | None) -> Cell:
    return escaped(value) if isinstance(value, str) else _number(value)


@dataclass(frozen=True)
class Column:
    """A column: its name in the header, and how it writes a value."""

    name: str
    cell: Callable[[Any], Cell]


@dataclass(frozen=True)
class Table:
    """A CSV file of the record, its columns in order."""

    name: str
    columns: tuple[Column, ...]

    @property
    def file(self) -> str:
        """The file's name."""
        return f"{self.name}.csv"

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
        return [column.cell(value) for column, value in zip(self.columns, ordered, strict=True)]

    def ordered(self, **values: Any) -> list[Any]:
        """Return what is given for each column as it is, in the columns' order: cells, or what will give the cells.

        Raises:
            KeyError: a column has no value.
            TypeError: a value is of no column.
        """
        if len(values) > len(self.columns):
            raise TypeError(f"{self.file} has no column {(values.keys() - set(self.header)).pop()}")
        return [values[column.name] for column in self.columns]

    def unescape(self, row: dict[str, str]) -> None:
        """Take the apostrophes from the texts of a row that was read, in place; columns that it lacks stay missing."""
        for column in self.columns:
            if column.cell is escaped and column.name in row:
                row[column.name] = unescaped(row[column.name])

    def with_measures(self, names: Iterable[str]) -> Table:
        """Return the table with a further column for each property that was measured."""
        return replace(self, columns=(*self.columns, *(Column(name, _measure) for name in names)))


MEAN_RATINGS = ("current_ratings", "proposal_ratings")
"""Of steps.csv: the mean ratings that a verdict was computed from, one a judge, where the rule rates."""
VOTES = Table(
    "votes",
    (
        Column("chain", _whole),
        Column("step", _whole),
        Column("number", _whole),
        Column("judge", _whole),
        Column("question", escaped),
        Column("annotator", _whole),
        Column("proposal_side", _word),
        Column("chosen_side", _word),
        Column("for_proposal", _yes_or_no),
        Column("elapsed_ms", _whole),
        Column("cast_at", moment),
        Column("endpoint", escaped),
        Column("slot", _whole),
        Column("preference", _number),
        Column("asks", _whole),
        Column("identity", _whole),
    ),
)
STEPS = Table(
    "steps",
    (
        Column("chain", _whole),
        Column("step", _whole),
        Column("current", _whole),
        Column("proposal", _whole),
        Column("log_r0", _number),
        Column("uniform", _number),
        Column("budgets", wholes),
        Column("votes_cast", wholes),
        Column("votes_for", wholes),
        Column("verdict", _word),
        Column("opened_at", moment),
        Column("decided_at", moment),
        *(Column(name, numbers) for name in MEAN_RATINGS),
    ),
)
STEPS_WITH_PARTS = replace(STEPS, columns=(*STEPS.columns, Column("part", _whole)))
"""Where the recipe draws, for each step, which part of the kernel proposes: `Recipe.has_parts`."""
TILTS = ("tilt_current", "tilt_proposal")
STEPS_WITH_TILTS = replace(
    STEPS_WITH_PARTS, columns=(*STEPS_WITH_PARTS.columns, *(Column(name, _whole) for name in TILTS))
)
"""Where fitted scores may pull walks: `Recipe.has_tilts`."""
STATES = Table(
    "states",
    (
        Column("state", _whole),
        Column("weight", _number),
        Column("neighbours", wholes),
        Column("content", escaped),
        Column("code", escaped),
    ),
)
SAMPLES = Table(
    "samples",
    (Column("chain", _whole), Column("step", _whole), Column("state", _whole), Column("content", escaped)),
)
SAMPLES_WITH_PHASES = replace(SAMPLES, columns=(*SAMPLES.columns, Column("phase", _word)))
"""Where not every sample is one to analyse: `Recipe.has_phases`."""
LEFT_OUT = ("burn-in", "settling")
"""The phases whose samples an analysis leaves out."""
CHAINS = Table(
    "chains",
    (Column("chain", _whole), Column("opened_at", moment), Column("reason", _word), Column("annotator", _whole)),
)
"""When and why each chain opened, where some open while the campaign runs: `Recipe.is_elastic`."""
AT_START, FOR_A_PERSON, AHEAD = "start", "wait", "ahead"
"""The reasons in it."""
PARKED = Table(
    "parked",
    (
        Column("chain", _whole),
        Column("step", _whole),
        Column("cause", _word),
        Column("count", _whole),
        Column("parked_at", moment),
        Column("outcome", _word),
        Column("settled_at", moment),
        Column("words", escaped),
    ),
)
"""Steps that nobody was asked about for a while, or for ever, and why; only where there are any."""
TRIED_AGAIN, DECIDED, ENDED = "tried-again", "decided", "ended"
"""The outcomes in it; none while a step is parked."""
SEATS = Table(
    "seats",
    (
        Column("seat", _whole),
        Column("annotator", _whole),
        Column("joined_at", moment),
        Column("votes", _whole),
        Column("skips", _whole),
        Column("met_again", _whole),
        Column("agreed", _whole),
        Column("reminders", _whole),
    ),
)
"""The people of a panel, each by the number of their seat: `Recipe.seats`."""
RATINGS = Table(
    "ratings",
    (
        Column("state", _whole),
        Column("judge", _whole),
        Column("slot", _whole),
        Column("rating", _whole),
        Column("asks", _whole),
        Column("endpoint", escaped),
        Column("rated_at", moment),
        Column("identity", _whole),
    ),
)
ANNOTATORS = Table(
    "annotators",
    (
        Column("annotator", _whole),
        Column("joined_at", moment),
        Column("removed_at", moment),
        Column("stage", _word),
        Column("outcome", _word),
        Column("finished_at", moment),
    ),
)
"""Of people whom a platform has sent. No verdict depends on it."""
ANNOTATORS_WITH_SPEED = replace(
    ANNOTATORS, columns=(*ANNOTATORS.columns, Column("most_a_minute", _whole), Column("fast_votes", _whole))
)
"""Where the campaign says from how many votes a minute on somebody is flagged."""
CONSENTS = Table(
    "consents",
    (
        Column("annotator", _whole),
        Column("version", _word),
        Column("agreed", _yes_or_no),
        Column("answered_at", moment),
    ),
)
CONSENT_TEXTS = Table(
    "consent_texts",
    (Column("version", _word), Column("first_used_at", moment), Column("text", escaped)),
)
LEASES = Table(
    "leases",
    (
        Column("annotator", _whole),
        Column("chain", _whole),
        Column("step", _whole),
        Column("judge", _whole),
        Column("proposal_side", _word),
        Column("issued_at", moment),
        Column("ended_at", moment),
        Column("ending", _word),
    ),
)
"""Every pair that was shown to people whom a platform has sent, and how that ended."""
LEASES_WITH_HIDDEN = replace(LEASES, columns=(*LEASES.columns, Column("hidden_ms", _whole)))
"""Where pages have told how long they were in a hidden tab."""
CHECKS = Table(
    "checks",
    (
        Column("annotator", _whole),
        Column("after_votes", _whole),
        Column("expected_side", _word),
        Column("chosen_side", _word),
        Column("passed", _if_known),
        Column("elapsed_ms", _whole),
        Column("shown_at", moment),
        Column("answered_at", moment),
    ),
)
"""Every attention check that people were shown. None is a vote."""
CHECKS_WITH_KINDS = replace(
    CHECKS,
    columns=(
        *CHECKS.columns,
        Column("kind", _word),
        Column("gold", _whole),
        Column("swapped", _yes_or_no),
        Column("chain", _whole),
        Column("step", _whole),
        Column("judge", _whole),
        Column("agreed", _if_known),
        Column("turn", _whole),
    ),
)
"""Where there are gold pairs or repeats."""
PROBLEMS = Table(
    "problems",
    (
        Column("annotator", _whole),
        Column("chain", _whole),
        Column("step", _whole),
        Column("proposal_side", _word),
        Column("reason", _word),
        Column("reported_at", moment),
    ),
)
"""Pairs that people skipped and said why."""
EVENTS = Table(
    "events",
    (
        Column("annotator", _whole),
        Column("kind", _word),
        Column("at", moment),
        Column("reason", _word),
        Column("paid", _if_known),
    ),
)
"""What researchers did and noted about people who vote: parts that they ended, and that there was a note."""
LANGUAGES = Table("languages", (Column("annotator", _whole), Column("language", _word)))
"""In which language each person judged, where a campaign offers several. It is part of the judge."""
TRANSLATIONS = Table(
    "translations", (Column("language", _word), Column("text", escaped), Column("translation", escaped))
)
"""What these people read, beside what stands in the campaign's first language."""
TABLES = (VOTES, STEPS, STATES, SAMPLES, RATINGS)
"""In the order in which an export has them."""
PROPERTIES = Table("properties", (Column("state", _whole), Column("content", escaped)))
"""Beside the record, not part of it: what was measured of the objects; see `Table.with_measures`."""
RECIPE, JUDGES, TUNING, SURROGATES = "recipe.json", "judges.json", "tuning.json", "surrogates.json"
PROTOCOL = "protocol.json"
"""What shaped who voted and on what, where a platform has sent people or there are limits."""

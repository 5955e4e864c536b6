"""One table of tables: each CSV file of the record and each of its columns, declared once.

A column says what it holds, what that means, whether it may be empty, and why a changed cell of it cannot be found, if
it cannot. From this come the header and the cells, codebook.csv, `python -m sampler tables`, what a reader takes and
refuses, and the API's pages. What of a file can be worked out again is checked by the function that `replay.CHECKS` has
for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from sampler.record.cells import (
    ALONE,
    CLIENT,
    JSON,
    MEASURE,
    META,
    WHOLE,
    WHOLES,
    count,
    flag,
    milliseconds,
    real,
    text,
    time,
    whole,
    word,
)
from sampler.record.cells import Cell as Cell
from sampler.record.cells import Column as Column
from sampler.record.cells import Row as Row
from sampler.record.cells import Table as Table

FIRST, SECOND = "first", "second"
SIDES = (FIRST, SECOND)
_CHAIN = whole("chain_index", "the chain")
_STEP = whole("step", "the step of the chain", "from 1")
_STATE = whole("state_index", "the object, as in states.csv")
_JUDGE = whole("judge_index", "the judge: its index in campaign.json")
_VOTER = whole("voter", "number of the voter: in the order in which people joined this campaign", "from 1")
_ENDPOINT = text("endpoint", "name of the endpoint; empty for a person")
_SLOT = whole("slot", "which of the N answers of a model this is; empty for a person", optional=True)
_ASKS = count("asks", "replies that it took; empty for a person, or if unknown", optional=True, excused=ALONE)
_IDENTITY = whole("identity", "which identity in judges.json the reply had", "from 1", optional=True)
_ELAPSED = milliseconds("elapsed_ms", "time to answer; for people, from the moment both objects were visible")
_HIDDEN = milliseconds("hidden_ms", "how much of elapsed_ms the page was in a hidden tab; empty if unknown")
_LEASE = word(
    "lease", "the pair as a person was handed it; empty of a model", values="UUID", optional=True, excused=ALONE
)
_PROPOSAL_SIDE = word("proposal_side", "where the proposal stood, in the order of the page or of the prompt", *SIDES)
_CHOSEN_SIDE = word("chosen_side", "which of the two was chosen", *SIDES)

VOTES = Table(
    "votes",
    "a row for each vote, in the order in which votes counted",
    (
        _CHAIN,
        _STEP,
        whole(
            "number",
            "position in its step; empty if it came after the verdict, and did not count",
            "from 1",
            optional=True,
        ),
        _JUDGE,
        text("question", "the judge's question"),
        replace(_VOTER, optional=True, excused="nothing shows who voted"),
        _PROPOSAL_SIDE,
        _CHOSEN_SIDE,
        flag("for_proposal", "1 if the vote is for the proposal, 0 if it is for the current object"),
        whole("first_state", "the first of the two objects"),
        whole("second_state", "the second of the two objects"),
        whole("chosen_state", "the object that was chosen"),
        _ELAPSED,
        time("cast_at", "when the vote was cast"),
        _ENDPOINT,
        _SLOT,
        real(
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
        word(
            "layout", "how the two stood on the screen", "beside", "stacked", "changed", optional=True, excused=CLIENT
        ),
        flag("translated", "whether the browser translated the words around the pair", optional=True, excused=CLIENT),
    ),
)
STEPS = Table(
    "steps",
    "a row for each step of each chain",
    (
        _CHAIN,
        _STEP,
        whole("current_state", "the object at which the chain stood"),
        whole("proposal_state", "the object that the step proposed"),
        real("log_r0", "of the base ratio r0", "natural logarithm"),
        real("uniform", "the random number U; empty while the step is open", "number on [0, 1)", optional=True),
        word("verdict", "empty while the step is open", "accept", "reject", optional=True),
        time("opened_at", "when it opened"),
        time("decided_at", "when it had its verdict", optional=True),
        whole("part_index", "which of several walk lengths the step drew; empty where it drew none", optional=True),
    ),
)
EVIDENCE = Table(
    "evidence",
    "what verdicts were computed from where models rate or scorers decide: a row for each step, and judge or scorer",
    (
        _CHAIN,
        _STEP,
        replace(_JUDGE, optional=True),
        word("scorer", "the scorer, as in scorers.json", values="name", optional=True),
        real("current_number", "mean rating, or score, of the current object"),
        real("proposal_number", "mean rating, or score, of the proposal"),
    ),
)
STATES = Table(
    "states",
    "a row for each object",
    (
        _STATE,
        whole("object_index", "the first state with the same content: count objects by it"),
        real(
            "weight",
            "weight in p0, up to a constant factor; empty of an object that a chain made",
            "positive number",
            optional=True,
            excused="of an uploaded list, where nothing drawn depends on it",
        ),
        Column("neighbours", WHOLES, "the similar objects of an uploaded list", optional=True),
        text(
            "content",
            "the text, the SMILES, or the name of the file",
            excused="of an uploaded list, unless a chain was there",
        ),
        text("code", "the object in a form from which it can be restored exactly; empty for an uploaded list"),
    ),
)
COLUMNS = Table(
    "columns",
    "the further columns of an uploaded list: a row for each object and column",
    (
        _STATE,
        text("column", "name of the column, in lower case"),
        text("value", "the cell, without white space at its ends"),
    ),
)
SAMPLING = "sampling"
"""The phase whose samples are analysed; those of the others are left out."""
SAMPLES = Table(
    "samples",
    "the object of each chain after each step; step 0 is the start",
    (
        _CHAIN,
        whole("step", "after which step; 0 is the start"),
        _STATE,
        text("content", "the object, as in states.csv"),
        word("phase", "what the sample is for: analyse sampling", "burn-in", "warm-up", SAMPLING),
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
        time("rated_at", "when the rating was given"),
        _IDENTITY,
    ),
)
SCORES = Table(
    "scores",
    "a row for each object and scorer",
    (
        _STATE,
        word("scorer", "as in scorers.json", values="name"),
        real(
            "score",
            "empty if the scorer was asked and gave none",
            optional=True,
            excused="of a program that decides nothing",
        ),
    ),
)
_INTERVAL = "of its 90 % interval; of an object never visited, an upper bound alone"
RESULTS = Table(
    "results",
    "what was found: a row for each target, question and object; it begins with a byte order mark",
    (
        text("target", "the prompt that the objects answer; empty where all chains sample one distribution"),
        text("question", "the judges' question; empty where no votes are asked for"),
        text("source", "who answered it: people, a panelist, or a model by its endpoint"),
        whole("object_index", "the object, as in states.csv"),
        text("content", "the object, as in states.csv"),
        count("steps", "after how many steps a chain was at the object"),
        real("share", "of the target's steps", "share from 0 to 1"),
        real("share_low", f"lower end {_INTERVAL}", "share from 0 to 1"),
        real("share_high", f"upper end {_INTERVAL}", "share from 0 to 1"),
        whole("first_step", "the first of these steps", "from 1", optional=True),
        whole("last_step", "the last of these steps", "from 1", optional=True),
        count("votes_for", "counted votes for it, of all phases; they depend on its opponents", optional=True),
        count("votes_against", "counted votes for its opponents, of all phases", optional=True),
        real("score", "Bradley-Terry score with mean 0; empty where none can be fitted", "nats", optional=True),
        real("score_low", "lower end of its 90 % interval, from a bootstrap", "nats", optional=True),
        real("score_high", "upper end of its 90 % interval", "nats", optional=True),
    ),
    "it is computed from the other tables",
)
REASONS = Table(
    "reasons",
    "what models thought before they voted, where that is kept",
    (
        _CHAIN,
        _STEP,
        _JUDGE,
        replace(_SLOT, optional=False),
        text("reason", "what the model's server told of its thinking, the first 2,000 characters"),
        flag("cut", "1 if there was more"),
    ),
    ALONE,
)
CALLS = Table(
    "calls",
    "what asking models took: a row for each judge, and one for texts that a model wrote",
    (
        replace(_JUDGE, optional=True),
        count("requests", "requests sent"),
        count("failed", "requests without a reply"),
        count("unreadable", "replies that were neither label nor rating"),
        count("unpriced", "answered requests whose price was not known"),
        Column("tokens_in", WHOLE, "as the server reported them", "tokens"),
        Column("tokens_out", WHOLE, "as the server reported them", "tokens"),
        real("seconds", "of the answered requests, together", "seconds"),
        real("cost", "at the prices of the moment", "currency of the endpoints' prices", optional=True),
    ),
    ALONE,
)
EVENTS = Table(
    "events",
    "what happened in the campaign beside its steps and votes, in the order of time",
    (
        whole("number", "of the event", "from 1"),
        time("at", "when"),
        word(
            "kind", "what was done; the kinds are in docs/record.md", values="word", excused="of most kinds, " + ALONE
        ),
        word("by", "who did it, where a researcher did", "owner", "manager", "admin", optional=True, excused=ALONE),
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
        time("joined_at", "when the person joined"),
        time("removed_at", "when access was withdrawn; empty if it was not", optional=True),
        word("stage", "the page that the person has come to", values="word"),
        word("outcome", "how their participation ended; empty while it goes on", values="word", optional=True),
        time("finished_at", "when it ended", optional=True),
        real(
            "most_a_minute", "above this, a vote is fast; empty where nothing was set", "votes a minute", optional=True
        ),
        count("fast_votes", "votes that were fast", optional=True),
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
        time("issued_at", "when the pair was handed out"),
        time("ended_at", "when that ended; empty while the pair is open", optional=True),
        word("ending", "how that ended", "voted", "skipped", "expired", "unasked", optional=True),
        replace(_LEASE, meaning="the pair, as in votes.csv; empty while it is open"),
        _HIDDEN,
    ),
    ALONE,
)
_OF_REPEAT = "of a repeat: the pair that was voted on"
_DRAWN_ALIKE = "where the same trial is drawn for the other"
CHECKS = Table(
    "checks",
    "a row for each trial between the pairs that is no vote",
    (
        replace(_VOTER, excused=_DRAWN_ALIKE),
        count("after_votes", "votes that the person had given", excused=_DRAWN_ALIKE),
        word("kind", "what kind of trial it is", "instructed", "gold", "repeat"),
        whole("gold_index", "the gold pair, as in campaign.json", optional=True),
        flag("swapped", "1 if the objects have changed places"),
        word("expected_side", "the right answer; empty of a repeat", *SIDES, optional=True),
        replace(_CHOSEN_SIDE, meaning="empty without an answer; with answered_at, it was skipped", optional=True),
        flag("passed", "whether the answer was right; empty without an answer", optional=True),
        flag("agreed", "of a repeat: whether the same object was chosen as in the vote", optional=True),
        *(replace(column, meaning=_OF_REPEAT, optional=True, excused=ALONE) for column in (_CHAIN, _STEP, _JUDGE)),
        _ELAPSED,
        time("shown_at", "when it was shown"),
        time("answered_at", "when it was answered", optional=True),
    ),
)
PREFERENCES = Table(
    "preferences",
    "every vote as prompt, chosen and rejected, in the order of votes.csv; no line says who voted",
    (
        text("prompt", "the question, below the shown columns that both objects have in common"),
        text("chosen", "the chosen object: its text, its SMILES, or the name of its file"),
        text("rejected", "the other object"),
        text("chosen_context", "the shown columns of the chosen object that differ"),
        text("rejected_context", "the shown columns of the other object that differ"),
        *(replace(column, meaning="as in votes.csv") for column in (_CHAIN, _STEP, _JUDGE, _LEASE, _SLOT)),
        whole("number", "as in votes.csv; null of a vote that did not count", "from 1", optional=True),
    ),
    ALONE,
    "jsonl",
)
CODEBOOK = Table(
    "codebook",
    "this table",
    (
        word("file", "the file of this archive", values="name"),
        word("column", "its column; empty in the row that is about the whole file", values="name", optional=True),
        word("values", "the unit, or which values there are", values="text"),
        text("meaning", "what it says"),
    ),
    "it is declared in this program",
)
PROPERTIES = Table(
    "properties",
    "what was measured of each object; beside the record, not part of it",
    (_STATE, text("content", "the object, as in states.csv")),
    "it can be measured again",
)

TABLES = (VOTES, STEPS, EVIDENCE, STATES, COLUMNS, SAMPLES, RATINGS, SCORES, REASONS, CALLS)
"""Of every record, in the order in which an archive has them."""
OF_PEOPLE = (VOTERS, LEASES, CHECKS)
"""Of a record whose people a platform has sent."""
CHECKED = (*TABLES[:8], EVENTS, CHECKS)
"""What a replay reads."""
CONFIG, JUDGES, TUNING = "campaign.json", "judges.json", "tuning.json"
SCORERS, MANIFEST = "scorers.json", "manifest.json"
_OTHERS: dict[str, tuple[str, str]] = {
    CONFIG: ("JSON", "the whole configuration, a file to import; `hidden` names by path what is left out"),
    JUDGES: ("JSON", "what answered each question, as it was fixed at the start"),
    TUNING: ("JSON", "what the warm-up has found and chosen"),
    SCORERS: ("JSON", "what each scorer said of itself at the start"),
    "pictures/": ("PNG or WebP", "pictures that were shown, by their objects' numbers in states.csv"),
    "recordings/": ("FLAC or MP3", "recordings that were compared, by their objects' numbers in states.csv"),
    MANIFEST: ("JSON", "each file of the archive by its SHA-256"),
}
EVERY = (*TABLES, EVENTS, *OF_PEOPLE, PREFERENCES, RESULTS, PROPERTIES, CODEBOOK)
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
        text(meta, f"column “{name}” of the uploaded list") for name, meta in zip(given, meta_names(given), strict=True)
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

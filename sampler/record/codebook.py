"""The codebook of an export: what each of its files is, and of each column the unit or the values, and the meaning.

`schema.py` defines the tables; a test demands an entry here for each of their columns. `docs/record-format.md` says
more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sampler.record.schema import CODEBOOK, MANIFEST, META, Cell

_TIME = "ISO 8601, UTC offset included"
_MS = "milliseconds"
_COUNT = "count"
_NUMBER = "whole number, from 0"
_FROM_1 = "whole number, from 1"
_PAIR = "1 or 0"
_SIDE = "first or second"
_TEXT = "text"
_LIST = "whole numbers, separated by spaces"
_REALS = "real numbers, separated by spaces"
Entry = tuple[str, str]
"""The values or the unit, and the meaning."""

_ANYWHERE: dict[str, Entry] = {
    "chain": (_NUMBER, "the chain"),
    "step": (_FROM_1, "the step of the chain"),
    "state": (_NUMBER, "the object, as in states.csv"),
    "judge": (_NUMBER, "the judge: its place in campaign.json"),
    "annotator": (_FROM_1, "number of the voter in this record; empty for a model"),
    "proposal_side": (_SIDE, "which of the two the proposal was, in the order of the page or of the prompt"),
    "chosen_side": (_SIDE, "which of the two was chosen"),
    "slot": (_NUMBER, "which of the N answers of a model this is; empty for a person"),
    "asks": (_COUNT, "replies that the answer needed; empty for a person, or if unknown"),
    "endpoint": (_TEXT, "name of the endpoint; empty for a person"),
    "identity": (_FROM_1, "which identity in judges.json the model's reply had"),
    "content": (_TEXT, "the text, the SMILES, or the name of the image"),
    "elapsed_ms": (_MS, "time to answer; for people, from the moment both objects were visible"),
    "hidden_ms": (_MS, "how much of elapsed_ms the page was in a hidden tab; empty where it is not known"),
    "lease": ("UUID", "the pair that a person was handed, alike in all tables; empty of a model or an open pair"),
    "opened_at": (_TIME, "when it opened"),
    "joined_at": (_TIME, "when the person joined"),
    "version": ("SHA-256, hexadecimal", "of the consent text"),
    "answered_at": (_TIME, "when it was answered"),
}  # fmt: skip

_FILES: dict[str, Entry] = {
    "campaign.json": ("JSON", "the whole setup: space, kernel, judges, rule, chains, steps, seed and target"),
    "campaign.yaml": ("YAML", "the setup as a file to import, without codes, addresses and answers of checks"),
    "judges.json": ("JSON", "what answered each question, as it was fixed at the start"),
    "tuning.json": ("JSON", "what the warm-up has found and chosen"),
    "scorers.json": ("JSON", "what each scorer said of itself at the start"),
    "protocol.json": ("JSON", "what shaped who voted and on what"),
    "votes.csv": ("CSV", "a row for each vote, in the order in which votes counted"),
    "steps.csv": ("CSV", "a row for each step of each chain, with what its verdict was computed from"),
    "states.csv": ("CSV", "a row for each object"),
    "samples.csv": ("CSV", "the object of each chain after each step; step 0 is the start"),
    "ratings.csv": ("CSV", "a row for each rating by a model; no row where votes or scores decide"),
    "chains.csv": ("CSV", "when and why each chain opened"),
    "extensions.csv": ("CSV", "steps that a researcher added after the start"),
    "columns.csv": ("CSV", "the further columns of the uploaded list: a row for each object and column"),
    "scores.csv": ("CSV", "a row for each object and scorer"),
    "reasons.csv": ("CSV", "what models thought before they voted"),
    "suspended.csv": ("CSV", "a row each time that a step was suspended"),
    "calls.csv": ("CSV", "what asking models took: a row for each judge, and one for texts that a model wrote"),
    "problems.csv": ("CSV", "problems that people reported with a pair, which they then skipped"),
    "events.csv": ("CSV", "what happened in the campaign beside its steps and votes"),
    "annotators.csv": ("CSV", "a row for each person who takes part"),
    "leases.csv": ("CSV", "a row for each pair that a person was shown"),
    "checks.csv": ("CSV", "a row for each trial between the pairs that is no vote"),
    "consents.csv": ("CSV", "answers to the consent text"),
    "consent_texts.csv": ("CSV", "the texts that people were asked to agree to"),
    "pictures/": ("PNG or WebP", "pictures that were shown, by their objects' numbers or contents in states.csv"),
    "recordings/": ("FLAC or MP3", "recordings that were compared, by their objects' numbers in states.csv"),
    "preferences.jsonl": ("JSON lines", "every vote as prompt, chosen and rejected, in the order of votes.csv"),
    CODEBOOK.file: ("CSV", "this table"),
    MANIFEST: ("JSON", "each file of the archive by its SHA-256"),
}  # fmt: skip

_COLUMNS: dict[str, dict[str, Entry]] = {
    "votes.csv": {
        "number": (_FROM_1, "position of the vote in its step; empty if it came after the verdict and did not count"),
        "question": (_TEXT, "the judge's question"),
        "for_proposal": (_PAIR, "1 if the vote is for the proposal, 0 if it is for the current object"),
        "cast_at": (_TIME, "when the vote was cast"),
        "preference": ("probability", "of a vote for the proposal, if the vote was drawn from it"),
        "first_state": (_NUMBER, "the first of the two objects"),
        "second_state": (_NUMBER, "the second of the two objects"),
        "layout": ("beside, stacked or changed", "how the two stood on the screen; empty where the page did not tell"),
        "translated": (_PAIR, "whether the browser translated the words around the pair; empty if unknown"),
        "chosen_state": (_NUMBER, "the object that was chosen"),
    },
    "steps.csv": {
        "current": (_NUMBER, "the object at which the chain stood"),
        "proposal": (_NUMBER, "the object that the step proposed"),
        "log_r0": ("natural logarithm", "of the base ratio r0"),
        "uniform": ("number on [0, 1)", "the random number U of the step; empty while it is open"),
        "budgets": (_LIST, "most votes, for each judge"),
        "votes_cast": (_LIST, "votes that counted, for each judge"),
        "votes_for": (_LIST, "those of them for the proposal, for each judge"),
        "verdict": ("accept or reject", "empty while the step is open"),
        "decided_at": (_TIME, "when it had its verdict"),
        "current_ratings": (_REALS, "mean rating of the current object, for each judge"),
        "proposal_ratings": (_REALS, "mean rating of the proposal, for each judge"),
        "part": (_NUMBER, "which part of the kernel proposed"),
        "current_scores": (_REALS, "scores of the current object, for each scorer of the rule"),
        "proposal_scores": (_REALS, "scores of the proposal, for each scorer of the rule"),
    },
    "states.csv": {
        "weight": ("positive number", "weight in p0, up to a constant factor; empty of an object that a chain made"),
        "neighbours": (_LIST, "the similar objects of an uploaded list"),
        "code": (_TEXT, "the object in a form from which it can be restored exactly; empty for an uploaded list"),
        "object": (_NUMBER, "the first state with the same content: count objects by it"),
    },
    "samples.csv": {
        "step": (_NUMBER, "after which step; 0 is the start"),
        "phase": ("burn-in, warm-up, settling or sampling", "analyse sampling"),
    },
    "ratings.csv": {
        "rating": ("whole number", "the rating, on the scale in campaign.json"),
        "rated_at": (_TIME, "when the rating was given"),
    },
    "chains.csv": {
        "reason": ("start, wait or ahead", "why it opened: see docs/record-format.md"),
        "annotator": (_FROM_1, "for whom it opened; empty if the reason is start"),
    },
    "extensions.csv": {
        "extension": (_FROM_1, "the extension"),
        "steps_before": (_COUNT, "steps of each chain until then"),
        "steps_after": (_COUNT, "steps of each chain from then on"),
        "extended_at": (_TIME, "when"),
    },
    "columns.csv": {
        "column": (_TEXT, "name of the column, in lower case"),
        "value": (_TEXT, "the cell, without white space at its ends"),
    },
    "scores.csv": {
        "scorer": ("name", "as in scorers.json"),
        "score": ("real number", "empty if the scorer was asked and gave none"),
    },
    "reasons.csv": {
        "reason": (_TEXT, "what the model's server told of its thinking, the first 2,000 characters"),
        "cut": (_PAIR, "1 if there was more"),
    },
    "suspended.csv": {
        "cause": ("skips or not-shown", "why the step was suspended"),
        "count": (_COUNT, "skips, or people who reported it"),
        "suspended_at": (_TIME, "when it was suspended"),
        "outcome": ("tried-again, decided or ended", "empty while the step is suspended"),
        "settled_at": (_TIME, "when it was tried again or ended"),
        "words": (_TEXT, "the researcher's reason for the end"),
    },
    "calls.csv": {
        "requests": (_COUNT, "requests sent"),
        "failed": (_COUNT, "requests without a reply"),
        "unreadable": (_COUNT, "replies that were neither label nor rating"),
        "unpriced": (_COUNT, "answered requests whose price was not known"),
        "tokens_in": ("tokens", "as the server reported them"),
        "tokens_out": ("tokens", "as the server reported them"),
        "seconds": ("seconds", "of the answered requests, together"),
        "cost": ("currency of the endpoints' prices", "at the prices of the moment"),
        "judge": (_NUMBER, "the judge: its place in campaign.json; empty for texts that a model wrote"),
    },
    "problems.csv": {
        "reason": ("not-shown, upsetting, undecided or other", "what the person chose"),
        "reported_at": (_TIME, "when"),
    },
    "events.csv": {
        "annotator": (_FROM_1, "about whom; empty of what is about the whole campaign"),
        "kind": ("word", "what was done: see docs/record-format.md"),
        "at": (_TIME, "when"),
        "reason": ("word", "why a person's part was ended; empty otherwise"),
        "paid": (_PAIR, "whether the person whose part was ended is paid; empty where nothing was settled"),
        "detail": (_TEXT, "what was changed, as name=value; none of the researcher's words"),
    },
    "annotators.csv": {
        "removed_at": (_TIME, "when access was withdrawn; empty if it was not"),
        "stage": ("word", "the page that the person has come to"),
        "outcome": ("word", "how the part ended; empty while it goes on"),
        "finished_at": (_TIME, "when the part ended"),
        "most_a_minute": ("votes a minute", "above this, a vote is fast"),
        "fast_votes": (_COUNT, "votes that were fast"),
    },
    "leases.csv": {
        "issued_at": (_TIME, "when the pair was handed out"),
        "ended_at": (_TIME, "when that ended; empty while the pair is open"),
        "ending": ("voted, skipped, expired or unasked", "how that ended; empty while the pair is open"),
    },
    "checks.csv": {
        "after_votes": (_COUNT, "votes that the person had given"),
        "expected_side": (_SIDE, "the right answer; empty of a repeat"),
        "passed": (_PAIR, "whether the answer was right; empty without an answer"),
        "shown_at": (_TIME, "when it was shown"),
        "kind": ("instructed, gold or repeat", "what kind of trial it is"),
        "gold": (_NUMBER, "the gold pair, as in protocol.json"),
        "swapped": (_PAIR, "1 if the objects have changed places"),
        "agreed": (_PAIR, "of a repeat: whether the same object was chosen as in the vote"),
    },
    "consents.csv": {"agreed": (_PAIR, "whether the person agreed")},
    "consent_texts.csv": {
        "first_used_at": (_TIME, "when it was first asked for"),
        "text": ("Markdown", "the text"),
    },
    "preferences.jsonl": {
        "prompt": (_TEXT, "the question, below the shown columns that both objects have in common"),
        "chosen": (_TEXT, "the chosen object: its text, its SMILES, or the name of its picture"),
        "rejected": (_TEXT, "the other object"),
        "chosen_context": (_TEXT, "the shown columns of the chosen object that differ; only where columns are shown"),
        "rejected_context": (_TEXT, "the shown columns of the other object that differ; only where columns are shown"),
        "number": (_FROM_1, "as in votes.csv; null if the vote came after the verdict and did not count"),
    },
    CODEBOOK.file: {
        "file": ("name", "the file of this archive"),
        "column": ("name", "its column; empty in the row that is about the whole file"),
        "values": (_TEXT, "the unit, or which values there are"),
        "meaning": (_TEXT, "what it says"),
    },
}  # fmt: skip


def entry_of(file: str, column: str = "") -> Entry:
    """Return the values or the unit, and the meaning, of a file or of a column of it.

    Raises:
        KeyError: the codebook lacks it.
    """
    if not column:
        return _FILES[file]
    if file == "states.csv" and column.startswith(META):
        return _TEXT, "a column of the uploaded list; columns.csv, in the same order, has its name as it was uploaded"
    own = _COLUMNS.get(file, {})
    return own[column] if column in own else _ANYWHERE[column]


def codebook(files: Mapping[str, Sequence[Cell]], target: str) -> Iterator[list[Cell]]:
    """Yield the rows of codebook.csv, its header first.

    Args:
        files: of the archive, in its order, each with its columns; without any, a file that is no table.
        target: the law that the chains sample, in words, with what each judge's score stands for.

    Raises:
        KeyError: the codebook lacks a file or a column.
    """
    yield CODEBOOK.header
    yield CODEBOOK.row(file="campaign.json", column="target", values="the law that the chains sample", meaning=target)
    for file, columns in files.items():
        for column in ("", *map(str, columns)):
            values, meaning = entry_of(file, column)
            yield CODEBOOK.row(file=file, column=column, values=values, meaning=meaning)

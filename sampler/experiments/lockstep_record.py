"""The record of a lockstep run: three files from which every decision is worked out again.

    settings.json   LockstepSettings
    steps.csv       a line for each step and chain: proposal, log q both ways, log r0, score, U, verdict
    editor.csv      a line for each step: hash of the editor that drew it, updates after it, their loss, digest

What a replay redraws or computes again, and compares to the last bit: U, the proposal's score, log r0 from p0 and the
recorded probabilities, the verdict, and with them every state. What it takes as recorded: the proposals and their log
q, because the editor's numbers differ in their last digits from one machine to the next. Of these it checks that the
proposal is one edit away, and that the probabilities are at most 1. The digest of a step is the SHA-256 of the digest
before it and of the step's own lines, that of step 0 of settings.json; a line that was changed, lost or added does not
fit. It is no signature: whoever computes all digests anew can make up proposals and probabilities, but no verdict that
does not follow from them.
"""

from __future__ import annotations

import csv
import hashlib
import io
import itertools
import math
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TextIO

from pydantic import ValidationError

from sampler.experiments.lockstep import LockstepSettings, Step, verdict
from sampler.experiments.mars import FinalMolecule, score_of
from sampler.kernels.learned_fragments import base_ratio
from sampler.objects.molecules.measures import rate_molecule
from sampler.record.differences import RecordError
from sampler.spaces.molecules.edits import Edits

STEP_COLUMNS = (
    "step", "chain_index", "proposal", "log_q_forward", "log_q_backward", "log_r0", "score", "uniform", "accepted",
)  # fmt: skip
EDITOR_COLUMNS = ("step", "editor", "updates", "loss", "digest")
Folder = Path | zipfile.Path
"""Where a record lies: on the disk, or in an archive."""


class LockstepReplay(NamedTuple):
    """What a replay found: what fixed the run, where chains ended, and how often the editor was updated."""

    settings: LockstepSettings
    final: list[FinalMolecule]
    updates: int


class LockstepWriter:
    """Writes a record step by step; at most one step is held in memory.

    Args:
        folder: made where it is not there.
        settings: of the run.

    Raises:
        OSError: the folder cannot be written, or holds a record already.
    """

    def __init__(self, folder: Path, settings: LockstepSettings) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        text = settings.model_dump_json(indent=2) + "\n"
        with (folder / "settings.json").open("x", encoding="utf-8", newline="") as file:
            file.write(text)
        self._digest = hashlib.sha256(text.encode()).hexdigest()
        self._steps = _new_table(folder / "steps.csv", STEP_COLUMNS)
        self._editor = _new_table(folder / "editor.csv", EDITOR_COLUMNS)

    def write(self, step: Step) -> None:
        """Add a step."""
        lines = "".join(_line(_cells(step, place)) for place in range(len(step.draws)))
        loss = "" if step.update.loss is None else repr(step.update.loss)
        learned = (str(step.number), step.editor, str(step.update.updates), loss)
        self._digest = _digest(self._digest, lines, learned)
        self._steps.write(lines)
        self._editor.write(_line((*learned, self._digest)))
        for file in (self._steps, self._editor):
            file.flush()

    def close(self) -> None:
        """Close the files."""
        self._steps.close()
        self._editor.close()

    def __enter__(self) -> LockstepWriter:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()


def replay_lockstep(folder: Folder, progress: Callable[[int], object] = lambda steps: None) -> LockstepReplay:
    """Work out every decision of a record again, from its files alone.

    Args:
        folder: the record.
        progress: called with 1 after every step.

    Raises:
        RecordError: something does not follow; the message names file, step and chain.
        OSError: a file cannot be read.
    """
    text = (folder / "settings.json").read_bytes().decode("utf-8")
    try:
        settings = LockstepSettings.model_validate_json(text)
    except ValidationError as error:
        raise RecordError(f"settings.json: {error.errors()[0]['msg']}") from error
    check = _Check(settings, hashlib.sha256(text.encode()).hexdigest())
    with (
        (folder / "steps.csv").open(encoding="utf-8", newline="") as steps,
        (folder / "editor.csv").open(encoding="utf-8", newline="") as editor,
    ):
        draws, learned = _rows(steps, "steps.csv", STEP_COLUMNS), _rows(editor, "editor.csv", EDITOR_COLUMNS)
        for number in range(1, settings.steps + 1):
            check.step(number, list(itertools.islice(draws, settings.chains)), next(learned, None))
            progress(1)
        for name, left in (("steps.csv", draws), ("editor.csv", learned)):
            if next(left, None) is not None:
                raise RecordError(f"{name}: more lines than settings.json has steps")
    return LockstepReplay(settings, check.final(), check.updates)


class _Check:
    """Where the chains stand while a record is read."""

    def __init__(self, settings: LockstepSettings, digest: str) -> None:
        self._settings, self._digest = settings, digest
        space = settings.space.build()
        self._edits = Edits(space.vocabulary, space.law)
        self._states = [space.first] * settings.chains
        self._proposed, self._moved = [0] * settings.chains, [0] * settings.chains
        self._editor: tuple[str, int] | None = None
        self.updates = 0

    def step(self, number: int, draws: Sequence[list[str]], learned: list[str] | None) -> None:
        if len(draws) < self._settings.chains or learned is None:
            raise RecordError(f"the record ends in step {number} of {self._settings.steps}: run again, or cut steps")
        for chain, cells in enumerate(draws):
            where = f"steps.csv, step {number}, chain {chain}"
            if cells[:2] != [str(number), str(chain)]:
                raise RecordError(f"{where}: the line is of step {cells[0]}, chain {cells[1]}")
            self._draw(where, number, chain, cells)
        self._learned(f"editor.csv, step {number}", number, learned)
        digest = _digest(self._digest, "".join(map(_line, draws)), learned[:4])
        if digest != learned[4]:
            raise RecordError(f"editor.csv, step {number}: the digest does not fit the lines of the step")
        self._digest = digest

    def final(self) -> list[FinalMolecule]:
        return [
            FinalMolecule(chain, state, *rate_molecule(state), self._proposed[chain], self._moved[chain])
            for chain, state in enumerate(self._states)
        ]

    def _draw(self, where: str, number: int, chain: int, cells: Sequence[str]) -> None:
        state, proposal = self._states[chain], cells[2]
        ratio = self._log_r0(where, state, proposal, cells[3], cells[4])
        _compare(where, "log_r0", cells[5], repr(ratio))
        score = score_of(proposal)
        _compare(where, "score", cells[6], repr(score))
        uniform, accepted = verdict(self._settings.seed, number, chain, ratio, score_of(state), score)
        _compare(where, "uniform", cells[7], repr(uniform))
        accepted = accepted or proposal == state
        _compare(where, "accepted", cells[8], str(int(accepted)))
        if proposal != state:
            self._proposed[chain] += 1
            self._moved[chain] += accepted
        if accepted:
            self._states[chain] = proposal

    def _log_r0(self, where: str, state: str, proposal: str, forward: str, backward: str) -> float:
        if proposal != state:
            self._check_edit(where, state, proposal)
        if proposal == state or self._settings.convention == "paper":
            _compare(where, "log_q_forward", forward, "")
            _compare(where, "log_q_backward", backward, "")
            return 0.0
        logs = [_log_chance(where, name, cell) for name, cell in (("forward", forward), ("backward", backward))]
        return base_ratio(self._edits, state, proposal, *logs)

    def _check_edit(self, where: str, state: str, proposal: str) -> None:
        try:
            low, high = sorted((state, proposal), key=lambda each: self._edits.read(each).size)
            ways = self._edits.ways(low, high)
        except ValueError as error:
            raise RecordError(f"{where}: proposal: {error}") from error
        if not ways.additions or not ways.deletions:
            raise RecordError(f"{where}: proposal {proposal} is not one edit away from {state}")

    def _learned(self, where: str, number: int, cells: Sequence[str]) -> None:
        _compare(where, "step", cells[0], str(number))
        if not cells[2].isascii() or not cells[2].isdigit():
            raise RecordError(f"{where}: updates must be a whole number, not {cells[2]!r}")
        updates = int(cells[2])
        if updates and not self._settings.learns_after(number):
            raise RecordError(f"{where}: updates after learning_steps, {self._settings.learning_steps}")
        if self._editor is not None:
            editor, before = self._editor
            if before == 0 and cells[1] != editor:
                raise RecordError(f"{where}: the editor is another one, without an update in between")
            if before and cells[1] == editor:
                raise RecordError(f"{where}: the editor is the same after {before} updates")
        self._editor = (cells[1], updates)
        self.updates += updates


def _cells(step: Step, place: int) -> tuple[str, ...]:
    draw = step.draws[place]
    logs = ("" if each is None else repr(each) for each in (draw.log_forward, draw.log_backward))
    numbers = (repr(each) for each in (draw.log_r0, draw.score, draw.uniform))
    return (str(step.number), str(draw.chain), draw.proposal, *logs, *numbers, str(int(draw.accepted)))


def _line(cells: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue()


def _digest(before: str, lines: str, learned: Sequence[str]) -> str:
    return hashlib.sha256((before + "\n" + lines + _line(learned)).encode()).hexdigest()


def _new_table(path: Path, columns: Sequence[str]) -> TextIO:
    file = path.open("x", encoding="utf-8", newline="")
    file.write(_line(columns))
    return file


def _rows(file: TextIO, name: str, columns: Sequence[str]) -> Iterator[list[str]]:
    rows = csv.reader(file)
    if tuple(next(rows, ())) != columns:
        raise RecordError(f"{name}: the columns must be {', '.join(columns)}")
    for row in rows:
        if len(row) != len(columns):
            raise RecordError(f"{name}, line {rows.line_num}: {len(columns)} cells are wanted, not {len(row)}")
        yield row


def _compare(where: str, name: str, found: str, wanted: str) -> None:
    if found != wanted:
        raise RecordError(f"{where}: {name} is {found or 'empty'}, and {wanted or 'empty'} follows from the record")


def _log_chance(where: str, name: str, cell: str) -> float:
    try:
        number = float(cell)
    except ValueError:
        number = math.nan
    # Sums of softmaxes may pass 1 by rounding.
    if not (math.isfinite(number) and number <= 1e-9):
        raise RecordError(f"{where}: log_q_{name} must be the logarithm of a probability, not {cell or 'empty'}")
    return number

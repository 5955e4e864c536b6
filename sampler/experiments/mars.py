"""Chains of molecules driven by computed properties: the paper's MARS baseline (appendix "De novo molecular design").

    s(x) = (min(QED(x), 0.7) + min((10 - SA(x)) / 9, 0.7)) / 2
    accept with probability min(1, r0 (s(x') / s(x))^30)

as in MARS (Xie et al., ICLR 2021) and the rule `sampler.rules.scored`. No judge is asked. Fragments are drawn at random
(`sampler.kernels.fragments`), or by an editor that learns (`sampler.kernels.learned_fragments`).

With an editor all chains take step t under one frozen editor: it answers once for their states and once for their
proposals, and every forward and backward probability of the step is its own. Then it learns, from the edits drawn in
this step that raised the score, accepted or not; step t + 1 knows the result. Each step is a Metropolis-Hastings step
of an exact kernel, but which kernel depends on what the chains have seen. `learning_steps` ends that: from the step
after it on the chains are ordinary ones with the target p0(x) s(x)^30, under the convention "exact". With "paper", r0 =
1 as published, they target nothing that anybody wrote down.

Draws and verdicts are functions of (seed, chain, step) and of the editor's numbers; see `editor` for what holds of
those.

The record of MARS's chains that learn together: a ZIP from which every decision is worked out again.

    lockstep/settings.json   MarsSettings
    lockstep/steps.csv       a line for each step and chain: proposal, log q both ways, log r0, score, U, verdict
    lockstep/editor.csv      a line for each step: hash of the editor that drew it, updates after it, their loss, digest
    samples.csv              what follows from it, as the export of a campaign has it

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
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sampler.chain import Purpose, stream
from sampler.diagnostics.chains import many
from sampler.experiments.options import EXPERIMENTS
from sampler.experiments.outputs import replaced, torch_library
from sampler.kernels.editor import ImprovingEdit, TorchEditor, Update
from sampler.kernels.fragments import FragmentsConfig
from sampler.kernels.learned_fragments import Editor, EditProposal, LearnedFragments, base_ratio
from sampler.objects.molecules import diversity, rate_molecule
from sampler.record import replay as exports
from sampler.record import tables
from sampler.record.draws import state_number
from sampler.record.record import Difference, RecordError, read_record
from sampler.record.replay import Replay
from sampler.record.tables import Cell
from sampler.rules.scored import accept_by_power, mars_score
from sampler.spaces.molecules.edits import Edits
from sampler.spaces.molecules.graph import heavy_atoms
from sampler.spaces.molecules.space import GeneratedMolecules, MoleculesConfig

COLUMNS = ("seed", "chain", "smiles", "qed", "sa", "score", "heavy_atoms", "proposed", "moved")


class MarsSettings(BaseModel):
    """What fixes a run, up to the last digits of the editor's numbers.

    Args:
        seed: of proposals, uniforms, first weights and batches.
        chains, steps: how many.
        convention: how r0 is computed.
        learning_steps: after this step the editor stays as it is; None: it learns until the end, as in MARS.
        space: molecules, p0 and fragments.
        editor: what the editor says about itself; for the reader, nothing follows from it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: Literal[1] = 1
    seed: int = Field(default=0, ge=0)
    chains: int = Field(default=200, ge=1)
    steps: int = Field(default=1_000, ge=1)
    convention: Literal["exact", "paper"] = "paper"
    learning_steps: int | None = Field(default=None, ge=0)
    space: MoleculesConfig = MoleculesConfig()
    editor: dict[str, str | int] = Field(default_factory=dict)

    def learns_after(self, step: int) -> bool:
        """True when the editor may learn after this step."""
        return self.learning_steps is None or step <= self.learning_steps


class Learner(Editor, Protocol):
    """An editor that learns."""

    @property
    def about(self) -> Mapping[str, str | int]:
        """What to write down about it."""
        ...

    def learn(self, edits: Sequence[ImprovingEdit], rng: np.random.Generator) -> Update:
        """Learn from the edits of one step."""
        ...


class FinalMolecule(NamedTuple):
    """Where one chain ended.

    Args:
        chain: its number.
        smiles: its last state.
        proposed: steps whose proposal was another molecule.
        moved: of these, how many were accepted.
    """

    chain: int
    smiles: str
    proposed: int
    moved: int


class Draw(NamedTuple):
    """One chain's part in a step.

    `log_forward` and `log_backward` are None where the proposal is the state itself, and under "paper"; `score` is the
    proposal's.
    """

    chain: int
    proposal: str
    log_forward: float | None
    log_backward: float | None
    log_r0: float
    score: float
    uniform: float
    accepted: bool


class Step(NamedTuple):
    """A step of all chains: the editor that it was drawn by, the draws, and what the editor learned afterwards."""

    number: int
    editor: str
    draws: tuple[Draw, ...]
    update: Update


class Walkers:
    """Where the chains of a run stand, and how often each has moved."""

    def __init__(self, space: GeneratedMolecules, chains: int) -> None:
        self.states = [space.first] * chains
        self._proposed, self._moved = [0] * chains, [0] * chains

    def move(self, chain: int, proposal: str, *, accepted: bool) -> None:
        """Let a chain take its step."""
        if proposal != self.states[chain]:
            self._proposed[chain] += 1
            self._moved[chain] += accepted
        if accepted:
            self.states[chain] = proposal

    def final(self) -> list[FinalMolecule]:
        """Return where the chains are, in their order."""
        counts = zip(self.states, self._proposed, self._moved, strict=True)
        return [FinalMolecule(chain, *each) for chain, each in enumerate(counts)]


def run_mars(
    settings: MarsSettings, learner: Learner | None = None, on_step: Callable[[Step], object] = lambda step: None
) -> list[FinalMolecule]:
    """Run all chains to their end, and return where they ended.

    Args:
        settings: what fixes the run.
        learner: the editor, as its first weights have it; None draws fragments at random.
        on_step: called after every step, such as `LockstepRecord.write`.
    """
    space = settings.space.build()
    propose = _proposing(settings, space, learner)
    walkers = Walkers(space, settings.chains)
    for number in range(1, settings.steps + 1):
        fingerprint, before = learner.fingerprint if learner else "", list(walkers.states)
        rngs = [stream(settings.seed, chain, number, Purpose.PROPOSAL) for chain in range(settings.chains)]
        proposals = propose(rngs, before)
        draws = [_decide(settings.seed, number, chain, before[chain], each) for chain, each in enumerate(proposals)]
        for draw in draws:
            walkers.move(draw.chain, draw.proposal, accepted=draw.accepted)
        update = Update(0, None)
        if learner and settings.learns_after(number):
            improving = _improving(before, proposals, draws)
            update = learner.learn(improving, stream(settings.seed, 0, number, Purpose.EDITOR))
        on_step(Step(number, fingerprint, tuple(draws), update))
    return walkers.final()


def verdict(seed: int, step: int, chain: int, log_r0: float, before: str, after: str) -> tuple[float, bool]:
    """Return U and whether the step from one molecule to another is accepted; one to itself always is."""
    uniform = float(stream(seed, chain, step, Purpose.UNIFORM).random())
    return uniform, before == after or bool(uniform < accept_by_power(log_r0, score_of(before), score_of(after)))


def score_of(state: str) -> float:
    """Return the score of MARS of a molecule, at most 0.7."""
    return float(mars_score(*_rated(state)))


def measures_of(smiles: Sequence[str]) -> dict[str, float]:
    """Return mean QED, mean (10 - SA)/9 and the diversity of a set; of one molecule, no diversity; of none, nothing.

    Raises:
        ValueError: one of them is no molecule.
    """
    if not smiles:
        return {}
    rated = np.array([_rated(each) for each in smiles])
    found = {"qed": float(rated[:, 0].mean()), "sa": float(((10 - rated[:, 1]) / 9).mean())}
    return {**found, "diversity": diversity(smiles)} if len(smiles) > 1 else found


def table(runs: Sequence[Sequence[FinalMolecule]]) -> Iterator[str]:
    """Yield a line for each metric over runs, mean ± SD / √n, with the paper's number where it has one."""
    found = [_metrics(ended) for ended in runs]
    paper = EXPERIMENTS["molecules"].method("mars").published
    for name in found[0]:
        values = [each[name] for each in found]
        error = f" ± {np.std(values, ddof=1) / math.sqrt(len(values)):.3f}" if len(values) > 1 else ""
        beside = f"; paper's MARS {paper[name].value:.3f} ± {paper[name].spread:.3f}" if name in paper else ""
        yield f"{name:12} {np.mean(values):.3f}{error} over {many(len(runs), 'seed')}{beside}"


def write_molecules(runs: Mapping[int, Sequence[FinalMolecule]], out: Path) -> None:
    """Write the final molecules of each seed as CSV.

    Raises:
        OSError: the file cannot be written.
    """
    with out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for seed, ended in runs.items():
            for chain, smiles, proposed, moved in ended:
                scores = (f"{value:.4f}" for value in (*_rated(smiles), score_of(smiles)))
                writer.writerow((seed, chain, smiles, *scores, heavy_atoms(smiles), proposed, moved))


@lru_cache(maxsize=1 << 16)
def _rated(smiles: str) -> tuple[float, float]:
    return rate_molecule(smiles)


def _metrics(ended: Sequence[FinalMolecule]) -> dict[str, float]:
    smiles = [each.smiles for each in ended]
    return {
        **measures_of(smiles),
        "score": float(np.mean([score_of(each) for each in smiles])),
        "heavy atoms": float(np.mean([heavy_atoms(each) for each in smiles])),
        "accepted": sum(each.moved for each in ended) / max(1, sum(each.proposed for each in ended)),
    }


def _proposing(
    settings: MarsSettings, space: GeneratedMolecules, learner: Learner | None
) -> Callable[[Sequence[np.random.Generator], Sequence[str]], Sequence[EditProposal]]:
    """Return what proposes a step of all chains."""
    if learner:
        kernel = LearnedFragments(space.vocabulary, space.distribution, learner, convention=settings.convention)
        return kernel.propose_batch
    plain = FragmentsConfig(convention=settings.convention).build(space)

    def propose(rngs: Sequence[np.random.Generator], states: Sequence[str]) -> list[EditProposal]:
        drawn = [plain.propose(rng, state) for rng, state in zip(rngs, states, strict=True)]
        return [EditProposal(each.state, each.log_r0, None, None, None) for each in drawn]

    return propose


def _decide(seed: int, step: int, chain: int, state: str, proposal: EditProposal) -> Draw:
    uniform, accepted = verdict(seed, step, chain, proposal.log_r0, state, proposal.state)
    return Draw(
        chain,
        proposal.state,
        proposal.log_forward,
        proposal.log_backward,
        proposal.log_r0,
        score_of(proposal.state),
        uniform,
        accepted,
    )


def _improving(states: Sequence[str], proposals: Sequence[EditProposal], draws: Sequence[Draw]) -> list[ImprovingEdit]:
    return [
        ImprovingEdit(state, proposal.edit)
        for state, proposal, draw in zip(states, proposals, draws, strict=True)
        if proposal.edit is not None and draw.score > score_of(state)
    ]


SETTINGS, STEPS, EDITOR = "lockstep/settings.json", "lockstep/steps.csv", "lockstep/editor.csv"
STEP_COLUMNS = (
    "step", "chain_index", "proposal", "log_q_forward", "log_q_backward", "log_r0", "score", "uniform", "accepted",
)  # fmt: skip
EDITOR_COLUMNS = ("step", "editor", "updates", "loss", "digest")
Files = Mapping[str, str]
"""The texts of a record, by name."""


@dataclass(frozen=True)
class LockstepDifference(Difference):
    """A difference in the record of a lockstep run: `what` is the whole message."""

    def __str__(self) -> str:
        return self.what


class LockstepReplay(NamedTuple):
    """What a replay found: what fixed the run, where chains ended, and how often the editor was updated."""

    settings: MarsSettings
    final: list[FinalMolecule]
    updates: int


class LockstepRecord:
    """The record of a run, made step by step.

    Args:
        settings: of the run.
    """

    def __init__(self, settings: MarsSettings) -> None:
        self._settings = settings.model_dump_json(indent=2) + "\n"
        self._digest = _sha256(self._settings)
        self._steps: list[tuple[str, ...]] = [STEP_COLUMNS]
        self._editor: list[tuple[str, ...]] = [EDITOR_COLUMNS]
        self._chains, first = settings.chains, settings.space.build().first
        self._current = [(state_number(chain, 0, self._chains), first) for chain in range(self._chains)]
        self._samples = [tables.SAMPLES.header, *(self._sample(chain, 0) for chain in range(self._chains))]

    def write(self, step: Step) -> tuple[str, ...]:
        """Add a step, and return its cells in the table of the editor."""
        drawn = [_cells(step.number, draw) for draw in step.draws]
        loss = "" if step.update.loss is None else repr(step.update.loss)
        learned = (str(step.number), step.editor, str(step.update.updates), loss)
        self._digest = _sha256(f"{self._digest}\n{_text([*drawn, learned])}")
        self._steps += drawn
        self._editor.append((*learned, self._digest))
        for draw in step.draws:
            if draw.accepted and draw.proposal != self._current[draw.chain][1]:
                self._current[draw.chain] = state_number(draw.chain, step.number, self._chains), draw.proposal
            self._samples.append(self._sample(draw.chain, step.number))
        return self._editor[-1]

    def files(self) -> dict[str, str]:
        """Return the texts of its files, by name."""
        return {
            SETTINGS: self._settings,
            STEPS: _text(self._steps),
            EDITOR: _text(self._editor),
            tables.SAMPLES.file: _text(self._samples),
        }

    def _sample(self, chain: int, step: int) -> list[Cell]:
        number, content = self._current[chain]
        row = {"chain_index": chain, "step": step, "state_index": number, "content": content}
        return tables.SAMPLES.row(**row, phase=tables.SAMPLING)


def run_learned(
    settings: MarsSettings,
    path: Path | None = None,
    device: str = "cpu",
    progress: Callable[[int], object] = lambda step: None,
) -> list[FinalMolecule]:
    """Run chains whose shared editor learns between steps, write their record, and return where they ended.

    The record is written whole or not at all. A run that was stopped starts again from its beginning; on the same
    machine it gives the same record, byte for byte (`editor`).

    Args:
        settings: of the run; what the editor says about itself is added.
        path: of the record; None leaves it out.
        device: of the editor, as PyTorch names it.
        progress: called with the number of every step that is done.

    Raises:
        MissingExtra: PyTorch is not installed.
        OSError: the record cannot be written.
    """
    torch_library()
    editor = TorchEditor(settings.space.build().vocabulary, settings.seed, device=device)
    settings = settings.model_copy(update={"editor": editor.about})
    record = LockstepRecord(settings)

    def on_step(step: Step) -> None:
        record.write(step)
        progress(step.number)

    ended = run_mars(settings, editor, on_step)
    if path is not None:
        with replaced(path) as unfinished:
            pack(record.files(), unfinished)
    return ended


def pack(files: Files, path: Path) -> None:
    """Write a record; equal ones give equal bytes.

    Raises:
        OSError: the file cannot be written.
    """
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            # The earliest date that a ZIP can have: the time of writing is no part of a record.
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, text)


def replay_file(path: Path) -> Replay:
    """Recompute every verdict of a record from its ZIP alone: a campaign's export, or that of a lockstep run.

    Raises:
        RecordError: the file is not there, is no export, or a table is malformed.
        ConfigError: its config cannot be read.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = (SETTINGS, STEPS, EDITOR, tables.SAMPLES.file)
            is_lockstep = SETTINGS in archive.namelist()
            files = {name: archive.read(name).decode() for name in names} if is_lockstep else {}
        if not is_lockstep:
            return exports.replay(read_record(path))
        settings = replay_lockstep(files).settings
    except (OSError, KeyError, zipfile.BadZipFile, zlib.error, UnicodeDecodeError, csv.Error) as error:
        raise RecordError(f"{path} cannot be read: {error}") from error
    except LockstepError as error:
        return Replay(0, 0, (LockstepDifference("", str(error), "", "", tables.SAMPLES.file),))
    decisions = settings.chains * settings.steps
    return Replay(decisions, 0, (), scores=decisions)


class LockstepError(RecordError):
    """Something in a lockstep record does not follow; the message names file, step and chain."""


def replay_lockstep(files: Files) -> LockstepReplay:
    """Work out every decision of a record again, from its files alone.

    Raises:
        LockstepError: something does not follow.
        KeyError: a file is missing.
    """
    try:
        settings = MarsSettings.model_validate_json(files[SETTINGS])
    except ValidationError as error:
        raise LockstepError(f"{SETTINGS}: {error.errors()[0]['msg']}") from error
    draws, editors = _rows(files, STEPS, STEP_COLUMNS), _rows(files, EDITOR, EDITOR_COLUMNS)
    check, record, updates = _Check(settings), LockstepRecord(settings), 0
    for number in range(1, settings.steps + 1):
        drawn, editor = list(itertools.islice(draws, settings.chains)), next(editors, None)
        if len(drawn) < settings.chains or editor is None:
            raise LockstepError(f"the record ends in step {number} of {settings.steps}: run again, or cut steps")
        step = check.step(number, drawn, editor)
        _compare(f"{EDITOR}, step {number}", EDITOR_COLUMNS, editor, record.write(step))
        updates += step.update.updates
    for name, left in ((STEPS, draws), (EDITOR, editors)):
        if next(left, None) is not None:
            raise LockstepError(f"{name}: more lines than {SETTINGS} has steps")
    for name, text in record.files().items():
        if files[name] != text:
            raise LockstepError(f"{name} does not follow from {STEPS}")
    return LockstepReplay(settings, check.walkers.final(), updates)


class _Check:
    """Takes the steps of a record again, and holds where the chains stand."""

    def __init__(self, settings: MarsSettings) -> None:
        self._settings = settings
        space = settings.space.build()
        self._edits = Edits(space.vocabulary, space.distribution)
        self.walkers = Walkers(space, settings.chains)
        self._before: Step | None = None

    def step(self, number: int, drawn: Sequence[list[str]], editor: Sequence[str]) -> Step:
        """Take a step again, given what is taken as recorded: proposals, their log q, and what the editor did."""
        draws = []
        for chain, cells in enumerate(drawn):
            where = f"{STEPS}, step {number}, chain {chain}"
            draws.append(self._draw(where, number, chain, cells))
            _compare(where, STEP_COLUMNS, cells, _cells(number, draws[-1]))
            self.walkers.move(chain, draws[-1].proposal, accepted=draws[-1].accepted)
        where = f"{EDITOR}, step {number}"
        try:
            update = Update(int(editor[2]), float(editor[3]) if editor[3] else None)
        except ValueError as error:
            raise LockstepError(f"{where}: updates and loss must be numbers: {error}") from error
        if update.updates and not self._settings.learns_after(number):
            raise LockstepError(f"{where}: updates after learning_steps, {self._settings.learning_steps}")
        if self._before and (self._before.editor != editor[1]) != (self._before.update.updates > 0):
            raise LockstepError(
                f"{where}: the editor is another one without an update in between, or the same after one"
            )
        self._before = Step(number, editor[1], tuple(draws), update)
        return self._before

    def _draw(self, where: str, number: int, chain: int, cells: Sequence[str]) -> Draw:
        state, proposal = self.walkers.states[chain], cells[2]
        if proposal != state:
            self._check_edit(where, state, proposal)
        forward = backward = None
        ratio = 0.0
        if proposal != state and self._settings.convention == "exact":
            forward, backward = (_log_chance(where, cell) for cell in cells[3:5])
            ratio = base_ratio(self._edits, state, proposal, forward, backward)
        uniform, accepted = verdict(self._settings.seed, number, chain, ratio, state, proposal)
        return Draw(chain, proposal, forward, backward, ratio, score_of(proposal), uniform, accepted)

    def _check_edit(self, where: str, state: str, proposal: str) -> None:
        try:
            low, high = sorted((state, proposal), key=lambda each: self._edits.read(each).size)
            ways = self._edits.ways(low, high)
        except ValueError as error:
            raise LockstepError(f"{where}: proposal: {error}") from error
        if not ways.additions or not ways.deletions:
            raise LockstepError(f"{where}: proposal {proposal} is not one edit away from {state}")


def _cells(number: int, draw: Draw) -> tuple[str, ...]:
    logs = ("" if each is None else repr(each) for each in (draw.log_forward, draw.log_backward))
    numbers = (repr(draw.log_r0), repr(draw.score), repr(draw.uniform), str(int(draw.accepted)))
    return (str(number), str(draw.chain), draw.proposal, *logs, *numbers)


def _text(rows: Iterable[Sequence[Cell]]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue()


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _rows(files: Files, name: str, columns: Sequence[str]) -> Iterator[list[str]]:
    rows = csv.reader(io.StringIO(files[name], newline=""))
    if tuple(next(rows, ())) != columns:
        raise LockstepError(f"{name}: the columns must be {', '.join(columns)}")
    for row in rows:
        if len(row) != len(columns):
            raise LockstepError(f"{name}, line {rows.line_num}: {len(columns)} cells are wanted, not {len(row)}")
        yield row


def _compare(where: str, columns: Sequence[str], found: Sequence[str], wanted: Sequence[str]) -> None:
    for name, cell, follows in zip(columns, found, wanted, strict=True):
        if cell != follows:
            raise LockstepError(
                f"{where}: {name} is {cell or 'empty'}, and {follows or 'empty'} follows from the record"
            )


def _log_chance(where: str, cell: str) -> float:
    try:
        number = float(cell)
    except ValueError:
        number = math.nan
    # Sums of softmaxes may pass 1 by rounding.
    if not (math.isfinite(number) and number <= 1e-9):
        raise LockstepError(f"{where}: log q must be the logarithm of a probability, not {cell or 'empty'}")
    return number

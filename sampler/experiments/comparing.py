"""Records compared: which states of any campaigns' exports meet, prompts matched, and the settings.json of it.

A record's states are those of the later half of each chain, without what the record itself leaves out (burn-in).
Under each prompt M evenly spaced ones of each record meet, the k-th the k-th of every
other record, in both orders. Texts that answer prompts are matched by prompt; other objects by the chain's number.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import file_digest
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

from sampler.experiments.document import Document
from sampler.experiments.kept import evenly_spaced
from sampler.experiments.options import OptionError, VoteSource
from sampler.experiments.tournament import KeptState, TournamentMatch, TournamentSlot, drawn_order
from sampler.record import schema
from sampler.record.reader import read_record
from sampler.spaces import objects_of
from sampler.spaces.texts.space import read_code

COMPARE = "compare"
"""What settings.json calls this experiment."""
PROPERTY = "question"
"""The one property of these votes, as votes.csv names it."""
DEFAULT_MATCHES = 5
VERSION = 1

_WITH_PROMPTS = ("texts", "model-texts")
_SEED = 0


@dataclass(frozen=True)
class ComparedObject:
    """What a state is: its content, and its code where the chain made it (empty in a list).

    `state` is its number, and `row` where it stands in states.csv, the header being row 1.
    """

    content: str
    code: str
    state: str
    row: int


@dataclass(frozen=True)
class ComparedRecord:
    """One record: its states that may meet others.

    Args:
        name: of its file, without the ending; never shown to a voter.
        sha256: of its file, in hexadecimal.
        space: of its recipe.
        chains: for each chain the states of its later half, in order.
        prompts: the prompt that each chain answers; None where its objects answer none.
        objects: what stands in these states.
        path: of its file.
    """

    name: str
    sha256: str
    space: Mapping[str, Any]
    chains: Mapping[int, tuple[KeptState, ...]]
    prompts: Mapping[int, str] | None
    objects: Mapping[KeptState, ComparedObject]
    path: Path

    @property
    def kind(self) -> str:
        """The kind of its objects, a name of `OBJECT_KINDS`."""
        return objects_of(self.space)


@dataclass(frozen=True)
class ComparedRecords:
    """Records and how they are matched; `ComparedRecords.of` works it out.

    Args:
        records: two or more, of one kind of object.
        matched_by: what their chains are matched by.
        prompts: those that every record has: the words, or the numbers of chains.
        left_out: those that only some records have.
        matches: M, for each prompt and pair of records.
    """

    records: tuple[ComparedRecord, ...]
    matched_by: Literal["prompt", "chain"]
    prompts: tuple[str, ...]
    left_out: tuple[str, ...]
    matches: int

    @classmethod
    def of(cls, records: Sequence[ComparedRecord], matches: int | None = None) -> ComparedRecords:
        """Return the comparison of these records.

        Args:
            matches: M; None for 5, or for fewer where a prompt has fewer states.

        Raises:
            OptionError: the records cannot be compared, or have fewer states under a prompt than M.
        """
        _checked(records)
        by_prompt = all(record.prompts is not None for record in records)
        states = [_states(record, by_prompt=by_prompt) for record in records]
        prompts = tuple(prompt for prompt in states[0] if all(prompt in each for each in states))
        everything = dict.fromkeys(prompt for each in states for prompt in each)
        if not prompts:
            raise OptionError(
                "records",
                f"must have a {'prompt' if by_prompt else 'chain'} in common; compare campaigns that answer the same "
                "prompts",
            )
        fewest = min(len(each[prompt]) for each in states for prompt in prompts)
        if matches is not None and not 1 <= matches <= fewest:
            raise OptionError(
                "--matches", f"must be 1 to {fewest}, the states that each record has for each prompt, not {matches}"
            )
        left_out = tuple(prompt for prompt in everything if prompt not in prompts)
        taken = min(DEFAULT_MATCHES, fewest) if matches is None else matches
        return cls(tuple(records), "prompt" if by_prompt else "chain", prompts, left_out, taken)

    @property
    def ids(self) -> tuple[str, ...]:
        """What the tables call the records: r1, r2, ... in their order."""
        return tuple(f"r{number}" for number in range(1, len(self.records) + 1))

    @property
    def kind(self) -> str:
        """The kind of the objects."""
        return self.records[0].kind

    def met(self) -> list[TournamentMatch]:
        """Return every match once: by prompt, pair of records and number."""
        chosen = [self._chosen(record) for record in self.records]
        found = []
        for place, prompt in enumerate(self.prompts):
            for (one, of_one), (other, of_other) in combinations(zip(self.ids, chosen, strict=True), 2):
                for number, ends in enumerate(zip(of_one[prompt], of_other[prompt], strict=True)):
                    found.append(TournamentMatch("", _SEED, place, number, one, other, *ends))
        return found

    def schedule(self) -> list[TournamentSlot]:
        """Return every match in both orders, one after the other, in the order in which they are asked."""
        return drawn_order([(match, PROPERTY) for match in self.met()], _SEED)

    def planned(self) -> dict[str, int]:
        """Return how many votes there will be, for "all" and for each record as the one that is shown first."""
        of_each = len(self.prompts) * self.matches * (len(self.records) - 1)
        return {"all": of_each * len(self.records), **dict.fromkeys(self.ids, of_each)}

    def _chosen(self, record: ComparedRecord) -> dict[str, list[KeptState]]:
        states = _states(record, by_prompt=self.matched_by == "prompt")
        return {
            prompt: [states[prompt][place] for place in evenly_spaced(len(states[prompt]), self.matches)]
            for prompt in self.prompts
        }


def read_compared(path: Path) -> ComparedRecord:
    """Return a record as it is compared.

    Raises:
        RecordError: the file is no export, or a table is malformed.
        RecipeError: its recipe cannot be read.
        OptionError: a chain has no state to compare.
    """
    record = read_record(path)
    space = record.checked_recipe().space.model_dump(mode="json")
    made = {
        row["state"]: ComparedObject(row["content"], row["code"], row["state"], number)
        for number, row in enumerate(record.states, start=2)
    }
    rows: dict[int, list[dict[str, str]]] = {}
    for row in record.samples:
        rows.setdefault(int(row["chain"]), []).append(row)
    prompts = None
    if space["kind"] in _WITH_PROMPTS:
        prompts = {chain: read_code(made[of_chain[0]["state"]].code).prompt for chain, of_chain in rows.items()}
    chains: dict[int, tuple[KeptState, ...]] = {}
    objects: dict[KeptState, ComparedObject] = {}
    for chain in sorted(rows):
        kept = later_half(rows[chain])
        if not kept:
            raise OptionError(str(path), f"has no state of chain {chain} to compare: let the campaign make steps first")
        chains[chain] = tuple(KeptState(chain, int(row["step"])) for row in kept)
        objects |= {KeptState(chain, int(row["step"])): made[row["state"]] for row in kept}
    return ComparedRecord(path.stem, _sha256(path), space, chains, prompts, objects, path)


def later_half(rows: Iterable[dict[str, str]]) -> list[dict[str, str]]:
    """Return the samples of one chain that may meet others, in the order of their steps.

    Left out are the start (step 0), the phases that an analysis leaves out, and the first half of the rest; of an odd
    number the later half has one more.
    """
    walked = [row for row in rows if int(row["step"]) > 0 and row.get("phase") not in schema.LEFT_OUT]
    walked.sort(key=lambda row: int(row["step"]))
    return walked[len(walked) // 2 :]


def comparison_document(
    comparison: ComparedRecords,
    question: str,
    prompt: Mapping[str, Any],
    judge: str,
    commit: str = "",
    votes: VoteSource = "sampled",
) -> Document:
    """Return what settings.json holds of a comparison.

    Args:
        prompt: the words around the objects, as plain data.
        judge: who votes: the endpoint's name and its model.
        commit: of this project.
        votes: how they are asked for.
    """
    records = zip(comparison.ids, comparison.records, strict=True)
    document = {
        "version": VERSION,
        "experiment": COMPARE,
        "title": "Records compared",
        "records": [{"id": each, "name": record.name, "sha256": record.sha256} for each, record in records],
        "objects": comparison.kind,
        "question": question,
        "prompt": dict(prompt),
        "votes": votes,
        "matches": comparison.matches,
        "matched_by": comparison.matched_by,
        "prompts": comparison.prompts,
        "left_out": comparison.left_out,
        "models": {"judge": judge},
        "planned": {"evaluation_requests": comparison.planned()},
        "commit": commit,
    }
    plain: Document = json.loads(json.dumps(document))
    return plain


def _checked(records: Sequence[ComparedRecord]) -> None:
    if len(records) < 2:
        raise OptionError("records", f"must be two or more, not {len(records)}; name the exports to compare")
    names = [record.name for record in records]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise OptionError("records", f"must differ in their files' names; {twice[0]!r} stands there twice: rename one")
    kinds = {record.kind for record in records}
    if len(kinds) > 1:
        told = ", ".join(f"{record.name} has {record.kind}" for record in records)
        raise OptionError("records", f"must hold one kind of object ({told}); compare those of one kind")


def _states(record: ComparedRecord, *, by_prompt: bool) -> dict[str, list[KeptState]]:
    """Return a record's states under each prompt, one chain after the other."""
    found: dict[str, list[KeptState]] = {}
    for chain, states in record.chains.items():
        prompt = record.prompts[chain] if by_prompt and record.prompts is not None else str(chain)
        found.setdefault(prompt, []).extend(states)
    return found


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()

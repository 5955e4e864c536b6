"""The votes of an exported campaign as its readers need them: objects by what they are, judges by whom they ask.

Numbers of states are arbitrary: another numbering of the same record must give the same report. So objects are told
apart by what people saw and stand in the order in which the chains came to them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sampler.diagnostics.choices import Choices
from sampler.record.differences import RecordError, step_key
from sampler.record.record import Record
from sampler.record.tables import FIRST, SIDES

CLUSTERS = ("prompt", "chain", "step", "voter")
# A judge in one of these orders draws the sides of its votes by chance.
_BY_CHANCE = ("random", "balanced")
_NAME_LENGTH = 60


class Objects:
    """The objects of a record's steps, numbered by their first appearance there, whatever the states' numbers.

    Chains make the same molecule, or the same text under a prompt, more than once, each time as a new state. Voters
    cannot tell these apart, so they are one object. A catalog's entries are as many objects.

    Args:
        target_of: the prompt that a chain answers, as `ChainConfig.target_of` returns it.

    Raises:
        KeyError: there is no such column, or no row for a state.
    """

    def __init__(self, record: Record, target_of: Callable[[int], str]) -> None:
        self._same = {row["state_index"]: row["object_index"] for row in record["states"]}
        content = {row["state_index"]: row["content"] for row in record["states"]}
        self._place: dict[tuple[str, str], int] = {}
        chains = {row["chain_index"] for row in (*record["samples"], *record["steps"])}
        self.prompts = {chain: target_of(int(chain)) for chain in chains}
        """By chain; of other objects than texts they are empty."""
        short: list[str] = []
        for row in sorted(record["steps"], key=step_key):
            for state in (row["current_state"], row["proposal_state"]):
                known = self.prompts[row["chain_index"]], self._same[state]
                if self._place.setdefault(known, len(short)) == len(short):
                    short.append((content[state].splitlines() or [""])[0][:_NAME_LENGTH])
        self.names = _distinct(short)
        """What to call each object: the first line of its content, and which it is of those that read alike."""

    def place(self, chain: str, state: str) -> int:
        """Return the object's number: 0 for the one that the chains came to first."""
        return self._place[self.prompts[chain], self._same[state]]

    @property
    def has_prompts(self) -> bool:
        """True where the record's texts answer more than one prompt."""
        return len(set(self.prompts.values())) > 1


@dataclass(frozen=True)
class Answer:
    """One vote: what stood where, and who chose what. Objects are numbers of `Objects`."""

    judge: int
    first: int
    second: int
    chose_first: bool
    cluster: Hashable
    voter: str
    """Empty for a model."""

    @property
    def pair(self) -> tuple[int, int]:
        """The two objects, the one that the chains came to first in front."""
        return min(self.first, self.second), max(self.first, self.second)

    @property
    def chose_former(self) -> bool:
        """True for a vote for the first of the pair."""
        return self.chose_first == (self.first <= self.second)


@dataclass
class Population:
    """One source's answers to one question, twin judges of opposite orders together: one set of scores."""

    source: str
    question: str
    names: Mapping[int, str]
    """What to call each object."""
    judges: dict[int, str] = field(default_factory=dict)
    """The order of each judge by its number."""
    answers: list[Answer] = field(default_factory=list)

    def choices(self) -> Choices:
        """Return the votes."""
        return self._choices(self.answers)

    def choices_apart(self) -> Choices:
        """Return the votes between two different objects."""
        return self._choices([each for each in self.answers if each.first != each.second])

    def choices_by_chance(self) -> Choices:
        """Return the votes to those judges whose sides are drawn by chance."""
        return self._choices([each for each in self.answers if self.judges[each.judge] in _BY_CHANCE])

    def _choices(self, answers: list[Answer]) -> Choices:
        names = self.names
        return Choices.of((names[each.first], names[each.second], each.chose_first, each.cluster) for each in answers)


def cluster_of(objects: Objects, cluster: str | None) -> str:
    """Return which votes belong together: prompt where there are several prompts, else chain; or what is asked for.

    Raises:
        RecordError: there are no prompts to go by, or no such cluster.
    """
    if cluster is not None and cluster not in CLUSTERS:
        raise RecordError(f"cluster must be one of {', '.join(CLUSTERS)}, not {cluster!r}")
    if cluster == "prompt" and not objects.has_prompts:
        raise RecordError("cluster cannot be prompt: the record's objects do not answer several prompts; use chain")
    return cluster or ("prompt" if objects.has_prompts else "chain")


def populations(record: Record, objects: Objects, cluster: str) -> list[Population]:
    """Return the record's counted votes by source and question; in the order of their judges.

    Args:
        cluster: one of `CLUSTERS`.

    Raises:
        ValueError: a cell is not what its column holds.
        KeyError: there is no such column or step.
    """
    judges: list[dict[str, Any]] = record.config["judges"]
    sources = [source_of(judge, judges) for judge in judges]
    found: dict[tuple[str, str], Population] = {}
    for number, (judge, source) in enumerate(zip(judges, sources, strict=True)):
        key = source, judge["question"].strip()
        found.setdefault(key, Population(*key, objects.names)).judges[number] = judge.get("order", "random")
    of_judge = {number: each for each in found.values() for number in each.judges}
    for answer in _answers(record, objects, cluster):
        if answer.judge not in of_judge:
            raise ValueError(f"judge must be 0 to {len(judges) - 1}, not {answer.judge}")
        of_judge[answer.judge].answers.append(answer)
    return [each for each in found.values() if each.answers]


def _answers(record: Record, objects: Objects, cluster: str) -> Iterator[Answer]:
    """Yield the votes in the order in which they were given."""
    steps = {step_key(row) for row in record["steps"]}
    # One format and one time zone, so that times sort as text; votes without a time stay as they stand.
    counted = [row for row in record["votes"] if row["number"]]
    for row in sorted(counted, key=lambda row: row.get("cast_at", "")):
        chain, step = row["chain_index"], step_key(row)
        if step not in steps:
            raise KeyError(step)
        belongs = {"prompt": objects.prompts[chain], "chain": chain, "step": step, "voter": row["voter"]}
        first, second = (objects.place(chain, row[side]) for side in ("first_state", "second_state"))
        if row["chosen_side"] not in SIDES:
            raise ValueError(f"chosen_side must be first or second, not {row['chosen_side']!r}")
        yield Answer(
            int(row["judge_index"]), first, second, row["chosen_side"] == FIRST, belongs[cluster], row["voter"]
        )


def source_of(judge: Mapping[str, Any], judges: list[dict[str, Any]]) -> str:
    """Return who answers: people, a panelist, or a model by its endpoint, and its temperature where it has several."""
    source = judge.get("source") or {"kind": "people"}
    if source["kind"] == "panelist":
        return f"panelist {source['name']}"
    if source["kind"] != "model":
        return str(source["kind"])
    temperatures = {
        each["source"].get("temperature", 1.0)
        for each in judges
        if each.get("source") and each["source"].get("endpoint") == source["endpoint"]
    }
    at = f" at temperature {source.get('temperature', 1.0):g}" if len(temperatures) > 1 else ""
    return f"model {source['endpoint']}{at}"


def _distinct(names: list[str]) -> dict[int, str]:
    taken, seen = Counter(names), Counter[str]()
    distinct = {}
    for place, name in enumerate(names):
        seen[name] += 1
        distinct[place] = name if name and taken[name] == 1 else f"{name} ({seen[name]})".strip()
    return distinct

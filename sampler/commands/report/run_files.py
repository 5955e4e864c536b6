"""A run's folder, read: settings, tables and records. Nothing but files is asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from sampler.experiments import outputs
from sampler.experiments.document import Document, options_of
from sampler.experiments.kept import kept_steps
from sampler.experiments.options import ExperimentOptions, OptionError
from sampler.experiments.outputs import OutputError, read_table, record_name
from sampler.experiments.settings import Direction, ExperimentMethod
from sampler.record.record import read_samples
from sampler.record.tables import Row

StateKey = tuple[str, str, int, int, int]
"""Method, direction, seed, chain, step."""


@dataclass(frozen=True)
class RunFiles:
    """What a run has left in its folder.

    Raises:
        OutputError: settings.json is missing, or is none of an experiment.
    """

    folder: Path

    @cached_property
    def document(self) -> Document:
        """What settings.json holds."""
        path = self.folder / outputs.SETTINGS
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise OutputError(f"{path} is missing: a run of an experiment writes it first") from error
        except ValueError as error:
            raise OutputError(f"{path} is no JSON: {error}") from error
        if not isinstance(found, dict):
            raise OutputError(f"{path} must hold an object")
        return found

    @cached_property
    def options(self) -> ExperimentOptions:
        """What the run was asked for."""
        try:
            return options_of(self.document)
        except (KeyError, TypeError, OptionError) as error:
            raise OutputError(f"{self.folder / outputs.SETTINGS} is none of an experiment: {error}") from error

    @cached_property
    def scores(self) -> dict[str, dict[StateKey, float]]:
        """What kept states were given, by name and then by state.

        Raises:
            OutputError: a state was given the same thing twice, or a cell is no number.
        """
        found: dict[str, dict[StateKey, float]] = {}
        for row in self.rows(outputs.SCORES):
            state = (row["method"], row["direction"], _whole(row, "seed"), _whole(row, "chain"), _whole(row, "step"))
            of_name = found.setdefault(row["name"], {})
            if state in of_name:
                raise OutputError(f"{outputs.SCORES.file} has {row['name']} of {state} twice")
            of_name[state] = _number(row, "value")
        return found

    def rows(self, table: Any) -> Iterator[Row]:
        """Yield the rows of one of the run's tables; none where it has no file."""
        return read_table(self.folder, table)

    def score(self, name: str, state: StateKey) -> float | None:
        """Return what a state was given, or None."""
        return self.scores.get(name, {}).get(state)

    def kept(self, method: ExperimentMethod, direction: Direction, seed: int) -> list[StateKey]:
        """Return the states of one campaign that are evaluated, chain after chain."""
        steps = kept_steps(self.options, method)
        chains = range(self.options.chains_of(direction))
        return [(method.name, direction.name, seed, chain, step) for chain in chains for step in steps]

    def contents(self, method: ExperimentMethod, direction: Direction, seed: int) -> dict[StateKey, str]:
        """Return what the kept states of one campaign say; none where its record is not there yet.

        Raises:
            RecordError: the record cannot be read.
        """
        path = self.folder / outputs.RECORDS / record_name(method.name, direction.name, seed)
        if not path.exists():
            return {}
        wanted = set(self.kept(method, direction, seed))
        samples = read_samples(path)
        keys = ((method.name, direction.name, seed, int(row["chain_index"]), int(row["step"])) for row in samples)
        return {key: row["content"] for key, row in zip(keys, samples, strict=True) if key in wanted}

    def prompt_of(self, direction: Direction, chain: int) -> int:
        """Return the number of the prompt that a chain answers."""
        return chain % direction.inputs


def _whole(row: Row, column: str) -> int:
    try:
        return int(row[column])
    except ValueError as error:
        raise OutputError(f"{column} must be a whole number, not {row[column]!r}") from error


def _number(row: Row, column: str) -> float:
    try:
        return float(row[column])
    except ValueError as error:
        raise OutputError(f"{column} must be a number, not {row[column]!r}") from error

"""settings.json: all that a run was made with, each value with its source; a folder with other settings is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

from sampler.experiments.options import ExperimentOptions
from sampler.experiments.planned import planned_sums, scorer_passes
from sampler.experiments.settings import CHOSEN, Asked, Column, ExperimentMethod, Published

Document = dict[str, Any]

VERSION = 1
_NOT_COMPARED = ("commit", "planned", "scorer_passes")
"""A run may be resumed by a later commit, which changes no setting; the sums follow from the options."""


@dataclass(frozen=True)
class ExperimentInput:
    """One prompt of a direction, and the reference that metrics compare with; empty where there is none."""

    prompt: str
    reference: str = ""


def settings_document(
    options: ExperimentOptions,
    prompts: Mapping[str, Any],
    *,
    inputs: Mapping[str, Sequence[ExperimentInput]] | None = None,
    models: Mapping[str, str] | None = None,
    hashes: Mapping[str, str] | None = None,
    commit: str = "",
) -> Document:
    """Return what settings.json holds: numbers, texts, lists and objects only, in one order for the same options.

    Args:
        prompts: the words of every preset in `preset_names`, by name, as plain data: a folder is to be understood
            without this program.
        inputs: by direction; the report reads references from here.
        models: what answers for each role and scorer, by role, as its server or program names it.
        hashes: SHA-256 of the files that were given, by option.
        commit: of this project.

    Raises:
        KeyError: a preset's words are not given.
    """
    experiment = options.of_experiment
    document = {
        "version": VERSION,
        "experiment": experiment.name,
        "title": experiment.title,
        "options": {name: value for name, value in asdict(options).items() if name != "experiment"},
        "settings": [{"name": each.name, "value": each.value, "source": each.source, "why": each.why}
                     for each in experiment.settings],
        "methods": [_method(each) for each in options.chosen],
        "prompts": {name: prompts[name] for name in preset_names(options)},
        "evaluation": {
            "rated": [_asked(each) for each in experiment.rated],
            "compared": [_asked(each) for each in experiment.compared],
            "reference": experiment.reference,
        },
        "columns": [_column(each) for each in experiment.columns],
        "directions": [{"name": each.name, "prompts": each.inputs} for each in options.directions],
        "inputs": {name: [asdict(each) for each in given] for name, given in (inputs or {}).items()},
        "models": dict(models or {}),
        "hashes": dict(hashes or {}),
        "planned": planned_sums(options),
        "scorer_passes": scorer_passes(options),
        "commit": commit,
    }  # fmt: skip
    # Tuples become lists, as they do in the file, so that a document that was read equals one that was made.
    plain: Document = json.loads(json.dumps(document))
    return plain


def preset_names(options: ExperimentOptions) -> list[str]:
    """Return the presets of `sampler.judges` that a run asks in, sorted. Detectors have a question only."""
    experiment = options.of_experiment
    asked = [each for method in options.chosen for each in method.judges]
    return sorted({each.preset for each in (*asked, *experiment.rated, *experiment.compared) if each.preset})


def settings_text(document: Document) -> str:
    """Return the file's text: the same for the same document."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def settings_hash(document: Document) -> str:
    """Return the SHA-256 of all that has to be the same when a run is resumed, in hexadecimal."""
    compared = {name: value for name, value in document.items() if name not in _NOT_COMPARED}
    return sha256(json.dumps(compared, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def changed_settings(stored: Document, wanted: Document) -> list[str]:
    """Say which settings of a folder differ from those that are wanted now, one sentence each; none where none do."""
    found = []
    for name in sorted({*stored, *wanted} - set(_NOT_COMPARED)):
        found += _changes(name, stored.get(name), wanted.get(name))
    return found


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


def _changes(path: str, stored: Any, wanted: Any) -> list[str]:
    if stored == wanted:
        return []
    if isinstance(stored, dict) and isinstance(wanted, dict):
        parts = sorted({*stored, *wanted})
        return [each for part in parts for each in _changes(f"{path}.{part}", stored.get(part), wanted.get(part))]
    if isinstance(stored, list) and isinstance(wanted, list) and len(stored) == len(wanted):
        pairs = enumerate(zip(stored, wanted, strict=True))
        return [each for place, pair in pairs for each in _changes(f"{path}.{_called(place, *pair)}", *pair)]
    return [f"{path} is {_shown(stored)} in this folder, and {_shown(wanted)} now"]


def _called(place: int, stored: Any, wanted: Any) -> str:
    """Name an entry of a list by its name where it has one."""
    names = {each.get("name") for each in (stored, wanted) if isinstance(each, dict)}
    name = names.pop() if len(names) == 1 else None
    return str(name or place)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _method(method: ExperimentMethod) -> Document:
    return {
        "name": method.name,
        "label": method.label,
        "rule": method.rule,
        "kernel": method.kernel,
        "source": method.source,
        "chosen": method.source == CHOSEN,
        "judges": [_asked(each) for each in method.judges],
        "asks": method.asks,
        "parameters": dict(method.parameters),
        "published": {name: _published(each) for name, each in method.published.items()},
        "inexact": method.inexact,
    }


def _published(cell: Published) -> Document:
    return asdict(cell)


def _asked(asked: Asked) -> Document:
    return asdict(asked)


def _column(column: Column) -> Document:
    return asdict(column)

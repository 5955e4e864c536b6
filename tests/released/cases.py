"""The released campaigns: one for each kind of space and rule, small, and the same whenever they are made.

A recipe here has no version: `make.py` gives it the program's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import sampler
from tests.support.files import archive, picture, table

MODEL, PAINTER = "A model", "painter"
TEXTS = [
    (f"The {colour} {thing} stood there.", 1 + place % 3)
    for place, (colour, thing) in enumerate((c, t) for c in ("red", "blue", "grey") for t in ("house", "tree", "sea"))
]
# The second is written with what a spreadsheet would run, the third with what a CSV has to quote.
ODD_TEXTS = [("=1+1 is what she said", 2), ('He said, "no",\nand went.', 1)]
SMILES = ["CCO", "CCN", "c1ccccc1", "CC(=O)O", "CC(C)O", "c1ccncc1", "CCOC", "C1CCCCC1", "CC#N", "OCCO"]
COLOURS = ["red", "green", "blue", "white", "black", "orange", "purple", "grey"]


@dataclass(frozen=True)
class Case:
    """One campaign.

    Args:
        space, kernel, judges, rule: of its recipe.
        file: name and content of the upload, of a catalog.
        steps: of each of its two chains.
        people: how many vote; none where models alone do.
        votes: how many people's votes the running copy has; where there are no people, how many replies of the model.
    """

    space: Mapping[str, Any]
    kernel: Mapping[str, Any]
    judges: tuple[Mapping[str, Any], ...]
    rule: Mapping[str, Any] = field(default_factory=lambda: {"kind": "n-vote"})
    file: tuple[str, bytes] | None = None
    steps: int = 4
    people: int = 4
    votes: int = 5

    @property
    def is_painted(self) -> bool:
        """True where its pictures take the extra [gpu] to make: elsewhere it can be read and replayed, and no more."""
        return self.space["kind"] == "model-images"

    def recipe(self, version: int, seed: int) -> dict[str, Any]:
        """Return the recipe of this campaign."""
        described = {"space": self.space, "kernel": self.kernel, "judges": list(self.judges), "rule": self.rule}
        return described | {"version": version, "chains": 2, "steps": self.steps, "seed": seed}


def _asked(question: str, budget: int, **more: Any) -> dict[str, Any]:
    return {"question": question, "budget": budget, **more}


def _by_model(votes: str = "sampled", **more: Any) -> dict[str, Any]:
    return {"source": {"kind": "model", "endpoint": MODEL, "temperature": 0.8, "votes": votes, **more}}


def _mixture(**parts: float) -> dict[str, Any]:
    return {
        "kind": "mixture",
        "parts": [{"weight": weight, "kernel": {"kind": kind}} for kind, weight in parts.items()],
    }


def _catalog(objects: str, neighbours: int = 3) -> dict[str, Any]:
    return {"kind": "catalog", "objects": objects, "neighbours": neighbours}


def _texts_file() -> tuple[str, bytes]:
    return "texts.csv", table([("text", "weight"), *TEXTS, *ODD_TEXTS])


def _molecules_file() -> tuple[str, bytes]:
    return "molecules.csv", table([("smiles", "weight"), *((smiles, 1 + len(smiles) % 4) for smiles in SMILES)])


def _images_file() -> tuple[str, bytes]:
    pictures = {f"{colour}.png": picture(colour) for colour in COLOURS}
    weights = table([("file", "weight"), *((name, len(name) / 4) for name in pictures)])
    return "pictures.zip", archive({**pictures, "weights.csv": weights})


_BOTH = _mixture(independent=0.3, neighbours=0.7)
_PEOPLE = (_asked("Which is darker?", 2), _asked("Which is better?", 1))
_TWINS = tuple(_asked("Which is darker?", 2, order=f"proposal-{place}") for place in ("first", "second"))
_RATED = _asked("How dark is it?", 2, **_by_model())


def _rated(form: str, *more: Mapping[str, Any], **rule: Any) -> Case:
    pointwise = {"kind": "pointwise", "form": form, **rule}
    judges = (_RATED, *more)
    return Case(_catalog("texts"), _BOTH, judges, pointwise, _texts_file(), people=0, votes=6)


CASES: dict[str, Case] = {
    # One for each kind of space.
    "catalog-texts": Case(_catalog("texts"), _BOTH, _PEOPLE, file=_texts_file()),
    "catalog-molecules": Case(_catalog("molecules"), _BOTH, _PEOPLE, file=_molecules_file()),
    "catalog-images": Case(_catalog("images"), _BOTH, _PEOPLE, file=_images_file()),
    "texts": Case({"kind": "texts", "scenarios": [3, 14]}, _mixture(independent=0.2, suffix=0.8), _PEOPLE),
    "molecules": Case({"kind": "molecules"}, {"kind": "fragments"}, _PEOPLE, steps=24, votes=3),
    "patterns": Case({"kind": "images"}, sampler.PAPER_MIXTURE, _PEOPLE),
    "model-texts": Case(
        {"kind": "model-texts", "model": MODEL, "prompts": ["Write about the sea.", "Write about a cat."], "limit": 12},
        _mixture(independent=0.2, suffix=0.8),
        _PEOPLE,
    ),
    "model-images": Case(
        {"kind": "model-images", "model": PAINTER, "prompt": "a red mushroom", "dimension": 256},
        sampler.PAPER_MIXTURE,
        _PEOPLE,
    ),
    # One for each rule, and for each way of asking. (N votes in random order: above.)
    "two-judge-order": Case(_catalog("texts"), _BOTH, _TWINS, file=_texts_file()),
    "people-and-model": Case(
        _catalog("texts"),
        _BOTH,
        (_asked("Which is darker?", 2), _asked("Which is darker?", 2, **_by_model()), _asked("Which is better?", 1)),
        file=_texts_file(),
    ),
    "model-asked-first": Case(
        _catalog("texts"),
        _BOTH,
        (
            _asked("Which is darker?", 2, order="balanced", **_by_model("log-probabilities", first=True)),
            _asked("Which is better?", 2),
        ),
        file=_texts_file(),
        votes=4,
    ),
    "model-two-judge-order": Case(
        _catalog("texts"),
        _BOTH,
        tuple({**twin, **_by_model("log-probabilities")} for twin in _TWINS),
        file=_texts_file(),
        people=0,
    ),
    "ratings-separate": _rated("separate", _asked("How good is it?", 1, **_by_model())),
    "ratings-joint": _rated("joint", lowest=0),
    "ratings-difference": _rated("difference"),
    "ratings-power": _rated("power", beta=20.0),
}

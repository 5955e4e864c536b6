"""A catalog: the researcher's own finite list of objects. A state is an item's index in it, from 0.

p0 is proportional to the items' weights. Neighbours, where the config asks for them, form an undirected graph
that is computed once from the objects and recorded with them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from pydantic import ConfigDict, Field, StringConstraints, field_validator

from sampler.declared import ONE_LINE, Declared, Sparse, ui

MAX_SHOWN_COLUMNS = 10
_DETAILS = "Similar objects, and further columns of the file"
_OBJECTS = {
    "texts": "Texts: pasted, or a .txt, .csv or .xlsx file",
    "markdown": "Markdown: the same, shown with its headings, lists, tables and code",
    "molecules": "Molecules: SMILES pasted, or a .smi, .sdf, .csv or .xlsx file",
    "images": "Images: PNG, JPEG, WebP, GIF or BMP files, or a ZIP of them",
    "audio": "Audio: WAV, FLAC, AIFF, MP3 or Ogg files, or a ZIP of them",
}
_Name = Annotated[str, StringConstraints(strip_whitespace=True, to_lower=True, min_length=1, max_length=100)]
_Label = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=60), ONE_LINE]


class ContextColumn(Declared):
    """A further column of the list that whoever judges sees with a pair, and what is written beside its cells."""

    column: _Name = Field(title="Column")
    label: _Label = Field(title="What is written beside it")


class CatalogConfig(Sparse):
    """The part of a config that says: pick from a list of these objects.

    `context` are further columns of the list, shown with a pair. No distribution depends on them but the judges'.
    """

    model_config = ConfigDict(
        title="Your own list: pasted, or from files",
        json_schema_extra=ui(help="People compare objects that you bring."),
    )
    unwritten: ClassVar[tuple[str, ...]] = ("context",)

    kind: Literal["catalog"] = "catalog"
    objects: Literal["texts", "markdown", "molecules", "images", "audio"] = Field(
        title="What is in your list?", json_schema_extra=ui(cards=True, labels=_OBJECTS, start="texts")
    )
    neighbours: int = Field(
        default=0,
        ge=0,
        le=50,
        title="Neighbours per object",
        description="How many similar objects a small move can lead to, at least; neighbours are always mutual. With "
        "0, each object is compared with a fresh draw from the whole list.",
        json_schema_extra=ui(fold=_DETAILS, start=8),
    )
    context: tuple[ContextColumn, ...] = Field(
        default=(),
        max_length=MAX_SHOWN_COLUMNS,
        title="Shown with each pair",
        description="Further columns of the file that people and models see.",
        json_schema_extra=ui(fold=_DETAILS, rows="Add a column"),
    )

    @field_validator("context")
    @classmethod
    def _shows_each_once(cls, context: tuple[ContextColumn, ...]) -> tuple[ContextColumn, ...]:
        for name in ("column", "label"):
            given = [getattr(each, name) for each in context]
            if twice := [each for index, each in enumerate(given) if each in given[:index]]:
                raise ValueError(f"the {name} “{twice[0]}” stands there twice; each may be there once")
        return context


@dataclass(frozen=True)
class Catalog:
    """p0 and the neighbour graph over n items.

    Args:
        weights: positive, shape (n,); p0 is proportional to them.
        neighbours: for each item the indices of its neighbours, ascending; empty when there is no graph.

    Raises:
        ValueError: fewer than two items, a weight that is not a positive number, or a graph that names an
            unknown item, links an item to itself, or is not symmetric.
    """

    is_fast: ClassVar[bool] = True
    """A draw is a binary search; see `Plan.is_fast_at`."""
    weights: npt.NDArray[np.float64]
    neighbours: tuple[tuple[int, ...], ...] = ()
    log_p0: npt.NDArray[np.float64] = field(init=False, repr=False)
    _cumulative: list[float] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        weights = np.asarray(self.weights, dtype=np.float64)
        if weights.ndim != 1 or len(weights) < 2:
            raise ValueError("weights must list at least two items")
        if not np.all(np.isfinite(weights)) or np.any(weights <= 0):
            raise ValueError("weights must be positive numbers")
        if self.neighbours:
            _check_graph(self.neighbours, len(weights))
        with np.errstate(over="ignore"):
            total = weights.sum()
        if not np.isfinite(total) or np.any(weights / total == 0):
            raise ValueError("weights must have a finite sum, and none may be negligible in it")
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "log_p0", np.log(weights / total))
        object.__setattr__(self, "_cumulative", (np.cumsum(weights) / total).tolist())

    def __len__(self) -> int:
        return len(self.weights)

    def draw(self, rng: np.random.Generator) -> int:
        """Draw an item from p0, by inversion of its distribution function."""
        return min(bisect_right(self._cumulative, rng.random()), len(self) - 1)

    def start(self, rng: np.random.Generator, chain: int) -> int:
        """Draw x^(0) from p0, for every chain alike."""
        return self.draw(rng)

    def refresh(self, rng: np.random.Generator, state: int) -> int:
        """Draw x' ~ p0 whatever `state` is."""
        return self.draw(rng)

    def components(self) -> int:
        """Return into how many parts the neighbour graph falls; 1 means every item can reach every other."""
        return _parts_of(self._graph())

    def is_bipartite(self) -> bool:
        """True when the items fall into two halves with no edge inside either.

        Then each part of the graph is two where every edge leads from one copy of the items to another.
        """
        from scipy.sparse import block_array

        graph = self._graph()
        return _parts_of(block_array([[None, graph], [graph, None]])) == 2 * _parts_of(graph)

    def _graph(self) -> Any:
        # Not with the module: SciPy takes a quarter of a second, and few programs come here.
        from scipy.sparse import csr_array

        ends = np.array([other for row in self.neighbours for other in row], dtype=np.int64)
        starts = np.cumsum([0, *(len(row) for row in self.neighbours)])
        return csr_array((np.ones(len(ends)), ends, starts), shape=(len(self), len(self)))


def _parts_of(graph: Any) -> int:
    from scipy.sparse.csgraph import connected_components

    return int(connected_components(graph, directed=False)[0])


def _check_graph(neighbours: Sequence[Sequence[int]], items: int) -> None:
    if len(neighbours) != items:
        raise ValueError(f"neighbours must list {items} items, not {len(neighbours)}")
    links = [set(row) for row in neighbours]
    for item, row in enumerate(links):
        if item in row or len(row) != len(neighbours[item]):
            raise ValueError(f"neighbours of item {item} must be other items, each once")
        for other in row:
            if not 0 <= other < items:
                raise ValueError(f"neighbours of item {item} name an unknown item, {other}")
            if item not in links[other]:
                raise ValueError(f"neighbours must be symmetric: {item} lists {other}, not the reverse")

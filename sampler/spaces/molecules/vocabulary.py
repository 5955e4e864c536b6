"""The vocabulary: the fragments that molecules grow by, cut from molecules that exist.

A file of fragments is text, UTF-8: lines that start with # are comments, every other line is a fragment as SMILES with
one dummy `*`, and, after a tab, how often it was cut. The package's own list was made by `python -m sampler vocabulary`
from SMILES files in RDKit's wheel (BSD licence); its header says which.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from importlib import resources
from pathlib import Path

import numpy as np
from rdkit import Chem, RDConfig

from sampler.spaces.molecules.graph import Fragment, MoleculeGraph, canonical_state, read_fragment, read_molecule

MAX_FRAGMENT_ATOMS = 10
DEFAULT_FRAGMENTS = 1_000
# Of the elements most common in drugs; fragments of others are left out.
FRAGMENT_ELEMENTS = frozenset({"B", "C", "N", "O", "F", "Si", "P", "S", "Cl", "Br", "I"})
_LARGEST_PARENT = 100
# Ring atoms, heteroatoms, and carbon with a double or triple bond: one end of a bond cut for the vocabulary is one.
_RING_OR_FUNCTIONAL = Chem.MolFromSmarts("[R,!#6,$([#6]=,#[*])]")
_DEFAULT_FILE = "fragments.tsv"
# The SMILES files in RDKit's wheel that the package's own list is cut from.
_SOURCES = (
    Path(RDConfig.RDDataDir) / "NCI/first_5K.smi",
    Path(RDConfig.RDDataDir) / "Pains/test_data/wehi_mols.csv",
    Path(RDConfig.RDContribDir) / "SA_Score/data/zim.100.txt",
)


class Vocabulary:
    """Fragments, each with the probability that an addition draws it.

    Args:
        fragments: SMILES with one dummy, and a weight, positive. Entries that are the same fragment add their weights.

    Raises:
        ValueError: no fragment, one that is none or has more than `MAX_FRAGMENT_ATOMS` heavy atoms, or a bad weight.
    """

    def __init__(self, fragments: Iterable[tuple[str, float]]) -> None:
        merged: dict[str, float] = {}
        self._fragments: dict[str, Fragment] = {}
        for smiles, weight in fragments:
            if not (math.isfinite(weight) and weight > 0):
                raise ValueError(f"the weight of “{smiles}” must be a positive number, not {weight}")
            fragment = read_fragment(smiles)
            if fragment.size > MAX_FRAGMENT_ATOMS:
                raise ValueError(
                    f"“{smiles}” has {fragment.size} heavy atoms; at most {MAX_FRAGMENT_ATOMS} are allowed"
                )
            self._fragments[fragment.smiles] = fragment
            merged[fragment.smiles] = merged.get(fragment.smiles, 0.0) + weight
        if not merged:
            raise ValueError("a vocabulary must hold at least one fragment")
        total = math.fsum(merged.values())
        self.weights: dict[str, float] = {fragment: weight / total for fragment, weight in merged.items()}
        self.largest = max(fragment.size for fragment in self._fragments.values())
        self._order = list(self._fragments.values())
        self._cumulative = np.cumsum(list(self.weights.values())).tolist()

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[Fragment]:
        return iter(self._order)

    def __contains__(self, fragment: str) -> bool:
        return fragment in self.weights

    def draw(self, rng: np.random.Generator) -> Fragment:
        """Draw a fragment by its weight, by inversion of the distribution function."""
        index = bisect_right(self._cumulative, rng.random())
        return self._order[min(index, len(self._order) - 1)]


def default_vocabulary() -> Vocabulary:
    """Return the package's own fragments, each with the same weight."""
    text = resources.files("sampler").joinpath("data", _DEFAULT_FILE).read_text(encoding="utf-8")
    return Vocabulary((fragment, 1.0) for fragment, _ in parse_fragments(text))


def load_vocabulary(path: Path) -> Vocabulary:
    """Return the vocabulary of a file of fragments. Each line counts the same, and a fragment listed twice, twice.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no file of fragments.
    """
    try:
        # Some editors put a byte order mark in front.
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text; save it as UTF-8") from error
    return Vocabulary((fragment, 1.0) for fragment, _ in parse_fragments(text))


def parse_fragments(text: str) -> list[tuple[str, int]]:
    """Return the fragments and counts that a file of fragments lists, in its order; a line without a count counts 1.

    Raises:
        ValueError: a line that is neither comment nor fragment; the message gives its number.
    """
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        fragment, _, count = line.partition("\t")
        if not re.fullmatch(r"[1-9][0-9]*|", count.strip()):
            raise ValueError(f"line {number}: the count must be a positive whole number, not {count.strip()!r}")
        found.append((fragment.strip(), int(count or 1)))
    return found


def format_fragments(fragments: Sequence[tuple[str, int]], header: str) -> str:
    """Return a file of fragments; every line of the header becomes a comment."""
    lines = [f"# {line}".rstrip() for line in header.splitlines()]
    return "\n".join([*lines, *(f"{fragment}\t{count}" for fragment, count in fragments), ""])


def derive_vocabulary(molecules: Iterable[str], most: int | None = DEFAULT_FRAGMENTS) -> list[tuple[str, int]]:
    """Return the fragments that molecules are made of and in how many places each was cut, most frequent first.

    Every distinct molecule counts once, by its largest component, without stereochemistry. An acyclic single bond is
    cut where at least one end is a ring atom, a heteroatom or an unsaturated carbon. Kept are fragments of at most
    `MAX_FRAGMENT_ATOMS` heavy atoms, without net charge or isotopes, of the elements `FRAGMENT_ELEMENTS`. Fragments cut
    equally often stand in alphabetical order.

    Args:
        molecules: SMILES; those that RDKit refuses are passed over.
        most: how many fragments to keep; None keeps all.
    """
    counts: Counter[str] = Counter()
    for state in _parents_of(molecules):
        counts.update(_fragments_of(read_molecule(state)))
    usable = ((fragment, count) for fragment, count in counts.items() if _is_usable(fragment))
    return sorted(usable, key=lambda entry: (-entry[1], entry[0]))[:most]


def read_smiles(path: Path) -> Iterator[str]:
    """Yield the first field of each line of a .smi, .csv or .tsv file; those that are no SMILES too.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open(encoding="utf-8-sig", errors="replace") as lines:
        for line in lines:
            first = re.split(r"[\s,;\"]", line.strip().lstrip('"'), maxsplit=1)[0]
            if first and not first.startswith("#"):
                yield first


def write_vocabulary(files: Sequence[Path], out: Path, most: int = DEFAULT_FRAGMENTS) -> str:
    """Write the fragments cut from these files, or from RDKit's own if there is none; say in a line what was done.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: no fragment can be cut from these files.
    """
    named = files or _SOURCES
    fragments = derive_vocabulary((smiles for path in named for smiles in read_smiles(path)), most)
    if not fragments:
        raise ValueError("no line of these files starts with a molecule that fragments can be cut from")
    sources = ", ".join(path.name for path in named)
    made = "the SMILES in RDKit's wheel (BSD licence)" if not files else "SMILES files"
    header = (
        f"{len(fragments)} fragments, each with the number of places it was cut from, by `python -m sampler "
        f"vocabulary` from {made}:\n{sources}\nfragment with one dummy where it attaches, tab, count"
    )
    out.write_text(format_fragments(fragments, header), encoding="utf-8")
    return f"{out}: {len(fragments)} fragments, with counts of {fragments[-1][1]} or more"


def _parents_of(molecules: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for smiles in molecules:
        state = _parent(smiles)
        if state and state not in seen:
            seen.add(state)
            yield state


def _parent(smiles: str) -> str:
    largest = max(smiles.split("."), key=len)
    try:
        state = canonical_state(largest)
    except ValueError:
        return ""
    return state if read_molecule(state).size <= _LARGEST_PARENT else ""


def _fragments_of(graph: MoleculeGraph) -> Iterator[str]:
    marked = {atom for (atom,) in graph.molecule.GetSubstructMatches(_RING_OR_FUNCTIONAL)}
    for cut in graph.cuts:
        if cut.size <= MAX_FRAGMENT_ATOMS and not marked.isdisjoint((cut.keep, cut.drop)):
            yield graph.pieces(cut).fragment


def _is_usable(smiles: str) -> bool:
    try:
        fragment = read_fragment(smiles)
    except ValueError:
        return False
    atoms = list(fragment.molecule.GetAtoms())
    return (
        fragment.smiles == smiles
        and sum(atom.GetFormalCharge() for atom in atoms) == 0
        and all(atom.GetSymbol() in FRAGMENT_ELEMENTS and not atom.GetIsotope() for atom in atoms)
    )

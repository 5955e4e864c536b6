"""The vocabulary: the arms that molecules grow by, cut from molecules that exist.

A file of arms is text, UTF-8: lines that start with # are comments, every other line is an arm as SMILES with one dummy
`*`, and, after a tab, how often it was cut. The package's own list was made by `python -m sampler vocabulary` from
SMILES files in RDKit's wheel (BSD licence); its header says which.
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

from sampler.spaces.molecules.graph import Arm, MoleculeGraph, canonical_state, read_arm, read_molecule

MAX_ARM_ATOMS = 10
DEFAULT_ARMS = 1_000
# Of the elements most common in drugs; arms of others are left out.
ARM_ELEMENTS = frozenset({"B", "C", "N", "O", "F", "Si", "P", "S", "Cl", "Br", "I"})
_LARGEST_PARENT = 100
# Ring atoms, heteroatoms, and carbon with a double or triple bond: one end of a bond cut for the vocabulary is one.
_RING_OR_FUNCTIONAL = Chem.MolFromSmarts("[R,!#6,$([#6]=,#[*])]")
_DEFAULT_FILE = "arms.tsv"
# The SMILES files in RDKit's wheel that the package's own list is cut from.
_SOURCES = (
    Path(RDConfig.RDDataDir) / "NCI/first_5K.smi",
    Path(RDConfig.RDDataDir) / "Pains/test_data/wehi_mols.csv",
    Path(RDConfig.RDContribDir) / "SA_Score/data/zim.100.txt",
)


class Vocabulary:
    """Arms, each with the probability that an addition draws it.

    Args:
        arms: SMILES with one dummy, and a weight, positive. Entries that are the same arm add their weights.

    Raises:
        ValueError: no arm, an arm that is none or has more than `MAX_ARM_ATOMS` heavy atoms, or a bad weight.
    """

    def __init__(self, arms: Iterable[tuple[str, float]]) -> None:
        merged: dict[str, float] = {}
        self._arms: dict[str, Arm] = {}
        for smiles, weight in arms:
            if not (math.isfinite(weight) and weight > 0):
                raise ValueError(f"the weight of “{smiles}” must be a positive number, not {weight}")
            arm = read_arm(smiles)
            if arm.size > MAX_ARM_ATOMS:
                raise ValueError(f"“{smiles}” has {arm.size} heavy atoms; at most {MAX_ARM_ATOMS} are allowed")
            self._arms[arm.smiles] = arm
            merged[arm.smiles] = merged.get(arm.smiles, 0.0) + weight
        if not merged:
            raise ValueError("a vocabulary must hold at least one arm")
        total = math.fsum(merged.values())
        self.weights: dict[str, float] = {arm: weight / total for arm, weight in merged.items()}
        self.largest = max(arm.size for arm in self._arms.values())
        self._order = list(self._arms.values())
        self._cumulative = np.cumsum(list(self.weights.values())).tolist()

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[Arm]:
        return iter(self._order)

    def __contains__(self, arm: str) -> bool:
        return arm in self.weights

    def draw(self, rng: np.random.Generator) -> Arm:
        """Draw an arm by its weight, by inversion of the distribution function."""
        index = bisect_right(self._cumulative, rng.random())
        return self._order[min(index, len(self._order) - 1)]


def default_vocabulary() -> Vocabulary:
    """Return the package's own arms, each with the same weight."""
    text = resources.files("sampler").joinpath("data", _DEFAULT_FILE).read_text(encoding="utf-8")
    return Vocabulary((arm, 1.0) for arm, _ in parse_arms(text))


def load_vocabulary(path: Path) -> Vocabulary:
    """Return the vocabulary of a file of arms. Each line counts the same, and an arm listed twice, twice.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no file of arms.
    """
    try:
        # Some editors put a byte order mark in front.
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text; save it as UTF-8") from error
    return Vocabulary((arm, 1.0) for arm, _ in parse_arms(text))


def parse_arms(text: str) -> list[tuple[str, int]]:
    """Return the arms and counts that a file of arms lists, in its order; a line without a count counts 1.

    Raises:
        ValueError: a line that is neither comment nor arm; the message gives its number.
    """
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        arm, _, count = line.partition("\t")
        if not re.fullmatch(r"[1-9][0-9]*|", count.strip()):
            raise ValueError(f"line {number}: the count must be a positive whole number, not {count.strip()!r}")
        found.append((arm.strip(), int(count or 1)))
    return found


def format_arms(arms: Sequence[tuple[str, int]], header: str) -> str:
    """Return a file of arms; every line of the header becomes a comment."""
    lines = [f"# {line}".rstrip() for line in header.splitlines()]
    return "\n".join([*lines, *(f"{arm}\t{count}" for arm, count in arms), ""])


def derive_vocabulary(molecules: Iterable[str], most: int | None = DEFAULT_ARMS) -> list[tuple[str, int]]:
    """Return the arms that molecules are made of and in how many places each was cut, most frequent first.

    Every distinct molecule counts once, by its largest component, without stereochemistry. An acyclic single bond is
    cut where at least one end is a ring atom, a heteroatom or an unsaturated carbon. Kept are arms of at most
    `MAX_ARM_ATOMS` heavy atoms, without net charge or isotopes, of the elements `ARM_ELEMENTS`. Arms cut equally often
    stand in alphabetical order.

    Args:
        molecules: SMILES; those that RDKit refuses are passed over.
        most: how many arms to keep; None keeps all.
    """
    counts: Counter[str] = Counter()
    for state in _parents_of(molecules):
        counts.update(_arms_of(read_molecule(state)))
    usable = ((arm, count) for arm, count in counts.items() if _is_usable(arm))
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


def write_vocabulary(files: Sequence[Path], out: Path, most: int = DEFAULT_ARMS) -> str:
    """Write the arms cut from these files, or from RDKit's own where none is given; return what was done in a line.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: no arm can be cut from these files.
    """
    named = files or _SOURCES
    arms = derive_vocabulary((smiles for path in named for smiles in read_smiles(path)), most)
    if not arms:
        raise ValueError("no line of these files starts with a molecule that arms can be cut from")
    sources = ", ".join(path.name for path in named)
    made = "the SMILES in RDKit's wheel (BSD licence)" if not files else "SMILES files"
    header = (
        f"{len(arms)} arms, each with the number of places it was cut from, by `python -m sampler vocabulary` "
        f"from {made}:\n{sources}\narm with one dummy where it attaches, tab, count"
    )
    out.write_text(format_arms(arms, header), encoding="utf-8")
    return f"{out}: {len(arms)} arms, with counts of {arms[-1][1]} or more"


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


def _arms_of(graph: MoleculeGraph) -> Iterator[str]:
    marked = {atom for (atom,) in graph.molecule.GetSubstructMatches(_RING_OR_FUNCTIONAL)}
    for cut in graph.cuts:
        if cut.size <= MAX_ARM_ATOMS and not marked.isdisjoint((cut.keep, cut.drop)):
            yield graph.pieces(cut).arm


def _is_usable(smiles: str) -> bool:
    try:
        arm = read_arm(smiles)
    except ValueError:
        return False
    atoms = list(arm.molecule.GetAtoms())
    return (
        arm.smiles == smiles
        and sum(atom.GetFormalCharge() for atom in atoms) == 0
        and all(atom.GetSymbol() in ARM_ELEMENTS and not atom.GetIsotope() for atom in atoms)
    )

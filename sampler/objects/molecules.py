"""Molecules: a CSV with a column `smiles`, and `weight` if wanted; near means similar Morgan fingerprints. They are
drawn as SVG, one alone or two in a common orientation, with colours for light and for dark ground.

They are measured as a chemist reads them: drug-likeness, ease of synthesis, properties, structural alerts. How varied a
set is rests on Morgan's fingerprints of radius 3, 2048 bits (Rogers and Hahn, J. Chem. Inf. Model. 50, 2010), also
called ECFP6: those of MARS (Xie et al., ICLR 2021), so that its published diversity can be compared.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import cast

import numpy as np
from rdkit import Chem, DataStructs, RDConfig, rdBase
from rdkit.Chem import QED, rdDepictor, rdFingerprintGenerator, rdFMCS, rdMolDescriptors
from rdkit.Chem.Draw import rdMolDraw2D

from sampler.objects.items import Graph, symmetric
from sampler.objects.tables import quoted
from sampler.spaces.molecules.graph import parsed, read_molecule
from sampler.spaces.molecules.space import alert_catalog

# A drawing made for a desktop is shown at two fifths of its size on a phone: lines and letters are wide enough for it.
_DRAWING = json.dumps(
    {
        "clearBackground": False,
        "padding": 0.04,
        "fixedBondLength": 40,
        "bondLineWidth": 2.6,
        "baseFontSize": 0.7,
        "minFontSize": 16,
        "maxFontSize": 32,
        "additionalAtomLabelPadding": 0.06,
    }
)
# Instead of RDKit's where those are too faint, by atomic number, for light and for dark ground.
_COLOURS: dict[bool, dict[int, tuple[float, float, float]]] = {
    False: {9: (0.0, 0.45, 0.45), 15: (0.65, 0.35, 0.0), 16: (0.5, 0.42, 0.0), 17: (0.0, 0.45, 0.1)},
    True: {7: (0.55, 0.65, 1.0), 8: (1.0, 0.42, 0.42), 35: (0.9, 0.55, 0.25), 53: (0.8, 0.55, 1.0)},
}
# Amber, and a brown of the same hue: labels of every element stay legible on it.
_MARK = {False: (1.0, 0.85, 0.4), True: (0.45, 0.33, 0.05)}
# Of a common part that fits in several ways, so many are compared.
_WAYS = 64
# What the search for a common part may take: counted, not timed, so that every machine draws alike. Looking for the
# smaller molecule in the larger one, so many pairs of atoms are compared. The common substructure is looked for from so
# many beginnings, in molecules of at most so many atoms, of bonds beyond those of a chain, and of ends at one atom that
# could change places, such as the fluorines of CF3: each way around a ring and each order of ends is tried. Molecules
# beyond that are drawn each by itself.
_MAX_COMPARED = 20_000
_MAX_BEGINNINGS = 2_000
_MAX_ATOMS, _MAX_BONDS_MORE, _MAX_EQUAL_ENDS = 60, 8, 12


_Changed = tuple[list[int], list[int]]
"""The atoms and the bonds of a molecule that are not in the common part."""
_UNCHANGED: _Changed = ([], [])


def draw_molecule(smiles: str, width: int = 420, height: int = 320, *, dark: bool = False) -> str:
    """Return the molecule drawn as SVG, text as paths, on a transparent ground.

    Args:
        smiles: the molecule.
        width, height: pixels.
        dark: colours for a dark ground.

    Raises:
        ValueError: not a molecule.
    """
    return _draw(_read(smiles), _UNCHANGED, width, height, dark)


def molecule_png(smiles: str, width: int = 420, height: int = 320) -> bytes:
    """Return the molecule drawn as PNG on white, for those who see pixels only.

    Raises:
        ValueError: not a molecule.
    """
    drawing = rdMolDraw2D.MolDraw2DCairo(width, height)
    # RDKit would write the molecule into the file, and fails for some that it draws.
    drawing.drawOptions().includeMetadata = False  # type: ignore[assignment]  # its stubs have the wrong type
    rdMolDraw2D.PrepareAndDrawMolecule(drawing, _read(smiles))
    drawing.FinishDrawing()
    return bytes(drawing.GetDrawingText())


def draw_pair(
    one: str, other: str, *, marked: bool = False, dark: bool = False, width: int = 420, height: int = 320
) -> tuple[str, str]:
    """Return two molecules drawn as by `draw_molecule`, what they have in common in the same orientation.

    Swapping the molecules swaps the drawings and changes nothing else: which of them is the proposal does not show.
    The common part is the smaller molecule where the larger contains it, else the maximum common substructure, whole
    rings only.

    Args:
        one, other: SMILES.
        marked: highlight what is not in the common part.
        dark: colours for a dark ground.
        width, height: of each drawing, pixels.

    Raises:
        ValueError: either is not a molecule.
    """
    small, large = sorted((one, other), key=lambda smiles: (_read(smiles).GetNumAtoms(), smiles))
    drawn = {
        smiles: _draw(molecule, changed if marked else _UNCHANGED, width, height, dark)
        for smiles, (molecule, changed) in zip((large, small), _laid_out(small, large), strict=True)
    }
    return drawn[one], drawn[other]


@lru_cache(maxsize=256)
def _laid_out(small: str, large: str) -> tuple[tuple[Chem.Mol, _Changed], ...]:
    """Return the larger molecule and the smaller one with places for their atoms, the common part alike, and what is
    not in it: once for all drawings of a pair.
    """
    here, there = _read(small), _read(large)
    common = _common_part(here, there)
    rdDepictor.Compute2DCoords(there)
    if common:
        rdDepictor.GenerateDepictionMatching2DStructure(here, there, [(b, a) for a, b in common.items()])
    if not common or not _is_drawn_true(here):
        # What is laid out like an E form looks like one.
        rdDepictor.Compute2DCoords(here)
    return (there, _changed(there, here, {b: a for a, b in common.items()})), (here, _changed(here, there, common))


def _is_drawn_true(molecule: Chem.Mol) -> bool:
    """True where what can be read off the drawing is the same molecule; asked of double bonds with stereochemistry."""
    if not any(bond.GetStereo() > Chem.BondStereo.STEREOANY for bond in molecule.GetBonds()):
        return True
    with rdBase.BlockLogs():
        try:
            read = Chem.MolFromMolBlock(Chem.MolToMolBlock(molecule))
        except RuntimeError:
            # RDKit writes no dummy atom with a positive charge: nobody can tell.
            return False
    return read is not None and Chem.MolToSmiles(read) == Chem.MolToSmiles(molecule)


def _read(smiles: str) -> Chem.Mol:
    molecule = _parsed(smiles)
    # A double bond of which nobody has said whether it is E or Z is drawn crossed.
    Chem.FindPotentialStereoBonds(molecule)
    return molecule


def _parsed(smiles: str) -> Chem.Mol:
    molecule = parsed(smiles)
    if molecule is None:
        raise ValueError(f"“{smiles[:60]}” is not a molecule")
    return molecule


def _common_part(small: Chem.Mol, large: Chem.Mol) -> dict[int, int]:
    """Return, for atoms of `small`, the atom of `large` that is the same; empty if they have nothing in common."""
    ways, query = _matches(large, small), small
    if not ways:
        query = _common_substructure(small, large)
        ways = _matches(large, query)
    here = _matches(small, query, most=1)
    if not ways or not here:
        return {}
    return min(
        (dict(zip(here[0], there, strict=True)) for there in ways), key=lambda common: _joining_bonds(large, common)
    )


def _matches(molecule: Chem.Mol, query: Chem.Mol, most: int = _WAYS) -> Sequence[Sequence[int]]:
    """Return how the query fits into the molecule; not every way where looking on would take too long."""
    left = itertools.repeat(True, _MAX_COMPARED)
    search = Chem.SubstructMatchParameters()
    search.maxMatches = most  # type: ignore[assignment]  # RDKit's stubs take it for the parameters
    search.setExtraAtomCheckFunc(lambda one, other: next(left, False))
    found: Sequence[Sequence[int]] = molecule.GetSubstructMatches(query, search)
    return found


def _common_substructure(small: Chem.Mol, large: Chem.Mol) -> Chem.Mol:
    """Return what the two have in common; nothing where it is not looked for to the end."""
    if not (_is_searched(small) and _is_searched(large)):
        return Chem.Mol()
    search = rdFMCS.MCSParameters()
    search.BondTyper = rdFMCS.BondCompare.CompareOrderExact
    search.BondCompareParameters.RingMatchesRingOnly = True
    search.BondCompareParameters.CompleteRingsOnly = True
    search.ProgressCallback = beginnings = _Beginnings()
    found = rdFMCS.FindMCS([small, large], search)
    return Chem.MolFromSmarts(found.smartsString if beginnings.left else "")


class _Beginnings(rdFMCS.MCSProgress):
    """Ends a search after so many beginnings."""

    left = _MAX_BEGINNINGS

    def __call__(self, found: rdFMCS.MCSProgressData, search: rdFMCS.MCSParameters) -> bool:
        self.left -= 1
        return self.left > 0


def _is_searched(molecule: Chem.Mol) -> bool:
    """True where a common substructure is looked for in it."""
    atoms = molecule.GetNumAtoms()
    if atoms > _MAX_ATOMS or molecule.GetNumBonds() - atoms + 1 > _MAX_BONDS_MORE:
        return False
    ranks = list(Chem.CanonicalRankAtoms(molecule, breakTies=False))
    equal = 0
    for atom in molecule.GetAtoms():
        ends = (bond.GetOtherAtomIdx(atom.GetIdx()) for bond in atom.GetBonds() if not bond.IsInRing())
        equal += sum(count for count in Counter(ranks[end] for end in ends).values() if count > 1)
    return equal <= _MAX_EQUAL_ENDS


def _joining_bonds(molecule: Chem.Mol, common: dict[int, int]) -> int:
    """Return how many bonds join the common part to the rest: one where a single fragment was added."""
    inside = set(common.values())
    return sum((bond.GetBeginAtomIdx() in inside) != (bond.GetEndAtomIdx() in inside) for bond in molecule.GetBonds())


def _changed(molecule: Chem.Mol, other: Chem.Mol, common: dict[int, int]) -> _Changed:
    atoms = [atom.GetIdx() for atom in molecule.GetAtoms() if atom.GetIdx() not in common]
    bonds = []
    for bond in molecule.GetBonds():
        ends = (bond.GetBeginAtomIdx(), bond.GetEndAtomIdx())
        if not all(end in common for end in ends) or not other.GetBondBetweenAtoms(*(common[end] for end in ends)):
            bonds.append(bond.GetIdx())
    return atoms, bonds


def _draw(molecule: Chem.Mol, changed: _Changed, width: int, height: int, dark: bool) -> str:
    drawing = rdMolDraw2D.MolDraw2DSVG(width, height)
    if dark:
        rdMolDraw2D.SetDarkMode(drawing.drawOptions())
    rdMolDraw2D.UpdateDrawerParamsFromJSON(drawing, _DRAWING)
    drawing.drawOptions().updateAtomPalette(_COLOURS[dark])
    drawing.drawOptions().setHighlightColour(_MARK[dark])
    rdMolDraw2D.PrepareAndDrawMolecule(drawing, molecule, highlightAtoms=changed[0], highlightBonds=changed[1])
    drawing.FinishDrawing()
    return str(drawing.GetDrawingText())


_ALERTS = ("PAINS", "BRENK")


@dataclass(frozen=True)
class MoleculeDescription:
    """Properties of one molecule, as RDKit computes them; None where it cannot.

    Args:
        qed: quantitative estimate of drug-likeness, 0 to 1, more is better (Bickerton et al., 2012).
        synthetic_accessibility: SA score, 1 (easy) to 10 (hard) (Ertl and Schuffenhauer, 2009).
        weight: average molecular weight, g/mol.
        log_p: octanol-water partition coefficient (Wildman and Crippen, 1999).
        tpsa: topological polar surface area, square ångström.
        donors, acceptors: of hydrogen bonds, Lipinski's definition as RDKit counts them.
        rotatable_bonds, rings, heavy_atoms: counts.
        alerts: descriptions of the PAINS and Brenk alerts that match, in alphabetical order.
    """

    qed: float | None
    synthetic_accessibility: float | None
    weight: float | None
    log_p: float | None
    tpsa: float | None
    donors: int
    acceptors: int
    rotatable_bonds: int
    rings: int
    heavy_atoms: int
    alerts: tuple[str, ...]


def describe_molecule(smiles: str) -> MoleculeDescription:
    """Return the properties of a molecule: of any that a catalog may hold, salts, radicals and dummies included.

    Raises:
        ValueError: not a SMILES that RDKit accepts.
    """
    molecule = _parsed(smiles)
    return MoleculeDescription(
        qed=_measured(QED.qed, molecule),
        synthetic_accessibility=_measured(_sa_score(), molecule),
        weight=_measured(_average_weight, molecule),
        log_p=_measured(lambda each: rdMolDescriptors.CalcCrippenDescriptors(each)[0], molecule),
        tpsa=_measured(rdMolDescriptors.CalcTPSA, molecule),
        donors=int(rdMolDescriptors.CalcNumHBD(molecule)),
        acceptors=int(rdMolDescriptors.CalcNumHBA(molecule)),
        rotatable_bonds=int(rdMolDescriptors.CalcNumRotatableBonds(molecule)),
        rings=int(rdMolDescriptors.CalcNumRings(molecule)),
        heavy_atoms=int(molecule.GetNumHeavyAtoms()),
        alerts=tuple(sorted({entry.GetDescription() for entry in alert_catalog(*_ALERTS).GetMatches(molecule)})),
    )


def rate_molecule(smiles: str) -> tuple[float, float]:
    """Return the two properties that a search for drugs is often driven by: QED, and the SA score from 1 to 10.

    Raises:
        ValueError: not a molecule that can be a state.
    """
    molecule = read_molecule(smiles).molecule
    # RDKit has no types for QED.
    return float(QED.qed(molecule)), _sa_score()(molecule)  # type: ignore[no-untyped-call]


def _measured(measure: Callable[[Chem.Mol], float], molecule: Chem.Mol) -> float | None:
    """Return a measure; None where RDKit has no number for this molecule."""
    try:
        with rdBase.BlockLogs():
            value = float(measure(molecule))
    # What RDKit raises for atoms that it has no parameters for, or a logarithm of nothing.
    except (ValueError, ArithmeticError, RuntimeError, LookupError):
        return None
    return value if math.isfinite(value) else None


def _average_weight(molecule: Chem.Mol) -> float:
    table = Chem.GetPeriodicTable()
    hydrogen = table.GetAtomicWeight(1)
    return float(sum(atom.GetMass() + atom.GetTotalNumHs() * hydrogen for atom in molecule.GetAtoms()))


@cache
def _sa_score() -> Callable[[Chem.Mol], float]:
    """Return the SA score from RDKit's Contrib folder, which is data of its wheel and not on the import path."""
    path = Path(RDConfig.RDContribDir) / "SA_Score" / "sascorer.py"
    spec = importlib.util.spec_from_file_location("sascorer", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"RDKit's SA score should stand at {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return cast(Callable[[Chem.Mol], float], module.calculateScore)


_MORGAN = rdFingerprintGenerator.GetMorganGenerator(radius=3, fpSize=2048)


def diversity(smiles: Sequence[str]) -> float:
    """Return 1 minus the mean Tanimoto similarity of all pairs, from 0 (all alike) to 1.

    Pairs are of different indices in the list, as in MARS (Xie et al., ICLR 2021); a molecule listed twice
    makes a pair of similarity 1. One row of similarities is kept at a time, so memory grows with the length of the
    list and time with its square.

    Raises:
        ValueError: fewer than two molecules, or one that is none.
    """
    if len(smiles) < 2:
        raise ValueError("diversity needs at least two molecules")
    prints = [_fingerprint(each) for each in smiles]
    rows = (math.fsum(DataStructs.BulkTanimotoSimilarity(prints[i], prints[:i])) for i in range(1, len(prints)))
    return 1 - math.fsum(rows) / math.comb(len(prints), 2)


def _fingerprint(smiles: str) -> DataStructs.ExplicitBitVect:
    found: DataStructs.ExplicitBitVect = _MORGAN.GetFingerprint(_parsed(smiles))
    return found


MAX_SMILES_CHARACTERS = 1_000
MAX_ATOMS = 150
# SMILES that are their own canonical form after so many rounds; RDKit needs more than one for a few charged rings.
_ROUNDS = 4
_CXSMILES = re.compile(r"\s\|")


def nearest_molecules(smiles: Sequence[str], count: int) -> Graph:
    """Link each molecule to its nearest by Tanimoto similarity of Morgan fingerprints (radius 2, 2048 bits)."""
    morgan = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)
    prints = [morgan.GetFingerprint(Chem.MolFromSmiles(each)) for each in smiles]
    count = min(count, len(smiles) - 1)
    ranked = []
    for index, fingerprint in enumerate(prints):
        similarity = np.asarray(DataStructs.BulkTanimotoSimilarity(fingerprint, prints))
        similarity[index] = -1.0
        ranked.append(np.argpartition(-similarity, count - 1)[:count])
    return symmetric(np.asarray(ranked), count)


def canonical_smiles(smiles: str, *, is_drawn: bool = True) -> str:
    """Return RDKit's canonical form, which has been read again and, unless told otherwise, drawn.

    Raises:
        ValueError: not a molecule RDKit accepts, too large, or one that could not be kept or shown as it is meant; the
            message gives the reason.
    """
    smiles = smiles.strip()
    if not smiles:
        raise ValueError("the SMILES is empty")
    if len(smiles) > MAX_SMILES_CHARACTERS:
        raise ValueError(f"the SMILES has {len(smiles):,} characters; at most {MAX_SMILES_CHARACTERS:,} are allowed")
    if _CXSMILES.search(smiles):
        raise ValueError(f"{quoted(smiles)} has CXSMILES between bars, which is not kept; write a SMILES without it")
    with rdBase.BlockLogs():
        molecule = Chem.MolFromSmiles(smiles, sanitize=False)
        if molecule is None:
            raise ValueError(f"{quoted(smiles)} is not a SMILES")
        try:
            Chem.SanitizeMol(molecule)
        except Chem.MolSanitizeException as error:
            raise ValueError(f"{quoted(smiles)} is no molecule: {error}") from error
        if not molecule.GetNumHeavyAtoms():
            raise ValueError("the molecule has 0 heavy atoms; it needs at least 1")
        return _as_kept(smiles, is_drawn)


def _as_kept(smiles: str, is_drawn: bool) -> str:
    for _ in range(_ROUNDS):
        # Each parse runs the stereochemistry perception that sanitising alone leaves out.
        molecule = Chem.MolFromSmiles(smiles)
        if molecule is None:
            raise ValueError(f"RDKit writes the molecule as {quoted(smiles)} and cannot read that again; leave it out")
        if molecule.GetNumAtoms() > MAX_ATOMS:
            raise ValueError(
                f"the molecule has {molecule.GetNumAtoms()} atoms to draw; at most {MAX_ATOMS} are allowed"
            )
        if any(atom.GetChiralTag() >= Chem.ChiralType.CHI_OTHER for atom in molecule.GetAtoms()):
            raise ValueError(f"{quoted(smiles)} has stereochemistry that no drawing shows; write it without")
        before, smiles = smiles, str(Chem.MolToSmiles(molecule))
        if smiles == before:
            try:
                if is_drawn:
                    draw_molecule(smiles)
            except (RuntimeError, ValueError) as error:
                raise ValueError(f"{quoted(smiles)} cannot be drawn: {error}") from error
            return smiles
    raise ValueError(f"{quoted(smiles)} has no stable canonical form")

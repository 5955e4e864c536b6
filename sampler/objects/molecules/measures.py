"""What a chemist reads off a molecule: drug-likeness, ease of synthesis, properties, structural alerts."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import cast

from rdkit import Chem, RDConfig, rdBase
from rdkit.Chem import QED, rdMolDescriptors

from sampler.spaces.molecules.graph import read_molecule
from sampler.spaces.molecules.space import alert_catalog

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
    with rdBase.BlockLogs():
        molecule = Chem.MolFromSmiles(smiles)
    if molecule is None:
        raise ValueError(f"“{smiles}” is no molecule that RDKit accepts")
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
        alerts=_alerts(molecule),
    )


def rate_molecule(smiles: str) -> tuple[float, float]:
    """Return the two properties that a search for drugs is often driven by: QED, and the SA score from 1 to 10.

    Raises:
        ValueError: not a molecule that can be a state.
    """
    molecule = read_molecule(smiles).molecule
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


def _alerts(molecule: Chem.Mol) -> tuple[str, ...]:
    return tuple(sorted({entry.GetDescription() for entry in _catalog().GetMatches(molecule)}))


@cache
def _catalog() -> Chem.FilterCatalog.FilterCatalog:
    return alert_catalog(*_ALERTS)


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

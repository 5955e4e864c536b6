"""What a chemist reads off a molecule: drug-likeness, ease of synthesis, properties, structural alerts."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import cast

from rdkit import Chem, RDConfig
from rdkit.Chem import QED, rdMolDescriptors

from sampler.spaces.molecules.graph import read_molecule
from sampler.spaces.molecules.law import alert_catalog

_ALERTS = ("PAINS", "BRENK")


@dataclass(frozen=True)
class MoleculeDescription:
    """Properties of one molecule, as RDKit computes them.

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

    qed: float
    synthetic_accessibility: float
    weight: float
    log_p: float
    tpsa: float
    donors: int
    acceptors: int
    rotatable_bonds: int
    rings: int
    heavy_atoms: int
    alerts: tuple[str, ...]


def describe_molecule(smiles: str) -> MoleculeDescription:
    """Return the properties of a molecule.

    Raises:
        ValueError: not a molecule that can be a state.
    """
    molecule = read_molecule(smiles).molecule
    qed, synthetic_accessibility = rate_molecule(smiles)
    return MoleculeDescription(
        qed=qed,
        synthetic_accessibility=synthetic_accessibility,
        weight=_average_weight(molecule),
        log_p=float(rdMolDescriptors.CalcCrippenDescriptors(molecule)[0]),
        tpsa=float(rdMolDescriptors.CalcTPSA(molecule)),
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

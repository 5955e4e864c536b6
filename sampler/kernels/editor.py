"""The editor of MARS's learned proposal in plain PyTorch, the extra [gpu].

It reads molecules as arrays, gives logits by graph encoders, and learns between steps of the chains.

Written from the description in the paper of MARS (Xie et al., ICLR 2021) and the sizes of the release; none of its
code, which is CC BY-NC, was used. PyTorch is imported when an editor is built, never before.

Each encoder passes messages along bonds six times (Gilmer et al., ICML 2017, "edge network"): a network with 128 hidden
units makes a 64 x 64 matrix of each kind of bond, an atom adds up what its neighbours send, and a gated recurrent unit
takes the sum into its 64 numbers. There are few kinds of bonds, so their matrices are made once for a batch.

Four encoders as in the release of MARS: `act`, `del`, `add`, `fragment`. What `act` would say, whether to add or to
delete, is not used there: the kernel tosses a coin. So `act` has weights, and is never run. Heads: one number of an
atom (`add`), one of each fragment at an atom (`fragment`), one of the two ends of a cut (`del`).

First weights are drawn by NumPy from a stream of the record, not by PyTorch; the last layer of each head is 0, so that
a new editor proposes exactly what `kernels.fragments` does.

An editor learns from edits that raised the score, accepted or not, kept in a bounded memory. Sizes are those of the
release: Adam with a step of 3e-4, at most 25 updates a step of the chains, the memory cut to 50,000 edits once it holds
more than 100,000, batches of 128 * 20 / mean size. Chosen, because nothing says it: the newest are kept; a step's
batches are one pass through the memory in random order, broken off after 25.

What holds of PyTorch's determinism: on a CPU, with the same release of PyTorch, the same kind of processor and one
thread, the same calls give the same weights and logits, bit for bit. Across releases, processors, numbers of threads or
sizes of a batch the last digits differ; on a GPU they may differ from run to run. So a record keeps the probabilities
that were used and a hash of the weights, and a replay trusts no second run of the network.
"""

from __future__ import annotations

import hashlib
import importlib
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from rdkit import Chem

from sampler.chain import Purpose, stream
from sampler.kernels.learned_fragments import EditLogits
from sampler.spaces.molecules.edits import Addition, Deletion, Edit
from sampler.spaces.molecules.graph import read_state
from sampler.spaces.molecules.vocabulary import Vocabulary

Floats = npt.NDArray[np.float32]
Indices = npt.NDArray[np.int64]

_ELEMENTS = (5, 6, 7, 8, 9, 14, 15, 16, 17, 35, 53)
_MAX_BONDS, _MAX_HYDROGENS = 4, 4
_CHARGES = (-1, 0, 1)
_BONDS = (Chem.BondType.SINGLE, Chem.BondType.DOUBLE, Chem.BondType.TRIPLE, Chem.BondType.AROMATIC)
_REMEMBERED = 20_000
_THREADS = 1
"""Of PyTorch while it computes on a CPU; part of what fixes the last digits."""

# One-hot: element or another, bonds 0 to 4, hydrogens 0 to 4, charge or another; and two flags: in a ring, aromatic.
ATOM_NUMBERS = len(_ELEMENTS) + 1 + _MAX_BONDS + 1 + _MAX_HYDROGENS + 1 + len(_CHARGES) + 1 + 2
# The type of a bond or another, in a ring or not.
BOND_KINDS = 2 * (len(_BONDS) + 1)


@dataclass(frozen=True)
class Features:
    """One molecule, or several put together. n atoms, b directed edges, d directed cuts.

    Args:
        atoms: shape (n, ATOM_NUMBERS).
        edges: atoms at the start and at the end of each edge, shape (2, b); each bond is two.
        kinds: of each edge, shape (b,), from 0 to BOND_KINDS - 1.
        rooms: the atoms with a hydrogen, ascending.
        cuts: atoms that each cut keeps and drops, shape (2, d), in the order of `MoleculeGraph.directed`.
    """

    atoms: Floats
    edges: Indices
    kinds: Indices
    rooms: Indices
    cuts: Indices


@lru_cache(maxsize=_REMEMBERED)
def features_of(state: str) -> Features:
    """Return a state as arrays; atoms stand in the order in which the SMILES names them."""
    graph = read_state(state)
    molecule = graph.molecule
    bonds = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx(), _kind(bond)) for bond in molecule.GetBonds()]
    both = [*bonds, *((other, one, kind) for one, other, kind in bonds)]
    return Features(
        np.array([_numbers(atom) for atom in molecule.GetAtoms()], dtype=np.float32),
        _pairs([(one, other) for one, other, _ in both]),
        np.array([kind for _, _, kind in both], dtype=np.int64),
        np.array(graph.rooms, dtype=np.int64),
        _pairs(graph.directed),
    )


def size_of(state: str) -> int:
    """Return the number of heavy atoms."""
    return len(features_of(state).atoms)


def _starts(lengths: Sequence[int]) -> Indices:
    return np.cumsum([0, *lengths], dtype=np.int64)


def _pairs(pairs: Sequence[tuple[int, int]]) -> Indices:
    return np.array(pairs, dtype=np.int64).reshape(-1, 2).T


def _kind(bond: Chem.Bond) -> int:
    order = _BONDS.index(bond.GetBondType()) if bond.GetBondType() in _BONDS else len(_BONDS)
    return 2 * order + bond.IsInRing()


def _numbers(atom: Chem.Atom) -> list[float]:
    numbers: list[float] = []
    for value, known in (
        (atom.GetAtomicNum(), _ELEMENTS),
        (atom.GetFormalCharge(), _CHARGES),
    ):
        numbers += [float(value == each) for each in known] + [float(value not in known)]
    for value, most in ((atom.GetDegree(), _MAX_BONDS), (atom.GetTotalNumHs(), _MAX_HYDROGENS)):
        numbers += [float(min(value, most) == each) for each in range(most + 1)]
    return [*numbers, float(atom.IsInRing()), float(atom.GetIsAromatic())]


class ImprovingEdit(NamedTuple):
    """An edit drawn at a state whose product scores higher."""

    state: str
    edit: Edit


class Update(NamedTuple):
    """What happened between two steps: how many updates, and the mean loss over them; None without any."""

    updates: int
    loss: float | None


@dataclass(frozen=True)
class LearningSettings:
    """How an editor learns.

    Args:
        rate: of Adam.
        max_updates: in one step of the chains.
        max_kept: edits in the memory; with more, the newest `kept_then` stay.
        kept_then: see there.
        batch_atoms: a batch holds as many edits as their mean number of atoms goes into this.
    """

    rate: float = 3e-4
    max_updates: int = 25
    max_kept: int = 100_000
    kept_then: int = 50_000
    batch_atoms: int = 128 * 20


class Memory:
    """Improving edits, the oldest first."""

    def __init__(self, settings: LearningSettings) -> None:
        self._settings = settings
        self._edits: list[ImprovingEdit] = []
        self._atoms = 0

    def __len__(self) -> int:
        return len(self._edits)

    def add(self, edits: Sequence[ImprovingEdit]) -> None:
        """Keep these too."""
        self._edits.extend(edits)
        if len(self._edits) > self._settings.max_kept:
            self._edits = self._edits[-self._settings.kept_then :]
            self._atoms = sum(size_of(each.state) for each in self._edits)
        else:
            self._atoms += sum(size_of(each.state) for each in edits)

    @property
    def batch_size(self) -> int:
        """Edits of a batch."""
        return max(1, int(self._settings.batch_atoms * len(self._edits) / max(self._atoms, 1)))

    def batches(self, rng: np.random.Generator) -> Iterator[list[ImprovingEdit]]:
        """Yield the batches of one step of the chains."""
        if not self._edits:
            return
        # An order by random(), which NumPy keeps stable between releases.
        order = np.argsort(rng.random(len(self._edits)), kind="stable")
        size = self.batch_size
        for number in range(min(self._settings.max_updates, math.ceil(len(order) / size))):
            yield [self._edits[index] for index in order[number * size : (number + 1) * size]]


ENCODERS = ("act", "del", "add", "fragment")
LAYERS, NODE_UNITS, EDGE_UNITS = 6, 64, 128


def build_network(torch: Any, fragments: int, rng: np.random.Generator) -> Any:
    """Return the network for so many fragments, a `torch.nn.ModuleDict`, single precision, on the CPU."""
    nn = torch.nn
    network = nn.ModuleDict(
        {
            **{f"{name}_encoder": _encoder(nn) for name in ENCODERS},
            "add_head": _head(nn, NODE_UNITS, 1),
            "fragment_head": _head(nn, NODE_UNITS, fragments),
            "del_head": _head(nn, 2 * NODE_UNITS, 1),
        }
    )
    with torch.no_grad():
        for name, weights in network.named_parameters():
            bound = 1 / math.sqrt(weights.shape[-1] if weights.dim() > 1 else NODE_UNITS)
            drawn = (2 * rng.random(tuple(weights.shape)) - 1) * bound
            is_last = "_head.2." in name
            weights.copy_(torch.from_numpy(np.zeros_like(drawn) if is_last else drawn))
    return network


class Graph:
    """Several molecules as one graph without edges between them, on the network's device, its edges sorted by kind.

    Args:
        states: at least one.
    """

    def __init__(self, torch: Any, states: Sequence[str], device: Any) -> None:
        each = [features_of(state) for state in states]
        # The first atom and the first cut of each, and one past the last.
        self.first_atoms = _starts([len(one.atoms) for one in each])
        self.first_cuts = _starts([one.cuts.shape[1] for one in each])

        def joined(name: str) -> Indices:
            shifted = zip(each, self.first_atoms, strict=False)
            return np.concatenate([getattr(one, name) + shift for one, shift in shifted], axis=-1)

        kinds = np.concatenate([one.kinds for one in each])
        order = np.argsort(kinds, kind="stable")
        found, counts = np.unique(kinds, return_counts=True)
        self.rooms = joined("rooms")
        self.atoms = torch.from_numpy(np.concatenate([one.atoms for one in each])).to(device)
        self.sources, self.ends = torch.from_numpy(joined("edges")[:, order]).to(device)
        self.kinds = [int(kind) for kind in found]
        self.counts = [int(count) for count in counts]
        self.cuts = torch.from_numpy(joined("cuts")).to(device)


def atoms_of(torch: Any, network: Any, name: str, graph: Graph) -> Any:
    """Return what an encoder makes of each atom, shape (n, NODE_UNITS)."""
    encoder = network[f"{name}_encoder"]
    matrices = encoder["edges"](torch.eye(BOND_KINDS, device=graph.atoms.device))
    matrices = matrices.view(BOND_KINDS, NODE_UNITS, NODE_UNITS)
    units = encoder["start"](graph.atoms)
    for _ in range(LAYERS):
        sent = units[graph.sources].split(graph.counts) if graph.kinds else ()
        messages = [part @ matrices[kind] for kind, part in zip(graph.kinds, sent, strict=True)]
        total = torch.zeros_like(units)
        if messages:
            total = total.index_add(0, graph.ends, torch.cat(messages))
        units = encoder["gate"](total, units)
    return units


def cuts_of(torch: Any, network: Any, graph: Graph) -> Any:
    """Return a logit of each directed cut, shape (d,)."""
    units = atoms_of(torch, network, "del", graph)
    keep, drop = graph.cuts
    return network["del_head"](torch.cat([units[keep], units[drop]], dim=1)).squeeze(1)


def _encoder(nn: Any) -> Any:
    return nn.ModuleDict(
        {
            "start": nn.Sequential(nn.Linear(ATOM_NUMBERS, NODE_UNITS), nn.ReLU()),
            "edges": nn.Sequential(
                nn.Linear(BOND_KINDS, EDGE_UNITS), nn.ReLU(), nn.Linear(EDGE_UNITS, NODE_UNITS * NODE_UNITS)
            ),
            "gate": nn.GRUCell(NODE_UNITS, NODE_UNITS),
        }
    )


def _head(nn: Any, units: int, numbers: int) -> Any:
    return nn.Sequential(nn.Linear(units, NODE_UNITS), nn.ReLU(), nn.Linear(NODE_UNITS, numbers))


class TorchEditor:
    """An editor of graph encoders.

    Args:
        vocabulary: the fragments, whose weights stand beside the logits (`kernels.learned_fragments`).
        seed: of the first weights.
        settings: how it learns.
        device: as PyTorch names it.

    Raises:
        ImportError: PyTorch, of the extra [gpu], is not installed.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        seed: int,
        settings: LearningSettings | None = None,
        device: str = "cpu",
    ) -> None:
        self._torch: Any = importlib.import_module("torch")
        self._settings = settings or LearningSettings()
        self._device = self._torch.device(device)
        rng = stream(seed, 0, 0, Purpose.EDITOR)
        self._network = build_network(self._torch, len(vocabulary), rng).to(self._device)
        self._optimiser = self._torch.optim.Adam(self._network.parameters(), lr=self._settings.rate)
        weights = np.log([vocabulary.weights[fragment.smiles] for fragment in vocabulary])
        self._log_weights = self._torch.from_numpy(weights.astype(np.float32)).to(self._device)
        self._memory = Memory(self._settings)
        self._fingerprint = ""

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the weights' names and bytes."""
        if not self._fingerprint:
            hashed = hashlib.sha256()
            for name, weights in sorted(self._network.state_dict().items()):
                hashed.update(name.encode() + weights.cpu().numpy().astype("<f4").tobytes())
            self._fingerprint = hashed.hexdigest()
        return self._fingerprint

    @property
    def about(self) -> dict[str, str | int]:
        """What the numbers depend on besides the weights; goes into the settings of a record."""
        return {"torch": self._torch.__version__, "device": str(self._device), "threads": _THREADS}

    def read(self, states: Sequence[str]) -> list[EditLogits]:
        """Return the logits of each state."""
        if not states:
            return []
        with self._computing(), self._torch.no_grad():
            graph = Graph(self._torch, states, self._device)
            atoms = self._network["add_head"](self._units("add", graph)).squeeze(1)
            fragments = self._network["fragment_head"](self._units("fragment", graph))
            cuts = cuts_of(self._torch, self._network, graph)
            parts = (
                _split(atoms, graph.first_atoms),
                _split(fragments, graph.first_atoms),
                _split(cuts, graph.first_cuts),
            )
        return [EditLogits(*each) for each in zip(*parts, strict=True)]

    def learn(self, edits: Sequence[ImprovingEdit], rng: np.random.Generator) -> Update:
        """Remember these edits, and make the updates of one step on all that is remembered."""
        self._memory.add(edits)
        losses = []
        with self._computing():
            for batch in self._memory.batches(rng):
                loss = -self._log_chances(batch).mean()
                self._optimiser.zero_grad()
                loss.backward()
                self._optimiser.step()
                losses.append(float(loss.detach()))
        if losses:
            self._fingerprint = ""
        return Update(len(losses), float(np.mean(losses)) if losses else None)

    def _log_chances(self, edits: Sequence[ImprovingEdit]) -> Any:
        """Return log q(action | state, addition or deletion) of each edit, additions first."""
        added = [(each.state, each.edit) for each in edits if isinstance(each.edit, Addition)]
        dropped = [(each.state, each.edit) for each in edits if isinstance(each.edit, Deletion)]
        parts = ([self._of_additions(added)] if added else []) + ([self._of_deletions(dropped)] if dropped else [])
        return self._torch.cat(parts)

    def _of_additions(self, edits: Sequence[tuple[str, Addition]]) -> Any:
        torch = self._torch
        graph = Graph(torch, [state for state, _ in edits], self._device)
        chosen = self._indices(graph.first_atoms[:-1] + np.array([edit.atom for _, edit in edits]))
        rooms = self._indices(graph.rooms)
        logits = self._network["add_head"](self._units("add", graph)).squeeze(1)
        log_total = _log_sums(torch, logits[rooms], self._owners(graph.rooms, graph.first_atoms), len(edits))
        fragments = self._network["fragment_head"](self._units("fragment", graph)[chosen]) + self._log_weights
        wanted = self._indices(np.array([edit.fragment for _, edit in edits]))[:, None]
        return logits[chosen] - log_total + torch.log_softmax(fragments, dim=1).gather(1, wanted).squeeze(1)

    def _of_deletions(self, edits: Sequence[tuple[str, Deletion]]) -> Any:
        graph = Graph(self._torch, [state for state, _ in edits], self._device)
        logits = cuts_of(self._torch, self._network, graph)
        owners = self._owners(np.arange(graph.first_cuts[-1]), graph.first_cuts)
        chosen = self._indices(graph.first_cuts[:-1] + np.array([edit.cut for _, edit in edits]))
        return logits[chosen] - _log_sums(self._torch, logits, owners, len(edits))

    def _units(self, name: str, graph: Graph) -> Any:
        return atoms_of(self._torch, self._network, name, graph)

    def _owners(self, indices: npt.NDArray[np.int64], firsts: npt.NDArray[np.int64]) -> Any:
        return self._indices(np.searchsorted(firsts, indices, side="right") - 1)

    def _indices(self, indices: npt.NDArray[np.int64]) -> Any:
        return self._torch.from_numpy(np.asarray(indices, dtype=np.int64)).to(self._device)

    @contextmanager
    def _computing(self) -> Iterator[None]:
        """Use so many threads, and put the number back that the process had."""
        before = self._torch.get_num_threads()
        self._torch.set_num_threads(_THREADS)
        try:
            yield
        finally:
            self._torch.set_num_threads(before)


def _split(numbers: Any, firsts: npt.NDArray[np.int64]) -> list[npt.NDArray[np.float32]]:
    return np.split(numbers.cpu().numpy(), firsts[1:-1])


def _log_sums(torch: Any, logits: Any, owners: Any, groups: int) -> Any:
    """Return log Σ exp of the logits of each group, shape (groups,)."""
    most = torch.full((groups,), -torch.inf, device=logits.device)
    most = most.scatter_reduce(0, owners, logits.detach(), "amax")
    sums = torch.zeros(groups, device=logits.device).index_add(0, owners, (logits - most[owners]).exp())
    return sums.log() + most

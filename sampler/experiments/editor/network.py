"""Graph encoders and heads: molecules in, logits out.

Each encoder passes messages along bonds six times (Gilmer et al., ICML 2017, "edge network"): a network with 128 hidden
units makes a 64 × 64 matrix of each kind of bond, an atom adds up what its neighbours send, and a gated recurrent unit
takes the sum into its 64 numbers. There are few kinds of bonds, so their matrices are made once for a batch.

Four encoders as in the release of MARS: `act`, `del`, `add`, `arm`. What `act` would say, whether to add or to delete,
is not used there: the kernel tosses a coin. So `act` has weights, and is never run. Heads: one number of an atom
(`add`), one of each arm at an atom (`arm`), one of the two ends of a cut (`del`).

First weights are drawn by NumPy from a stream of the record, not by PyTorch; the last layer of each head is 0, so that
a new editor proposes exactly what `kernels.fragments` does.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sampler.experiments.editor.features import ATOM_NUMBERS, BOND_KINDS, Batch

ENCODERS = ("act", "del", "add", "arm")
LAYERS, NODE_UNITS, EDGE_UNITS = 6, 64, 128


def build(torch: Any, arms: int, rng: np.random.Generator) -> Any:
    """Return the network for a vocabulary of so many arms, a `torch.nn.ModuleDict`, single precision, on the CPU."""
    nn = torch.nn
    network = nn.ModuleDict(
        {
            **{f"{name}_encoder": _encoder(nn) for name in ENCODERS},
            "add_head": _head(nn, NODE_UNITS, 1),
            "arm_head": _head(nn, NODE_UNITS, arms),
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
    """A batch of molecules on the network's device, with its edges sorted by kind."""

    def __init__(self, torch: Any, batch: Batch, device: Any) -> None:
        whole = batch.whole
        order = np.argsort(whole.kinds, kind="stable")
        kinds, counts = np.unique(whole.kinds, return_counts=True)
        self.atoms = torch.from_numpy(whole.atoms).to(device)
        self.sources, self.ends = torch.from_numpy(whole.edges[:, order]).to(device)
        self.kinds = [int(kind) for kind in kinds]
        self.counts = [int(count) for count in counts]
        self.cuts = torch.from_numpy(whole.cuts).to(device)


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

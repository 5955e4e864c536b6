"""The editor: a network that answers for a batch of molecules, and learns between steps.

What holds of PyTorch's determinism: on a CPU, with the same release of PyTorch, the same kind of processor and the same
number of threads, the same calls give the same weights and logits, bit for bit. Across releases, processors, numbers of
threads or sizes of a batch the last digits differ; on a GPU they may differ from run to run. So a record keeps the
probabilities that were used and a hash of the weights, and a replay trusts no second run of the network.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from sampler.experiments.editor import network as nets
from sampler.experiments.editor.features import batch_of
from sampler.experiments.editor.learning import ImprovingEdit, LearningSettings, Memory, Update
from sampler.kernels.learned_fragments import EditLogits
from sampler.spaces.molecules.edits import Addition, Deletion
from sampler.spaces.molecules.vocabulary import Vocabulary
from sampler.streams import Purpose, stream


class TorchEditor:
    """An editor of graph encoders.

    Args:
        vocabulary: the arms, whose weights stand beside the logits (`kernels.learned_fragments`).
        seed: of the first weights.
        settings: how it learns.
        device: as PyTorch names it.
        threads: of PyTorch while it computes on a CPU; part of what fixes the last digits.

    Raises:
        ImportError: PyTorch, of the extra [gpu], is not installed.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        seed: int,
        settings: LearningSettings | None = None,
        device: str = "cpu",
        threads: int = 1,
    ) -> None:
        self._torch: Any = importlib.import_module("torch")
        self._settings = settings or LearningSettings()
        self._device, self._threads = self._torch.device(device), threads
        rng = stream(seed, 0, 0, Purpose.EDITOR)
        self._network = nets.build(self._torch, len(vocabulary), rng).to(self._device)
        self._optimiser = self._torch.optim.Adam(self._network.parameters(), lr=self._settings.rate)
        weights = np.log([vocabulary.weights[arm.smiles] for arm in vocabulary])
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
        return {"torch": self._torch.__version__, "device": str(self._device), "threads": self._threads}

    def read(self, states: Sequence[str]) -> list[EditLogits]:
        """Return the logits of each state."""
        if not states:
            return []
        batch = batch_of(states)
        with self._computing(), self._torch.no_grad():
            graph = nets.Graph(self._torch, batch, self._device)
            atoms = self._network["add_head"](self._units("add", graph)).squeeze(1)
            arms = self._network["arm_head"](self._units("arm", graph))
            cuts = nets.cuts_of(self._torch, self._network, graph)
            parts = (_split(atoms, batch.first_atoms), _split(arms, batch.first_atoms), _split(cuts, batch.first_cuts))
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

    def log_likelihood(self, edits: Sequence[ImprovingEdit]) -> float:
        """Return the mean log-chance of these edits, given that it is an addition or a deletion; learns nothing.

        Raises:
            ValueError: there is none.
        """
        if not edits:
            raise ValueError("edits must hold at least one")
        with self._computing(), self._torch.no_grad():
            return float(self._log_chances(edits).mean())

    def _log_chances(self, edits: Sequence[ImprovingEdit]) -> Any:
        """Return log q(action | state, addition or deletion) of each edit, additions first."""
        added = [(each.state, each.edit) for each in edits if isinstance(each.edit, Addition)]
        dropped = [(each.state, each.edit) for each in edits if isinstance(each.edit, Deletion)]
        parts = ([self._of_additions(added)] if added else []) + ([self._of_deletions(dropped)] if dropped else [])
        return self._torch.cat(parts)

    def _of_additions(self, edits: Sequence[tuple[str, Addition]]) -> Any:
        torch, batch = self._torch, batch_of([state for state, _ in edits])
        graph = nets.Graph(torch, batch, self._device)
        chosen = self._places(batch.first_atoms[:-1] + np.array([edit.atom for _, edit in edits]))
        rooms = self._places(batch.whole.rooms)
        logits = self._network["add_head"](self._units("add", graph)).squeeze(1)
        log_total = _log_sums(torch, logits[rooms], self._owners(batch.whole.rooms, batch.first_atoms), len(edits))
        arms = self._network["arm_head"](self._units("arm", graph)[chosen]) + self._log_weights
        wanted = self._places(np.array([edit.arm for _, edit in edits]))[:, None]
        return logits[chosen] - log_total + torch.log_softmax(arms, dim=1).gather(1, wanted).squeeze(1)

    def _of_deletions(self, edits: Sequence[tuple[str, Deletion]]) -> Any:
        torch, batch = self._torch, batch_of([state for state, _ in edits])
        logits = nets.cuts_of(torch, self._network, nets.Graph(torch, batch, self._device))
        owners = self._owners(np.arange(batch.first_cuts[-1]), batch.first_cuts)
        chosen = self._places(batch.first_cuts[:-1] + np.array([edit.cut for _, edit in edits]))
        return logits[chosen] - _log_sums(torch, logits, owners, len(edits))

    def _units(self, name: str, graph: nets.Graph) -> Any:
        return nets.atoms_of(self._torch, self._network, name, graph)

    def _owners(self, places: npt.NDArray[np.int64], firsts: npt.NDArray[np.int64]) -> Any:
        return self._places(np.searchsorted(firsts, places, side="right") - 1)

    def _places(self, places: npt.NDArray[np.int64]) -> Any:
        return self._torch.from_numpy(np.asarray(places, dtype=np.int64)).to(self._device)

    @contextmanager
    def _computing(self) -> Iterator[None]:
        """Use so many threads, and put the number back that the process had."""
        before = self._torch.get_num_threads()
        self._torch.set_num_threads(self._threads)
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

"""The pilot: log-weights per molecule size that give a chain without judges a stated law of sizes.

Stochastic approximation Monte Carlo (Liang, Liu and Carroll, JASA 102, 2007), which is Wang-Landau with a gain that
falls as 1/t and so converges: the chain targets exp(w[n]) within sizes; at every step w moves by gain times (v - e_n),
v being how often each size should be visited and e_n one at the size the chain stands in. Then log v - w is, up to a
constant, the log of the number of molecules of n heavy atoms that the vocabulary reaches. Half of v is the wanted law
and half is uniform, so that the chain passes through small molecules often and starts afresh there; the answer is
shifted from v to the wanted law. A campaign takes the weights as they are: p0 is one fixed law, and an inaccurate
pilot costs drug-likeness, never exactness.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sampler.kernels.fragments import FragmentMoves
from sampler.spaces.molecules.graph import heavy_atoms
from sampler.spaces.molecules.space import MAX_HEAVY_ATOMS, START, MoleculeLaw
from sampler.spaces.molecules.vocabulary import Vocabulary, default_vocabulary, load_vocabulary
from sampler.streams import Purpose, stream

MEAN_SIZE, SIZE_DEVIATION = 24.0, 6.0
# A first guess, steeper than the truth (1 to 3 per atom) wherever it matters: the chain then conquers sizes from below.
# With a flat one it lies among the largest molecules until their weights have fallen far too low to come back.
_LOG_GROWTH_PER_ATOM = 3.0
_FIRST_GAIN = 0.1
# The gain stays at its first value for this share of the run.
_HOT_SHARE = 0.05


def drug_like_sizes(largest: int = MAX_HEAVY_ATOMS) -> npt.NDArray[np.float64]:
    """Return the log of the wanted law of sizes 1 to `largest`: normal of mean 24 and deviation 6, cut off there."""
    atoms = np.arange(1, largest + 1)
    log_law = -0.5 * ((atoms - MEAN_SIZE) / SIZE_DEVIATION) ** 2
    return np.asarray(log_law - np.log(np.exp(log_law).sum()))


def pilot(
    vocabulary: Vocabulary,
    law: MoleculeLaw,
    rng: np.random.Generator,
    steps: int,
    start: str = START,
    progress: Callable[[int], object] = lambda steps: None,
) -> npt.NDArray[np.float64]:
    """Return log-weights that give sizes the law of `drug_like_sizes`, shape (law.largest,); the largest is 0.

    Args:
        vocabulary: the arms.
        law: its filters and its largest size; its weights are the first guess, all finite.
        rng: draws moves and verdicts.
        steps: moves; the weights are averaged over the second half.
        start: the first molecule.
        progress: called with 1 after every step.
    """
    wanted = drug_like_sizes(law.largest)
    visits = 0.5 * np.exp(wanted) + 0.5 / law.largest
    weights = np.array(law.size_log_weights)
    total = np.zeros(law.largest)
    kernel = FragmentMoves(vocabulary, replace(law, size_log_weights=(0.0,) * law.largest))
    hot = max(1.0, _HOT_SHARE * steps)
    state, size = start, heavy_atoms(start)
    for step in range(1, steps + 1):
        proposal = kernel.propose(rng, state)
        if proposal.state != state:
            proposed = heavy_atoms(proposal.state)
            log_ratio = proposal.log_r0 + weights[proposed - 1] - weights[size - 1]
            if rng.random() < math.exp(min(0.0, log_ratio)):
                state, size = proposal.state, proposed
        gain = _FIRST_GAIN * hot / max(hot, step)
        weights += gain * visits
        weights[size - 1] -= gain
        if 2 * step > steps:
            total += weights
        progress(1)
    found = total / (steps - steps // 2) - np.log(visits) + wanted
    return np.asarray(found - found.max())


def write_pilot(
    arms: Path | None, out: Path, steps: int, seed: int, progress: Callable[[int], object] = lambda steps: None
) -> None:
    """Run the pilot on a vocabulary, and write the weights.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: the file of arms is none.
    """
    vocabulary = load_vocabulary(arms) if arms else default_vocabulary()
    # Nobody wants to hear only after minutes that the file cannot be written.
    with out.open("a", encoding="utf-8"):
        pass
    guess = tuple(-_LOG_GROWTH_PER_ATOM * n for n in range(MAX_HEAVY_ATOMS))
    weights = pilot(vocabulary, MoleculeLaw(guess), stream(seed, 0, 0, Purpose.PROPOSAL), steps, START, progress)
    frozen = MoleculeLaw(tuple(round(float(weight), 3) for weight in weights))
    header = (
        f"# log-weights of p0 per number of heavy atoms, found by `python -m sampler pilot --steps {steps} "
        f"--seed {seed}`\n# on {arms.name if arms else 'the default vocabulary'} ({len(vocabulary)} arms)\n"
        "# heavy atoms, tab, log-weight"
    )
    lines = (f"{n}\t{weight:.3f}" for n, weight in enumerate(frozen.size_log_weights, start=1))
    out.write_text("\n".join([header, *lines, ""]), encoding="utf-8")

"""A panel of five people who differ, through the real database: each opens the link of a panelist, and answers by the
functions that the pages call.

`python -m tests.statistics.panel` simulates the same with `sampler` alone and prints what the test can see.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy import stats
from scipy.special import expit

import sampler
from sampler import Tally, Verdict, exact, tell
from tests.statistics.distribution import CATALOG, SCORES, Matrix, Paths, PValues, simulated_paths, transitions

SEED = 20261124
CHAINS, STEPS = 20, 350
# Through the database fewer, as each takes a hundred times as long: enough to tell the panel from a crowd.
STEPS_IN_DATABASE = 250
# Expected moves of one kind, below which they are no kind of their own to a chi-square test.
FEWEST = 5
# One row for each panelist. The first cares much, the others prefer the other way and differ by what stands after them:
# there the average preference of five votes lies far from the sum of five scores, and a crowd from a panel.
_OTHERS = np.array(
    [[1, -1, 0, 0.5, -0.5, 0], [-1, 1, 0.5, -0.5, 0, 0], [0, 0.5, -1, 1, 0, -0.5], [0, -0.5, 0.5, -1, 0.5, 0.5]]
)
TASTES = np.vstack([2.4 * SCORES, -0.4 * SCORES + 0.4 * _OTHERS])
MAX_VOTES = (1,) * len(TASTES)


@dataclass
class Members:
    """The people of a panel.

    Args:
        remember: they answer each pair as they did before, which is wrong.
    """

    remember: bool = False
    _chosen: dict[tuple[int, frozenset[int]], int] = field(default_factory=dict)

    def prefers(self, rng: np.random.Generator, panelist: int, current: int, proposal: int) -> bool:
        """Draw whether the person of a panelist, from 0, chooses the proposal."""
        drawn = bool(rng.random() < expit(TASTES[panelist, proposal] - TASTES[panelist, current]))
        if not self.remember:
            return drawn
        before = self._chosen.setdefault((panelist, frozenset((current, proposal))), proposal if drawn else current)
        return before == proposal


def preferences() -> list[Matrix]:
    """Return how probable it is that each panelist chooses x' at [x, x']."""
    return [np.asarray(expit(tastes[None, :] - tastes[:, None])) for tastes in TASTES]


def distribution_of_the_panel() -> Matrix:
    """Return the chain of five panelists."""
    return transitions(preferences(), MAX_VOTES)


def distribution_of_a_crowd() -> Matrix:
    """Return the chain of five votes on each pair, each of somebody else of the five, drawn at random."""
    return transitions([np.mean(preferences(), axis=0)] * len(TASTES), MAX_VOTES)


def simulated(members: Members, seed: int) -> Paths:
    """Return where the chains of a panel go, with `sampler` alone: panelists answer in a random order."""

    def verdict_on(drawn: sampler.Comparison[int], rng: np.random.Generator) -> Verdict:
        tally = Tally.empty(len(MAX_VOTES))
        for panelist in np.argsort(rng.random(len(MAX_VOTES))).tolist():
            if (verdict := tell(drawn, tally)) is not Verdict.UNDECIDED:
                return verdict
            tally = tally.add(panelist, members.prefers(rng, panelist, drawn.current, drawn.proposal))
        return tell(drawn, tally)

    plan = sampler.Plan(seed, CATALOG, sampler.Neighbours(CATALOG), MAX_VOTES)
    return simulated_paths(plan, CHAINS, STEPS, verdict_on)


def p_values(paths: Paths, chain: Matrix) -> PValues:
    """Return how well the steps of a panel fit a chain, and its visits what this chain does from the same starts.

    Five people must all say yes, so a chain moves seldom and is not at its stationary distribution after some hundred
    steps. Its starts are known. So the visits are compared with their enumerated mean and covariance given them.
    """
    steps, kinds = paths.shape[1] - 1, len(chain)
    powers = [np.eye(kinds)]
    for _ in range(steps):
        powers.append(powers[-1] @ chain)
    # What is expected to come after a visit at step s, itself left out.
    after = np.cumsum(powers, axis=0) - powers[0]
    difference, covariance = np.zeros(kinds), np.zeros((kinds, kinds))
    for path in paths:
        at = np.array([power[path[0]] for power in powers[1:]])
        mean = at.sum(axis=0)
        later = sum(at[s][:, None] * after[steps - 1 - s] for s in range(steps))
        covariance += np.diag(mean) + later + later.T - np.outer(mean, mean)
        difference += np.bincount(path[1:], minlength=kinds) - mean
    # The counts add up to the steps, so one of them says nothing new.
    left = slice(0, kinds - 1)
    statistic = difference[left] @ np.linalg.solve(covariance[left, left], difference[left])
    return PValues(float(stats.chi2.sf(statistic, kinds - 1)), _moves_p_value(paths, chain))


def _moves_p_value(paths: Paths, chain: Matrix) -> float:
    """Return the p-value of the transition counts: chi-square, rare moves of an object counted with its rests."""
    statistic, freedom = 0.0, 0
    for state, chances in enumerate(chain):
        follows = paths[:, 1:][paths[:, :-1] == state]
        counts, expected = np.bincount(follows, minlength=len(chain)), len(follows) * chances
        is_rare = (expected < FEWEST) & (np.arange(len(chain)) != state)
        kept = [(counts[i], expected[i]) for i in np.flatnonzero(~is_rare) if i != state]
        kept.append((len(follows) - sum(count for count, _ in kept), len(follows) - sum(mean for _, mean in kept)))
        statistic += sum((count - mean) ** 2 / mean for count, mean in kept if mean > 0)
        freedom += len(kept) - 1
    return float(stats.chi2.sf(statistic, freedom))


def p_values_of(paths: Paths) -> tuple[PValues, PValues]:
    """Return how well a panel's steps fit the distribution of the panel, and that of a crowd."""
    return p_values(paths, distribution_of_the_panel()), p_values(paths, distribution_of_a_crowd())


def main() -> None:
    """Print the middle p-values of twelve simulated runs, as docs/exactness.md has them."""
    panel, crowd = (
        exact.stationary(distribution) for distribution in (distribution_of_the_panel(), distribution_of_a_crowd())
    )
    print(f"total variation of the two distributions {abs(panel - crowd).sum() / 2:.3f}")
    for remember in (False, True):
        runs = [p_values_of(simulated(Members(remember), seed)) for seed in range(12)]
        for name, found in zip(("the panel's", "a crowd's"), zip(*runs, strict=True), strict=True):
            middle = np.median([each.least for each in found])
            print(f"{'remembered' if remember else 'fresh':10} against {name:11} distribution: middle p {middle:.1e}")


if __name__ == "__main__":
    main()

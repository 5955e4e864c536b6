"""Thousands of chains at once on finite spaces, without a Python loop over chains.

Two simulators, one result, randomness always the first argument:

    Walker(transitions)                      votes averaged out: chains of a transition matrix, shape (n, n).
        .run(rng, start, steps, every=None, per_chain=False, keep_path=False) -> Walk
    VoteWalker(proposals, rule, scores)      every proposal and every vote drawn, as a campaign would.
        .run(rng, start, steps, every=None, per_chain=False, keep_path=False) -> Walk

`start` is one state (one chain) or an array of states, shape (chains,). The result holds

    walk.final    (chains,)             where each chain stands after the last step
    walk.times    (records,)            every, 2 every, ..., and the last step
    walk.visits   (records, n)          cumulative visit counts of steps 1..t over all chains, for t in times
                  (records, chains, n)  with per_chain=True
    walk.path     (steps, chains)       every state after its step, with keep_path=True; else None

A start does not count as a visit. Memory beyond the result stays below some 20 MiB up to
262,144 chains, however many the steps.

Both simulate the same law: fresh votes at every step are averaged out exactly by `rule.mean_acceptance`, so the
states alone form the chain of `sampler.exact.transition_matrix`. Use `Walker` up to a few thousand states, and for one
long chain (it cuts time into segments that run side by side); `VoteWalker` for larger spaces, for proposals given
as tables, or to check the averaging itself. For example, one chain of the N-vote rule with its TV curve:

    transitions = transition_matrix(log_p0, q, scores, NVote((4,)))
    walk = Walker(transitions).run(rng, 0, 150_000, every=500)
    tv = np.abs(walk.visits / walk.times[:, None] - pi).sum(axis=1) / 2
"""

from sampler.vectorised.proposals import IndependentTable, MatrixTable, MixtureTable, NeighbourTable, ProposalTable
from sampler.vectorised.record import Walk
from sampler.vectorised.votes import VoteWalker
from sampler.vectorised.walker import Walker

__all__ = [
    "IndependentTable",
    "MatrixTable",
    "MixtureTable",
    "NeighbourTable",
    "ProposalTable",
    "VoteWalker",
    "Walk",
    "Walker",
]

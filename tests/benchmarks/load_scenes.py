"""The campaign that a load is put on."""

from __future__ import annotations

from tests.benchmarks.load_stage import Wanted

_TEXTS = 1000


def of_one_judge(people: int, chains: int, budget: int) -> Wanted:
    """A campaign with one judge, about a list of a thousand texts."""
    return Wanted(people, chains, _TEXTS, [{"question": "Which is darker?", "budget": budget}])


def offered_per_s(people: int, chains: int, budget: int, think_s: float) -> float:
    """Return the most votes per second of people who never wait for a server, in a campaign of one judge.

    The people are the bound, or the chains: nobody is asked for a vote that could come too late, so of N votes at most
    (N + 1) // 2, which may be all that it takes to settle a step, are asked for at the same time.
    """
    return min(people, chains * ((budget + 1) // 2)) / think_s

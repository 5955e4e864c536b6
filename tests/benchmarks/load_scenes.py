"""The campaign that a load is put on."""

from __future__ import annotations

from tests.benchmarks.load_stage import Wanted

# Of the campaign that revisions are compared in.
_COMPARED_TEXTS = 1000
SPACES: dict[str, dict] = {
    "list": {},
    "texts": {"space": {"kind": "texts"}, "kernel": {"kind": "suffix"}},
    "molecules": {"space": {"kind": "molecules"}, "kernel": {"kind": "fragments"}},
}


def of_one_judge(people: int, chains: int, budget: int, space: str = "list", walk: int = 0) -> Wanted:
    """A campaign with one judge.

    Args:
        space: a list of a thousand texts, or one of `SPACES`.
        walk: moves of its local kernel between two questions; of a list 0 is the kernel of `make_recipe`.
    """
    changes = dict(SPACES[space])
    if walk:
        kernel = changes.get("kernel", {"kind": "neighbours"})
        changes["kernel"] = {"kind": "walk", "kernel": kernel, "length": walk}
    judges = [{"question": "Which is darker?", "budget": budget}]
    return Wanted(people, chains, _COMPARED_TEXTS, judges, changes={"version": 1} | changes if changes else {})


def offered_per_s(people: int, chains: int, budget: int, think_s: float) -> float:
    """Return the most votes per second of people who never wait for a server, in a campaign of one judge.

    The people are the bound, or the chains: nobody is asked for a vote that could come too late, so of N votes at most
    (N + 1) // 2, which may be all that it takes to settle a step, are asked for at the same time.
    """
    return min(people, chains * ((budget + 1) // 2)) / think_s

"""A panel: named people, each of whom is a judge of their own with one vote on each pair.

Panelist k prefers x' to x with log-odds s_k(x') - s_k(x). Under the N-vote rule with several judges, each of budget 1,
the chains sample p0 exp(sum_k s_k), however much the panelists differ. A crowd of different people has no such law: the
average of their preferences is not Bradley-Terry.

A judge has one vote: a second one on the same pair in the same step would be of the same person, and repeat the first.

Names are for the campaign's owner. To everybody else a panelist is a number, in the order in which a config names them:
`unnamed` and `unnamed_config` put it in the name's place, and a config that was changed so says the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sampler.judges.config import JudgeConfig
from sampler.judges.sources import PanelistSource, PeopleSource

_TWICE = "would ask the same person the same pair twice in a step, and the second answer is no fresh draw"


def panelists_of(judges: Sequence[JudgeConfig]) -> tuple[str, ...]:
    """Return the names of a panel, by their numbers from 1; none where there is no panel."""
    return tuple(dict.fromkeys(judge.source.name for judge in judges if isinstance(judge.source, PanelistSource)))


def unnamed(judges: Sequence[JudgeConfig]) -> tuple[JudgeConfig, ...]:
    """Return judges with the number of each panelist in the place of the name."""
    names = panelists_of(judges)
    return tuple(
        judge.model_copy(update={"source": PanelistSource(name=str(names.index(judge.source.name) + 1))})
        if isinstance(judge.source, PanelistSource)
        else judge
        for judge in judges
    )


def unnamed_config(described: Mapping[str, Any]) -> dict[str, Any]:
    """Return a config, in plain data, with the number of each panelist in the place of the name."""
    sources = [judge.get("source", {}) for judge in described.get("judges", ())]
    names = list(dict.fromkeys(source["name"] for source in sources if source.get("kind") == "panelist"))
    judges = [
        judge | {"source": source | {"name": str(names.index(source["name"]) + 1)}}
        if source.get("kind") == "panelist"
        else judge
        for judge, source in zip(described.get("judges", ()), sources, strict=True)
    ]
    return {**described, "judges": judges} if names else dict(described)


def best_acceptance(answers: int) -> float:
    """Return how probable it is that a step is accepted if nobody cares and r0 = 1: all answers must be a yes.

    Args:
        answers: how many there are on a pair, one for each question and panelist.
    """
    return float(0.5**answers)


def panel_misfits(judges: Sequence[JudgeConfig]) -> Iterator[tuple[str, str]]:
    """Yield the field and the reason of each judge that does not fit a panel; nothing where there is none."""
    names = panelists_of(judges)
    numbers = {str(number): name for number, name in enumerate(names, start=1)}
    asked: defaultdict[str, list[str]] = defaultdict(list)
    for place, judge in enumerate(judges) if names else ():
        if isinstance(judge.source, PeopleSource):
            yield f"judges.{place}.source", "must be a panelist or a model: with a panel, nobody else votes"
        elif isinstance(judge.source, PanelistSource):
            asked[judge.question].append(judge.source.name)
            if numbers.get(judge.source.name, judge.source.name) != judge.source.name:
                yield f"judges.{place}.source.name", "must not be the number of another panelist"
            if judge.votes != 1:
                yield f"judges.{place}.votes", f"must be 1 for a panelist: more votes {_TWICE}"
            if judge.order != "random":
                reason = f"must be 'random' for a panelist: two judges, one for each order, {_TWICE}"
                yield f"judges.{place}.order", reason
    for question, of_whom in asked.items():
        if sorted(of_whom) != sorted(names):
            yield "judges", f"“{question}” must be asked of each of the {len(names)} panelists, once"

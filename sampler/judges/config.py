"""The part of a config that says what is asked, how often, in which order, and of whom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import Field, StringConstraints, model_validator

from sampler.declared import JUDGED_BY, TARGET, Declared, ui
from sampler.judges.sources import (
    ModelSource,
    Order,
    PanelistSource,
    PeopleSource,
    Source,
)

Question = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=300)]
ORDER_LABELS = {
    "random": "Random for each vote",
    "balanced": "Each order for half of the votes (models only)",
    "proposal-first": "The new object first",
    "proposal-second": "The new object second",
}
_OTHER: dict[Order, Order] = {"proposal-first": "proposal-second", "proposal-second": "proposal-first"}


class JudgeConfig(Declared):
    """One question, how many votes each comparison may cost it, which object stands first, and who answers.

    Under a rule that rates, votes is how many ratings of each object are averaged.
    """

    question: Question = Field(
        title="Question",
        description="Ask for one thing at a time, such as: Which one would you rather read on?",
        json_schema_extra=ui(fixed=JUDGED_BY),
    )
    votes: int = Field(
        ge=1,
        le=1000,
        title="Most votes on a pair (N)",
        description="Each is from another person, or all are from one model.",
        json_schema_extra=ui(fixed=TARGET, start=1),
    )
    order: Order = Field(
        default="random",
        title="Which object is shown first?",
        json_schema_extra=ui(fixed=JUDGED_BY, fold="Which object stands first", labels=ORDER_LABELS),
    )
    source: Source = Field(default=PeopleSource(), title="Who answers?", json_schema_extra=ui(fixed=JUDGED_BY))

    @model_validator(mode="after")
    def _balances_an_even_number_of_replies(self) -> JudgeConfig:
        if self.order == "balanced" and (not isinstance(self.source, ModelSource) or self.votes % 2):
            raise ValueError("order 'balanced' needs a model with an even number of votes; use 'random'")
        return self

    @property
    def voters(self) -> str:
        """Who answers, in plain text; two judges of one question with the same voters have the same scores."""
        if isinstance(self.source, ModelSource):
            asked = "" if self.source.prompt is None else f", asked in the words of {self.source.prompt.version}"
            return f"model “{self.source.endpoint}” at temperature {self.source.temperature:g}{asked}"
        return f"panelist {self.source.name}" if isinstance(self.source, PanelistSource) else "people"


def without_twins(judges: Sequence[JudgeConfig]) -> Iterator[tuple[int, str, str]]:
    """Yield the place, the field and the reason of each judge of a fixed order that has no twin to go with it.

    A lean b to what stands first multiplies the odds of a judge who always sees the proposal first by exp(b), going and
    coming back: no law is left in balance. With a twin in the opposite order the two change places on the way back, so
    that b cancels; hence the same question, the same voters and as many votes (`sampler.rules.order`).
    """
    alone = [place for place, judge in enumerate(judges) if judge.order in _OTHER]
    for same_votes in (True, False):
        for place in list(alone):
            twin = next((each for each in alone if _are_twins(judges[place], judges[each], same_votes)), None)
            if place not in alone or twin is None:
                continue
            alone.remove(place)
            alone.remove(twin)
            if not same_votes:
                first, second = sorted((place, twin))
                reason = f"must be {judges[first].votes}, as that of its twin, judges.{first}: each order is half of N"
                yield second, "votes", reason
    for place in alone:
        other = _OTHER[judges[place].order]
        reason = (
            f"a judge of one order needs a twin of order '{other}' with the same question, source and votes, so that "
            "a bias to one side cancels; use 'random' for a judge alone"
        )
        yield place, "order", reason


def vision_misfits(judges: Sequence[JudgeConfig], objects: str) -> Iterator[tuple[str, str]]:
    """Yield the field and the reason of each setting of pictures that these objects have no use for."""
    for place, judge in enumerate(judges):
        vision = judge.source.vision if isinstance(judge.source, ModelSource) else None
        if vision is None:
            continue
        path = f"judges.{place}.source.vision"
        if objects in ("texts", "markdown"):
            yield path, "must be left out: texts have no pictures"
        elif vision.molecules is not None and objects != "molecules":
            yield f"{path}.molecules", "must be left out where the objects are no molecules"
        elif vision.molecules == "smiles" and len(vision.model_dump()) > 1:
            yield f"{path}.molecules", "must be 'picture' or 'both' where the pictures have settings"


def hearing_misfits(judges: Sequence[JudgeConfig], objects: str) -> Iterator[tuple[str, str]]:
    """Yield the field and the reason of each judge that is a model where the objects are recordings."""
    for place, judge in enumerate(judges):
        if objects == "audio" and isinstance(judge.source, ModelSource):
            yield f"judges.{place}.source", "must not be a model: it hears no recordings. Let people judge"


def _are_twins(one: JudgeConfig, other: JudgeConfig, same_votes: bool) -> bool:
    return (
        _OTHER.get(one.order) == other.order
        and (one.question, one.source) == (other.question, other.source)
        and (one.votes == other.votes or not same_votes)
    )

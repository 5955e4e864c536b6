"""The part of a config that says what is asked, how often, in which order, and of whom.

People in the browser, one named person, or a model behind an endpoint may answer. Whoever does, a vote is a vote: the
rule knows no difference.

A panel are named people, each of whom is a judge of their own with one vote on each pair. Panelist k prefers x' to x
with log-odds s_k(x') - s_k(x). Under the N-vote rule with several judges, each of one vote, the chains sample
p0 exp(sum_k s_k), however much the panelists differ. A crowd of different people has no such distribution: the average
of their preferences is not Bradley-Terry. A judge has one vote: a second one on the same pair in the same step would be
of the same person, and repeat the first.

Names are for the campaign's owner. To everybody else a panelist is a number, in the order in which a config names them:
`unnamed` puts it in the name's place, and a config that was changed so says the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from sampler.declared import JUDGED_BY, ONE_LINE, TARGET, Declared, Sparse, ui
from sampler.judges.prompts import PromptTemplate, Vision
from sampler.judges.replies import LOWEST_TEMPERATURE

_ANSWERS, _PICTURES, _PROMPT = "How the model answers", "Pictures and molecules", "Prompt"
_WAYS = {
    "sampled": "One reply per vote",
    "log-probabilities": "Drawn from log-probabilities: one request for each order",
}
EndpointName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=120)]
PanelistName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=120), ONE_LINE]

# Which object stands first. "random" draws it for every vote; "balanced" shows each first in half of the votes; the
# other two fix it, and a pair of judges of equally many votes, one of each, cancels any constant position bias.
Order = Literal["random", "balanced", "proposal-first", "proposal-second"]


class PeopleSource(Declared):
    """People who have joined the campaign."""

    model_config = ConfigDict(title="People")

    kind: Literal["people"] = "people"


class PanelistSource(Declared):
    """One person of a panel, by their name, which nobody but the campaign's owner sees; see the module."""

    model_config = ConfigDict(title="One person of a panel")

    kind: Literal["panelist"] = "panelist"
    # A number stands in its place wherever others see it: see `unnamed`.
    name: PanelistName = Field(title="Name")


class ModelSource(Sparse):
    """A model, by the name of its endpoint.

    Args:
        temperature: of the replies, above 0: at 0 a judge's votes are copies of each other.
        votes: "sampled", one reply a vote, or "log-probabilities", drawn from the probability the model gives.
        first: whether people are asked about a pair only once this judge's votes are in.
        distribution_unverified: whether votes are accepted although nobody can tell that nothing but the temperature
            changes the distribution they are sampled from, as with most hosted models.
        reasons: whether what it thinks before a sampled vote is kept beside the vote. It is no part of the answer.
        vision: how pictures are shown to it; as they are if None.
        prompt: the researcher's own words; without it, those of this program.
        all_at_once: whether all N votes on a pair are asked for at once. Otherwise no more are under way than can be
            needed. The verdict is the same: votes that come after it are kept and do not count.
    """

    model_config = ConfigDict(title="A model")
    unwritten: ClassVar[tuple[str, ...]] = ("distribution_unverified", "reasons", "vision", "prompt", "all_at_once")

    kind: Literal["model"] = "model"
    endpoint: EndpointName = Field(title="Which model?", json_schema_extra=ui(choices="endpoints"))
    temperature: float = Field(
        default=1.0,
        ge=LOWEST_TEMPERATURE,
        le=5,
        title="Temperature",
        description="Must be above 0: at 0 all votes of the model on a pair would be the same.",
        json_schema_extra=ui(fold=_ANSWERS),
    )
    votes: Literal["sampled", "log-probabilities"] = Field(
        default="sampled", title="How the model votes", json_schema_extra=ui(fold=_ANSWERS, labels=_WAYS)
    )
    first: bool = Field(
        default=False,
        title="Ask before people",
        description="People see only the pairs that the model does not decide.",
        json_schema_extra=ui(fold=_ANSWERS),
    )
    distribution_unverified: bool = Field(
        default=False,
        title="Accept a model whose sampling cannot be verified",
        description="Needed for one reply per vote from most hosted models and all that reason: they may truncate. The "
        "campaign's page and record then say “distribution of the sampler not verified”.",
        json_schema_extra=ui(fold=_ANSWERS),
    )
    reasons: bool = Field(
        default=False,
        title="Keep the model’s reasons",
        description="What a model thinks before it replies, where its server says it: the first 2,000 characters "
        "beside each vote, on the campaign’s page and in reasons.csv. There are none with log-probabilities.",
        json_schema_extra=ui(fold=_ANSWERS),
    )
    vision: Vision | None = Field(default=None, title=_PICTURES, json_schema_extra=ui(fold=_PICTURES))
    prompt: PromptTemplate | None = Field(
        default=None,
        title=_PROMPT,
        description="Leave the fields empty to ask in this program’s words.",
        json_schema_extra=ui(fold=_PROMPT, widget="prompt"),
    )
    all_at_once: bool = Field(
        default=False,
        title="Ask for all votes at once",
        description="As fast as possible: a step takes about the time of one request, and votes that come after the "
        "outcome is settled are wasted. Otherwise only as many are asked for as can be needed, in several rounds. "
        "The outcome is the same.",
        json_schema_extra=ui(fold=_ANSWERS),
    )


Source = Annotated[PeopleSource | PanelistSource | ModelSource, Field(discriminator="kind")]


QuestionText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=300), ONE_LINE]
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

    question: QuestionText = Field(
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


def unpaired_orders(judges: Sequence[JudgeConfig]) -> Iterator[tuple[int, str, str]]:
    """Yield the index, the field and the reason of each judge of a fixed order that has no other to make an order pair.

    A position bias b to what stands first multiplies the odds of a judge who always sees the proposal first by exp(b),
    going and coming back: no distribution is left in balance. In an order pair the two orders change places on the way
    back, so that b cancels; hence the same question, the same voters and as many votes.
    """
    alone = [index for index, judge in enumerate(judges) if judge.order in _OTHER]
    for same_votes in (True, False):
        for index in list(alone):
            partner = next((each for each in alone if _are_order_pair(judges[index], judges[each], same_votes)), None)
            if index not in alone or partner is None:
                continue
            alone.remove(index)
            alone.remove(partner)
            if not same_votes:
                first, second = sorted((index, partner))
                reason = (
                    f"must be {judges[first].votes}, as in the other order (judges.{first}): each order is half of N"
                )
                yield second, "votes", reason
    for index in alone:
        other = _OTHER[judges[index].order]
        reason = (
            f"a judge of one order needs a second judge of order '{other}' with the same question, source and votes, "
            "so that a position bias cancels; use 'random' for a judge alone"
        )
        yield index, "order", reason


def vision_errors(judges: Sequence[JudgeConfig], objects: str) -> Iterator[tuple[str, str]]:
    """Yield the field and the reason of each setting of pictures that these objects have no use for."""
    for index, judge in enumerate(judges):
        vision = judge.source.vision if isinstance(judge.source, ModelSource) else None
        if vision is None:
            continue
        path = f"judges.{index}.source.vision"
        if objects in ("texts", "markdown"):
            yield path, "must be left out: texts have no pictures"
        elif vision.molecules is not None and objects != "molecules":
            yield f"{path}.molecules", "must be left out where the objects are no molecules"
        elif vision.molecules == "smiles" and len(vision.model_dump()) > 1:
            yield f"{path}.molecules", "must be 'picture' or 'both' where the pictures have settings"


def hearing_errors(judges: Sequence[JudgeConfig], objects: str) -> Iterator[tuple[str, str]]:
    """Yield the field and the reason of each judge that is a model where the objects are recordings."""
    for index, judge in enumerate(judges):
        if objects == "audio" and isinstance(judge.source, ModelSource):
            yield f"judges.{index}.source", "must not be a model: it hears no recordings. Let people judge"


def _are_order_pair(one: JudgeConfig, other: JudgeConfig, same_votes: bool) -> bool:
    return (
        _OTHER.get(one.order) == other.order
        and (one.question, one.source) == (other.question, other.source)
        and (one.votes == other.votes or not same_votes)
    )


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


def best_acceptance(answers: int) -> float:
    """Return how probable it is that a step is accepted if nobody cares and r0 = 1: all answers must be a yes.

    Args:
        answers: how many there are on a pair, one for each question and panelist.
    """
    return float(0.5**answers)


def panel_errors(judges: Sequence[JudgeConfig]) -> Iterator[tuple[str, str]]:
    """Yield the field and the reason of each judge that does not fit a panel; nothing where there is none."""
    names = panelists_of(judges)
    numbers = {str(number): name for number, name in enumerate(names, start=1)}
    asked: defaultdict[str, list[str]] = defaultdict(list)
    for index, judge in enumerate(judges) if names else ():
        if isinstance(judge.source, PeopleSource):
            yield f"judges.{index}.source", "must be a panelist or a model: with a panel, nobody else votes"
        elif isinstance(judge.source, PanelistSource):
            asked[judge.question].append(judge.source.name)
            if numbers.get(judge.source.name, judge.source.name) != judge.source.name:
                yield f"judges.{index}.source.name", "must not be the number of another panelist"
            if judge.votes != 1:
                yield f"judges.{index}.votes", f"must be 1 for a panelist: more votes {_TWICE}"
            if judge.order != "random":
                reason = f"must be 'random' for a panelist: two judges, one for each order, {_TWICE}"
                yield f"judges.{index}.order", reason
    for question, of_whom in asked.items():
        if sorted(of_whom) != sorted(names):
            yield "judges", f"“{question}” must be asked of each of the {len(names)} panelists, once"

"""What a study asks of a person beside their votes: questions, instructions, practice, checks, a debriefing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from sampler.declared import JUDGED_BY, ONE_LINE, Declared, ui
from sampler.judges import TrialShares

VOTERS = "it decides who votes and how much each gives, so votes before and after would come from different crowds"
TRIALS = "the record declares beforehand how often trials come, and their answers are compared with each other"
_ELIGIBLE = "Who can take part"
_OFTEN = "How often, and gold pairs of your own"
_WAITING = "When no pair is free"

MAX_TRIALS = 0.5
LONGEST_ANSWER = 2000
LONGEST_CONTENT = 20_000
GREATEST_NUMBER = 999_999_999
USUAL_WAIT_MINUTES = 5
"""Who is paid waits for a pair no longer, unless the protocol says otherwise."""
Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=300), ONE_LINE]
Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
Content = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_CONTENT)]
_PICTURE = re.compile(r"data:image/[a-z]+;base64,[A-Za-z0-9+/=]+")


def _short_beside_pictures(text: str) -> str:
    # A page is made of its Markdown each time that somebody opens it.
    if (length := len(_PICTURE.sub("", text))) > LONGEST_CONTENT:
        raise ValueError(f"has {length:,} characters beside its pictures; at most {LONGEST_CONTENT:,} are possible")
    return text


Text = Annotated[
    str, StringConstraints(strip_whitespace=True, max_length=300_000), AfterValidator(_short_beside_pictures)
]


class SurveyQuestion(Declared):
    """A question about the person.

    Args:
        name: its name in answers.csv.
        text: what the person reads.
        kind: how it is answered.
        options: what can be chosen; of a scale the words at its two ends.
        least: the least number, or the first point of a scale.
        most: the greatest number, or the last point of a scale.
        is_required: nobody goes on without an answer.
        is_last: it is asked after the votes.
        eligible: who answers otherwise cannot take part; empty for everybody.
        eligible_from: a lower number cannot take part.
        eligible_to: a greater number cannot take part.
        quota: for an option, how many people who chose it can take part.
    """

    text: Line = Field(title="Question")
    name: Name = Field(title="Name in answers.csv", description="Small letters, digits and “_”, such as age.")
    kind: Literal["choice", "number", "scale", "text"] = Field(
        default="choice",
        title="Answered by",
        json_schema_extra=ui(labels={"choice": "Choice", "number": "Number", "scale": "Scale", "text": "Text"}),
    )
    options: tuple[Line, ...] = Field(
        default=(), title="Options, one per line", description="Of a scale: the words at its two ends."
    )
    least: int | None = Field(default=None, title="Least number, or first point")
    most: int | None = Field(default=None, title="Greatest number, or last point")
    is_required: bool = Field(default=True, title="Must be answered")
    is_last: bool = Field(default=False, title="Asked after the votes")
    eligible: tuple[Line, ...] = Field(
        default=(),
        title="Options with which somebody can take part",
        description="One per line. Leave empty for everybody.",
        json_schema_extra=ui(fold=_ELIGIBLE),
    )
    eligible_from: int | None = Field(
        default=None, title="Least number with which somebody can take part", json_schema_extra=ui(fold=_ELIGIBLE)
    )
    eligible_to: int | None = Field(
        default=None, title="Greatest number with which somebody can take part", json_schema_extra=ui(fold=_ELIGIBLE)
    )
    quota: Mapping[str, Annotated[int, Field(ge=0)]] = Field(
        default={},
        title="Quota of each option",
        description="How many people with this answer can take part: one per line, such as “student: 20”. Other "
        "options have no limit.",
        json_schema_extra=ui(fold=_ELIGIBLE),
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for problem in self._problems():
            raise ValueError(problem)
        return self

    def _problems(self) -> Iterator[str]:
        is_choice, is_number = self.kind == "choice", self.kind == "number"
        if is_choice and len(set(self.options)) < 2:
            yield "Enter at least two different options, each on a line of its own."
        if self.kind == "scale" and (self.least is None or self.most is None or not 1 <= self.most - self.least <= 20):
            yield "Enter the first and the last point of the scale, with at most 21 points."
        if self.kind == "scale" and len(self.options) not in (0, 2):
            yield "Enter the words at the two ends of the scale as options: two lines, or none."
        if self.least is not None and self.most is not None and self.least > self.most:
            yield "The least number is greater than the greatest."
        if unknown := [each for each in (*self.eligible, *self.quota) if not is_choice or each not in self.options]:
            yield f"“{unknown[0]}” is not an option of this question."
        if (self.eligible_from, self.eligible_to) != (None, None) and not is_number:
            yield "Only answers to a number can be eligible by a range."
        low, high = self.eligible_from, self.eligible_to
        if low is not None and high is not None and low > high:
            yield "Nobody is eligible: the range ends before it begins."
        if self.is_last and (self.is_screening or self.quota):
            yield "Who can take part is settled before the votes. Ask this question before them."
        if (self.is_screening or self.quota) and not self.is_required:
            yield "Who can take part depends on this answer, so it must be required."

    @property
    def is_screening(self) -> bool:
        """True if who can take part depends on the answer itself."""
        return bool(self.eligible) or (self.eligible_from, self.eligible_to) != (None, None)

    def admits(self, answer: str) -> bool:
        """True if somebody with this answer can take part."""
        if self.eligible and answer not in self.eligible:
            return False
        low, high = self.eligible_from, self.eligible_to
        return (low is None or int(answer) >= low) and (high is None or int(answer) <= high)


class ComprehensionQuestion(Declared):
    """A question about the instructions, with the one right answer."""

    text: Line = Field(title="Question")
    options: tuple[Line, ...] = Field(title="Options, one per line")
    right: Line = Field(title="The right one", json_schema_extra=ui(hidden="until the end"))

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if len(set(self.options)) < 2:
            raise ValueError("Enter at least two different options, each on a line of its own.")
        if self.right not in self.options:
            raise ValueError("The right answer must be one of the options.")
        return self


class OwnPair(Declared):
    """A pair of the researcher's own that has a right answer.

    Args:
        first: an object, as the campaign's kind of object writes it.
        second: the other one.
        answer: which of them is right.
        question: the number of the question above them, from 1, among those that people answer.
    """

    first: Content = Field(title="Object 1", json_schema_extra=ui(widget="object"))
    second: Content = Field(title="Object 2", json_schema_extra=ui(widget="object"))
    answer: Literal["first", "second"] = Field(
        title="Right answer",
        json_schema_extra=ui(labels={"first": "object 1", "second": "object 2"}, hidden="until the end"),
    )
    question: Annotated[int, Field(ge=1, le=100)] = Field(
        default=1, title="Question above it", json_schema_extra=ui(choices="questions")
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.first == self.second:
            raise ValueError("The two objects are the same.")
        return self


class PracticePair(OwnPair):
    """A pair to practise on.

    Args:
        if_wrong: what people read who chose the other object.
        if_right: what the others read; empty for a plain word.
    """

    if_wrong: Line = Field(title="After a wrong answer", description="One line that says why the other one is right.")
    if_right: Annotated[str, StringConstraints(strip_whitespace=True, max_length=300), ONE_LINE] = Field(
        default="", title="After a right answer", description="Left empty: “That is right.”"
    )


class Protocol(Declared):
    """What a study asks of a person beside their votes.

    Args:
        questions: about the person, before or after the votes.
        instructions: Markdown.
        practice: pairs before the votes, with feedback.
        comprehension: questions about the instructions.
        tries: how often somebody may answer these.
        check_share: how often a vote is followed by an attention check that says what to choose, from 0 to .5.
        gold: pairs that everybody who reads them answers rightly.
        gold_share: how often a vote is followed by one of them, from 0 to .5.
        repeat_share: how often a vote is followed by a decided pair of the person's own once more, from 0 to .5.
        wait_minutes: so long after somebody has found no pair, their part ends; 0 for never, None for
            `USUAL_WAIT_MINUTES` where a platform pays people, and never elsewhere.
        wait_is_paid: people are told that the time they wait is paid.
        checks_may_fail: so many checks of either kind.
        checks_end: one more ends the part; otherwise they are only noted.
        debriefing: Markdown, shown at the end of the part of somebody who took part.
    """

    questions: tuple[SurveyQuestion, ...] = Field(
        default=(),
        max_length=40,
        title="Questions about the person",
        json_schema_extra=ui(section="Before the votes", rows="Add a question", fixed=VOTERS),
    )
    instructions: Text = Field(
        default="",
        title="Instructions",
        description="In Markdown, on a page of their own. A picture stands in the text as a data address.",
        json_schema_extra=ui(widget="text", fixed=JUDGED_BY, fold="Instructions on a page of their own"),
    )
    practice: tuple[PracticePair, ...] = Field(
        default=(),
        max_length=40,
        title="Practice",
        description="Pairs of your own, with feedback, before people vote. Their objects should be none that people "
        "vote on: feedback on those teaches people what to answer.",
        json_schema_extra=ui(rows="Add a pair", fixed=JUDGED_BY),
    )
    comprehension: tuple[ComprehensionQuestion, ...] = Field(
        default=(),
        max_length=40,
        title="Check that people understood the instructions",
        json_schema_extra=ui(rows="Add a question", fixed=VOTERS),
    )
    tries: Annotated[int, Field(ge=1, le=20)] = Field(
        default=2,
        title="Tries",
        description="So often a person may answer the questions about the instructions. After that their part ends.",
        json_schema_extra=ui(fixed=VOTERS, fold="Tries"),
    )
    check_share: Annotated[float, Field(ge=0, le=0.5)] = Field(
        default=0,
        title="Attention checks, per 100 votes",
        description="A pair between two pairs; the question says which side to choose. When one comes is drawn by lot "
        "and does not depend on the pairs. Its answer is never a vote. 0 for none.",
        json_schema_extra=ui(section="Between the votes", unit="percent", fixed=TRIALS, fold=_OFTEN),
    )
    gold_share: Annotated[float, Field(ge=0, le=0.5)] = Field(
        default=0,
        title="Gold checks, per 100 votes",
        description="One of the gold pairs below, between two pairs. It looks like any other, and its answer is no "
        "vote.",
        json_schema_extra=ui(unit="percent", fixed=TRIALS, fold=_OFTEN),
    )
    repeat_share: Annotated[float, Field(ge=0, le=0.5)] = Field(
        default=0,
        title="Repeats, per 100 votes",
        description="A decided pair that the person has judged, once more: it shows how steady their answers are. Its "
        "answer is never a vote and never ends a part.",
        json_schema_extra=ui(unit="percent", fixed=TRIALS, fold=_OFTEN),
    )
    checks_may_fail: Annotated[int, Field(ge=0, le=1000)] = Field(
        default=2, title="So many may fail", json_schema_extra=ui(fixed=VOTERS, fold=_OFTEN)
    )
    checks_end: bool = Field(
        default=True, title="One more ends the part", json_schema_extra=ui(fixed=VOTERS, fold=_OFTEN)
    )
    gold: tuple[OwnPair, ...] = Field(
        default=(),
        max_length=100,
        title="Gold pairs",
        description="Pairs of your own whose answer nobody doubts. Each person sees all of them before one comes "
        "again, and either object may come first.",
        json_schema_extra=ui(rows="Add a pair", fixed=TRIALS, fold=_OFTEN),
    )
    wait_minutes: Annotated[int, Field(ge=0, le=1440)] | None = Field(
        default=None,
        title="Longest wait, in minutes",
        description="Somebody for whom no pair has been free for so long has done their part, and it ends as “nothing "
        f"left to vote on”. Empty: {USUAL_WAIT_MINUTES} where a platform pays people, no end elsewhere. 0: no end.",
        json_schema_extra=ui(fixed=VOTERS, fold=_WAITING),
    )
    wait_is_paid: bool = Field(
        default=False,
        title="The time that people wait is paid",
        description="Those who wait are told so.",
        json_schema_extra=ui(fixed=VOTERS, fold=_WAITING),
    )
    debriefing: Text = Field(
        default="",
        title="Debriefing",
        description="In Markdown. People read it when their part has ended.",
        json_schema_extra=ui(section="After the votes", widget="text", fold="The end"),
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        twice = [name for name, count in Counter(question.name for question in self.questions).items() if count > 1]
        if twice:
            raise ValueError(f"Two questions have the name “{twice[0]}”.")
        if bool(self.gold) != bool(self.gold_share):
            raise ValueError("Gold pairs need to be shown at a rate above 0, and a rate above 0 needs gold pairs.")
        if self.shares.total > MAX_TRIALS:
            raise ValueError("Of 100 votes, at most 50 can be followed by a trial that is no vote.")
        return self

    @property
    def shares(self) -> TrialShares:
        """How often a vote is followed by which trial."""
        return TrialShares(self.check_share, self.gold_share, self.repeat_share)

    @property
    def own_pairs(self) -> Sequence[OwnPair]:
        """The researcher's own pairs, of both kinds."""
        return (*self.practice, *self.gold)

    @property
    def is_empty(self) -> bool:
        """True if nothing is asked and nothing is told."""
        asks = self.questions or self.instructions or self.comprehension or self.debriefing
        return not (asks or self.own_pairs or self.shares.total or self.wait_minutes or self.wait_is_paid)

    def asked(self, *, last: bool) -> Sequence[SurveyQuestion]:
        """Return the questions before the votes, or the last ones, after them."""
        return [question for question in self.questions if question.is_last == last]

"""The whole configuration of a campaign, as one model: form, file, API and record are made of it.

What fixes the chains is the sampler's own (`sampler.ChainConfig`); people are in `study.py`. Nothing is said twice.

Not in it: keys of endpoints, which are named only; people, but for a panel's names; and a seed that was drawn, so that
a second campaign from the same file draws its own.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints

import sampler
from prefmh_web.config.study import LONGEST_NAME, Money, Study
from sampler.declared import JUDGED_BY, TARGET, Declared, ui

_VOTERS = "The language, the layout, the time to answer, and pairs that nobody answers"
_LENGTH = "More chains while people come, what is left out, and the seed"
_JUDGED = {"rule": ("n-vote", "pointwise")}
_LAYOUTS = {
    "": "One above the other if a question is asked in both orders, else by the screen",
    "by-screen": "Side by side where there is room, else one above the other",
    "stacked": "One above the other on every screen",
}
LARGEST_SEED = 2**53 - 1
Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_NAME)]
Language = Annotated[str, StringConstraints(pattern=r"^[a-z]{2,3}(-[a-zA-Z0-9]{2,8})?$")]
_ScorerName = Annotated[str, StringConstraints(pattern=r"^\S{1,200}$")]


class UploadedFile(Declared):
    """The file that a list of objects comes from.

    Args:
        name: without folders.
        sha256: of its bytes, as 64 hexadecimal digits; where it is given, no other file is taken.
    """

    name: str = Field(min_length=1, max_length=255, pattern=r"^[^/\\\x00-\x1f]+$")
    sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")


class Answering(Declared):
    """How long a pair waits for its answer, and when nobody else is asked about a step.

    Args:
        seconds: after so long the pair goes to somebody else.
        suspend_after_skips: of one step; without it, skips suspend nothing.
        suspend_after_reports: that an object is not shown, each by another person.
        undo: whether each choice waits in the page before it is sent, and can be taken back until then. The server
            never takes a vote back: an undo that depended on what a vote has settled would change the distribution.
    """

    seconds: int = Field(
        default=120,
        ge=10,
        le=3600,
        title="Time to answer, in seconds",
        description="After this time the pair goes to somebody else. Give enough: answers that come too late do not "
        "count.",
        json_schema_extra=ui(fixed=JUDGED_BY),
    )
    suspend_after_skips: int | None = Field(
        default=None,
        ge=1,
        le=1000,
        title="Set a step aside after so many skips",
        description="It is suspended: nobody else is asked about it until you try it again or end its chain. Empty for "
        "never.",
        json_schema_extra=ui(fixed=TARGET),
    )
    suspend_after_reports: int = Field(
        default=2,
        ge=1,
        le=1000,
        title="Set a step aside after so many reports",
        description="That an object is not shown, or broken, each by another person.",
        json_schema_extra=ui(fixed=TARGET),
    )
    undo: bool = Field(
        default=False,
        title="Let voters undo a choice",
        description="Each choice is sent after two seconds, and can be taken back until then. Every vote takes two "
        "seconds longer.",
        json_schema_extra=ui(fixed=JUDGED_BY),
    )


class Caps(Declared):
    """What asking models may take.

    Args:
        cost: in the currency of the endpoints' prices.
        requests: of all models together.
    """

    cost: Annotated[Money, Field(lt=10**10)] | None = Field(
        default=None,
        title="Models may cost at most",
        description="In the currency of your endpoints’ prices. At the cap the campaign pauses. Empty for no cap.",
    )
    requests: int | None = Field(
        default=None,
        ge=1,
        le=10**12,
        title="Models may be sent at most so many requests",
        description="Requests that fail count, too. Empty for no cap.",
    )


class CampaignConfig(sampler.ChainConfig):
    """A campaign's whole configuration.

    Args:
        name: voters do not see it.
        instructions: shown once, before the first pair.
        language: of the voters' pages.
        layout: how a pair stands on their screens; without it, stacked where a question is asked in both orders.
        file: where a list of the researcher's own comes from.
        seed: only one that the researcher has typed; without it, the start of each campaign draws its own.
        scorers: models that give each object a number, beside those whose numbers the rule goes by.
        answering: seconds to answer, and when a step is suspended.
        caps: on what models may take.
        study: who comes, how much each gives, and what they are asked beside votes.
    """

    model_config = ConfigDict(title="campaign.yaml of prefmh")

    name: Name = Field(
        title="Name of the campaign",
        description="Voters do not see it. Colleagues whom you add to the campaign do.",
    )
    instructions: Annotated[str, StringConstraints(strip_whitespace=True, max_length=4000)] = Field(
        default="",
        title="Instructions for voters",
        description="Shown once, before the first pair.",
        json_schema_extra=ui(widget="text", fixed=JUDGED_BY, when=_JUDGED),
    )
    language: Language = Field(
        default="en",
        title="Language of the voters' pages",
        description="Write your questions and instructions in it, too. Translations that no native speaker has "
        "reviewed yet say so.",
        json_schema_extra=ui(fixed=JUDGED_BY, choices="languages", fold=_VOTERS),
    )
    layout: Literal["by-screen", "stacked"] | None = Field(
        default=None,
        title="How the two objects stand",
        description="A preference for the first object may be another one beside than above. Two orders cancel it only "
        "where all people see one layout.",
        json_schema_extra=ui(fixed=JUDGED_BY, labels=_LAYOUTS, fold=_VOTERS),
    )
    file: UploadedFile | None = Field(default=None, title="File", json_schema_extra=ui(widget="none", fixed=TARGET))
    # A draft has none that was not typed: see `Campaign.config`.
    seed: int | None = Field(  # type: ignore[assignment]
        default=None,
        ge=0,
        le=LARGEST_SEED,
        title="Seed of all random numbers",
        description="Leave empty, and the start draws one. Its hash is shown from then on, and nobody sees the seed "
        "until the campaign has ended. Keep a seed that you type secret: it determines all random numbers.",
        json_schema_extra=ui(fixed=TARGET, fold=_LENGTH, hidden="until the end"),
    )
    scorers: tuple[_ScorerName, ...] = Field(
        default=(),
        max_length=50,
        title="Scorers",
        description="Each gives every object that a chain proposes a number, which the record keeps and the report "
        "follows. They decide nothing, unless the rule goes by scores.",
        json_schema_extra=ui(
            fixed="the objects before and after would be measured otherwise",
            fold="Scores that the record keeps of each object",
            choices="scorers",
        ),
    )
    answering: Answering = Field(default=Answering(), json_schema_extra=ui(fold=_VOTERS))
    caps: Caps = Field(default=Caps(), json_schema_extra=ui(fold="Caps on what models may cost"))
    study: Study = Field(default=Study(), json_schema_extra=ui(widget="none"))

    @property
    def shown_as(self) -> dict[str, Any]:
        """How pages show a pair: whether one object stands above the other on every screen, since a bias that is to
        cancel between two orders must be that of one layout; and the language of the objects, where it is known.
        """
        has_orders = any(judge.order != "random" for judge in self.judges)
        is_stacked = self.layout == "stacked" or (self.layout is None and has_orders)
        # Of those that are generated, the story openings are written here.
        return {"is_stacked": is_stacked, "objects_lang": "en" if self.space.kind == "texts" else ""}

    @property
    def all_scorers(self) -> tuple[str, ...]:
        """The scorers of the campaign: those that steps wait for first."""
        return tuple(dict.fromkeys([*self.awaited_scorers, *self.scorers]))


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a configuration, which editors of YAML can check a file against."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | CampaignConfig.model_json_schema()

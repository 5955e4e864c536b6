"""The whole setup of a campaign, as one model: what the form, the protocol and the pages of a draft can say.

`campaign.yaml` is this model as text, and its JSON Schema is published with the docs. The parts that fix the chains are
the sampler's own (`sampler.ChainConfig`), those about people are `people.py` and the protocol; nothing is said twice.

Not in it: keys of endpoints, which are named only; people, but for a panel's names, which the record's copy leaves out;
and a seed that was drawn, so that a second campaign from the same file draws its own.
"""

from __future__ import annotations

from copy import copy
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints

import sampler
from prefmh_web.setup.people import Language, Money, Part, People

VERSION = 1
LONGEST_NAME = 120
Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_NAME)]
_ScorerName = Annotated[str, StringConstraints(pattern=r"^\S{1,200}$")]


def _of_config(name: str) -> Any:
    """Return a field of the config, with its bounds and its default."""
    return copy(sampler.ChainConfig.model_fields[name])


class UploadedFile(Part):
    """The file that a list of objects comes from.

    Args:
        name: without folders.
        sha256: of its bytes, as 64 hexadecimal digits; where it is given, no other file is taken.
    """

    name: str = Field(min_length=1, max_length=255, pattern=r"^[^/\\\x00-\x1f]+$")
    sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")


class Answering(Part):
    """How long a pair waits for its answer, and when nobody else is asked about a step.

    Args:
        seconds: after so long the pair goes to somebody else.
        suspend_after_skips: of one step; without it, skips suspend nothing.
        suspend_after_reports: that an object is not shown, each by another person.
    """

    seconds: int = Field(default=120, ge=10, le=3600)
    suspend_after_skips: int | None = Field(default=None, ge=1, le=1000)
    suspend_after_reports: int = Field(default=2, ge=1, le=1000)


class Caps(Part):
    """What asking models may take.

    Args:
        cost: in the currency of the endpoints' prices.
        requests: of all models together.
    """

    cost: Annotated[Money, Field(lt=10**10)] | None = None
    requests: int | None = Field(default=None, ge=1, le=10**12)


class Setup(Part):
    """A campaign's whole setup.

    Args:
        version: of this form of file.
        name: voters do not see it.
        instructions: shown once, before the first pair.
        language: of the voters' pages.
        layout: how a pair stands on their screens; without it, stacked where a question is asked in both orders.
        space: what is compared.
        file: where a list of the researcher's own comes from.
        kernel: what is proposed.
        rule: what accepts a proposal.
        judges: what is asked, how often, and who answers: people, a panelist, an endpoint or a local model by
            its name.
        chains: at the start.
        max_chains: further ones open for people who would wait, up to so many.
        steps: of each chain.
        burn_in: steps of each chain that the analysis leaves out.
        seed: only one that the researcher has typed; without it, the start of each campaign draws its own.
        scorers: models that give each object a number, beside those whose numbers the rule goes by.
        answering: seconds to answer, and when a step is suspended.
        caps: on what models may take.
        people: who comes, how much each gives, and what they are asked beside votes.
    """

    model_config = ConfigDict(title="campaign.yaml of prefmh")

    version: Literal[1]
    name: Name
    instructions: Annotated[str, StringConstraints(strip_whitespace=True, max_length=4000)] = ""
    language: Language = "en"
    layout: Literal["by-screen", "stacked"] | None = None
    space: sampler.SpaceConfig = _of_config("space")
    file: UploadedFile | None = None
    kernel: sampler.KernelConfig = _of_config("kernel")
    rule: sampler.RuleConfig = _of_config("rule")
    judges: tuple[sampler.JudgeConfig, ...] = Field(default=(), max_length=8)
    chains: int = _of_config("chains")
    max_chains: int | None = _of_config("max_chains")
    steps: int = _of_config("steps")
    burn_in: int = _of_config("burn_in")
    seed: int | None = Field(default=None, ge=0, lt=2**53)
    scorers: tuple[_ScorerName, ...] = Field(default=(), max_length=50)
    answering: Answering = Answering()
    caps: Caps = Caps()
    people: People = People()

    def config(self, seed: int) -> dict[str, Any]:
        """Return what the sampler's config is made of, under a seed if none was typed."""
        parts = self.model_dump(mode="json", include=set(CONFIG_FIELDS))
        return {"version": 1, **parts, "seed": seed if self.seed is None else self.seed}


CONFIG_FIELDS = tuple(name for name in sampler.ChainConfig.model_fields if name not in ("version", "seed", "target"))
"""Those of a setup that are the config's, under the same names."""


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a setup, which editors of YAML can check a file against."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | Setup.model_json_schema()

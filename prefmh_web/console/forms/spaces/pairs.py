"""Fixed pairs, as `manage.py experiment compare --people` makes them: no form offers them; pages say what they are."""

from typing import Any

import sampler
from prefmh_web.campaigns.models import Campaign
from prefmh_web.console.forms.spaces.space_form import SpaceForm
from prefmh_web.console.unstored import Sample


class PairsForm(SpaceForm):
    """No fields: a draft keeps its pairs."""

    kind = "pairs"
    title = "Pairs of two records"
    samples = (Sample("texts"), Sample("images"))

    @classmethod
    def is_offered(cls) -> bool:
        return False

    def space(self) -> dict:
        return self._kept().space.model_dump(mode="json")

    def kernel(self) -> dict:
        return self._kept().kernel.model_dump(mode="json")

    @classmethod
    def initial_of(cls, recipe: sampler.Recipe) -> dict:
        return {}

    @classmethod
    def summary(cls, campaign: Campaign) -> list[tuple[str, str]]:
        space: Any = campaign.parsed_recipe.space
        return [("Objects", f"{len(space.pairs)} pairs that were given"), ("Proposals", "the other one of the pair")]

    def _kept(self) -> sampler.Recipe:
        if self.before is None:
            raise ValueError("pairs are given by a command, and by no form")
        return self.before.parsed_recipe

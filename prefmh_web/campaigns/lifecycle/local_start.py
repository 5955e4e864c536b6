"""What Start makes sure of where the site's own models judge: that they load, read the prompts, and are fixed.

Runs where `model_start.py` does, on the worker of the queue “gpu”.
"""

from __future__ import annotations

from collections.abc import Sequence

import sampler
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.model_judges import freezing, frozen_judges, local_freezing
from prefmh_web.campaigns.model_judges.kinds.local import as_endpoint
from prefmh_web.campaigns.models import Campaign, Judge, State
from prefmh_web.campaigns.started import objects
from prefmh_web.endpoints.errors import Unable
from prefmh_web.endpoints.local.models import JudgeHere

Here = dict[int, JudgeHere]
"""The models that the site runs itself, by the place of the judge."""


def places(campaign: Campaign) -> list[int]:
    """Return which of a recipe's judges the site runs itself."""
    judges = campaign.parsed_recipe.judges
    return [place for place, judge in enumerate(judges) if isinstance(judge.source, sampler.LocalSource)]


def examined(campaign: Campaign) -> Here:
    """Load the models.

    Raises:
        NotPossible: one cannot be run here, or cannot see what it would be shown.
    """
    found: Here = {}
    for place in places(campaign):
        if campaign.object_kind.medium == "picture":
            raise _refused(campaign, place, "it does not see pictures. Choose a model behind an endpoint")
        try:
            found[place] = local_freezing.loaded(campaign, place)
        except Unable as error:
            raise _refused(campaign, place, error.reason) from error
    return found


def check_questions(campaign: Campaign, here: Here, largest: Sequence[State]) -> None:
    """Check that each question with the largest objects fits into its model.

    Raises:
        NotPossible: it does not.
    """
    for place, model in here.items():
        shown = [
            objects.exhibit(state, as_endpoint(local_freezing.source_of(campaign, place).model)) for state in largest
        ]
        prompt = freezing.prompt_as_of_now(campaign, campaign.parsed_recipe, place)
        try:
            tokens = len(model.judge.read(prompt.messages(*shown)))
        except Unable as error:
            nouns = campaign.object_kind.nouns
            raise _refused(
                campaign, place, f"with the two longest {nouns}, {error.reason}. Shorten the {nouns}"
            ) from error
        _check_texts_to_come(campaign, place, model, tokens, largest)


def freeze(campaign: Campaign, here: Here) -> None:
    """Fix what the judges are, in the transaction that starts the campaign."""
    for judge in Judge.objects.filter(campaign=campaign, place__in=list(here)):
        model = here[judge.place]
        frozen = local_freezing.frozen_as(campaign, judge.place, model)
        Judge.objects.filter(pk=judge.pk).update(frozen=frozen)
        frozen_judges.accept_at_start(judge, [local_freezing.identity_of(judge.local_model, model)])


def _check_texts_to_come(
    campaign: Campaign, place: int, model: JudgeHere, tokens: int, largest: Sequence[State]
) -> None:
    """Check that texts which are still to be written fit, too, as far as their tokens can be told."""
    space, context = campaign.parsed_recipe.space, model.judge.context
    if isinstance(space, sampler.ServedTextsRecipe) and context is not None:
        most = tokens + len(largest) * space.limit
        if most > context:
            raise _refused(
                campaign,
                place,
                f"two texts of {space.limit} tokens each make up to {most} tokens, more than the {context} of its "
                "context. Lower “Most tokens of a text”",
            )


def _refused(campaign: Campaign, place: int, why: str) -> NotPossible:
    judge = campaign.parsed_recipe.judges[place]
    name = local_freezing.source_of(campaign, place).model
    return NotPossible(f"The model “{name}” cannot answer question {place + 1}, “{judge.question}”: {why}.")

"""The campaign's own states: draft, running, paused, finished. The one door through which they change.

    draft --start--> running <--pause/resume--> paused        running or paused --(last step decided)--> finished

A change is a guarded update: of two clicks at once, one wins and the other is told. Pausing stops the handing out
of pairs; votes that are out already still count, and a step once opened is finished under the same uniform.
"""

from django.db import transaction
from django.utils import timezone

import sampler
from prefmh_web.campaigns import files, hints, live, plans
from prefmh_web.campaigns.models import Campaign, Catalog, Chain, Invitation, Judge


class NotPossible(Exception):  # noqa: N818 - reads as the sentence it starts
    """The change is not possible now; the message says why and what would make it so."""


def start(campaign: Campaign) -> None:
    """Freeze the recipe, create judges and chains, and queue the first proposals.

    Raises:
        NotPossible: not a draft, the catalog is not read, or the recipe does not fit it.
    """
    campaign.refresh_from_db()
    recipe = campaign.recipe
    revision, plan = _checked_plan(campaign)
    with transaction.atomic():
        _change(campaign, Campaign.Status.DRAFT, Campaign.Status.RUNNING, started_at=timezone.now())
        is_same_file = Catalog.objects.filter(
            campaign=campaign, revision=revision, status=Catalog.Status.READY
        ).exists()
        if campaign.recipe != recipe or not is_same_file:
            raise NotPossible("The setup was changed in this very moment. Look at it again.")
        _create_judges(campaign)
        for chain in _create_chains(campaign, plan):
            hints.propose(chain.pk)
        Invitation.objects.get_or_create(campaign=campaign)


def discard(campaign: Campaign) -> None:
    """Delete a draft with its file. What has started has a record, and stays.

    Raises:
        NotPossible: the campaign has started.
    """
    campaign_id, upload = campaign.pk, campaign.catalog.file.name
    with transaction.atomic():
        _, deleted = Campaign.objects.filter(pk=campaign.pk, status=Campaign.Status.DRAFT).delete()
        if not deleted.get(Campaign._meta.label):
            raise NotPossible("The campaign has started; its record stays.")
    files.remove_upload(upload)
    files.remove_pictures(campaign_id)


def pause(campaign: Campaign) -> None:
    """Stop handing out pairs and opening steps.

    Raises:
        NotPossible: the campaign is not running.
    """
    with transaction.atomic():
        _change(campaign, Campaign.Status.RUNNING, Campaign.Status.PAUSED)


def resume(campaign: Campaign) -> None:
    """Go on where `pause` stopped: open steps keep their uniform and their votes.

    Raises:
        NotPossible: the campaign is not paused.
    """
    with transaction.atomic():
        _change(campaign, Campaign.Status.PAUSED, Campaign.Status.RUNNING)
        for chain_id in campaign.chains.values_list("pk", flat=True):
            hints.propose(chain_id)


def _checked_plan(campaign: Campaign) -> tuple[int, sampler.Plan]:
    """Return the plan and the revision of the catalog it is built on. Outside the transaction: it takes a while."""
    catalog = Catalog.objects.get(campaign=campaign)
    if catalog.status == Catalog.Status.REFUSED:
        raise NotPossible("The file gave no objects. Correct it and upload it again.")
    if catalog.status != Catalog.Status.READY:
        raise NotPossible("The file is still being read. Wait a moment.")
    try:
        return catalog.revision, plans.plan_of(campaign)
    except sampler.RecipeError as error:
        raise NotPossible(f"The setup does not fit the file: {error}.") from error


def _change(campaign: Campaign, before: Campaign.Status, after: Campaign.Status, **fields) -> None:
    changed = Campaign.objects.filter(pk=campaign.pk, status=before).update(status=after, **fields)
    campaign.refresh_from_db()
    if not changed:
        raise NotPossible(f"The campaign is {campaign.status}; only a {before} one can be made {after}.")
    live.nudge(live.voters(campaign.pk), live.watchers(campaign.pk))


def _create_judges(campaign: Campaign) -> None:
    recipe = sampler.parse_recipe(campaign.recipe)
    Judge.objects.bulk_create(
        Judge(campaign=campaign, place=place, question=judge.question, budget=judge.budget)
        for place, judge in enumerate(recipe.judges)
    )


def _create_chains(campaign: Campaign, plan: sampler.Plan) -> list[Chain]:
    chains, length = campaign.recipe["chains"], campaign.recipe["steps"]
    starts = [sampler.begin(plan, place).state for place in range(chains)]
    states = {state.place: state for state in campaign.states.filter(place__in=set(starts))}
    return Chain.objects.bulk_create(
        Chain(campaign=campaign, place=place, length=length, start=states[start], head=states[start])
        for place, start in enumerate(starts)
    )

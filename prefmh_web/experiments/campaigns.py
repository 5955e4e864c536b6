"""The campaigns of a run: found again or made, started, waited for.

A campaign is found by its owner, the hash of settings.json, its method, direction and seed. So the same command, run
again, goes on where it was killed; what chains have done is in the database.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q

from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.engine import usage
from prefmh_web.campaigns.lifecycle import changes, model_start
from prefmh_web.campaigns.models import Campaign, Comparison, Score
from prefmh_web.config import CampaignConfig
from prefmh_web.experiments.configs import Part, config_of
from prefmh_web.experiments.models import ExperimentCampaign

_LOOK_EVERY_S = 0.5
_FINISHED = Campaign.Status.FINISHED


class Blocked(Exception):  # noqa: N818 - reads as the sentence it starts
    """A campaign does not go on by itself; the message says why and what to do."""


class LimitReached(Exception):  # noqa: N818 - reads as the sentence it starts
    """So many requests as were allowed have been made."""

    def __init__(self) -> None:
        super().__init__("--max-requests is reached; run the same command with a higher number to go on")


def ensure(part: Part) -> Campaign:
    """Return the campaign of a part, made if there is none; two commands at once make one."""
    run, config = part.run, config_of(part)
    key = {"owner": run.owner, "settings": run.settings, "method": part.method.name, "direction": part.direction}
    with transaction.atomic():
        # Whoever makes one holds its owner's row.
        User.objects.select_for_update().get(pk=run.owner.pk)
        found = ExperimentCampaign.objects.filter(**key, seed=part.seed).select_related("campaign").first()
        if found is not None:
            return found.campaign
        name = f"{part.options.of_experiment.title}: {part.name}"[:120]
        campaign = changes.create(owner=run.owner, config=CampaignConfig.model_validate(config | {"name": name}))
        ExperimentCampaign.objects.create(**key, seed=part.seed, experiment=part.options.experiment, campaign=campaign)
    return campaign


def run(campaign: Campaign, most_requests: int | None, show: Callable[[], None]) -> None:
    """Start a campaign or go on with it, and return when its last step is decided.

    Args:
        most_requests: of its writer and its judges, those of earlier runs included; None for no limit.
        show: called every now and then.

    Raises:
        Blocked: it waits for somebody.
        LimitReached: it has made as many requests as it may.
    """
    campaign.refresh_from_db()
    if campaign.status == _FINISHED:
        return
    if most_requests is not None and most_requests <= requests_of(campaign):
        raise LimitReached
    if campaign.request_cap != most_requests:
        caps = campaign.config.caps.model_copy(update={"requests": most_requests})
        changes.apply(campaign, campaign.typed_config.model_copy(update={"caps": caps}), campaign.owner)
    if campaign.is_draft:
        if settings.EMBEDDED and campaign.starting_since is not None:
            # An earlier command was killed in it: starts are made by the command itself here.
            usage.note_repeated_start(campaign)
        lifecycle.request_start(campaign)
    elif campaign.status == Campaign.Status.PAUSED:
        _resume(campaign, most_requests)
    while campaign.status != _FINISHED:
        time.sleep(_LOOK_EVERY_S)
        campaign.refresh_from_db()
        show()
        _check(campaign, most_requests)


def requests_of(campaign: Campaign) -> int:
    """Return how many requests the writer and the judges of a campaign have been sent."""
    return sum(campaign.model_usage.values_list("requests", flat=True))


def _resume(campaign: Campaign, most_requests: int | None) -> None:
    try:
        lifecycle.resume(campaign)
    except lifecycle.NotPossible as reason:
        if most_requests is not None and _is_at_a_cap(campaign):
            raise LimitReached from reason
        raise Blocked(f"{campaign.name} cannot go on: {reason}") from reason


def _check(campaign: Campaign, most_requests: int | None) -> None:
    """Raise if a campaign does not go on by itself."""
    if campaign.is_draft and campaign.start_trouble:
        if most_requests is not None and _is_at_a_cap(campaign):
            raise LimitReached
        raise Blocked(f"{campaign.name} could not be started: {campaign.start_trouble}")
    if campaign.status == Campaign.Status.PAUSED:
        if campaign.paused_because and most_requests is not None:
            raise LimitReached
        reason = campaign.paused_because or "somebody has paused it; resume it on its page"
        raise Blocked(f"{campaign.name} is paused: {reason}")
    for judge in campaign.judges.exclude(stopped_because=""):
        raise Blocked(f"{campaign.name}: {judge.stopped_because} Open the campaign's page to go on.")
    for scorer in campaign.scorers.filter(name__in=campaign.config.awaited_scorers).exclude(stopped_because=""):
        raise Blocked(
            f"{campaign.name}: the scorer {scorer.name} gives no numbers: {scorer.stopped_because}. Mend it, press "
            "“Try the scorers again” on the campaign's page, and run the same command again"
        )
    # Each chain that is not at its end waits for a number that its scorer says there is not, or for somebody to see to
    # what a judge ran into.
    none = Score.objects.filter(
        scorer__campaign=campaign, scorer__name__in=campaign.config.awaited_scorers, value__isnull=True
    )
    opened = Comparison.objects.filter(chain=OuterRef("pk"), verdict__isnull=True)
    without = Q(current__in=none.values("state")) | Q(proposal__in=none.values("state"))
    suspended = Q(turns__asked=0, turns__until__isnull=True)
    unfinished = campaign.chains.filter(step__lt=F("length"), ended_at=None)
    if 0 < unfinished.count() == unfinished.filter(Exists(opened.filter(without | suspended))).count():
        missing = none.select_related("scorer").first()
        why = (
            f"waits for a number that {missing.scorer.name} does not give: {missing.reason}"
            if missing
            else "is suspended"
        )
        raise Blocked(f"{campaign.name}: every open step {why}. Open the campaign's page to go on")


def _is_at_a_cap(campaign: Campaign) -> bool:
    """Say whether one of its models may not be asked once more."""
    try:
        model_start.demand_room(campaign)
    except lifecycle.NotPossible:
        return True
    return False

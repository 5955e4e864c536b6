"""The campaigns of a run (found again or made, started, waited for, exported) and its folder.

A campaign is found by its owner, the hash of settings.json, its method, direction and seed. So the same command, run
again, goes on where it was killed; what chains have done is in the database. The folder's settings.json must be that of
the run.
"""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q

import sampler
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.engine import usage
from prefmh_web.campaigns.lifecycle import changes, model_start
from prefmh_web.campaigns.models import Campaign, Comparison, ModelUsage, Score, Turn
from prefmh_web.campaigns.record import export
from prefmh_web.config import CampaignConfig
from prefmh_web.experiments.configs import Part
from prefmh_web.experiments.models import ExperimentCampaign

Row = Sequence[str | int | float | None]
_LOOK_EVERY_S = 0.5
_FINISHED = Campaign.Status.FINISHED


class Blocked(Exception):  # noqa: N818 - reads as the sentence it starts
    """A campaign does not go on by itself; the message says why and what to do."""


class LimitReached(Exception):  # noqa: N818 - reads as the sentence it starts
    """So many requests as were allowed have been made."""


class OtherSettings(Exception):  # noqa: N818 - reads as the sentence it starts
    """The folder holds another run; the message says what differs."""


def ensure(owner: User, settings: str, part: Part, config: dict[str, Any]) -> Campaign:
    """Return the campaign of a part, made if there is none; two commands at once make one."""
    experiment = part.options.experiment
    key = {"owner": owner, "settings": settings, "method": part.method.name, "direction": part.direction}
    with transaction.atomic():
        # Whoever makes one holds its owner's row.
        User.objects.select_for_update().get(pk=owner.pk)
        found = ExperimentCampaign.objects.filter(**key, seed=part.seed).select_related("campaign").first()
        if found is not None:
            return found.campaign
        name = f"{part.options.of_experiment.title}: {part.name}"[:120]
        campaign = changes.create(owner=owner, config=CampaignConfig.model_validate(config | {"name": name}))
        ExperimentCampaign.objects.create(**key, seed=part.seed, experiment=experiment, campaign=campaign)
    return campaign


def run(campaign: Campaign, owner: User, most_requests: int | None, show: Callable[[], None]) -> None:
    """Start a campaign or go on with it, and return when its last step is decided.

    Args:
        most_requests: of its writer and its judges, those of earlier runs included; None for no limit.
        show: called every now and then.

    Raises:
        Blocked: it waits for somebody.
        LimitReached: it has made as many requests as it may.
    """
    campaign.refresh_from_db()
    if most_requests is not None and most_requests <= requests_of(campaign) and campaign.status != _FINISHED:
        raise LimitReached
    _allow(campaign, owner, most_requests)
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


def save_record(campaign: Campaign, path: Path) -> None:
    """Write a campaign's export, whole or not at all."""
    with replaced(path) as unfinished, unfinished.open("wb") as file:
        file.writelines(export.archive(campaign))


def _allow(campaign: Campaign, owner: User, most_requests: int | None) -> None:
    if campaign.request_cap == most_requests or campaign.status == _FINISHED:
        return
    caps = campaign.config.caps.model_copy(update={"requests": most_requests})
    changes.apply(campaign, campaign.typed_config.model_copy(update={"caps": caps}), owner)


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
    if (score := _missing_number(campaign)) is not None:
        raise Blocked(
            f"{campaign.name}: every open step waits for a number that {score.scorer.name} does not give: "
            f"{score.reason}. Open the campaign's page to go on"
        )
    if _all_are_suspended(campaign):
        raise Blocked(f"{campaign.name}: every open step is suspended; the campaign's page says why")


def _is_at_a_cap(campaign: Campaign) -> bool:
    """Say whether one of its models may not be asked once more."""
    try:
        model_start.demand_room(campaign)
    except lifecycle.NotPossible:
        return True
    return False


def _all_are_suspended(campaign: Campaign) -> bool:
    """Say whether each chain that is not at its end waits for somebody to see to what a judge ran into."""
    unfinished = campaign.chains.filter(step__lt=F("length"), ended_at=None)
    suspended = Turn.objects.filter(asked=0, until__isnull=True, comparison__verdict__isnull=True)
    waiting = unfinished.filter(Exists(suspended.filter(comparison__chain=OuterRef("pk"))))
    return 0 < unfinished.count() == waiting.count()


def _missing_number(campaign: Campaign) -> Score | None:
    """Return why no chain goes on where each waits for a number that its scorer says there is not; otherwise None."""
    names = campaign.config.awaited_scorers
    if not names:
        return None
    none = Score.objects.filter(scorer__campaign=campaign, scorer__name__in=names, value__isnull=True)
    if (first := none.select_related("scorer").first()) is None:
        return None
    unfinished = campaign.chains.filter(step__lt=F("length"), ended_at=None)
    opened = Comparison.objects.filter(chain=OuterRef("pk"), verdict__isnull=True)
    waiting = unfinished.filter(
        Exists(opened.filter(Q(current__in=none.values("state")) | Q(proposal__in=none.values("state"))))
    )
    return first if 0 < unfinished.count() == waiting.count() else None


def usage_of(campaign: Campaign) -> list[ModelUsage]:
    """Return what each judge and the writing of texts has taken."""
    return list(campaign.model_usage.order_by("place"))


def settle(folder: Path, document: dict[str, Any]) -> None:
    """Write settings.json, or check that the folder's is of this run.

    Raises:
        OtherSettings: it is not.
    """
    path = folder / sampler.outputs.SETTINGS
    if not path.exists():
        with replaced(path) as unfinished:
            unfinished.write_text(sampler.settings_text(document), encoding="utf-8")
        return
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise OtherSettings(f"{path} cannot be read ({error}); choose another folder, or remove it") from error
    if changed := sampler.changed_settings(stored, document):
        listed = "".join(f"\n  {each}" for each in changed)
        raise OtherSettings(
            f"{folder} holds a run with other settings; choose another --out, or the same ones:{listed}"
        )


def write_table(folder: Path, table: Any, rows: Iterable[Row]) -> None:
    """Write one of the tables of `outputs`, whole or not at all."""
    path = sampler.outputs.table_path(folder, table)
    with replaced(path) as unfinished, unfinished.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table.header)
        writer.writerows(rows)


def rows_of(folder: Path, table: Any) -> Sequence[Row]:
    """Return the rows of a table as they stand in its file; none where there is no file."""
    path = sampler.outputs.table_path(folder, table)
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [*csv.reader(file)][1:]


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Yield where to write a file that takes its place only once it is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part")
    yield unfinished
    unfinished.replace(path)

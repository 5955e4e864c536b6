"""The campaign's own states: draft, running, paused, finished. The one door through which they change.

    draft --start--> running <--pause/resume--> paused        running or paused --(last step decided)--> finished
    finished --(extended)--> paused
    paused or finished --(request_deletion)--> deleting, until its rows are gone

A change is a guarded update: of two clicks at once, one wins and the other is told. Pausing stops the handing out
of pairs; votes that are out already still count, and a step once opened is finished under the same uniform.

A large campaign has millions of rows, so they are deleted outside the request (`finish_deletion`), some thousand at a
time. Whatever dies meanwhile, the sweep goes on: each transaction deletes rows that nothing else needs, and the
campaign's own row goes last. Archiving only takes a campaign off the list.
"""

from __future__ import annotations

import logging
import secrets
import time
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, models, transaction
from django.db.models import ProtectedError, QuerySet
from django.utils import timezone

import sampler
from prefmh_web import hooks
from prefmh_web.campaigns import dispatch, events, objects
from prefmh_web.campaigns.engine import usage
from prefmh_web.campaigns.engine.locks import retried_after_conflicts
from prefmh_web.campaigns.frozen import plan_of, started_campaign
from prefmh_web.campaigns.lifecycle import model_start
from prefmh_web.campaigns.model_judges import turns
from prefmh_web.campaigns.models import Campaign, Catalog, Chain, Comparison, Deleted, Lease, NotPossible, Rating, Vote
from prefmh_web.campaigns.models.campaign import draw_seed
from prefmh_web.campaigns.proposals import drawing
from prefmh_web.campaigns.record.export import verdict_now
from prefmh_web.endpoints.errors import EndpointError
from prefmh_web.objects import media

logger = logging.getLogger(__name__)
# Of rows that are deleted, so many in one transaction.
_AT_ONCE = 2_000
_SECONDS = 3.0


def request_start(campaign: Campaign) -> None:
    """Start a campaign; out of the request where models are asked first, and the page tells how far that is.

    Raises:
        NotPossible: as `start` does.
    """
    if campaign.is_draft and model_start.is_needed(campaign):
        model_start.begin(campaign)
        dispatch.start(campaign)
    else:
        start(campaign)


def note_trouble(campaign: Campaign, reason: str) -> None:
    """Show on a draft's page why it could not be started."""
    model_start.note(campaign, start_trouble=reason[:500], starting_since=None, start_progress="")


def start(campaign: Campaign) -> None:
    """Freeze the config, create judges and chains, and queue the first proposals.

    Raises:
        NotPossible: not a draft, the catalog is not read, or the config does not fit it; its models have come to a cap;
            or somebody deleted the campaign, or what it needs, while it was being started.
    """
    _reload(campaign)
    if not campaign.is_draft:
        # Told now: the plan may take a model that only the worker of its queue should load.
        raise _not_from(campaign, Campaign.Status.DRAFT, Campaign.Status.RUNNING)
    stored = campaign.config_data
    campaign.seed = campaign.seed if campaign.is_seed_typed else draw_seed()
    hooks.call(hooks.START_CHECKS, campaign)
    model_start.chosen_scorers(campaign)
    models = model_start.examined(campaign)
    revision, plan = _checked_plan(campaign)
    model_start.check_prompts(campaign, plan)
    starts = _drawn_starts(campaign, plan)
    model_start.check_questions(campaign, models, starts)
    model_start.check_distributions(campaign, models, starts)
    model_start.require_room(campaign)
    try:
        _begin(campaign, stored, revision, starts, models)
    except IntegrityError as error:
        # A row that this one names was removed between the look and the commit: an endpoint, say.
        logger.exception("campaign %s could not be started", campaign.pk)
        raise _overtaken(campaign) from error


def _begin(
    campaign: Campaign,
    stored: dict[str, Any],
    revision: int | None,
    starts: list[sampler.Position[Any]],
    models: model_start.Models,
) -> None:
    """Write what starting means, if the setup is still the one that was looked at.

    Args:
        campaign: with the seed that it starts with.
        stored: the configuration that was looked at before.
    """
    seed = campaign.seed
    with transaction.atomic():
        _change(campaign, Campaign.Status.DRAFT, Campaign.Status.RUNNING, started_at=timezone.now())
        if campaign.config_data != stored or _ready_revision(campaign) != revision:
            raise _overtaken(campaign)
        campaign.seed = seed
        # Once more, now that nothing of it can change.
        hooks.call(hooks.START_CHECKS, campaign)
        warm_up = campaign.config.warm_up
        campaign.warm_up = 0 if warm_up is None else warm_up.steps
        # Shown until the end, when the seed is revealed (`Campaign.public_config`).
        campaign.seed_salt = secrets.token_hex(sampler.SALT_BYTES)
        campaign.seed_hash = sampler.hash_of_seed(seed, campaign.seed_salt)
        campaign.save(update_fields=["seed", "warm_up", "seed_hash", "seed_salt"])
        _create_judges(campaign)
        model_start.freeze(campaign, models)
        model_start.freeze_scorers(campaign)
        for chain in _create_chains(campaign, starts):
            dispatch.propose(chain)
        drawing.clean_up_pictures(campaign)
        _create_links(campaign)
        hooks.call(hooks.STARTED, campaign)


def discard(campaign: Campaign) -> None:
    """Delete a draft with its file. What has started has a record, and stays.

    Raises:
        NotPossible: the campaign has started, or is deleted already.
    """
    campaign_id = campaign.pk
    with transaction.atomic():
        draft = lock_draft(campaign_id)
        # What trials have taken stays; the objects that they showed do not.
        draft.judge_trials.update(pairs=[])
        uploads = list(Catalog.objects.filter(campaign=draft).values_list("file", flat=True))
        draft.delete()
    for upload in uploads:
        media.remove_upload(upload)
    media.remove_pictures(campaign_id)


def lock_draft(campaign_id: int) -> Campaign:
    """Return a draft that stays as it is until this transaction ends. Whoever writes what belongs to one locks it
    first, in this one order: of two who do so at once the second waits, and then sees what the first has done.

    Raises:
        NotPossible: it has started, or is deleted.
    """
    found = Campaign.objects.select_for_update().filter(pk=campaign_id).first()
    if found is None:
        raise Deleted
    if not found.is_draft:
        raise NotPossible("The campaign has started. Its setup can no longer be changed, and its data is kept.")
    return found


def pause(campaign: Campaign) -> None:
    """Stop handing out pairs and opening steps.

    Raises:
        NotPossible: the campaign is not running.
    """
    with transaction.atomic():
        _change(campaign, Campaign.Status.RUNNING, Campaign.Status.PAUSED)
        events.note(campaign.pk, events.Kind.PAUSED)


def pause_at_cap(campaign: Campaign) -> None:
    """Pause a campaign whose models have come to a cap; nothing if somebody has paused it or raised the cap."""
    marked = Campaign.objects.filter(pk=campaign.pk, status=Campaign.Status.RUNNING).exclude(paused_because="")
    if not marked.update(status=Campaign.Status.PAUSED):
        return
    logger.info("campaign %s is paused: %s", campaign.pk, campaign.paused_because)
    dispatch.refresh(campaign)


def resume(campaign: Campaign) -> None:
    """Go on where `pause` stopped: open steps keep their uniform and their votes.

    Raises:
        NotPossible: the campaign is not paused, or its models have come to a cap.
    """
    if campaign.status == Campaign.Status.PAUSED:
        model_start.require_room(campaign)
    with transaction.atomic():
        _change(campaign, Campaign.Status.PAUSED, Campaign.Status.RUNNING, paused_because="")
        events.note(campaign.pk, events.Kind.RESUMED)
        for chain in campaign.chains.select_related("campaign"):
            dispatch.propose(chain)
        if started_campaign(campaign).uses_models:
            for comparison in Comparison.objects.filter(chain__campaign=campaign, verdict__isnull=True):
                dispatch.judge(comparison)


def ask_scorers_again(campaign: Campaign) -> int:
    """Ask the scorers again that have stopped, and about the objects that have none of their numbers; return how many
    objects these are.
    """
    with transaction.atomic():
        without = sum(scorer.scores.filter(value=None).delete()[0] for scorer in campaign.scorers.all())
        campaign.scorers.update(stopped_because="", is_complete=False)
        events.note(campaign.pk, events.Kind.SCORERS_ASKED)
        dispatch.score(campaign)
    return without


def accept_models(campaign: Campaign, by: User) -> None:
    """Accept the models whose replies have been dropped, and ask the stopped judges again. What a judge's server has
    turned to counts as that judge from now on.
    """
    stopped = campaign.judges.exclude(stopped_because="")
    with transaction.atomic():
        new = stopped.filter(identities__accepted_at=None, identities__isnull=False)
        indices = list(new.values_list("index", flat=True))
        turns.try_again(campaign, accepting=True)
        if indices:
            judges = " ".join(map(str, sorted(set(indices))))
            events.note(campaign.pk, events.Kind.MODEL_ACCEPTED, by, {"judges": judges})


def finish_now(campaign: Campaign) -> None:
    """End a campaign before its last step, for good. What was decided stays, and so does the record.

    A pair that is on somebody's screen may still be answered; nothing follows it.

    Raises:
        NotPossible: the campaign is not under way.
    """
    verdict = verdict_now(campaign)
    with transaction.atomic():
        under_way = (Campaign.Status.RUNNING, Campaign.Status.PAUSED)
        found = Campaign.objects.filter(pk=campaign.pk, status__in=under_way)
        if not found.update(status=Campaign.Status.FINISHED, finished_at=timezone.now()):
            raise NotPossible("Only a campaign that is running or paused can be finished.")
        events.note(campaign.pk, events.Kind.FINISHED_NOW, said={"verdict": verdict})
        dispatch.refresh(campaign)
    campaign.refresh_from_db(fields=["status", "finished_at"])


def reopen(campaign: Campaign) -> None:
    """Pause a finished campaign whose chains have become longer. Called within a transaction that has locked it."""
    if campaign.status == Campaign.Status.FINISHED:
        # A seed that was revealed stays so.
        fields = {"finished_at": None, "seed_revealed_at": campaign.seed_revealed_at or campaign.finished_at}
        _change(campaign, Campaign.Status.FINISHED, Campaign.Status.PAUSED, **fields)


@retried_after_conflicts
def request_deletion(campaign: Campaign, typed_name: str) -> None:
    """Begin to delete a paused or finished campaign. From now on nobody finds it.

    Args:
        typed_name: the campaign's name, as whoever deletes it has typed it.

    Raises:
        NotPossible: the name is another one, or the campaign is running or a draft.
    """
    if typed_name.strip() != campaign.name.strip():
        raise NotPossible("Nothing was deleted: what you typed is not the campaign's name.")
    with transaction.atomic():
        stopped = (Campaign.Status.PAUSED, Campaign.Status.FINISHED)
        found = Campaign.objects.filter(pk=campaign.pk, status__in=stopped)
        if not found.update(status=Campaign.Status.DELETING):
            raise _not_stopped(campaign)
        now = timezone.now()
        campaign.invitations.filter(revoked_at__isnull=True).update(revoked_at=now)
        campaign.voters.filter(removed_at__isnull=True).update(removed_at=now)
        dispatch.delete(campaign)
    dispatch.refresh(campaign)


def _not_stopped(campaign: Campaign) -> NotPossible:
    found = Campaign.objects.filter(pk=campaign.pk).values_list("status", flat=True).first()
    if found in (None, Campaign.Status.DELETING):
        return Deleted()
    if found == Campaign.Status.DRAFT:
        return NotPossible("The campaign has not started. Delete the draft.")
    return NotPossible("The campaign is running. Pause it first.")


def being_deleted() -> QuerySet[Campaign]:
    """Return the campaigns whose rows are being deleted."""
    return Campaign.objects.filter(status=Campaign.Status.DELETING)


def finish_deletion(campaign_id: int) -> None:
    """Delete rows of a campaign that is being deleted, for some seconds; once all are gone, its files and itself. Run
    twice at once, both help.
    """
    until = time.monotonic() + _SECONDS
    campaign = being_deleted().filter(pk=campaign_id).first()
    if campaign is None:
        return
    try:
        hooks.call(hooks.DELETIONS, campaign)
        # What trials have taken stays; the objects that they showed do not.
        campaign.judge_trials.update(pairs=[])
        for rows in _rows(campaign):
            # With all that hangs on them, a transaction for each so many.
            while keys := list(rows.order_by().values_list("pk", flat=True)[:_AT_ONCE]):
                with transaction.atomic():
                    rows.model._default_manager.filter(pk__in=keys).delete()
                if time.monotonic() >= until:
                    # Votes of other campaigns wait for what this worker does next. The sweep comes again.
                    return
        uploads = list(Catalog.objects.filter(campaign=campaign).values_list("file", flat=True))
        media.remove_pictures(campaign_id)
        for upload in uploads:
            media.remove_upload(upload)
        campaign.delete()
    except ProtectedError:
        # What was under way when it was marked has added a row. The sweep comes again.
        logger.info("campaign %s: rows were added while it was deleted", campaign_id)
    else:
        logger.info("campaign %s is deleted", campaign_id)


def _rows(campaign: Campaign) -> list[QuerySet[models.Model]]:
    """Return all rows of which there may be many, those first that others do not need."""
    return [
        campaign.events.all(),
        Lease.objects.filter(comparison__chain__campaign=campaign),
        Vote.objects.filter(judge__campaign=campaign),
        Rating.objects.filter(judge__campaign=campaign),
        Comparison.objects.filter(chain__campaign=campaign),
        campaign.chain_demands.all(),
        campaign.chains.all(),
        campaign.states.all(),
        campaign.voters.all(),
    ]


def archive(campaign: Campaign, is_archived: bool, by: User | None = None) -> None:
    """Take a campaign off the list, or put it back. Its page, its data and what goes on in it stay as they are.

    Raises:
        NotPossible: it is running.
    """
    found = Campaign.objects.filter(pk=campaign.pk)
    if is_archived:
        found = found.exclude(status=Campaign.Status.RUNNING)
    with transaction.atomic():
        changing = found.filter(archived_at__isnull=is_archived)
        if changing.update(archived_at=timezone.now() if is_archived else None):
            kinds = events.Kind
            events.note(campaign.pk, kinds.ARCHIVED if is_archived else kinds.UNARCHIVED, by)
        elif not found.exists():
            raise NotPossible("The campaign is running. Pause it before you archive it.")
    campaign.refresh_from_db(fields=["archived_at"])


def _checked_plan(campaign: Campaign) -> tuple[int | None, sampler.Plan[Any]]:
    """Return the plan and the revision of the catalog it is built on. Outside the transaction: it takes a while."""
    revision = _ready_revision(campaign)
    try:
        sampler.require_sound(campaign.config)
        if not campaign.config.generates and revision is None:
            raise _not_read(campaign)
        return revision, plan_of(campaign)
    except sampler.ConfigError as error:
        is_of_rule = any(problem.path.startswith("rule") for problem in error.problems)
        how = "cannot be run" if is_of_rule else "does not fit the file"
        raise NotPossible(f"The setup {how}: {error}.") from error
    except EndpointError as error:
        raise NotPossible(f"The model cannot write these texts: {error.reason}.") from error
    except ValueError as error:
        if _ready_revision(campaign) == revision:
            raise
        # The objects went, or others came, while they were being looked at.
        raise _overtaken(campaign) from error


def _not_read(campaign: Campaign) -> NotPossible:
    """Return why a campaign has no objects from its file."""
    status = Catalog.objects.filter(campaign=campaign.pk).values_list("status", flat=True).first()
    if status == Catalog.Status.REFUSED:
        return NotPossible("The file gave no objects. Correct it and upload it again.")
    if status == Catalog.Status.READING:
        return NotPossible("The file is still being read. Wait a moment.")
    return _overtaken(campaign)


def _overtaken(campaign: Campaign) -> NotPossible:
    """Return what to tell somebody whom another change has overtaken."""
    if not Campaign.objects.filter(pk=campaign.pk).exists():
        return Deleted()
    return NotPossible("The setup was changed in this very moment. Look at it again.")


def _reload(campaign: Campaign) -> None:
    try:
        campaign.refresh_from_db()
    except Campaign.DoesNotExist as error:
        raise Deleted from error


def _drawn_starts(campaign: Campaign, plan: sampler.Plan[Any]) -> list[sampler.Position[Any]]:
    """Return where every chain starts. Outside the transaction: a model may have to write it, or its picture."""
    try:
        with usage.counted(campaign.pk, usage.PROPOSALS):
            starts = sampler.begin_many(plan, range(campaign.config.chains))
    except EndpointError as error:
        raise NotPossible(f"The model does not write: {error.reason}.") from error
    try:
        drawing.prepare_pictures(campaign, [position.state for position in starts])
    except EndpointError as error:
        raise NotPossible(f"There are no pictures to start with: {error.reason}.") from error
    finally:
        if not Campaign.objects.filter(pk=campaign.pk).exists():
            # Discarded while its pictures were made: nobody else would remove them now.
            media.remove_pictures(campaign.pk)
    return starts


def _ready_revision(campaign: Campaign) -> int | None:
    """Return which reading of its file a campaign stands on; None while there is none, or where there is no file."""
    if campaign.config.generates:
        return None
    ready = Catalog.objects.filter(campaign=campaign, status=Catalog.Status.READY)
    return ready.values_list("revision", flat=True).first()


def _change(campaign: Campaign, before: Campaign.Status, after: Campaign.Status, **fields: object) -> None:
    changed = Campaign.objects.filter(pk=campaign.pk, status=before).update(status=after, **fields)
    _reload(campaign)
    if not changed:
        raise _not_from(campaign, before, after)
    dispatch.refresh(campaign)


def _not_from(campaign: Campaign, before: Campaign.Status, after: Campaign.Status) -> NotPossible:
    if campaign.status == before:
        return NotPossible("The campaign was changed by somebody else in the same moment. Try again.")
    return NotPossible(f"The campaign is {campaign.status}; only a {before} campaign can become {after}.")


def _create_judges(campaign: Campaign) -> None:
    names = campaign.config.panelists
    for index, judge in enumerate(campaign.config.judges):
        source = judge.source
        asked = source if isinstance(source, sampler.ModelSource) else None
        campaign.judges.create(
            index=index,
            question=judge.question,
            max_votes=judge.votes,
            order=judge.order,
            endpoint=None if asked is None else model_start.endpoint_of(campaign, asked.endpoint),
            is_asked_first=asked is not None and asked.first,
            panelist=names.index(source.name) + 1 if isinstance(source, sampler.PanelistSource) else None,
        )


def _create_links(campaign: Campaign) -> None:
    """Make the link for everybody; of a panel, one for each panelist. None where nobody is asked."""
    for number in range(1, len(campaign.config.panelists) + 1):
        campaign.invitations.create(panelist=number)
    if campaign.config.rule.asks_judges and not campaign.config.panelists:
        campaign.invitations.get_or_create()


def _create_chains(campaign: Campaign, starts: list[sampler.Position[Any]]) -> list[Chain]:
    length = campaign.config.steps
    rows = [objects.starting(campaign, position.chain, position.state) for position in starts]
    for row in rows:
        if row._state.adding:
            row.save(force_insert=True)
    return Chain.objects.bulk_create(
        Chain(campaign=campaign, index=index, length=length, start=row, head=row) for index, row in enumerate(rows)
    )

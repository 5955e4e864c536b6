"""A campaign's configuration: the one door through which it is created, changed and lengthened.

Of a draft everything can change, and the file that it speaks of is read. Of a started campaign nothing changes that
fixes its chains or decides who votes, but that all chains can walk further; each change is an event with its path, the
old value and the new one.

How far a campaign walks between two pairs, chosen once at the end of its warm-up. The one door to that choice.

    choose_length    once every chain of the start has decided its last step of the warm-up
    end_warm_up      by the researcher, when a chain has waited for longer than the config's patience
    warm_ups_over    campaigns whose warm-up is over

Chains that open later run a warm-up, too, and wait at its end for the choice. They have no part in it.
No chain opens a step after the warm-up before this is chosen (`Chain.waits_for_others`). The choice is a function of
decided steps, which never change, so it does not matter who makes it, or how often; it is stored by a guarded update.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.core.files.base import File
from django.db import transaction
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone
from pydantic import BaseModel

import sampler
from prefmh_web import hooks
from prefmh_web.campaigns import catalogs, dispatch, events
from prefmh_web.campaigns.engine.locks import lock_people
from prefmh_web.campaigns.lifecycle import status
from prefmh_web.campaigns.models import OF_THE_START, Campaign, Chain, Comparison, Deleted, NotPossible, columns_of
from prefmh_web.campaigns.monitoring.progress import late_chains
from prefmh_web.campaigns.record.export import verdict_now
from prefmh_web.config import CampaignConfig, UploadedFile
from prefmh_web.transport import sockets
from sampler.declared import ui_of

_BUDGET, _CAPS = ("study", "budget"), "caps"
_LONGEST_VALUE = 200


def create(*, owner: User, config: CampaignConfig, file: File[Any] | None = None, key: str = "") -> Campaign:
    """Create a draft from a checked configuration; queue the reading of its file, if it has one.

    Args:
        config: as its owner has it: with a seed only where one was typed.
        file: under the name that the configuration gives it.
        key: by which a program finds the campaign again.
    """
    with transaction.atomic():
        campaign = Campaign.objects.create(owner=owner, creation_key=key, **columns_of(_with_hash(config, file)))
        if file is not None and config.file is not None:
            catalogs.upload(campaign, file, config.file.name)
    return campaign


def apply(campaign: Campaign, config: CampaignConfig, by: User | None = None, file: File[Any] | None = None) -> None:
    """Give a campaign another configuration.

    Args:
        config: as its owner has it: with a seed only where one was typed.
        by: who has decided it; None on the command line.
        file: of a draft's objects, where there is another one.

    Raises:
        NotPossible: the campaign is deleted; or it has started, and something would change that is fixed: the message
            names it, and says why.
    """
    if campaign.is_draft and Campaign.objects.filter(pk=campaign.pk, status=Campaign.Status.DRAFT).exists():
        _change_draft(campaign, config, file)
        return
    with transaction.atomic():
        # People who join read what is asked of them under this lock.
        lock_people(campaign.pk)
        locked = Campaign.objects.select_for_update(no_key=True).filter(pk=campaign.pk).first()
        if locked is None or locked.status == Campaign.Status.DELETING:
            raise Deleted
        if locked.hides_seed and config.seed is None:
            # Whoever has read the configuration was not told the seed that was typed, and cannot send it.
            config = config.model_copy(update={"seed": locked.typed_config.seed})
        changed = [*_changes_between(locked.typed_config, config)]
        for change in changed:
            if reason := _why_not(locked, change):
                raise NotPossible(f"{reason} Nothing was saved.")
        columns = columns_of(config)
        if any(change.path[0] == _CAPS for change in changed):
            # Whether the new cap is reached as well, the next turn finds, or Resume.
            columns["paused_because"] = ""
        Campaign.objects.filter(pk=locked.pk).update(**columns)
        locked.refresh_from_db()
        hooks.call(hooks.CHANGES, locked)
        for change in changed:
            events.note(locked.pk, events.Kind.CONFIG_CHANGED, by, change.as_data())
    campaign.refresh_from_db()
    sockets.notify(sockets.watchers(campaign.pk))


def extend(campaign: Campaign, steps: int, by: User | None = None, verdict: str = "") -> None:
    """Let every chain that was not ended walk so many steps more. A finished campaign is paused until it is resumed.

    The chains go on from where they stand, each step under the stream of its number, as if the config had declared so
    many steps from the start. The config says how many there are now, and each extension is an event.

    Args:
        steps: of each chain.
        by: who has decided it; None on the command line.
        verdict: on the chains as they stand, where the caller knows it; the event says it.

    Raises:
        NotPossible: it is a draft; its budget does not cover them; all of its chains were ended; or the
            chains would get longer than a config allows.
    """
    if steps < 1:
        raise NotPossible("A campaign is extended by at least 1 step.")
    verdict = verdict or verdict_now(campaign)
    with transaction.atomic():
        # Chains first: the campaign is the last of all locks, and whoever decides a last step holds its chain.
        chains = list(campaign.chains.select_for_update(no_key=True).order_by("pk"))
        locked = Campaign.objects.select_for_update(no_key=True).get(pk=campaign.pk)
        if locked.chains.count() > len(chains):
            raise NotPossible("A chain opened in this very moment. Try again.")
        _require_extensible(locked, chains)
        before = locked.config.steps
        locked.config_data = _longer(locked, before + steps)
        hooks.call(hooks.EXTENSION_CHECKS, locked)
        locked.steps_added += steps
        locked.save(update_fields=["config_data", "steps_added"])
        locked.chains.filter(ended_at__isnull=True).update(length=F("length") + steps)
        said = {"steps_before": before, "steps_after": before + steps, "verdict": verdict}
        events.note(locked.pk, events.Kind.EXTENDED, by, said)
        status.reopen(locked)
        for chain in chains if locked.is_running else ():
            # Those that had walked all their steps; the others go on by themselves.
            if chain.step == before and not chain.ended_at:
                chain.campaign = locked
                dispatch.propose(chain)
    # What the caller holds may have been read before somebody else changed it.
    campaign.refresh_from_db()
    dispatch.refresh(campaign)


def _change_draft(campaign: Campaign, config: CampaignConfig, file: File[Any] | None) -> None:
    """Give a draft another configuration; read its file again if the file or the space changed.

    A file that the configuration has no more use for goes, with what was read from it.

    Raises:
        NotPossible: the campaign has started, or is deleted, or the configuration asks for what cannot be.
    """
    with transaction.atomic():
        locked = status.lock_draft(campaign.pk)
        before = locked.config
        Campaign.objects.filter(pk=campaign.pk).update(**columns_of(_with_hash(config, file)))
        campaign.refresh_from_db()
        hooks.call(hooks.CHANGES, campaign)
        if config.file is None:
            catalogs.remove(campaign)
        elif file is not None:
            catalogs.upload(campaign, file, config.file.name)
        elif config.space != before.space:
            catalogs.read_again(campaign.catalog)


def _with_hash(config: CampaignConfig, file: File[Any] | None) -> CampaignConfig:
    if file is None or config.file is None:
        return config
    digest = hashlib.sha256()
    for piece in file.chunks():
        digest.update(piece)
    file.seek(0)
    return config.model_copy(update={"file": UploadedFile(name=config.file.name, sha256=digest.hexdigest())})


@dataclass(frozen=True)
class _Change:
    """One field that has another value.

    Args:
        path: from the whole configuration.
        old, new: its values, as plain data.
        is_hidden: others may not see them.
    """

    path: tuple[str, ...]
    old: Any
    new: Any
    is_hidden: bool

    def as_data(self) -> dict[str, Any]:
        """Return what the event of the change says: of a long text its hash, of what is hidden nothing."""
        values = (None, None) if self.is_hidden else (_short(self.old), _short(self.new))
        return {"path": ".".join(self.path), "old": values[0], "new": values[1]}


def _changes_between(before: BaseModel, after: BaseModel, path: tuple[str, ...] = ()) -> Iterator[_Change]:
    """Yield each field whose value differs; of a part of another kind, and of a list, the whole."""
    for name, info in type(before).model_fields.items():
        old, new = getattr(before, name), getattr(after, name)
        if isinstance(old, BaseModel) and type(old) is type(new):
            yield from _changes_between(old, new, (*path, name))
        elif old != new:
            was, now = (each.model_dump(mode="json", include={name}).get(name) for each in (before, after))
            yield _Change((*path, name), was, now, is_hidden=bool(ui_of(info).hidden))


def _short(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _LONGEST_VALUE:
        return f"sha256 {hashlib.sha256(value.encode()).hexdigest()[:16]}"
    return value


def _why_not(campaign: Campaign, change: _Change) -> str:
    """Return why a change of a started campaign is not possible; nothing where it is."""
    if change.path == _BUDGET:
        return _why_not_raised(campaign, change)
    if change.path[0] == _CAPS and not campaign.is_under_way:
        return "Only the caps of a running or paused campaign can be changed."
    return _why_fixed(CampaignConfig, change.path)


def _why_fixed(model: type[BaseModel], path: tuple[str, ...]) -> str:
    """Return why a field is fixed, or a part that it stands in; nothing where it may change."""
    name, *rest = path
    info = model.model_fields[name]
    if why := ui_of(info).fixed:
        return _cannot_change(info.title or name, why)
    inner: Any = info.annotation
    is_part = isinstance(inner, type) and issubclass(inner, BaseModel)
    return _why_fixed(inner, tuple(rest)) if is_part and rest else ""


def _cannot_change(label: str, why: str) -> str:
    return f"“{label}” cannot change after the start: {why}."


def _why_not_raised(campaign: Campaign, change: _Change) -> str:
    """A budget is only raised, and while the campaign goes on: what is left decides whether it ends, and a replay would
    find that it could have gone on.
    """
    label = "Budget, in answers"
    if change.old is None or change.new is None or change.new < change.old:
        now = "none" if change.old is None else change.old
        why = "votes of all steps are set aside from it, so it can only be raised"
        return f"{_cannot_change(label, why)} It is {now}."
    if campaign.status == Campaign.Status.FINISHED:
        return f"“{label}” cannot be raised: the campaign is finished."
    return ""


def _require_extensible(campaign: Campaign, chains: list[Chain]) -> None:
    if campaign.is_draft:
        raise NotPossible("The campaign has not started. Change the steps in its setup.")
    if campaign.status == Campaign.Status.DELETING:
        raise Deleted
    # Not by its chains: the pair that was on a screen in that moment may have been the last one.
    if campaign.events.filter(kind=events.Kind.FINISHED_NOW).exists():
        raise NotPossible("The campaign was ended before its last step, and stays so.")
    if all(chain.ended_at for chain in chains):
        raise NotPossible("All chains were ended, so none can go on.")


def _longer(campaign: Campaign, steps: int) -> dict[str, Any]:
    if steps > sampler.LONGEST_CHAIN:
        raise NotPossible(f"The chains cannot get {steps} steps long: they have at most {sampler.LONGEST_CHAIN:,}.")
    try:
        sampler.require_sound(campaign.config.model_copy(update={"steps": steps}))
    except sampler.ConfigError as error:
        raise NotPossible(f"The chains cannot get {steps} steps long: {error}.") from error
    return {**campaign.config_data, "steps": steps}


def warm_ups_over() -> QuerySet[Campaign]:
    """Running campaigns of which all chains of the start wait at the end of the warm-up."""
    before_its_end = Chain.objects.filter(OF_THE_START, campaign=OuterRef("pk"), step__lt=OuterRef("warm_up"))
    warming_up = Campaign.objects.filter(status=Campaign.Status.RUNNING, warm_up__gt=0, walk_length__isnull=True)
    return warming_up.filter(~Exists(before_its_end))


def choose_length(campaign_id: int) -> None:
    """Choose how far the steps after the warm-up walk; nothing happens before every chain of the start has decided its
    last one.
    """
    campaign = warm_ups_over().filter(pk=campaign_id).first()
    if campaign is not None:
        _store(campaign, sampler.tuned(campaign.config, list(_warm_up_steps(campaign))))


def end_warm_up(campaign: Campaign) -> None:
    """Let the steps after the warm-up walk as far as the config says, whatever the warm-up has found so far.

    Raises:
        NotPossible: the length is chosen, or no chain has waited for long enough.
    """
    if not campaign.is_warming_up:
        raise NotPossible("The warm-up is over.")
    if not late_chains(campaign).exists():
        raise NotPossible("The warm-up of a running campaign can be ended only when a chain has waited for too long.")
    tuning = sampler.ended_early(campaign.config, sampler.moment(timezone.now()))
    if not _store(campaign, tuning):
        raise NotPossible("The warm-up is over.")


def _store(campaign: Campaign, tuning: dict[str, Any]) -> bool:
    """Store the choice and let the chains go on; False if one is stored already."""
    with transaction.atomic():
        open_campaign = Campaign.objects.filter(pk=campaign.pk, warm_up__gt=0, walk_length__isnull=True)
        if not open_campaign.update(walk_length=tuning["length"], tuning=tuning):
            return False
        for chain in campaign.chains.filter(step__gte=campaign.warm_up, step__lt=F("length")):
            dispatch.propose(chain)
        sockets.notify(sockets.watchers(campaign.pk))
    return True


def _warm_up_steps(campaign: Campaign) -> Iterator[sampler.WarmUpStep]:
    """Yield the steps of a warm-up in which every chain of the start has decided its last one."""
    counted = Q(votes__number__isnull=False)
    for_proposal = counted & Q(votes__chosen_side=F("votes__proposal_side"))
    first = campaign.chains.filter(OF_THE_START)
    found = Comparison.objects.filter(chain__in=first, step__lte=campaign.warm_up)
    found = found.annotate(cast=Count("votes", filter=counted), won=Count("votes", filter=for_proposal))
    columns = (
        "chain__index", "step", "cast", "won", "verdict",
        "current__content", "current__code", "proposal__content", "proposal__code",
    )  # fmt: skip
    for chain, step, cast, won, verdict, *objects in found.order_by("chain__index", "step").values_list(*columns):
        before, proposal = (objects[0], objects[1]), (objects[2], objects[3])
        accepted = verdict == Comparison.Verdict.ACCEPT
        yield sampler.WarmUpStep(chain, step, cast, won, before, proposal, accepted)

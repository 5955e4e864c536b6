"""The first line of a campaign's page: is it running well, and when is it done."""

from __future__ import annotations

from dataclasses import dataclass

from prefmh_web.campaigns.models import Campaign
from prefmh_web.campaigns.monitoring.outlook import pace_of
from prefmh_web.campaigns.monitoring.progress import Progress
from prefmh_web.campaigns.monitoring.results import is_cut_short
from prefmh_web.console.durations import in_words

CUT_SHORT = "The campaign was ended before its last step."


@dataclass(frozen=True)
class Outlook:
    """What the line says.

    Args:
        standing: whether it is running well.
        left: how long it will take from here, and under which assumption; empty once it is finished.
        is_well: true where nothing needs the researcher.
    """

    standing: str
    left: str
    is_well: bool


def outlook_of(campaign: Campaign, progress: Progress) -> Outlook:
    """Return the outlook of a started campaign."""
    if campaign.status == Campaign.Status.FINISHED:
        return Outlook("Finished.", _ending(campaign), is_well=True)
    pace = pace_of(campaign, [each.chain for each in progress.chains])
    if not campaign.is_running:
        return Outlook("Paused.", f"Nobody is asked. {pace.left:,} steps are left.", is_well=False)
    left = "No step was decided in the last five minutes, so nothing tells how long the rest takes."
    if (seconds := pace.seconds_left) is not None:
        left = (
            f"About {in_words(seconds)} left, if these {pace.left:,} steps are decided as fast as those of "
            f"the last {in_words(pace.seconds)}: {pace.a_minute:.3g} a minute."
        )
    elif pace.decided:
        left = "It has just started, so nothing tells yet how long it takes."
    if trouble := _trouble(progress):
        return Outlook(trouble, left, is_well=False)
    return Outlook("Running well." if pace.decided else "Waiting for votes.", left, is_well=bool(pace.decided))


def _ending(campaign: Campaign) -> str:
    """Return why the chains of a finished campaign walk no further."""
    ended = campaign.chains.filter(ended_at__isnull=False).count()
    others = campaign.chains.count() - ended
    sentences = [_ended(ended, others)]
    if is_cut_short(campaign):
        sentences.append(CUT_SHORT)
    elif others:
        chains = _each_of(others, has_ended=bool(ended))
        sentences.append(f"{chains.capitalize()} has come to its last step.")
    return " ".join(sentence for sentence in sentences if sentence)


def _ended(ended: int, others: int) -> str:
    if not ended:
        return ""
    if not others:
        return "Every chain was ended at a suspended step."
    return f"{ended:,} chain{' was' if ended == 1 else 's were'} ended at a suspended step."


def _each_of(others: int, *, has_ended: bool) -> str:
    if not has_ended:
        return "every chain"
    return "the other chain" if others == 1 else "each of the other chains"


def _trouble(progress: Progress) -> str:
    """Return what needs the researcher, in few words; the notices below have the rest."""
    found = [
        (len(progress.suspended), "Steps are suspended."),
        (len(progress.waits), "Chains wait for a model."),
        (progress.models.suspended if progress.models else 0, "A model needs you."),
        (len(progress.held_up), "A panelist holds up chains."),
        (progress.lacks_people, "Too few people are online."),
    ]
    return next((words for count, words in found if count), "")

"""The first line of a campaign's page: is it running well, and when is it done."""

from __future__ import annotations

from dataclasses import dataclass

from prefmh_web.campaigns.models import Campaign
from prefmh_web.campaigns.monitoring.progress import Progress
from prefmh_web.campaigns.monitoring.results import is_cut_short
from prefmh_web.console.answers import ANSWERS
from prefmh_web.console.durations import in_words
from prefmh_web.participants.limits import supply_of
from prefmh_web.participants.recruiting import terms_of

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
    steps = f"{progress.steps_left:,} step{' is' if progress.steps_left == 1 else 's are'} left"
    if not campaign.is_running:
        return Outlook("Paused.", f"Nobody is asked. {steps}.", is_well=False)
    noun = ANSWERS[campaign.config.rule.evidence].noun or "step"
    left = _left(progress, noun, steps)
    if trouble := _trouble(campaign, progress):
        return Outlook(trouble, left, is_well=False)
    return Outlook("Running well." if progress.lately else f"Waiting for {noun}s.", left, is_well=bool(progress.lately))


def _left(progress: Progress, noun: str, steps: str) -> str:
    """Return how long the rest takes at the rate of the votes, or of what else decides."""
    if not progress.lately:
        came = "was decided" if noun == "step" else "came"
        return f"No {noun} {came} in the last five minutes, so nothing tells how long it takes. {steps}."
    if progress.minutes_left is None:
        return f"It has just started, so nothing tells yet how long it takes. {steps}."
    each = "" if noun == "step" else f" if a step takes as many {noun}s as until now,"
    return (
        f"About {in_words(60 * progress.minutes_left)} left,{each} at the rate of the last "
        f"{in_words(60 * progress.minutes)}: {progress.answers_per_minute:,.1f} {noun}s a minute. {steps}."
    )


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


def _trouble(campaign: Campaign, progress: Progress) -> str:
    """Return what needs the researcher, in few words; the notices below have the rest."""
    found = [
        (len(progress.suspended), "Steps are suspended."),
        (len(progress.waits), "Chains wait for a model."),
        (progress.models.suspended if progress.models else 0, "A model needs you."),
        (len(progress.held_up), "A panelist holds up chains."),
        (1, _lack_of_places(campaign)),
        (progress.is_nobody_there, "Nobody is online."),
        (progress.lacks_people, "Too few people are online."),
    ]
    return next((words for count, words in found if count and words), "")


def _lack_of_places(campaign: Campaign) -> str:
    """Return that those who have a place do not bring the votes that are needed; empty where a place is free."""
    if not terms_of(campaign).recruiter.knows_people:
        return ""
    supply = supply_of(campaign, campaign.config.study)
    if supply is None or not (supply.is_full and supply.is_short):
        return ""
    return f"All places are taken: {supply.steps:,} steps still need {supply.wanted:,} votes."

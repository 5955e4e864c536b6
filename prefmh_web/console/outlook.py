"""The first line of a campaign's page: is it running well, and when is it done."""

from __future__ import annotations

from dataclasses import dataclass

from prefmh_web.campaigns.models import Campaign
from prefmh_web.campaigns.monitoring.outlook import pace_of
from prefmh_web.campaigns.monitoring.progress import Progress
from prefmh_web.console.durations import in_words
from prefmh_web.console.stopping import ending_in_words


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
        return Outlook("Finished.", ending_in_words(campaign), is_well=True)
    pace = pace_of(campaign, [each.chain for each in progress.chains])
    look = next_look(campaign, progress)
    left_until = f"left until the stopping rule looks, at step {look:,}" if look else "left"
    if not campaign.is_running:
        return Outlook("Paused.", f"Nobody is asked. {pace.left:,} steps are {left_until}.", is_well=False)
    if look and not pace.left:
        return Outlook("Running well.", f"The stopping rule looks at step {look:,} now.", is_well=True)
    left = "No step was decided in the last five minutes, so nothing tells how long the rest takes."
    if (seconds := pace.seconds_left) is not None:
        left = (
            f"About {in_words(seconds)} {left_until}, if these {pace.left:,} steps are decided as fast as those of "
            f"the last {in_words(pace.seconds)}: {pace.a_minute:.3g} a minute."
        )
    elif pace.decided:
        left = "It has just started, so nothing tells yet how long it takes."
    if trouble := _trouble(progress):
        return Outlook(trouble, left, is_well=False)
    return Outlook("Running well." if pace.decided else "Waiting for votes.", left, is_well=bool(pace.decided))


def next_look(campaign: Campaign, progress: Progress) -> int | None:
    """Return the step where the chains wait for the stopping rule; None where they walk to their last step."""
    recipe = campaign.parsed_recipe
    walking = next((each.chain.length for each in progress.chains if each.chain.ended_at is None), recipe.steps)
    return walking if recipe.stopping is not None and walking < recipe.steps else None


def _trouble(progress: Progress) -> str:
    """Return what needs the researcher, in few words; the notices below have the rest."""
    found = [
        (len(progress.parked), "Steps are parked."),
        (len(progress.waits), "Chains wait for a model."),
        (progress.models.parked if progress.models else 0, "A model needs you."),
        (len(progress.held_up), "A seat holds up chains."),
        (progress.lacks_people, "Too few people are online."),
    ]
    return next((words for count, words in found if count), "")

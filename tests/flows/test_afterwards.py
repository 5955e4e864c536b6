"""What can be done with a campaign once people have voted: each time, its record is whole and replays."""

import numpy as np

from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.lifecycle import deletion, extension
from prefmh_web.campaigns.models import Annotator, Campaign
from prefmh_web.participants import erasure
from prefmh_web.participants.erasure import Scope
from prefmh_web.setup.duplicate import duplicate
from tests.support.record import assert_record_is_whole, assert_replay_passes, export_to, table
from tests.support.stack import make_campaign, make_recipe, sweep_everything, vote_until_finished, wait_until_idle

SCORES = dict.fromkeys((0, 1), lambda place: place / 5)
PEOPLE = 4


def finish(campaign: Campaign, seed: int, people: list[Annotator] | None = None) -> list[Annotator]:
    people = people or [Annotator.objects.create(campaign=campaign) for _ in range(PEOPLE)]
    vote_until_finished(campaign, people, SCORES, np.random.default_rng(seed))
    return people


def verdicts(campaign: Campaign, folder) -> list[tuple[str, ...]]:
    """Demand that the record replays; return what was decided in each step, and by how many votes."""
    folder.mkdir()
    path = export_to(campaign, folder)
    assert_record_is_whole(campaign)
    assert_replay_passes(path)
    wanted = ("chain", "step", "proposal", "log_r0", "uniform", "votes_for", "verdict")
    return [tuple(row[name] for name in wanted) for row in table(path, "steps.csv")]


def test_extended_archived_erased_duplicated_and_deleted(researcher, idle_tasks, tmp_path):
    campaign = make_campaign(researcher, recipe=make_recipe(chains=2, steps=8))
    people = finish(campaign, 1)
    first = verdicts(campaign, tmp_path / "finished")

    extension.extend(campaign, 4)
    lifecycle.resume(campaign)
    finish(campaign, 2, people)
    longer = verdicts(campaign, tmp_path / "extended")
    assert len(longer) == 2 * 12
    assert [row for row in longer if int(row[1]) <= 8] == first

    deletion.archive(campaign, is_archived=True)
    assert verdicts(campaign, tmp_path / "archived") == longer

    erasure.erase(people[0], Scope.PARTICIPANT, is_forced=False)
    assert verdicts(campaign, tmp_path / "erased") == longer
    votes = table(tmp_path / "erased" / "export.zip", "votes.csv")
    assert str(people[0].pk) in {row["annotator"] for row in votes}

    copy = Campaign.objects.get(pk=duplicate(campaign, researcher).pk)
    wait_until_idle()
    lifecycle.start(copy)
    finish(copy, 3)
    copied = verdicts(copy, tmp_path / "duplicate")
    # As long as the campaign was then, and with draws of its own.
    assert len(copied) == 2 * 12
    assert not {row[4] for row in copied} & {row[4] for row in longer}

    deletion.request(campaign, campaign.name)
    wait_until_idle()
    sweep_everything()
    wait_until_idle()
    assert not Campaign.objects.filter(pk=campaign.pk).exists()
    assert verdicts(copy, tmp_path / "left") == copied

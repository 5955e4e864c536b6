"""What must hold of a campaign on a record that an older release has written, once its database is up to date."""

import csv
import io
import json
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.core.management import CommandError
from django.test import Client
from django.urls import reverse

import sampler
from prefmh_web.campaigns.models import Campaign
from prefmh_web.campaigns.record import export
from sampler import schema
from tests.released import voting
from tests.support.record import IN_EVERY_ARCHIVE, assert_record_is_whole, assert_replay_passes, export_to
from tests.support.stack import sweep_everything, wait_until_idle


def assert_pages_show(campaign: Campaign) -> None:
    """Its pages, and those of a person who votes in it, are there."""
    researcher = Client()
    researcher.force_login(get_user_model().objects.get(pk=campaign.owner_id))
    addresses = [reverse("console:campaigns"), campaign.get_absolute_url(), reverse("console:endpoints")]
    if campaign.is_draft:
        addresses.append(reverse("console:edit", args=[campaign.pk]))
    for address in addresses:
        page = researcher.get(address)
        assert page.status_code == 200, f"{address}: {page.status_code}"
    if not campaign.is_draft:
        _assert_files_come(researcher, campaign)
        _assert_voter_sees_a_page(campaign)


def _assert_files_come(researcher: Client, campaign: Campaign) -> None:
    for name in (*export.TABLES, schema.RECIPE, "properties.csv"):
        answer = researcher.get(reverse("console:download", args=[campaign.pk, name]))
        assert answer.status_code == 200, f"{name}: {answer.status_code}"
        assert _content_of(answer), name


def _content_of(answer) -> bytes:
    if not answer.streaming:
        return answer.content

    async def read() -> bytes:
        return b"".join([part if isinstance(part, bytes) else part.encode() async for part in answer])

    return async_to_sync(read)()


def _assert_voter_sees_a_page(campaign: Campaign) -> None:
    voter, link = Client(), campaign.invitations.first().get_absolute_url()
    if campaign.status == Campaign.Status.FINISHED:
        # Nobody can join it any more, and a page says so.
        assert voter.get(link).status_code == voter.post(link).status_code == 403
        return
    assert voter.get(link).status_code == 200
    assert voter.post(link).status_code == 302
    assert voter.get(f"{link}vote/").status_code == 200


def assert_export_is_whole(campaign: Campaign, folder: Path) -> Path:
    """Its export has all tables, each step that was decided, and each vote. Return its path."""
    path = export_to(campaign, folder)
    with zipfile.ZipFile(path) as archive:
        # Pictures of a model were in no archive of 0.2.0; `tests/campaigns/record/test_pictures.py` looks at them.
        names = {name for name in archive.namelist() if not name.startswith("pictures/")}
        lacks = set() if campaign.parsed_recipe.rule.evidence == "votes" else {"preferences.jsonl"}
        # Under the rules of version 1 no campaign can be set up any more.
        lacks |= {"campaign.yaml"} if campaign.recipe["version"] == 1 else set()
        assert names == IN_EVERY_ARCHIVE - lacks
        steps = list(csv.DictReader(io.StringIO(archive.read("steps.csv").decode(), newline="")))
        votes = list(csv.DictReader(io.StringIO(archive.read("votes.csv").decode(), newline="")))
    decided = sum(chain.step for chain in campaign.chains.all())
    assert sum(bool(step["verdict"]) for step in steps) == decided
    assert len(votes) == sum(judge.votes.count() for judge in campaign.judges.all())
    return path


def assert_replays(path: Path) -> None:
    """The record replays; one of recipe version 1 is refused, in one sentence that names the program that reads it."""
    with zipfile.ZipFile(path) as archive:
        version = json.loads(archive.read("recipe.json"))["version"]
    if version == sampler.Recipe.model_fields["version"].default:
        assert_replay_passes(path)
        return
    assert version == 1, "from version 2 on, records replay for ever"
    with pytest.raises(CommandError) as refused:
        assert_replay_passes(path)
    assert re.search(r"\b0\.1\b", str(refused.value)), f"does not name the program that reads it: {refused.value}"


def finish(campaign: Campaign) -> None:
    """Let a campaign that stood still go on to its end: the clock sweeps, new people come, the model is there again."""
    voting.let_time_pass()
    sweep_everything()
    wait_until_idle()
    most = max((judge.budget for judge in campaign.judges.all() if not judge.is_model), default=0)
    voting.vote(campaign, voting.join(campaign, 2 * most), np.random.default_rng(7))
    assert campaign.status == Campaign.Status.FINISHED
    assert_record_is_whole(campaign)

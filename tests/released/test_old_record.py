"""The record of version 0.1.0, from before records were promised to replay: it migrates, is read, and goes on.

`0.1.0/make.py` has made it. `replay` refuses what it exports by name; see `checks.assert_replays`.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.test import Client
from django.urls import reverse

from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.models import Campaign, State, Vote
from tests.released import checks, server
from tests.released.site import migrate, on_record, unpack
from tests.support.stack import wait_until_idle

RECORD = Path(__file__).with_name("0.1.0") / "record.tar.gz"
FINISHED = ("Texts", "Log-probabilities", "Joint ratings")
HALF_THROUGH = (
    "Texts",
    "Molecules of a file, two orders",
    "Pictures",
    "Openings",
    "Molecules",
    "Patterns",
    "Written by a model",
    "People and a model",
    "Separate ratings",
    # What a later version refuses to start goes on where it has started.
    "A lone order",
    "Unequal twins",
)
DRAFTS = ("Texts", "Openings", "A lone order", "A file that cannot be read")
pytestmark = pytest.mark.skipif(not settings.EMBEDDED, reason="the database that is kept is SQLite's")


@pytest.fixture(scope="module")
def migrated(tmp_path_factory, django_db_blocker) -> Path:
    folder = unpack(RECORD, tmp_path_factory.mktemp("record"))
    with django_db_blocker.unblock(), on_record(folder):
        migrate()
    return folder


@pytest.fixture
def record(migrated, tmp_path, django_db_blocker) -> Iterator[Path]:
    """Each test's own copy of the record, with the application at work on it."""
    folder = shutil.copytree(migrated, tmp_path / "record")
    with django_db_blocker.unblock(), on_record(folder), server.model():
        yield tmp_path


def named(name: str) -> Campaign:
    return Campaign.objects.get(name=name)


def test_nothing_is_left_to_migrate_and_nothing_is_lost(record):
    executor = MigrationExecutor(connection)
    assert executor.migration_plan(executor.loader.graph.leaf_nodes()) == []
    assert {campaign.name for campaign in Campaign.objects.all()} == {
        "Texts, paused",
        *(f"{name}, finished" for name in FINISHED),
        *(f"{name}, half through" for name in HALF_THROUGH),
        *(f"{name}, draft" for name in DRAFTS),
    }
    connection.check_constraints()


@pytest.mark.parametrize("name", FINISHED)
def test_a_finished_campaign_is_read_and_exported(record, name):
    campaign = named(f"{name}, finished")
    checks.assert_pages_show(campaign)
    checks.assert_replays(checks.assert_export_is_whole(campaign, record))


@pytest.mark.parametrize("name", HALF_THROUGH)
def test_a_campaign_that_was_half_through_is_read_and_goes_on_to_its_end(record, name):
    campaign = named(f"{name}, half through")
    checks.assert_pages_show(campaign)
    before = set(Vote.objects.filter(judge__campaign=campaign).values_list("key", "number"))
    checks.assert_export_is_whole(campaign, record)
    checks.finish(campaign)
    assert before <= set(Vote.objects.filter(judge__campaign=campaign).values_list("key", "number"))
    checks.assert_replays(checks.assert_export_is_whole(campaign, record))


def test_a_paused_campaign_is_resumed_and_goes_on_to_its_end(record):
    campaign = named("Texts, paused")
    checks.assert_pages_show(campaign)
    lifecycle.resume(campaign)
    checks.finish(campaign)


@pytest.mark.parametrize("name", DRAFTS)
def test_a_draft_is_read(record, name):
    checks.assert_pages_show(named(f"{name}, draft"))


@pytest.mark.parametrize("name", ["Texts", "Openings"])
def test_a_draft_is_started(record, name):
    campaign = named(f"{name}, draft")
    lifecycle.start(campaign)
    wait_until_idle()
    assert campaign.chains.count() == 2


@pytest.mark.parametrize("name", ["A lone order", "A file that cannot be read"])
def test_a_draft_that_cannot_be_started_says_so_on_its_page(record, name):
    """Version 0.1.0 took a lone question with a fixed order: the votes it brings have no target."""
    campaign = named(f"{name}, draft")
    researcher = Client()
    researcher.force_login(get_user_model().objects.get())
    answer = researcher.post(reverse("console:start", args=[campaign.pk]), follow=True)
    assert answer.status_code == 200
    campaign.refresh_from_db()
    assert campaign.is_draft or name == "A lone order"


def test_pictures_come_from_the_files_that_were_uploaded_then(record):
    researcher = Client()
    researcher.force_login(get_user_model().objects.get())
    pictures = State.objects.filter(campaign=named("Pictures, half through"))
    for state in pictures:
        answer = researcher.get(reverse("console:picture", args=[state.pk]))
        assert answer.status_code == 200
        assert answer.content.startswith(b"\x89PNG")
    assert pictures.count() == 6

"""Open pages say that they are there; those of one process say it together."""

import asyncio
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from prefmh_web.annotate import presence
from prefmh_web.annotate.presence import Standing
from prefmh_web.campaigns.models import Annotator
from tests.support.campaigns import invitation_path


@pytest.fixture
def pages(campaign) -> list[tuple[Annotator, str]]:
    """Five people with a page each, and the keys of their sessions."""
    link, keys = invitation_path(campaign), []
    for _ in range(5):
        person = Client()
        person.post(link)
        keys.append(person.cookies["prefmh_session"].value)
    return list(zip(Annotator.objects.order_by("pk"), keys, strict=True))


def renew_all(pages) -> list[Standing]:
    async def renew() -> list[Standing]:
        return await asyncio.gather(*(presence.renewed(annotator, key) for annotator, key in pages))

    return async_to_sync(renew)()


def test_pages_that_renew_at_one_time_cost_what_one_of_them_does(pages):
    with CaptureQueriesContext(connection) as of_one:
        assert renew_all(pages[:1]) == [Standing.ADMITTED]
    with CaptureQueriesContext(connection) as of_five:
        assert renew_all(pages) == [Standing.ADMITTED] * 5
    assert len(of_five) == len(of_one)
    soon = timezone.now() + timedelta(seconds=60)
    assert Annotator.objects.filter(online_until__gt=soon).count() == 5


def test_each_learns_what_became_of_its_person(pages):
    (removed, _), (_, ended), *_ = pages
    Annotator.objects.filter(pk=removed.pk).update(removed_at=timezone.now())
    Session.objects.get(session_key=ended).delete()
    Session.objects.filter(session_key=pages[2][1]).update(expire_date=timezone.now())
    found = renew_all([*pages, (pages[3][0], None), (pages[3][0], pages[4][1])])
    assert found == [
        Standing.REMOVED, Standing.UNKNOWN, Standing.UNKNOWN, Standing.ADMITTED, Standing.ADMITTED,
        # No session, and another person's.
        Standing.UNKNOWN, Standing.UNKNOWN,
    ]  # fmt: skip
    removed.refresh_from_db()
    assert removed.online_until is None


def test_a_page_that_closes_takes_no_other_along(pages):
    async def renew() -> Standing:
        leaving, staying = (asyncio.ensure_future(presence.renewed(*page)) for page in pages[:2])
        await asyncio.sleep(0.1)
        leaving.cancel()
        return await staying

    assert async_to_sync(renew)() is Standing.ADMITTED

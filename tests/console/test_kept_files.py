"""A file that was chosen on a form that is not saved: it is kept for the next try, for whoever chose it."""

from __future__ import annotations

import os
import re
import time

import pytest
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from prefmh_web.accounts.roles import make_researcher
from prefmh_web.campaigns import catalogs
from prefmh_web.campaigns.models import Campaign
from tests.console.test_pages import form
from tests.support.campaigns import TEXTS

_TICKET = re.compile(r'name="kept-space\.catalog\.file" value="([^"]+)"')


@pytest.fixture(autouse=True)
def nothing_kept():
    for name in catalogs.all_names():
        default_storage.delete(name)


def csv(name: str = "people.csv", text: str = TEXTS) -> SimpleUploadedFile:
    return SimpleUploadedFile(name, text.encode())


def ticket_in(page: str) -> str:
    return _TICKET.search(page)[1]


def refused(client, url: str | None = None, **changes) -> str:
    return client.post(url or reverse("console:create"), form(**{"name": ""} | changes)).content.decode()


def test_a_file_is_kept_past_an_error_and_used_by_the_next_save(signed_in, idle_tasks):
    page = refused(signed_in, **{"space.catalog.file": csv()})
    assert "<strong>people.csv</strong>, kept." in page
    # A second error changes nothing.
    page = refused(signed_in, **{"space.catalog.file": "", "kept-space.catalog.file": ticket_in(page)})
    assert "<strong>people.csv</strong>, kept." in page
    assert len(catalogs.all_names()) == 1
    signed_in.post(
        reverse("console:create"), form(**{"space.catalog.file": "", "kept-space.catalog.file": ticket_in(page)})
    )
    idle_tasks()
    campaign = Campaign.objects.get()
    assert (campaign.catalog.filename, campaign.states.count()) == ("people.csv", 12)
    assert catalogs.all_names() == []


def test_nobody_else_can_use_it(signed_in, client, django_user_model):
    ticket = ticket_in(refused(signed_in, **{"space.catalog.file": csv()}))
    stranger = django_user_model.objects.create_user("stranger")
    make_researcher(stranger)
    client.force_login(stranger)
    for wrong in (ticket, ticket[:-2] + "xx", "nonsense"):
        page = client.post(
            reverse("console:create"), form(**{"space.catalog.file": "", "kept-space.catalog.file": wrong})
        )
        assert "Choose the file with your objects." in page.content.decode()
        assert "people.csv" not in page.content.decode()
    assert not Campaign.objects.exists()


def test_only_a_few_are_kept_and_none_for_long(signed_in):
    for number in range(catalogs.MOST_FILES + 2):
        page = refused(signed_in, **{"space.catalog.file": csv(f"{number}.csv")})
    assert len(catalogs.all_names()) == catalogs.MOST_FILES
    for name in catalogs.all_names():
        long_ago = time.time() - catalogs.KEPT_FOR_S - 60
        os.utime(default_storage.path(name), (long_ago, long_ago))
    catalogs.remove_leftovers()
    assert catalogs.all_names() == []
    page = signed_in.post(
        reverse("console:create"), form(**{"space.catalog.file": "", "kept-space.catalog.file": ticket_in(page)})
    ).content.decode()
    assert "Choose the file with your objects." in page


def test_own_fragments_are_kept_too(signed_in, idle_tasks):
    fields = {"space.kind": "molecules", "space.molecules.start": "CC"}
    arms = SimpleUploadedFile("arms.tsv", b"# mine\n*O\t5\n*N\t3\n")
    page = refused(signed_in, **fields, **{"space.molecules.vocabulary": arms})
    assert "<strong>arms.tsv</strong>, kept." in page
    ticket = re.search(r'name="kept-space\.molecules\.vocabulary" value="([^"]+)"', page)[1]
    sizes = SimpleUploadedFile("sizes.tsv", b"1\t0\n2\t0\n3\t0\n4\t-1.5\n")
    signed_in.post(
        reverse("console:create"),
        form(**fields, **{"kept-space.molecules.vocabulary": ticket, "space.molecules.size_log_weights": sizes}),
    )
    space = Campaign.objects.get().config_data["space"]
    assert (space["vocabulary"], space["size_log_weights"]) == (["*O", "*N"], [0, 0, 0, -1.5])

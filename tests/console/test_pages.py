"""The researcher's pages over HTTP: who may see what, and what a bad form says."""

import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from prefmh_web.campaigns.models import Campaign, Chain
from tests.support.campaigns import TEXTS, make_draft

OF_TEXTS = {"space.kind": "texts"}
OF_MOLECULES = {"space.kind": "molecules", "space.molecules.start": "CC"}


def form(**changes) -> dict:
    """Return what a browser sends for a good setup, with changes."""
    return {
        "name": "Mine",
        "space.kind": "catalog",
        "space.catalog.objects": "texts",
        "space.catalog.file": SimpleUploadedFile("t.csv", TEXTS.encode()),
        "space.catalog.neighbours": "4",
        "kernel.kind": "usual",
        "instructions": "",
        "chains": "2",
        "steps": "10",
        "answering.seconds": "60",
        "seed": "",
        "rule.kind": "n-vote",
        "judges.0.question": "Which?",
        "judges.0.votes": "2",
        "judges.0.source.kind": "people",
    } | changes


def as_shown(client, path: str) -> dict[str, list[str]]:
    """Return what a browser sends of a page's form that nobody has touched."""
    leaves = client.get(path).context["form"].leaves
    return {
        name: [each.replace("\n", "\r\n") for each in posted]
        for name, leaf in leaves.items()
        if not leaf.why_fixed and (posted := leaf.as_posted())
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"name": ""}, "This field is required"), ({"judges.0.question": ""}, "there must be 1 to 8")],
)
def test_a_bad_form_says_why_and_saves_nothing(signed_in, changes, message):
    answer = signed_in.post(reverse("console:create"), form(**changes))
    assert answer.status_code == 200
    assert message in answer.content.decode()
    # What was typed stays.
    assert answer.context["form"]["steps"].value() == form(**changes)["steps"]
    assert not Campaign.objects.exists()


def test_a_draft_can_be_deleted_and_a_started_campaign_cannot(signed_in, researcher, campaign, idle_tasks):
    draft = make_draft(researcher, name="Only a try")
    page = signed_in.post(reverse("console:discard", args=[draft.pk]), follow=True)
    assert "“Only a try” has been deleted" in page.content.decode()
    page = signed_in.post(reverse("console:discard", args=[campaign.pk]), follow=True)
    assert "its data is kept" in page.content.decode()
    assert list(Campaign.objects.all()) == [campaign]


def test_a_change_of_state_needs_a_post(signed_in, campaign):
    assert signed_in.get(reverse("console:pause", args=[campaign.pk])).status_code == 405


def test_a_draft_says_how_many_rows_gave_no_object(signed_in, researcher, idle_tasks):
    few = make_draft(researcher, file=TEXTS + "twice,1\n" * 8)
    assert "Not all of the file is used (7)" in signed_in.get(few.get_absolute_url()).content.decode()
    many = make_draft(researcher, file=TEXTS + "twice,1\n" * 1_206)
    page = signed_in.get(many.get_absolute_url()).content.decode()
    assert "Not all of the file is used (1205)" in page
    assert "205 more are not listed" in page


def test_chains_that_wait_for_their_model_say_why(signed_in, campaign):
    Chain.objects.exclude(place=0).update(waits_because="the writer gave no tokens")
    page = signed_in.get(campaign.get_absolute_url())
    assert "2 chains wait for the model: the writer gave no tokens." in page.content.decode()


def test_a_long_list_of_campaigns_has_pages(client, researcher, campaign):
    client.force_login(researcher)
    Campaign.objects.bulk_create(
        Campaign(owner=researcher, name=f"Number {number}", config_data=campaign.config_data) for number in range(60)
    )
    first, second = (client.get("/", {"page": page}).content.decode() for page in (1, 2))
    assert "Page 1 of 2" in first
    assert {*re.findall(r"Number \d+", first)}.isdisjoint(re.findall(r"Number \d+", second))
    assert len({*re.findall(r"Number \d+", first + second)}) == 60

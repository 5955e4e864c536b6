"""Setting up each space in the browser: what the form makes and what it refuses; and the law that its judges make."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from prefmh_web.campaigns.models import Campaign
from tests.console.test_pages import form

TEXTS = {"space": "texts", "texts-temperature": "1", "texts-cut": "limit", "texts-fresh_share": "0.1"}
MOLECULES = {"space": "molecules", "molecules-start": "CC", "molecules-add": "0.5", "molecules-convention": "exact"}
IMAGES = {
    "space": "images",
    "images-small_step": "0.08",
    "images-small_share": "0.6",
    "images-wide_step": "0.25",
    "images-wide_share": "0.3",
}


def warm_up(**changes) -> dict:
    return {"grid": [1, 4, 16, 64, 256], "settling": 10, "patience_minutes": 60} | changes


@pytest.mark.parametrize(
    ("fields", "space", "kernel"),
    [
        (
            TEXTS | {"texts-scenarios": ["3", "14"]},
            {"kind": "texts", "scenarios": [3, 14], "temperature": 1.0},
            {"kind": "mixture"},
        ),
        (
            MOLECULES | {"molecules-alerts": ["PAINS"], "molecules-elements": "C N, O"},
            {"kind": "molecules", "alerts": ["PAINS"], "elements": ["C", "N", "O"], "vocabulary": "default"},
            {"kind": "fragments", "add": 0.5, "convention": "exact"},
        ),
        (IMAGES, {"kind": "images"}, {"kind": "mixture"}),
        (
            TEXTS | {"texts-distance": "warm-up", "steps": "320", "chains": "3"},
            {"kind": "texts"},
            {"kind": "walk", "length": 16, "warm_up": warm_up(steps=80, properties=["words", "readability"])},
        ),
        (
            MOLECULES
            | {"molecules-distance": "warm-up", "molecules-warm_up": "7", "molecules-walk": "64", "steps": "30"},
            {"kind": "molecules"},
            {"length": 64, "warm_up": warm_up(steps=7, settling=3, properties=["heavy_atoms", "log_p", "qed"])},
        ),
        (MOLECULES | {"molecules-distance": "warm-up", "steps": "100"}, {}, {"kind": "walk", "length": 16}),
    ],
    ids=[
        "texts", "molecules", "images", "texts that warm up", "molecules that warm up",
        "too short to warm up",
    ],
)  # fmt: skip
def test_a_form_makes_a_draft_that_starts(signed_in, idle_tasks, fields, space, kernel):
    answer = signed_in.post(reverse("console:create"), form(**fields))
    campaign = Campaign.objects.get()
    assert answer.url == campaign.get_absolute_url()
    assert campaign.config_data["space"].items() >= space.items()
    assert campaign.config_data["kernel"].items() >= kernel.items()
    page = signed_in.get(answer.url).content.decode()
    assert 'id="start" class="primary">' in page
    signed_in.post(reverse("console:start", args=[campaign.pk]))
    idle_tasks()
    campaign.refresh_from_db()
    # Running, or finished: of few steps on small molecules perhaps none is worth a vote.
    assert campaign.started_at
    assert signed_in.get(answer.url).status_code == 200


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (MOLECULES | {"molecules-start": "not a molecule"}, "not a molecule"),
        (MOLECULES | {"molecules-elements": "C Xx"}, "Xx"),
        (MOLECULES | {"molecules-start": "CCl", "molecules-elements": "C"}, "p0 allows"),
        (MOLECULES | {"molecules-walk": "9", "molecules-convention": "paper"}, "exact base ratio"),
        (TEXTS | {"texts-distance": "warm-up", "texts-warm_up": "500"}, "must be less than the"),
        (
            MOLECULES | {"molecules-distance": "warm-up", "molecules-convention": "paper"},
            "Choose a fixed number of moves, and make it 1",
        ),
        ({"catalog-distance": "warm-up", "catalog-objects": "images", "steps": "400"}, "does not hold the files"),
        ({"burn_in": "50"}, "must be less than the"),
        (IMAGES | {"images-wide_share": "0.5"}, "add up to more than 1"),
    ],
)
def test_a_bad_space_says_why_and_saves_nothing(signed_in, idle_tasks, fields, message):
    answer = signed_in.post(reverse("console:create"), form(**fields))
    assert answer.status_code == 200
    assert message in answer.content.decode().replace("&#x27;", "'")
    assert not Campaign.objects.exists()


def test_a_bad_list_of_fragments_is_refused_by_line(signed_in, idle_tasks):
    arms = SimpleUploadedFile("arms.tsv", b"*O\t5\n*N\tmany\n")
    answer = signed_in.post(reverse("console:create"), form(**MOLECULES, **{"molecules-fragments": arms}))
    assert "line 2" in answer.content.decode()
    assert not Campaign.objects.exists()


def test_a_draft_whose_space_changes_loses_its_file(signed_in, idle_tasks):
    signed_in.post(reverse("console:create"), form())
    idle_tasks()
    campaign = Campaign.objects.get()
    assert campaign.states.count() == 12
    signed_in.post(reverse("console:edit", args=[campaign.pk]), form(**IMAGES))
    campaign = Campaign.objects.get()
    assert (campaign.config.space.kind, campaign.states.count()) == ("images", 0)
    assert not hasattr(campaign, "catalog")


def test_a_draft_shows_what_it_would_sample_and_holds_no_target_yet(signed_in, idle_tasks):
    answer = signed_in.post(reverse("console:create"), form(**{"questions-0-order": "both"}))
    campaign = Campaign.objects.get()
    idle_tasks()
    orders = [(judge["order"], judge["votes"]) for judge in campaign.config_data["judges"]]
    assert orders == [("proposal-first", 1), ("proposal-second", 1)]
    # In the form it is one question again.
    (shown,) = signed_in.get(reverse("console:edit", args=[campaign.pk])).context["forms"].questions.forms
    assert (shown["order"].value(), shown["budget"].value()) == ("both", 2)
    assert "target" not in campaign.config_data
    assert "p0(x) * exp(2*s1(x))" in signed_in.get(answer.url).content.decode()

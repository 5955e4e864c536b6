"""Setting up each space in the browser: what the form makes, what it refuses, and what editing keeps."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

import sampler
from prefmh_web.accounts.roles import make_researcher
from prefmh_web.campaigns.lifecycle import drafts
from prefmh_web.campaigns.models import Campaign
from tests.console.test_pages import form
from tests.support.stack import make_recipe

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


@pytest.fixture
def signed_in(client, researcher):
    make_researcher(researcher)
    client.force_login(researcher)
    return client


@pytest.mark.parametrize(
    ("fields", "space", "kernel"),
    [
        (
            TEXTS | {"texts-scenarios": ["3", "14"]},
            {"kind": "texts", "scenarios": [3, 14], "temperature": 1.0},
            {"kind": "mixture"},
        ),
        (
            TEXTS | {"texts-fresh_share": "0", "texts-cut": "length"},
            {"scenarios": []},
            {"kind": "suffix", "cut": "length"},
        ),
        (
            MOLECULES | {"molecules-alerts": ["PAINS"], "molecules-elements": "C N, O"},
            {"kind": "molecules", "alerts": ["PAINS"], "elements": ["C", "N", "O"], "vocabulary": "default"},
            {"kind": "fragments", "add": 0.5, "convention": "exact"},
        ),
        (IMAGES, {"kind": "images"}, {"kind": "mixture"}),
        (TEXTS | {"texts-walk": "16"}, {"kind": "texts"}, {"kind": "walk", "length": 16}),
        (MOLECULES | {"molecules-walk": "64"}, {"kind": "molecules"}, {"kind": "walk", "length": 64}),
        (MOLECULES | {"molecules-walk": "1"}, {"kind": "molecules"}, {"kind": "fragments"}),
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
        (MOLECULES | {"molecules-distance": "warm-up", "molecules-walk": "1"}, {}, {"kind": "fragments"}),
        (MOLECULES | {"molecules-distance": "fixed", "molecules-walk": "8"}, {}, {"kind": "walk", "length": 8}),
    ],
    ids=[
        "texts", "suffixes only", "molecules", "images", "texts that walk", "molecules that walk", "one move",
        "texts that warm up", "molecules that warm up", "too short to warm up", "too short to walk", "a fixed distance",
    ],
)  # fmt: skip
def test_a_form_makes_a_draft_that_starts_and_edits_to_the_same(signed_in, idle_tasks, fields, space, kernel):
    answer = signed_in.post(reverse("console:create"), form(**fields))
    campaign = Campaign.objects.get()
    assert answer.url == campaign.get_absolute_url()
    assert campaign.recipe["space"].items() >= space.items()
    assert campaign.recipe["kernel"].items() >= kernel.items()
    page = signed_in.get(answer.url).content.decode()
    assert 'id="start" class="primary">' in page
    recipe = campaign.recipe
    edit = signed_in.get(reverse("console:edit", args=[campaign.pk]))
    signed_in.post(reverse("console:edit", args=[campaign.pk]), as_sent(edit.context["forms"]))
    campaign.refresh_from_db()
    assert campaign.recipe == recipe
    signed_in.post(reverse("console:start", args=[campaign.pk]))
    idle_tasks()
    campaign.refresh_from_db()
    # Running, or finished: of few steps on small molecules perhaps none is worth a vote.
    assert campaign.started_at
    assert signed_in.get(answer.url).status_code == 200


def as_sent(forms) -> dict:
    """Return what a browser sends of these forms as they are shown."""
    shown = [forms.campaign, forms.space, forms.questions.management_form, *forms.questions.forms]
    values = {bound.html_name: bound.value() for form in shown for bound in form}
    return {name: value for name, value in values.items() if value not in (None, False)}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (TEXTS | {"texts-temperature": "0"}, "greater than or equal to 0.1"),
        (TEXTS | {"texts-scenarios": ["50"]}, "not one of the available choices"),
        (MOLECULES | {"molecules-start": "not a molecule"}, "not a molecule"),
        (MOLECULES | {"molecules-elements": "C Xx"}, "Xx"),
        (MOLECULES | {"molecules-start": "CCl", "molecules-elements": "C"}, "p0 allows"),
        (MOLECULES | {"molecules-walk": "9", "molecules-convention": "paper"}, "exact base ratio"),
        (TEXTS | {"texts-walk": "0"}, "greater than or equal to 1"),
        (TEXTS | {"texts-walk": "5000"}, "less than or equal to 4096"),
        (TEXTS | {"texts-distance": "warm-up", "texts-warm_up": "500"}, "must be less than the"),
        (TEXTS | {"texts-distance": "warm-up", "texts-warm_up": "0"}, "greater than or equal to 1"),
        (TEXTS | {"texts-distance": "far"}, "not one of the available choices"),
        (
            MOLECULES | {"molecules-distance": "warm-up", "molecules-convention": "paper"},
            "Choose a fixed number of moves, and make it 1",
        ),
        ({"catalog-distance": "warm-up", "catalog-objects": "images", "steps": "400"}, "does not hold the files"),
        ({"burn_in": "50"}, "must be less than the"),
        (IMAGES | {"images-wide_share": "0.5"}, "add up to more than 1"),
        (IMAGES | {"images-small_step": "2"}, "less than or equal to 1"),
        ({"space": "melodies"}, "not one of the available choices"),
    ],
)
def test_a_bad_space_says_why_and_saves_nothing(signed_in, idle_tasks, fields, message):
    answer = signed_in.post(reverse("console:create"), form(**fields))
    assert answer.status_code == 200
    assert message in answer.content.decode().replace("&#x27;", "'")
    assert not Campaign.objects.exists()


def test_fragments_of_ones_own_go_into_the_recipe(signed_in, idle_tasks):
    arms = SimpleUploadedFile("arms.tsv", b"# mine\n*O\t5\n*N\t3\n")
    sizes = SimpleUploadedFile("sizes.tsv", b"1\t0\n2\t0\n3\t0\n4\t-1.5\n")
    files = {"molecules-fragments": arms, "molecules-sizes": sizes}
    signed_in.post(reverse("console:create"), form(**MOLECULES, **files))
    space = Campaign.objects.get().recipe["space"]
    assert space["vocabulary"] == ["*O", "*N"]
    assert space["size_log_weights"] == [0, 0, 0, -1.5]


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
    assert (campaign.parsed_recipe.space.kind, campaign.states.count()) == ("images", 0)
    assert not hasattr(campaign, "catalog")


def test_a_draft_of_patterns_keeps_a_walk_that_the_form_has_no_field_for(signed_in, researcher):
    walk = {"kind": "walk", "kernel": sampler.PAPER_MIXTURE, "length": 4}
    recipe = sampler.parse_recipe(make_recipe(version=1, space={"kind": "images"}, kernel=walk)).model_dump(mode="json")
    draft = drafts.create(owner=researcher, name="Patterns", recipe=recipe)
    edit = reverse("console:edit", args=[draft.pk])
    signed_in.post(edit, as_sent(signed_in.get(edit).context["forms"]) | {"name": "Renamed"})
    draft.refresh_from_db()
    assert (draft.name, draft.recipe) == ("Renamed", recipe)

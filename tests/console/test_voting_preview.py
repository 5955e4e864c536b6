"""The voting page beside the setup: what it shows, what it says is missing, and that it stores nothing."""

from __future__ import annotations

import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

import sampler
from prefmh_web.campaigns.lifecycle import drafts
from prefmh_web.campaigns.models import Campaign
from prefmh_web.campaigns.started import plan_of
from tests.console.test_pages import form
from tests.console.test_spaces import IMAGES, MOLECULES, TEXTS
from tests.support.stack import make_campaign, make_draft, make_recipe

NEW = "console:voting-preview-new"


def preview(client, url: str | None = None, **changes) -> str:
    fields = form(**{"catalog-file": ""} | changes)
    answer = client.post(url or reverse(NEW), fields)
    assert answer.status_code == 200
    assert not Campaign.objects.filter(name="Mine").exists()
    return answer.content.decode()


def texts_in(page: str) -> list[str]:
    found = re.findall(r'<span class="text">(.*?)</span>\n', page, flags=re.DOTALL)
    return [re.sub(r"<[^>]+>", "", each) for each in found]


def test_it_shows_the_question_the_instructions_and_samples_until_the_file_is_read(signed_in):
    page = preview(signed_in, instructions="Choose by feeling.", **{"questions-0-question": "Which is darker?"})
    for words in ("Which is darker?", "Choose by feeling.", "Your file is read when you save", "Skip this pair"):
        assert words in page
    assert len(texts_in(page)) == 2
    assert "<button" not in page


def test_a_sentence_names_what_is_missing_and_what_is_wrong(signed_in):
    page = preview(signed_in, name="", steps="many", **{"questions-0-question": "", "questions-0-budget": "0"})
    assert "Still to fill in: Name of the campaign, Question." in page
    assert "Steps per chain: Enter a whole number." in page
    assert "Votes on a pair, at most: Ensure this value is greater" in page
    assert "Your question stands here" in page


def test_the_pair_is_the_first_that_a_voter_would_see(signed_in, researcher, idle_tasks):
    fields = TEXTS | {"seed": "77", "texts-distance": "fixed", "texts-walk": "1"}
    page = preview(signed_in, **fields)
    shown = texts_in(page)
    assert "first pair of the first chain" in page
    signed_in.post(reverse("console:create"), form(**fields))
    campaign = Campaign.objects.get()
    pair = sampler.ask(plan_of(campaign), sampler.begin(plan_of(campaign), 0))
    space = plan_of(campaign).space
    assert shown == [space.content(pair.current), space.content(pair.proposal)]
    # The negative control: another seed begins with another pair.
    Campaign.objects.all().delete()
    assert texts_in(preview(signed_in, **fields | {"seed": "78"})) != shown


def test_a_draft_shows_two_objects_of_its_own_list(signed_in, researcher, idle_tasks):
    draft = make_draft(researcher)
    idle_tasks()
    url = reverse("console:voting-preview", args=[draft.pk])
    shown = texts_in(preview(signed_in, url, seed="5", **{"catalog-neighbours": "3"}))
    own = set(draft.states.values_list("content", flat=True))
    assert len(set(shown)) == 2
    assert set(shown) <= own


@pytest.mark.parametrize(("fields", "kind"), [(MOLECULES, "image/svg+xml"), (IMAGES, "image/png")])
def test_molecules_and_patterns_are_drawn(signed_in, fields, kind):
    page = preview(signed_in, seed="5", **fields)
    addresses = re.findall(r'<img src="([^"]+)"', page)
    assert len(addresses) == 2
    for address in addresses:
        assert signed_in.get(address)["Content-Type"] == kind


def test_an_arabic_campaign_is_read_from_right_to_left(signed_in):
    page = preview(signed_in, language="ar", **TEXTS)
    assert 'lang="ar" dir="rtl"' in page
    # The left object stays on the left.
    assert 'class="sides texts" dir="ltr"' in page
    assert "Skip this pair" not in page
    # What is said to the researcher stays English.
    assert "A first pair." in page


@pytest.mark.parametrize(
    "changes",
    [
        {"space": "melodies"},
        {"catalog-objects": "songs"},
        {"questions-TOTAL_FORMS": "x"},
        {"questions-TOTAL_FORMS": "100000"},
        {"seed": "-1"},
        {"language": "xx"},
        {"chains": "0"},
        {"rule-kind": "base"},
        {"rule-kind": "nonsense"},
        {"kept-catalog-file": "nonsense"},
        MOLECULES | {"molecules-start": "no molecule"},
        MOLECULES | {"molecules-distance": "fixed", "molecules-walk": "4096"},
        TEXTS | {"burn_in": "99999"},
        IMAGES | {"images-small_share": "2"},
    ],
)
def test_nothing_that_is_typed_makes_an_error_page(signed_in, changes):
    assert "class=" in preview(signed_in, **changes)


def test_no_fields_at_all_are_answered_too(signed_in):
    assert signed_in.post(reverse(NEW)).status_code == 200


def test_where_nobody_is_asked_it_says_so(signed_in):
    assert "nobody sees such a page" in preview(signed_in, **TEXTS | {"rule-kind": "base"})


def test_a_kept_file_is_not_asked_for_again(signed_in):
    page = signed_in.post(reverse("console:create"), form(name="")).content.decode()
    ticket = re.search(r'name="kept-catalog-file" value="([^"]+)"', page)[1]
    assert "file is read when you save" in preview(signed_in, **{"kept-catalog-file": ticket})


def test_only_those_who_may_set_it_up_see_it(signed_in, client, researcher, django_user_model):
    draft = make_draft(researcher)
    url = reverse("console:voting-preview", args=[draft.pk])
    stranger = django_user_model.objects.create_user("stranger")
    client.force_login(stranger)
    assert client.post(url, form()).status_code == 404
    assert client.post(reverse(NEW), form()).status_code == 403
    assert client.get(url).status_code == 405
    client.logout()
    assert client.post(url).url.startswith("/accounts/sign-in/")


def test_whoever_types_too_fast_is_told_in_its_place(signed_in, settings):
    settings.RATE_LIMITS = {"previews": "1/minute"}
    preview(signed_in)
    answer = signed_in.post(reverse(NEW), form())
    assert answer.status_code == 429
    assert "The preview comes back in" in answer.content.decode()
    assert "<html" not in answer.content.decode()


def test_a_file_that_is_chosen_anew_takes_the_place_of_the_list(signed_in, researcher, idle_tasks):
    draft = make_draft(researcher)
    idle_tasks()
    url = reverse("console:voting-preview", args=[draft.pk])
    other = SimpleUploadedFile("other.csv", b"text\nOne.\nTwo.\n")
    shown = texts_in(preview(signed_in, url, **{"catalog-file": other}))
    assert not set(shown) & set(draft.states.values_list("content", flat=True))


def test_a_list_of_columns_shows_them(signed_in, researcher, idle_tasks):
    space = {"kind": "catalog", "objects": "texts", "neighbours": 2, "context": [{"column": "mood", "label": "Mood"}]}
    file = "text,mood\nOne.,grim\nTwo.,grim\nThree.,grim\nFour.,grim\n"
    draft = make_draft(researcher, file=file, recipe=make_recipe(space=space))
    idle_tasks()
    url = reverse("console:voting-preview", args=[draft.pk])
    page = preview(signed_in, url, **{"catalog-context": "mood: Mood", "catalog-neighbours": "2"})
    assert ">Mood<" in page
    assert ">grim<" in page


def test_a_started_campaign_is_not_changed_by_it(signed_in, researcher, idle_tasks):
    campaign = make_campaign(researcher)
    before = campaign.recipe
    preview(signed_in, reverse("console:voting-preview", args=[campaign.pk]))
    campaign.refresh_from_db()
    assert campaign.recipe == before


def test_a_list_that_will_be_read_again_shows_its_first_objects_and_says_so(signed_in, researcher, idle_tasks):
    draft = make_draft(researcher)
    idle_tasks()
    url = reverse("console:voting-preview", args=[draft.pk])
    now = draft.parsed_recipe.space.neighbours
    assert "read again" in preview(signed_in, url, seed="5", **{"catalog-neighbours": str(now + 1)})
    assert "read again" not in preview(signed_in, url, seed="5", **{"catalog-neighbours": str(now)})


def test_pairs_that_were_given_are_shown(signed_in, researcher):
    space = {"kind": "pairs", "objects": "texts", "pairs": [["One.", "Two."], ["Three.", "Four."]]}
    recipe = make_recipe(version=1, space=space, kernel={"kind": "neighbours"}, chains=2, steps=1)
    recipe = sampler.parse_recipe(recipe).model_dump(mode="json")
    draft = drafts.create(owner=researcher, name="Pairs", recipe=recipe)
    url = reverse("console:voting-preview", args=[draft.pk])
    fields = {"space": "pairs", "seed": str(recipe["seed"]), "steps": "1"}
    assert sorted(texts_in(preview(signed_in, url, **fields))) == ["One.", "Two."]
    sandbox = reverse("console:sandbox", args=[draft.pk])
    page = signed_in.post(sandbox, {"consent": "agree"}, follow=True).content.decode()
    assert sorted(texts_in(page)) == ["One.", "Two."]
    assert signed_in.get(reverse("console:edit", args=[draft.pk])).status_code == 200

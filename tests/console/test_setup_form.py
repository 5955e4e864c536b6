"""The setup as a page: its kinds as cards, what is folded, and the errors beside their fields."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse

from prefmh_web.console.forms.spaces import SPACE_FORMS
from prefmh_web.console.unstored import Sample
from prefmh_web.objects import OBJECT_KINDS
from tests.console.test_pages import form
from tests.support.campaigns import make_draft, make_recipe

_FOLD = re.compile(r'<details class="fold[^"]*"( open)?><summary>([^<]+)</summary>')


def folds_of(page: str) -> dict[str, bool]:
    """Return for each fold by its title whether it is open, outside the template of a further question."""
    page = re.sub(r"<template.*?</template>", "", page, flags=re.DOTALL)
    return {title: bool(is_open) for is_open, title in _FOLD.findall(page)}


@pytest.mark.parametrize(
    ("changes", "title"),
    [
        ({"burn_in": "99999"}, "More chains while people come"),
        ({"lease_seconds": "3"}, "The time to answer"),
        ({"catalog-fresh_share": "7"}, "How far apart the two objects are"),
        ({"questions-0-order": "balanced"}, "Which object stands first"),
        ({"rule-kind": "score", "rule-exponent": "-1"}, "Decide in another way"),
    ],
)
def test_a_fold_with_an_error_is_open(signed_in, changes, title):
    page = signed_in.post(reverse("console:create"), form(**changes)).content.decode()
    assert any(is_open for name, is_open in folds_of(page).items() if name.startswith(title))


def test_a_draft_opens_what_is_not_as_usual_and_not_the_seed_that_was_drawn(signed_in, researcher):
    recipe = make_recipe(most_chains=100, steps=100, chains=4)
    usual = make_draft(researcher, recipe=recipe, is_seed_typed=False)
    page = signed_in.get(reverse("console:edit", args=[usual.pk])).content.decode()
    assert not folds_of(page)["More chains while people come, what is left out, and the seed"]
    left_out = make_draft(researcher, recipe=recipe | {"burn_in": 7}, is_seed_typed=False)
    page = signed_in.get(reverse("console:edit", args=[left_out.pk])).content.decode()
    assert folds_of(page)["More chains while people come, what is left out, and the seed"]


def test_each_kind_is_a_card_with_a_picture_of_itself(signed_in, researcher):
    page = signed_in.get(reverse("console:create")).content.decode()
    cards = re.findall(r'<label class="kind[^"]*" for="id_space_\d+">(.*?)</label>', page, flags=re.DOTALL)
    assert len(cards) == page.count('type="radio" name="space"') >= 4
    assert all("<img" in card or 'class="object texts"' in card for card in cards)
    # So are the kinds of object that a list can hold.
    assert page.count('type="radio" name="catalog-objects"') == len(OBJECT_KINDS)
    pictures = [each for kind in ("molecules", "images", "model-images") for each in SPACE_FORMS[kind].samples]
    for each in pictures:
        answer = signed_in.get(each.address, {"small": ""})
        assert answer["Content-Type"] in ("image/svg+xml", "image/webp")
        assert answer.content


def test_nobody_makes_the_site_draw_what_they_choose(client, signed_in):
    address = Sample("molecules").address
    assert signed_in.get(address[:-3] + "x/").status_code == 404
    signed_in.logout()
    assert client.get(address).url.startswith("/accounts/sign-in/")


def test_the_setup_says_what_all_of_it_takes_at_most(signed_in):
    fields = {"chains": "4", "most_chains": "20", "steps": "100", "burn_in": "10", "questions-0-budget": "2"}
    shown = signed_in.get(reverse("console:estimate"), fields).content.decode()
    assert "One chain takes <strong>200</strong> votes" in shown
    assert "up to 20 chains open, which take 4,000 votes" in shown
    assert "about 150 votes a chain from voters who are indifferent" in shown
    assert "Burn-in takes 15 of them" in shown
    assert (
        "20 chains open"
        not in signed_in.get(reverse("console:estimate"), fields | {"most_chains": ""}).content.decode()
    )
    for wrong in ({"chains": "x"}, {"questions-0-budget": "0"}, {"rule-kind": "base"}):
        assert "at most" not in signed_in.get(reverse("console:estimate"), fields | wrong).content.decode()

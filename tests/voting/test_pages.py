"""The voter's pages over HTTP: joining, pictures, what no page of ours sends, and frames from memory."""

import re
import uuid
from types import SimpleNamespace

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import translation

from prefmh_web.campaigns.models import Annotator, Lease
from prefmh_web.campaigns.objects import options_of
from prefmh_web.objects import OBJECT_KINDS
from prefmh_web.voting import screens
from prefmh_web.voting.screens import Progress, ResponseError, html_of, response_in
from sampler import PAPER_MIXTURE
from tests.support.campaigns import create_draft, invitation_path, make_campaign, make_config, started_now


@pytest.fixture
def vote_path(campaign):
    return f"{invitation_path(campaign)}vote/"


@pytest.fixture
def joined(client, campaign):
    client.post(invitation_path(campaign))
    return client


def test_the_welcome_page_names_the_questions_and_joins_once(client, campaign, vote_path):
    page = client.get(invitation_path(campaign)).content.decode()
    assert "Which is darker?" in page
    assert not Annotator.objects.exists()
    for _ in range(2):
        assert client.post(invitation_path(campaign)).url == vote_path
    assert Annotator.objects.count() == 1


def test_a_choice_of_no_screen_is_refused_with_all_that_there_are():
    with pytest.raises(ResponseError, match="choice must be first, second, skip, not-shown, changed or continue"):
        response_in({"choice": "up"})


def test_pictures_are_for_those_who_joined(client, researcher, idle_tasks):
    space = {"kind": "catalog", "objects": "molecules", "neighbours": 2}
    campaign = make_campaign(
        researcher, file="smiles\nCCO\nCCN\nCCC\nCCCl\n", filename="m.csv", config=make_config(space=space)
    )
    client.post(invitation_path(campaign))
    page = client.get(f"{invitation_path(campaign)}vote/").content.decode()
    lease = Lease.objects.get()
    url = reverse("voting:picture", args=[lease.key, "first"])
    assert f'src="{url}"' in page
    drawing = client.get(url)
    assert drawing.status_code == 200
    assert "immutable" in drawing["Cache-Control"]
    assert client.get(f"{url}?marked&dark").content != drawing.content
    assert Client().get(url).status_code == 403


def test_nothing_on_the_page_tells_which_object_is_the_proposal(client, researcher, idle_tasks):
    config = make_config(space={"kind": "images"}, kernel=PAPER_MIXTURE, chains=40)
    campaign = started_now(create_draft(owner=researcher, is_seed_typed=True, name="Patterns", config=config))
    client.post(invitation_path(campaign))
    page = client.get(f"{invitation_path(campaign)}vote/").content.decode()
    lease = Lease.objects.select_related("comparison__current", "comparison__proposal").get()
    # Rows are numbered as they are made: a number on the page would tell the new object from the old one.
    numbers = {str(number) for s in (lease.first, lease.second) for number in (s.pk, s.place) if number > 9}
    assert not numbers & set(re.findall(r"\d+", re.sub(r"[0-9a-f-]{36}", "", page.split('id="panel"')[1])))


PAIRS = {
    "texts": [('He said "no" & left.\n\nShe <b>stayed</b>.', "It's {{ late }}."), ("One.", "Two, 3.")],
    "markdown": [("# One\n\n<b>no</b> & *yes*", "| a |\n|---|\n| {{ b }} |"), ("1. One", "Two")],
    "molecules": [("CCO", "c1ccccc1"), ("CC(=O)O", "CC")],
    "images": [("1,2,3", "4,5,6"), ("7", "8")],
    "audio": [("one &.wav", "<two>.mp3"), ("3.wav", "4.wav")],
}
LOOK = {"is_stacked": False, "objects_lang": ""}
HOW_FAR = (Progress(1, 0, None, None, None), Progress(2, 50, None, None, None), Progress(3, 9, 20, 1.26, 30))


def shown_of(kind: str, left: str, right: str, question: str, **more: object) -> dict:
    options = options_of(OBJECT_KINDS[kind], left, right, lambda side: f"/pictures/{left}/{side}/")
    lease = SimpleNamespace(key=uuid.uuid4())
    return (
        {"lease": lease, "question": question, "kind": OBJECT_KINDS[kind], "options": options, "context": ()}
        | LOOK
        | more
    )


@pytest.mark.parametrize("kind", OBJECT_KINDS)
@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("name", ["pair", "check"])
def test_a_filled_frame_is_what_the_templates_give(kind, language, name):
    with translation.override(language):
        for question in ("Which is <darker>?", "Which is better?"):
            for left, right in PAIRS[kind]:
                for progress, must in zip(HOW_FAR, (False, True, False), strict=True):
                    shown = shown_of(
                        kind, left, right, question, must_be_answered=must, is_stacked=must, objects_lang="en" * must
                    )
                    whole = screens._rendered(
                        name, "pair", shown, screens._progress_html.__wrapped__(progress, language)
                    )
                    assert html_of(name, "pair", shown, progress) == whole
                    assert str(shown["lease"].key) in whole


def test_what_a_person_writes_into_a_text_is_never_a_place_to_fill_in():
    shown = shown_of("texts", screens._mark("lease"), screens._mark("progress"), "Which?")
    html = html_of("pair", "pair", shown, HOW_FAR[0])
    assert html.count(str(shown["lease"].key)) == 2
    assert html.count("<footer") == 1

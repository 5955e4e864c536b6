"""The voter's pages over HTTP: joining, voting by form post, pictures, and messages no page of ours sends."""

import re
import uuid

import pytest
from django.test import Client
from django.urls import reverse

from prefmh_web.annotate.screens import ResponseError, response_in
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.lifecycle import drafts
from prefmh_web.campaigns.models import Annotator, Lease, Side, Vote
from sampler import PAPER_MIXTURE
from tests.support.campaigns import invitation_path, make_campaign, make_recipe


@pytest.fixture
def vote_path(campaign):
    return f"{invitation_path(campaign)}vote/"


@pytest.fixture
def joined(client, campaign):
    client.post(invitation_path(campaign))
    return client


def lease_in(page) -> str:
    return page.context["screen"].visit.lease.key


def test_the_welcome_page_names_the_questions_and_joins_once(client, campaign, vote_path):
    page = client.get(invitation_path(campaign)).content.decode()
    assert "Which is darker?" in page
    assert not Annotator.objects.exists()
    for _ in range(2):
        assert client.post(invitation_path(campaign)).url == vote_path
    assert Annotator.objects.count() == 1


def test_without_joining_there_is_no_pair(client, campaign, vote_path):
    assert client.get(vote_path).url == invitation_path(campaign)
    assert client.post(vote_path, {"choice": "left", "lease": uuid.uuid4()}).url == invitation_path(campaign)
    assert client.get(reverse("annotate:welcome", args=["unknown"])).status_code == 404


def test_a_post_votes_and_a_repeated_post_votes_once(joined, vote_path):
    key = lease_in(joined.get(vote_path))
    for _ in range(3):
        answer = joined.post(vote_path, {"choice": "right", "lease": key, "elapsed_ms": "901"})
        assert answer.status_code == 302
    vote = Vote.objects.get()
    assert (vote.key, vote.chosen_side, vote.elapsed_ms) == (key, Side.RIGHT, 901)
    assert lease_in(joined.get(vote_path)) != key


@pytest.mark.parametrize("milliseconds", ["", "-5", "1e3", "９", "99999999999", None, ["1"]])
def test_a_nonsense_stop_watch_is_no_time(milliseconds):
    fields = {"choice": "left", "lease": str(uuid.uuid4()), "elapsed_ms": milliseconds}
    assert response_in(fields).elapsed_ms is None


def test_a_choice_of_no_screen_is_refused_with_all_that_there_are():
    with pytest.raises(ResponseError, match="choice must be left, right, skip, not-shown or continue"):
        response_in({"choice": "up"})


def test_pictures_are_for_those_who_joined(client, researcher, idle_tasks):
    space = {"kind": "catalog", "objects": "molecules", "neighbours": 2}
    campaign = make_campaign(
        researcher, file="smiles\nCCO\nCCN\nCCC\nCCCl\n", filename="m.csv", recipe=make_recipe(space=space)
    )
    client.post(invitation_path(campaign))
    page = client.get(f"{invitation_path(campaign)}vote/").content.decode()
    lease = Lease.objects.get()
    url = reverse("annotate:picture", args=[lease.key, "left"])
    assert f'src="{url}"' in page
    drawing = client.get(url)
    assert drawing.status_code == 200
    assert "immutable" in drawing["Cache-Control"]
    assert client.get(f"{url}?marked&dark").content != drawing.content
    stranger = Client()
    assert stranger.get(url).status_code == 403
    stranger.post(invitation_path(campaign))
    assert stranger.get(url).status_code == 403


def test_nothing_on_the_page_tells_which_object_is_the_proposal(client, researcher, idle_tasks):
    recipe = make_recipe(space={"kind": "images"}, kernel=PAPER_MIXTURE, chains=40)
    campaign = drafts.create(owner=researcher, is_seed_typed=True, name="Patterns", recipe=recipe)
    lifecycle.start(campaign)
    idle_tasks()
    client.post(invitation_path(campaign))
    page = client.get(f"{invitation_path(campaign)}vote/").content.decode()
    lease = Lease.objects.select_related("comparison__current", "comparison__proposal").get()
    # Rows are numbered as they are made: a number on the page would tell the new object from the old one.
    numbers = {str(number) for s in (lease.left, lease.right) for number in (s.pk, s.place) if number > 9}
    assert not numbers & set(re.findall(r"\d+", re.sub(r"[0-9a-f-]{36}", "", page.split('id="panel"')[1])))

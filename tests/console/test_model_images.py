"""Setting up a campaign on an image model's pictures, and its pages, in processes that have no PyTorch."""

import numpy as np
import pytest
from django.urls import reverse
from django.utils import timezone

import sampler
from prefmh_web.campaigns import objects
from prefmh_web.campaigns.engine import transitions
from prefmh_web.campaigns.frozen import plan_of
from prefmh_web.campaigns.models import Campaign, Chain, Invitation, Judge, Lease, State
from prefmh_web.objects import media
from tests.console.test_pages import as_shown, form
from tests.endpoints.test_local_models import pipeline_folder, without_the_extra
from tests.support.campaigns import create_draft, make_config

FIELDS = {
    "space.kind": "model-images",
    "space.model-images.model": "turbo",
    "space.model-images.prompt": "a red mushroom",
    "space.model-images.steps": "2",
}


@pytest.fixture
def offered(settings, tmp_path):
    """A site whose model's folder lies on the accelerator's machine only."""
    settings.LOCAL_IMAGE_MODELS = {"turbo": tmp_path / "turbo"}
    return tmp_path / "turbo"


def test_only_a_site_with_image_models_offers_them(signed_in, idle_tasks):
    page = signed_in.get(reverse("console:create")).content.decode()
    assert "diffusion model" not in page
    answer = signed_in.post(reverse("console:create"), form(**FIELDS))
    assert "is not one of the available choices" in answer.content.decode()
    assert not Campaign.objects.exists()


def test_the_form_makes_a_draft_that_edits_to_the_same(signed_in, idle_tasks, offered):
    page = signed_in.get(reverse("console:create")).content.decode()
    assert "Images from a diffusion model" in page
    answer = signed_in.post(reverse("console:create"), form(**FIELDS))
    campaign = Campaign.objects.get()
    assert answer.url == campaign.get_absolute_url()
    assert campaign.config_data["space"] == {
        "kind": "model-images", "model": "turbo", "prompt": "a red mushroom", "steps": 2, "dimension": 16_384,
    }  # fmt: skip
    assert campaign.config_data["kernel"] == sampler.parse_config(make_config(
        space=campaign.config_data["space"], kernel=sampler.PAPER_MIXTURE
    )).model_dump(mode="json")["kernel"]  # fmt: skip
    page = signed_in.get(answer.url).content.decode()
    assert "Images from a diffusion model; Model: turbo; Prompt: a red mushroom; Sampling steps: 2" in page
    config = campaign.config_data
    signed_in.post(edit := reverse("console:edit", args=[campaign.pk]), as_shown(signed_in, edit))
    campaign.refresh_from_db()
    assert campaign.config_data == config


def test_a_model_that_cannot_be_read_is_told_and_nothing_is_saved(signed_in, idle_tasks, offered):
    pipeline_folder(offered)
    answer = signed_in.post(reverse("console:create"), form(**FIELDS))
    assert answer.status_code == 200
    assert "turbo must be a pipeline of diffusers" in answer.content.decode()
    assert not Campaign.objects.exists()


@without_the_extra
def test_a_worker_without_the_extra_says_on_the_page_what_to_install(signed_in, idle_tasks, offered):
    signed_in.post(reverse("console:create"), form(**FIELDS))
    campaign = Campaign.objects.get()
    signed_in.post(reverse("console:start", args=[campaign.pk]))
    idle_tasks()
    campaign.refresh_from_db()
    assert campaign.is_draft
    assert "There are no pictures to start with: turbo makes no pictures here" in campaign.start_trouble
    assert "the extra [gpu] brings" in signed_in.get(campaign.get_absolute_url()).content.decode()
    assert not State.objects.exists()


def painted_elsewhere(campaign: Campaign, seen: list[bytes]) -> None:
    """Start a draft as a worker on another machine does, with pictures of one colour for each state."""

    def paint(state):
        colour = np.full((16, 16, 3), 40 * (1 + len(seen)), dtype=np.uint8)
        seen.append(sampler.png(colour))
        media.store(media.rendered_name(campaign.pk, plan.space.encode(state)), seen[-1])

    plan = plan_of(campaign)
    Campaign.objects.filter(pk=campaign.pk).update(status=Campaign.Status.RUNNING, started_at=timezone.now())
    campaign.refresh_from_db()
    Judge.objects.create(campaign=campaign, place=0, question="Which is rounder?", max_votes=1)
    Invitation.objects.create(campaign=campaign)
    [position] = sampler.begin_many(plan, [0])
    paint(position.state)
    start = objects.starting(campaign, 0, position.state)
    start.save()
    chain = Chain.objects.create(campaign=campaign, place=0, length=5, start=start, head=start)
    drawn = sampler.ask(plan, position)
    paint(drawn.proposal)
    transitions.open_comparison(chain.pk, drawn, objects.proposed(chain, drawn))


@without_the_extra
def test_pages_show_what_was_painted_elsewhere(signed_in, researcher, idle_tasks, offered):
    space = {"kind": "model-images", "model": "turbo", "prompt": "a red mushroom"}
    judges = [{"question": "Which is rounder?", "votes": 1}]
    config = make_config(space=space, kernel=sampler.PAPER_MIXTURE, judges=judges, chains=1, steps=5)
    campaign, painted = create_draft(owner=researcher, config=config), []
    painted_elsewhere(campaign, painted)
    idle_tasks()
    assert "contrast 0.00" in signed_in.get(campaign.get_absolute_url()).content.decode()
    for state, data in zip(campaign.states.order_by("place"), painted, strict=True):
        address = reverse("console:picture", args=[state.pk])
        assert signed_in.get(address).content == data
        assert signed_in.get(address, {"small": ""})["Content-Type"] == "image/webp"
        assert state.campaign.object_kind.measures(objects.stored(state))["contrast"] == pytest.approx(0)
    invitation = campaign.invitations.get()
    signed_in.post(invitation.get_absolute_url())
    assert signed_in.get(reverse("voting:vote", args=[invitation.token])).status_code == 200
    lease = Lease.objects.get()
    shown = {signed_in.get(reverse("voting:picture", args=[lease.key, side])).content for side in ("first", "second")}
    assert shown == set(painted)

"""Campaigns on the pictures of a small random pipeline: from the setup form to a record that replays."""

import io
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from django.core.files.storage import default_storage
from django.urls import reverse
from django.utils import timezone
from PIL import Image

from tests.support.campaigns import create_draft

pytest.importorskip("diffusers", reason="needs the extra [gpu]")

import sampler
from prefmh_web import tasks
from prefmh_web.campaigns import lifecycle, objects
from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.frozen import plan_of
from prefmh_web.campaigns.models import Campaign, Chain, Comparison, PrefetchedProposal, State, Voter
from prefmh_web.campaigns.proposals import drawing
from prefmh_web.endpoints.errors import Unable
from prefmh_web.endpoints.local import local_decoder
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.objects.kind import RenderOptions
from tests.console.test_pages import form
from tests.gpu.small_pipeline import pipeline
from tests.support.campaigns import make_config, voted_to_the_end
from tests.support.records import checked_export, table

# NumPy about PyTorch, in the making of a scheduler.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
PROMPT = "a red mushroom"
SPACE = {"kind": "model-images", "model": "turbo", "prompt": PROMPT, "dimension": 256}
FIELDS = {
    "space.kind": "model-images",
    "space.model-images.model": "turbo",
    "space.model-images.prompt": PROMPT,
    "space.model-images.steps": "1",
}


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """Two pipelines: one that makes pictures, and one whose decoder gives no numbers."""
    whole, broken = pipeline(), pipeline()
    for weights in broken.vae.decoder.parameters():
        weights.data.fill_(float("nan"))
    found = {"whole": whole, "broken": broken}
    for name, each in found.items():
        each.save_pretrained(tmp_path_factory.getbasetemp() / name)
    return {name: tmp_path_factory.getbasetemp() / name for name in found}


@pytest.fixture
def offer(settings, folders):
    """Let the site offer one of the pipelines as “turbo”; the one that is whole at first."""
    settings.LOCAL_DEVICE = "cpu"

    def offer(name):
        settings.LOCAL_IMAGE_MODELS = {"turbo": folders[name]}

    offer("whole")
    return offer


def make(owner, **changes) -> Campaign:
    config = make_config(space=SPACE, kernel=sampler.PAPER_MIXTURE, chains=2, steps=6) | changes
    return create_draft(owner=owner, config=config)


def started(owner, idle_tasks, **changes) -> Campaign:
    campaign = make(owner, **changes)
    lifecycle.request_start(campaign)
    idle_tasks()
    campaign.refresh_from_db()
    return campaign


def picture(state: State) -> bytes:
    """Return the picture of a state, as its page shows it."""
    return state.campaign.object_kind.media(objects.stored(state), RenderOptions()).body


def pictures_of(campaign) -> set[str]:
    """Return the names of a campaign's files of pictures."""
    folder = f"pictures/{campaign.pk}/painted"
    return {f"{folder}/{name}" for name in default_storage.listdir(folder)[1]}


def vote_once(campaign) -> None:
    """Let a new person answer whatever they are asked first."""
    lease = leases.take(Voter.objects.create(campaign=campaign))
    leases.answer(lease.key, lease.voter, lease.proposal_side, 0)


def test_from_the_form_to_a_record_that_replays(researcher, client, idle_tasks, offer, settings, device, tmp_path):
    settings.LOCAL_DEVICE = device
    client.force_login(researcher)
    client.post(reverse("console:create"), form(**FIELDS, chains="2", steps="5"))
    campaign = Campaign.objects.get()
    assert campaign.config.space.dimension == 256
    client.post(reverse("console:start", args=[campaign.pk]))
    idle_tasks()
    campaign = voted_to_the_end(campaign)
    path = checked_export(campaign, tmp_path, "10 verdicts")
    rows = table(path, "states.csv")
    assert len({row["code"] for row in rows}) == len(rows) == campaign.states.count() == 12
    decoder, space = local_decoder("turbo", PROMPT), plan_of(campaign).space
    for row in rows:
        stored = picture(campaign.states.get(index=row["state_index"]))
        assert stored == sampler.png(decoder.pixels(space.decode(row["code"].removeprefix("'")).vector))
    # The drafts of the way not taken are gone, with their pictures.
    assert pictures_of(campaign) == set(campaign.states.values_list("picture", flat=True))
    assert not PrefetchedProposal.objects.exists()
    page = client.get(campaign.get_absolute_url()).content.decode()
    assert "colourfulness" in page
    assert "Proposals ready in time" in page


def test_a_pair_has_its_pictures_before_anybody_sees_it(researcher, client, idle_tasks, offer):
    campaign = started(researcher, idle_tasks)
    client.post(campaign.invitations.get().get_absolute_url())
    assert client.get(reverse("voting:vote", args=[campaign.invitations.get().token])).status_code == 200
    lease = leases.live_lease_of(Voter.objects.get())
    # From here on, nobody can make a picture: what is sent are files.
    offer("broken")
    for side, state in (("first", lease.first), ("second", lease.second)):
        answer = client.get(reverse("voting:picture", args=[lease.key, side]))
        assert answer["Content-Type"] == "image/png"
        with Image.open(io.BytesIO(answer.content)) as opened:
            assert opened.size == (16, 16)
        shown = objects.shown_object(state, Endpoint(can_images=True)).picture
        assert (shown.media_type, shown.data) == ("image/png", answer.content)
    client.force_login(researcher)
    small = client.get(reverse("console:picture", args=[lease.first.pk]), {"small": ""})
    assert small["Content-Type"] == "image/webp"


def test_what_may_follow_is_painted_while_people_vote(researcher, idle_tasks, offer):
    campaign = started(researcher, idle_tasks, judges=[{"question": "Which is better?", "votes": 1}])
    comparisons = list(Comparison.objects.filter(verdict__isnull=True))
    assert len(comparisons) == 2
    for comparison in comparisons:
        drafts = PrefetchedProposal.objects.filter(chain=comparison.chain, step=2)
        assert {draft.state_id for draft in drafts} == {comparison.current_id, comparison.proposal_id}
    assert len(pictures_of(campaign)) == 2 + 2 + 4
    offer("broken")
    vote_once(campaign)
    idle_tasks()
    # The chain that was voted on has gone on without the model.
    chain = Chain.objects.get(step=1)
    assert chain.prefetched == 1
    assert chain.comparisons.filter(step=2, verdict__isnull=True).exists()


def test_the_same_latent_is_the_same_file_and_is_painted_once(researcher, idle_tasks, offer):
    first, second = (started(researcher, idle_tasks) for _ in range(2))
    starts = [campaign.chains.get(index=0).start for campaign in (first, second)]
    assert starts[0].code == starts[1].code
    assert starts[0].picture.name.split("/")[-1] == starts[1].picture.name.split("/")[-1]
    assert picture(starts[0]) == picture(starts[1])
    offer("broken")
    space = plan_of(first).space
    drawing.prepare_pictures(first, [space.decode(starts[0].code)])
    with pytest.raises(Unable, match="not finite"):
        drawing.prepare_pictures(first, [space.start(np.random.default_rng(1), 0)])


def test_a_picture_that_may_follow_either_way_is_painted_once(researcher, idle_tasks, offer):
    judges = [{"question": "Which is better?", "votes": 1}]
    kernel = {"kind": "crank-nicolson", "beta": 1}
    campaign = started(researcher, idle_tasks, kernel=kernel, judges=judges, chains=1)
    drafts = PrefetchedProposal.objects.filter(step=2)
    assert (drafts.count(), drafts.values("code").distinct().count()) == (2, 1)
    drafts.last().delete()
    offer("broken")
    drawing.prefetch(campaign.pk)
    assert drafts.count() == 2
    vote_once(campaign)
    idle_tasks()
    proposal = Comparison.objects.get(step=2).proposal
    assert default_storage.exists(proposal.picture.name)


def test_a_proposal_to_stay_needs_no_picture_and_takes_none_away(researcher, idle_tasks, offer):
    campaign = started(researcher, idle_tasks, kernel={"kind": "crank-nicolson", "beta": 1e-15})
    assert campaign.status == Campaign.Status.FINISHED
    assert campaign.states.count() == 2
    assert pictures_of(campaign) == set(campaign.states.values_list("picture", flat=True))


def test_a_draft_that_stays_goes_without_its_states_picture(researcher, idle_tasks, offer):
    campaign = started(researcher, idle_tasks)
    head, comparison = campaign.chains.get(index=0).head, Comparison.objects.get(chain__index=0)
    PrefetchedProposal.objects.filter(chain=comparison.chain, state=head).delete()
    stays = PrefetchedProposal.objects.create(chain=comparison.chain, step=2, state=head, code=head.code, log_r0=0)
    drawing.discard_pictures(campaign, PrefetchedProposal.objects.filter(pk=stays.pk))
    assert head.picture.name in pictures_of(campaign)


@contextmanager
def a_broken_decoder(offer, folder):
    offer("broken")
    yield "turbo makes no pictures here: the decoder gave numbers that are not finite"
    offer("whole")


@contextmanager
def a_disk_that_takes_no_picture(offer, folder):
    aside = folder.with_name("aside")
    folder.rename(aside)
    folder.touch()
    yield "the picture cannot be stored: "
    folder.unlink()
    aside.rename(folder)


@pytest.mark.parametrize("fault", [a_broken_decoder, a_disk_that_takes_no_picture])
def test_what_fails_suspends_the_chain_with_the_reason_until_it_does_not(researcher, idle_tasks, offer, fault):
    campaign = started(researcher, idle_tasks, judges=[{"question": "Which is better?", "votes": 1}], chains=1)
    PrefetchedProposal.objects.all().delete()
    with fault(offer, Path(default_storage.path(f"pictures/{campaign.pk}/painted"))) as reason:
        vote_once(campaign)
        idle_tasks()
        chain = Chain.objects.get()
        assert chain.waits_because.startswith(reason)
        assert chain.claimed_until > timezone.now()
        assert (chain.step, chain.comparisons.count()) == (1, 1)
    Chain.objects.update(claimed_until=timezone.now())
    tasks.sweep()
    idle_tasks()
    chain.refresh_from_db()
    assert (chain.claimed_until, chain.waits_because) == (None, "")
    proposal = chain.comparisons.get(step=2).proposal
    assert default_storage.exists(proposal.picture.name)


def test_a_sweep_gives_one_hint_for_a_campaign_and_none_while_a_picture_is_made(researcher, idle_tasks, offer):
    campaign = started(researcher, idle_tasks, chains=3)
    Comparison.objects.all().delete()
    assert len(list(drawing.chains_to_hint())) == 1
    Chain.objects.filter(index=1).update(claimed_until=timezone.now() + timedelta(minutes=5), texts_claimed=1)
    assert list(drawing.chains_to_hint()) == []
    # A rest after a failure is no work.
    Chain.objects.filter(index=1).update(waits_because="no memory", texts_claimed=0)
    assert [chain.campaign for chain in drawing.chains_to_hint()] == [campaign]


def test_a_start_without_pictures_says_so_and_changes_nothing(researcher, idle_tasks, offer, settings):
    offer("broken")
    campaign = started(researcher, idle_tasks)
    assert campaign.is_draft
    assert "not finite" in campaign.start_trouble
    settings.LOCAL_IMAGE_MODELS = {}
    lifecycle.request_start(campaign)
    idle_tasks()
    campaign.refresh_from_db()
    assert "LOCAL_IMAGE_MODELS is not set" in campaign.start_trouble
    assert (State.objects.count(), Chain.objects.count()) == (0, 0)


def test_a_model_with_latents_of_another_size_does_not_start(researcher, idle_tasks, offer):
    campaign = started(researcher, idle_tasks, space=SPACE | {"dimension": 255})
    assert campaign.is_draft
    assert "its latents have 256 numbers; the setup says 255" in campaign.start_trouble


def test_a_start_keeps_no_picture_that_an_earlier_one_left(researcher, idle_tasks, offer):
    campaign = make(researcher)
    default_storage.save(f"pictures/{campaign.pk}/painted/left.png", io.BytesIO(b"of a start that failed"))
    lifecycle.request_start(campaign)
    idle_tasks()
    assert f"pictures/{campaign.pk}/painted/left.png" not in pictures_of(campaign)
    assert set(campaign.states.values_list("picture", flat=True)) <= pictures_of(campaign)


def test_a_discarded_draft_leaves_no_picture(researcher, idle_tasks, offer):
    campaign = make(researcher)
    default_storage.save(f"pictures/{campaign.pk}/painted/left.png", io.BytesIO(b"of a start that failed"))
    lifecycle.discard(campaign)
    assert not default_storage.exists(f"pictures/{campaign.pk}/painted")

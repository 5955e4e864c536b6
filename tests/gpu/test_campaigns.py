"""Whole campaigns whose texts one of the site's own models writes: in one process, and with a worker of its own."""

from contextlib import closing

import numpy as np
import pytest

from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.models import Campaign
from tests.gpu.small_models import TEMPLATE, llama, tokenizer_of
from tests.support import servers
from tests.support.campaigns import AnyScore, CarefulVoter, create_draft, make_config, voted_to_the_end
from tests.support.installations import Crowd, Desk, Installation, hurried, wait_for
from tests.support.records import assert_replay_passes, assert_texts_are_of_their_tokens, checked_export

WORDS = ("sea", "dark", "moon", "house", "old", "red")
PROMPTS = ["dark sea", "old house red"]
VOTERS = 4
# What PyTorch computes with: whoever has loaded a model has it in memory.
LIBRARY = "libtorch_cpu"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "tiny"
    llama(1 + len(WORDS)).save_pretrained(folder)
    tokenizer_of(WORDS, TEMPLATE).save_pretrained(folder)
    return folder


@pytest.fixture
def offered(settings, folder):
    settings.LOCAL_MODELS, settings.LOCAL_DEVICE = {"tiny": folder}, "cpu"


def make(owner, **changes) -> Campaign:
    space = {"kind": "model-texts", "model": "tiny", "prompts": PROMPTS, "system": "moon", "limit": 8}
    config = make_config(space=space, kernel={"kind": "suffix", "cut": "length"}, chains=4, steps=6) | changes
    return create_draft(owner=owner, config=config)


class TestInOneProcess:
    def test_people_vote_a_campaign_to_its_end_and_its_record_replays(
        self, researcher, settings, offered, device, idle_tasks, tmp_path
    ):
        settings.LOCAL_DEVICE = device
        campaign = make(researcher)
        lifecycle.request_start(campaign)
        idle_tasks()
        campaign = voted_to_the_end(campaign, VOTERS)
        # People are slower here than the model: but for each chain's first steps, nobody waited for it.
        assert sum(chain.prefetched for chain in campaign.chains.all()) > 0
        path = checked_export(campaign, tmp_path, "24 verdicts")
        assert_texts_are_of_their_tokens(campaign, path)

    def test_the_texts_are_those_of_the_model_and_the_seed_alone(self, researcher, offered, idle_tasks):
        for _ in range(2):
            lifecycle.request_start(make(researcher))
            idle_tasks()
        one, other = ({s.index: s.code for s in campaign.states.all()} for campaign in Campaign.objects.all())
        assert one == other
        assert len(set(one.values())) > 4


class InstallationWithModels(Installation):
    """An installation with a worker for the models that the site runs itself."""

    def start(self) -> None:
        super().start()
        self.gpu = self.celery("worker", "--queues", "gpu", "--pool", "solo", name="gpu")
        self.launch(self.gpu)


@pytest.fixture(scope="module")
def installation(tmp_path_factory, folder):
    servers.require_engines()
    variables = {"LOCAL_MODELS": f"tiny={folder}"}
    with InstallationWithModels(tmp_path_factory.mktemp("installation"), variables).running() as installation:
        yield installation


def form(**changes: str) -> dict[str, str]:
    """Return what a browser sends for a campaign whose texts the site's model writes."""
    return {
        "name": "Written by a worker",
        "space.kind": "model-texts",
        "space.model-texts.model": "tiny",
        "space.model-texts.prompts": "\n".join(PROMPTS),
        "space.model-texts.system": "",
        "space.model-texts.limit": "8",
        "space.model-texts.temperature": "1",
        "kernel.kind": "usual",
        "instructions": "",
        "chains": "4",
        "steps": "5",
        "answering.seconds": "60",
        "seed": "7",
        "rule.kind": "n-vote",
        "judges.0.question": "Which is darker?",
        "judges.0.votes": "3",
        "judges.0.source.kind": "people",
    } | changes


@pytest.fixture
def desk(installation):
    with closing(Desk(installation)) as desk:
        yield desk


def test_only_the_worker_of_its_queue_loads_the_model(installation, desk, tmp_path):
    desk.post("/campaigns/new/", **form())
    [(campaign,)] = installation.query("SELECT id FROM campaigns_campaign")
    desk.press(campaign, "start")
    status = "SELECT status FROM campaigns_campaign WHERE id = %s"
    wait_for(lambda: installation.query(status, campaign) == [("running",)], "the campaign runs")
    # Somebody's page was as old as that.
    assert "only a draft" in desk.press(campaign, "start")

    [(token,)] = installation.query("SELECT token FROM campaigns_invitation WHERE campaign_id = %s", campaign)
    crowd = Crowd(
        [
            CarefulVoter(
                f"{installation.urls[seed % 2]}/join/{token}/", AnyScore(), np.random.default_rng(seed), hurried
            )
            for seed in range(VOTERS)
        ]
    )
    crowd.start()
    while installation.query(status, campaign) != [("finished",)]:
        desk.file(campaign, "")
        desk.file(campaign, "files/states.csv")
    crowd.wait(60)
    desk.file(campaign, "")
    desk.file(campaign, "files/properties.csv")
    path = tmp_path / "export.zip"
    path.write_bytes(desk.file(campaign, "files/export.zip"))
    assert "20 verdicts" in assert_replay_passes(path)
    installation.assert_record_is_whole_and_replays(campaign)

    assert installation.gpu.has_loaded(LIBRARY)
    for process in installation.all:
        process.assert_runs()
        assert not process.has_loaded(LIBRARY)
        assert "Traceback" not in process.log(), process.log()
    assert "Traceback" not in installation.gpu.log(), installation.gpu.log()

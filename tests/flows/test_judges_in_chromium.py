"""A study judged by a real server, as a researcher makes it in a browser: of texts, and of pictures the model sees.

The server is llama.cpp's own over tiny random weights (`model_server.py`, `vision_model.py`). The endpoint is
registered and tested, the campaign set up and started; it pauses at its cap, goes on when that is raised, comes to its
end, and its export replays.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from prefmh_web.accounts.links import sign_in_path
from prefmh_web.campaigns.models import Campaign, Vote
from tests.support.files import archive, picture
from tests.support.model_server import WIDTH, model_server, write_model
from tests.support.ports import port_from
from tests.support.record import assert_record_is_whole, assert_replay_passes, table
from tests.support.stack import TEXTS
from tests.support.vision_model import write_projector

pytestmark = pytest.mark.browser
CHAINS, STEPS, VOTES = 2, 12, 2
# The longest prompt takes one request at Start, and a vote three at most.
CAP = 8
COLOURS = ("red", "green", "blue", "black", "white", "yellow")
# A reply takes well under a second; a busy machine has more to do beside.
_PATIENCE_MS = 120_000


@dataclass(frozen=True)
class Study:
    """What is compared."""

    objects: str
    filename: str
    content: bytes


STUDIES = [
    Study("texts", "texts.csv", TEXTS.encode()),
    Study("images", "pictures.zip", archive({f"{name}.png": picture(name, (64, 64)) for name in COLOURS})),
]


@pytest.fixture(scope="module")
def llama_url(tmp_path_factory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("model")
    projector = write_projector(folder / "eyes.gguf", WIDTH)
    with model_server(write_model(folder / "tiny.gguf"), port_from(22_000), projector) as url:
        yield url


@pytest.fixture
def desk(chromium, live_site, researcher, settings) -> Iterator[Page]:
    """The researcher's browser, signed in to a site that may call this machine."""
    settings.ENDPOINT_ALLOWED_HOSTS = ["127.0.0.1"]
    settings.ENDPOINT_ALLOW_PRIVATE = ["127.0.0.0/8"]
    context = chromium.new_context(base_url=live_site.url, viewport={"width": 1280, "height": 900})
    context.set_default_timeout(30_000)
    page = context.new_page()
    page.goto(sign_in_path(researcher))
    yield page
    context.close()


@pytest.mark.parametrize("study", STUDIES, ids=[study.objects for study in STUDIES])
def test_a_study_from_the_endpoint_to_the_export(desk, llama_url, tmp_path, study):
    abilities = register_and_test(desk, llama_url)
    for ability in ("independent replies", "log-probabilities", "images"):
        expect(abilities.get_by_text(ability, exact=True)).to_have_class("yes")
    set_up(desk, tmp_path, study)
    campaign = Campaign.objects.get()
    desk.locator("#model-estimate").wait_for()
    desk.get_by_role("button", name="Start").click()
    desk.get_by_text(f"The cap of {CAP} requests is reached").wait_for(timeout=_PATIENCE_MS)
    picture_of(desk, f"cap-{study.objects}")
    before = Vote.objects.count()
    assert 0 < before <= CAP
    desk.get_by_label("Models may be sent at most so many requests").fill("1000")
    desk.get_by_role("button", name="Change the caps").click()
    desk.get_by_text("The caps are changed. Press Resume to go on.").wait_for()
    desk.get_by_role("button", name="Resume").click()
    expect(desk.locator("h1 .status")).to_have_text("finished", timeout=_PATIENCE_MS)
    picture_of(desk, f"finished-{study.objects}")
    desk.get_by_role("link", name="Record").click()
    with desk.expect_download() as download:
        desk.get_by_role("link", name="Download all (ZIP)").click()
    path = tmp_path / "export.zip"
    download.value.save_as(path)
    assert_replay_passes(path)
    assert_record_is_whole(campaign)
    rows = table(path, "votes.csv")
    assert len(rows) == Vote.objects.count() > before
    assert {row["endpoint"] for row in rows} == {"A real model"}
    [calls] = table(path, "calls.csv")
    # One more than the votes: the longest prompt is tried at Start.
    assert int(calls["requests"]) > len(rows)


def register_and_test(desk: Page, url: str) -> Locator:
    """Register an endpoint and press Test; return what the page says it can do."""
    desk.goto("/endpoints/new/")
    desk.locator("#id_name").fill("A real model")
    desk.get_by_label("Base URL").fill(url)
    desk.locator("#id_model").fill("tiny")
    desk.get_by_role("button", name="Save").click()
    desk.get_by_role("button", name="Test").click()
    found = desk.locator(".abilities")
    found.wait_for(timeout=_PATIENCE_MS)
    return found


def set_up(desk: Page, folder: Path, study: Study) -> None:
    """Make a draft with a cap on its requests, and wait until its file has been read."""
    file = folder / study.filename
    file.write_bytes(study.content)
    desk.goto("/campaigns/new/")
    desk.locator("#id_name").fill("By a model")
    desk.locator(f"[name=catalog-objects][value={study.objects}]").check()
    desk.get_by_label("Your file").set_input_files(file)
    desk.locator(".space[data-space=catalog] summary").click()
    desk.get_by_label("Neighbours per object").fill("2")
    desk.get_by_label("Question").fill("Which is darker?")
    desk.get_by_label("Votes on a pair, at most").fill(str(VOTES))
    desk.get_by_label("Who answers?").select_option("A real model")
    desk.get_by_text("Caps on what models may cost").click()
    desk.get_by_label("Models may be sent at most so many requests").fill(str(CAP))
    desk.locator("#id_chains").fill(str(CHAINS))
    desk.locator("#id_steps").fill(str(STEPS))
    desk.get_by_role("button", name="Create").click()
    desk.get_by_role("button", name="Start").wait_for(timeout=_PATIENCE_MS)


def picture_of(page: Page, name: str) -> None:
    """Take a picture of the page, where a folder for them is named."""
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=f"{folder}/judges-{name}.png", full_page=True)

"""The released campaigns, run: one to its end, one half through, one not started."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from django.contrib.auth import get_user_model
from django.core.files.base import ContentFile
from django.test import override_settings

import sampler
from prefmh_web.accounts.roles import make_researcher
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.lifecycle import drafts
from prefmh_web.campaigns.models import Campaign
from prefmh_web.campaigns.record import export
from prefmh_web.endpoints.dialects import Dialect
from prefmh_web.endpoints.models import Endpoint
from tests.released import server, voting
from tests.released.cases import CASES, MODEL, PAINTER, Case
from tests.released.site import on_record, pack
from tests.support.scripted_server import Script
from tests.support.stack import wait_until_idle

OWNER = "ada"
FINISHED, HALF_THROUGH, DRAFT = "Finished", "Half through", "Draft"
_SEED = 20261122


def make(name: str, folder: Path) -> None:
    """Write the export and the record of a case into a folder."""
    with _empty_record() as record, server.model() as script, painter(CASES[name]):
        owner = _owner(script)
        _export(_run_to_its_end(CASES[name], owner), folder / f"{name}.zip")
        _run_half(CASES[name], owner, script)
        _draft(CASES[name], owner, DRAFT)
        pack(record, folder / f"{name}.tar.gz")


def make_export(name: str, folder: Path) -> Path:
    """Write the export of a case into a folder, and nothing else; return its path."""
    path = folder / f"{name}.zip"
    with _empty_record(), server.model() as script, painter(CASES[name]):
        _export(_run_to_its_end(CASES[name], _owner(script)), path)
    return path


def can_paint() -> bool:
    """Whether the extra [gpu] is installed, without which no pictures are made."""
    return all(find_spec(module) for module in ("torch", "diffusers", "transformers"))


@contextmanager
def painter(case: Case) -> Iterator[None]:
    """Let the site offer the image model of a painted campaign: a small one of random weights, on the processor."""
    if not (case.is_painted and can_paint()):
        yield
        return
    from tests.gpu.small_pipeline import pipeline

    with tempfile.TemporaryDirectory(prefix="prefmh-painter-") as folder:
        pipeline().save_pretrained(folder)
        with override_settings(LOCAL_IMAGE_MODELS=f"{PAINTER}={folder}", LOCAL_DEVICE="cpu"):
            yield


@contextmanager
def _empty_record() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="prefmh-released-") as record, on_record(Path(record)):
        yield Path(record)


def _export(campaign: Campaign, path: Path) -> None:
    path.write_bytes(b"".join(export.archive(campaign)))


def _owner(script: Script):
    """Return the researcher whom all belongs to, with the model registered."""
    owner = get_user_model().objects.create_user(OWNER)
    make_researcher(owner)
    # One request at a time, so that replies come in the order in which they are asked for.
    fields = {"base_url": script.url, "model": "checksum", "dialect": Dialect.VLLM, "concurrency": 1}
    endpoint = Endpoint(owner=owner, name=MODEL, **fields)
    endpoint.full_clean()
    endpoint.save()
    return owner


def _draft(case: Case, owner, name: str) -> Campaign:
    described = case.recipe(sampler.Recipe.model_fields["version"].default, _SEED)
    recipe = sampler.parse_recipe(described).model_dump(mode="json")
    filename, content = case.file or ("", b"")
    file = ContentFile(content, filename) if case.file else None
    campaign = drafts.create(owner=owner, name=name, recipe=recipe, file=file, filename=filename)
    wait_until_idle()
    # What was read of the file is on the campaign's row of another process, as it were.
    return Campaign.objects.get(pk=campaign.pk)


def _started(case: Case, owner, name: str) -> Campaign:
    campaign = _draft(case, owner, name)
    lifecycle.request_start(campaign)
    wait_until_idle()
    campaign.refresh_from_db()
    return campaign


def _run_to_its_end(case: Case, owner) -> Campaign:
    """Return a campaign whose record has all that a record can have: a skip, an expiry, a vote that came too late."""
    campaign = _started(case, owner, FINISHED)
    if not case.people:
        # Models have finished it by now, and nobody can join it any more.
        return campaign
    rng = np.random.default_rng(_SEED)
    hasty, sleepy, *crowd = voting.join(campaign, case.people + 2)
    voting.skip(hasty)
    unanswered = voting.fall_asleep(sleepy)
    voting.vote(campaign, crowd, rng)
    voting.wake_up(sleepy, unanswered)
    return campaign


def _run_half(case: Case, owner, script: Script) -> None:
    """Leave a campaign with votes on open comparisons, somebody who holds a pair, and a model that has gone silent."""
    if not case.people:
        server.falls_silent(script, after=case.votes)
    campaign = _started(case, owner, HALF_THROUGH)
    if case.people:
        absent, *crowd = voting.join(campaign, case.people + 1)
        voting.vote(campaign, crowd, np.random.default_rng(_SEED + 1), most=case.votes)
        voting.hold(absent)
        wait_until_idle()
    campaign.refresh_from_db()
    assert campaign.is_running, f"it should be half through, and is {campaign.status}"

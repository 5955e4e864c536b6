"""Pictures that an image model has made are in the archive, under their objects' numbers."""

import dataclasses
import hashlib
import io
import zipfile

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

import sampler
from prefmh_web.campaigns.record import export
from prefmh_web.campaigns.record.snapshot import Snapshot
from prefmh_web.objects import media
from tests.support.campaigns import make_campaign, make_config

BODIES = {0: b"first picture" * 9000, 1: b"second picture"}


@pytest.fixture
def painted(researcher, idle_tasks):
    """A snapshot of a campaign whose rows are those of an image model: no model runs here."""
    campaign = make_campaign(researcher, config=make_config(chains=2, steps=2))
    for place, body in BODIES.items():
        name = media.rendered_name(campaign.pk, str(place))
        default_storage.save(name, ContentFile(body))
        campaign.states.filter(place=place).update(weight=None, picture=name, media_type="image/png")
    snapshot = Snapshot.now(campaign)
    space = sampler.ServedImagesConfig(model="small", prompt="a house", dimension=4)
    return dataclasses.replace(snapshot, config=snapshot.config.model_copy(update={"space": space}))


def test_each_stored_picture_is_read_in_pieces_under_its_objects_number(painted):
    found = {name: list(pieces) for name, pieces in export.stored_files(painted)}
    assert {name: b"".join(pieces) for name, pieces in found.items()} == {
        f"pictures/{place}.png": body for place, body in BODIES.items()
    }
    assert len(found["pictures/0.png"]) > 1


def test_a_lost_file_is_left_out_and_named_in_the_log(painted, caplog):
    lost = media.rendered_name(painted.campaign.pk, "0")
    default_storage.delete(lost)
    assert [name for name, pieces in export.stored_files(painted) if list(pieces)] == ["pictures/1.png"]
    assert lost in caplog.text


def test_an_archive_holds_them_beside_its_tables(painted):
    from zipstream import ZipStream

    stream = ZipStream(compress_type=zipfile.ZIP_DEFLATED)
    stream.add("{}", "campaign.json")
    manifest = sampler.Manifest()
    body = b"".join(export._to_its_end(stream, painted, manifest))
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["campaign.json", "pictures/0.png", "pictures/1.png", "manifest.json"]
        assert manifest.files["pictures/0.png"] == hashlib.sha256(BODIES[0]).hexdigest()
        assert archive.read("pictures/0.png") == BODIES[0]


def test_other_campaigns_have_none(campaign):
    assert list(export.stored_files(Snapshot.now(campaign))) == []

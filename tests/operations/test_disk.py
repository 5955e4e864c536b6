"""The disk: who may read what lies there, what a killed upload leaves, and what is said once it is full."""

import contextlib
import os
import re
import resource
import time
from pathlib import Path

import httpx
import pytest
from django.conf import settings

from prefmh_web.tasks import sweep
from tests.support.campaigns import make_draft
from tests.support.process import wait_until_idle

embedded_only = pytest.mark.skipif(not settings.EMBEDDED, reason="about the embedded database")
A_DAY = 24 * 60 * 60


@embedded_only
def test_the_database_is_its_owners_alone(program, tmp_path):
    program.run("manage.py", "migrate", "--verbosity", "0", umask=0o000)
    database = tmp_path / "prefmh.sqlite3"
    assert oct(database.stat().st_mode & 0o777) == oct(0o600)
    # One made by an older version is closed to others when it is next used.
    database.chmod(0o644)
    program.run("manage.py", "check", umask=0o000)
    assert oct(database.stat().st_mode & 0o777) == oct(0o600)


@embedded_only
def test_a_site_whose_disk_takes_no_data_is_not_ready(program):
    """A running server that may write no byte more, as on a full disk: Linux's own limit on the size of files."""
    process, site = program.serve()
    sign_in = re.search(r"http\S+sesame=\S+", process.log())[0]
    with httpx.Client(base_url=site, timeout=10, follow_redirects=True) as browser:
        assert browser.get("/readyz").is_success
        assert browser.get(sign_in).is_success
        process.limit(resource.RLIMIT_FSIZE, 0)
        # Too large for memory, and so the first that needs the disk.
        assert browser.post("/campaigns/new/", content=bytes(4 * 2**20)).status_code == 507
        told = browser.get("/readyz")
        assert (told.status_code, "The disk cannot be written" in told.text) == (503, True)
        # Nothing of the machine's own is told to strangers.
        assert str(program.folder) not in told.text
        process.limit(resource.RLIMIT_FSIZE, resource.RLIM_INFINITY)
        assert browser.get("/readyz").is_success
    process.stop(seconds=20)


@pytest.fixture
def arriving(settings):
    """The folder of uploads on their way, with what was in it kept."""
    folder = Path(settings.FILE_UPLOAD_TEMP_DIR)
    before = set(folder.iterdir())
    yield folder
    for path in set(folder.iterdir()) - before:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()


def file(path: Path, age_s: float) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"half of an upload")
    os.utime(path, (time.time() - age_s,) * 2)
    return path


def test_what_a_killed_upload_left_goes_and_what_is_on_its_way_stays(idle_tasks, arriving):
    old, new = file(arriving / "tmpabc.upload.csv", A_DAY), file(arriving / "tmpdef.upload.csv", 60)
    sweep.apply()
    assert not old.exists()
    assert new.exists()


def test_an_upload_that_no_campaign_has_goes_and_every_other_stays(researcher, idle_tasks, settings):
    draft = make_draft(researcher)
    kept = Path(settings.MEDIA_ROOT) / draft.catalog.file.name
    os.utime(kept, (time.time() - A_DAY,) * 2)
    old, new = file(kept.with_name("orphan.csv"), A_DAY), file(kept.with_name("just-moved.csv"), 60)
    for _ in range(2):
        sweep.apply()
        wait_until_idle()
    assert not old.exists()
    assert new.exists()
    assert kept.exists()


@pytest.mark.django_db
def test_no_page_is_kept_by_browsers_and_proxies(researcher, client):
    assert client.get("/accounts/sign-in/")["Cache-Control"].count("no-store")
    client.force_login(researcher)
    for path in ("/", "/campaigns/new/", "/tokens/"):
        assert "no-store" in client.get(path)["Cache-Control"], path

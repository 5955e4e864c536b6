"""The disk: who may read what lies there, what a killed upload leaves, and what is said once it is full."""

import contextlib
import os
import re
import resource
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from django.conf import settings

from prefmh_web.tasks import sweep
from tests.support.campaigns import make_draft, wait_until_idle
from tests.support.installations import ROOT, wait_for
from tests.support.models import port_from

embedded_only = pytest.mark.skipif(not settings.EMBEDDED, reason="about the embedded database")
A_DAY = 24 * 60 * 60


def manage(folder: Path, *command: str, umask: int = 0o022) -> None:
    environment = {**os.environ, "PREFMH_DATA": str(folder)}
    subprocess.run([sys.executable, "manage.py", *command], cwd=ROOT, env=environment, check=True, umask=umask)


@embedded_only
def test_the_database_is_its_owners_alone(tmp_path):
    manage(tmp_path, "migrate", "--verbosity", "0", umask=0o000)
    database = tmp_path / "prefmh.sqlite3"
    assert oct(database.stat().st_mode & 0o777) == oct(0o600)
    # One made by an older version is closed to others when it is next used.
    database.chmod(0o644)
    manage(tmp_path, "check", umask=0o000)
    assert oct(database.stat().st_mode & 0o777) == oct(0o600)


def readiness(port: int) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.read().decode()
    except OSError as error:
        return 0, str(error)


@embedded_only
def test_a_site_whose_disk_takes_no_data_is_not_ready(tmp_path):
    """A running server that may write no byte more, as on a full disk: Linux's own limit on the size of files."""
    environment, port = {**os.environ, "PREFMH_DATA": str(tmp_path)}, port_from(24_000)
    manage(tmp_path, "migrate", "--verbosity", "0")
    link = subprocess.run(
        [sys.executable, "manage.py", "researcher", "ada", "--link"],
        cwd=ROOT, env=environment, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    command = [sys.executable, "manage.py", "serve", "--port", str(port)]
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: readiness(port)[0] == 200, "the server is ready")
        browser.open(f"http://127.0.0.1:{port}{re.search('/accounts/.*', link)[0]}", timeout=10).close()
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        # Too large for memory, and so the first that needs the disk.
        with pytest.raises(urllib.error.HTTPError) as refusal:
            browser.open(f"http://127.0.0.1:{port}/campaigns/new/", data=bytes(4 * 2**20), timeout=10)
        with refusal.value:
            assert refusal.value.code == 507
        status, told = readiness(port)
        assert (status, "The disk cannot be written" in told) == (503, True)
        # Nothing of the machine's own is told to strangers.
        assert str(tmp_path) not in told
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert readiness(port)[0] == 200
    finally:
        process.terminate()
        process.wait(20)


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

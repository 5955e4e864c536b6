"""What a release has left behind: its exports replay, its databases migrate and go on, its votes give the same record.

Until there is a release to hold the code to, what `make.py` makes of the code itself takes its place.
"""

import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.models import Campaign
from tests.released import checks, server
from tests.released.campaigns import DRAFT, FINISHED, HALF_THROUGH, can_paint, make, make_export, painter
from tests.released.cases import CASES
from tests.released.compare import differences
from tests.released.site import migrate, on_record, unpack
from tests.support.stack import wait_until_idle

FOLDERS = sorted({path.parent for path in Path(__file__).parent.glob("*/*.zip")})
KEPT = [(folder, path.stem) for folder in FOLDERS for path in sorted(folder.glob("*.zip"))]
WANTED = KEPT or [(None, name) for name in CASES]
of_each_release = pytest.mark.parametrize(
    ("folder", "name"), WANTED, ids=[f"{folder.name if folder else 'now'}-{name}" for folder, name in WANTED]
)
NEEDS_GPU = "pictures are made with the extra [gpu]"
pytestmark = [
    pytest.mark.skipif(not settings.EMBEDDED, reason="the databases that are kept are SQLite's"),
    # NumPy about PyTorch, in the making of a scheduler.
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
]


@pytest.fixture(autouse=True)
def unblocked(django_db_blocker) -> Iterator[None]:
    """The records of these tests are files of their own; the tests' database is not touched."""
    with django_db_blocker.unblock():
        yield


@pytest.fixture(scope="module")
def made_now(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("made-now")


@pytest.fixture
def kept(folder, name, made_now) -> Path:
    """The folder that holds the export and the record of a case."""
    if folder is None and CASES[name].is_painted and not can_paint():
        pytest.skip(NEEDS_GPU)
    if folder is None and not (made_now / f"{name}.zip").exists():
        make(name, made_now)
    return folder or made_now


@of_each_release
def test_an_export_replays(kept, name):
    checks.assert_replays(kept / f"{name}.zip")


@of_each_release
def test_a_record_is_read_and_goes_on(kept, name, tmp_path):
    with on_record(unpack(kept / f"{name}.tar.gz", tmp_path)), server.model(), painter(CASES[name]):
        migrate()
        campaigns = {campaign.name: campaign for campaign in Campaign.objects.all()}
        for campaign in campaigns.values():
            checks.assert_pages_show(campaign)
        # What the release has exported, the record that it left exports again.
        again = checks.assert_export_is_whole(campaigns[FINISHED], tmp_path)
        assert differences(kept / f"{name}.zip", again) == []
        checks.assert_replays(checks.assert_export_is_whole(campaigns[HALF_THROUGH], tmp_path))
        if CASES[name].is_painted and not can_paint():
            return
        checks.finish(campaigns[HALF_THROUGH])
        checks.assert_replays(checks.assert_export_is_whole(campaigns[HALF_THROUGH], tmp_path))
        if CASES[name].people:
            lifecycle.request_start(campaigns[DRAFT])
            wait_until_idle()
            assert campaigns[DRAFT].chains.count() == campaigns[DRAFT].recipe["chains"]


LAST = [name for folder, name in KEPT if folder == FOLDERS[-1]]


@pytest.mark.parametrize("name", LAST)
def test_the_same_votes_give_the_same_record(name, tmp_path):
    if CASES[name].is_painted and not can_paint():
        pytest.skip(NEEDS_GPU)
    assert differences(FOLDERS[-1] / f"{name}.zip", make_export(name, tmp_path)) == []


@pytest.mark.parametrize(
    ("cell", "other"),
    [(b",accept,", b",reject,"), (b",left,", b",right,"), (b",left,", b',"left",'), (b",1010,", b",1011,")],
    ids=["a verdict", "a side", "a quotation mark", "a person's time"],
)
def test_a_record_that_differs_in_one_cell_is_not_the_same(cell, other, tmp_path, made_now):
    """The negative control of `differences`."""
    first = next(made_now.glob("texts.zip"), None) or make_export("texts", made_now)
    changed = tmp_path / "changed.zip"
    with zipfile.ZipFile(first) as before, zipfile.ZipFile(changed, "w") as after:
        for entry in before.namelist():
            after.writestr(entry, before.read(entry).replace(cell, other, 1))
    assert differences(first, changed)

"""A setup in the browser: downloaded, imported, refused with every reason, and copied."""

import io
import re
import stat
import zipfile

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prefmh_web.campaigns.lifecycle import access
from prefmh_web.campaigns.models import Campaign, Membership
from prefmh_web.setup import files
from tests.security.world import browser_of
from tests.setup.documents import LEAST, WHOLE, as_text
from tests.support.campaigns import SETUPS, archive, content_of, wait_until_idle, written_file

IMPORT = "/campaigns/import/"


def send(client, content: bytes | str, name: str = "campaign.yaml"):
    raw = content.encode() if isinstance(content, str) else content
    return client.post(IMPORT, {"file": SimpleUploadedFile(name, raw)})


def told(answer) -> list[str]:
    """Return the problems that a page lists."""
    assert answer.status_code == 200
    shown = re.search(r'<ul class="problems">(.*?)</ul>', answer.content.decode(), re.DOTALL)
    return re.findall(r"<li>(.*?)</li>", shown[1], re.DOTALL) if shown else []


@pytest.mark.parametrize("name", ["written", "listed", "finished", "prolific"])
def test_a_downloaded_setup_is_imported_and_is_the_same_file(signed_in, researcher, name):
    before = SETUPS[name](researcher)
    answer = signed_in.get(reverse("console:setup-file", args=[before.pk]))
    content = content_of(answer)
    assert content == written_file(before)
    ending = ".yaml" if name == "written" else ".zip"
    assert answer["Content-Disposition"].endswith(f'-campaign{ending}"')
    assert answer["Cache-Control"] == "no-store"
    page = send(signed_in, content, f"mine{ending}")
    after = Campaign.objects.order_by("-pk").first()
    assert page.url == after.get_absolute_url()
    wait_until_idle()
    after.refresh_from_db()
    assert after.is_draft
    assert after.owner == researcher
    assert written_file(after) == content
    assert "is imported as a draft" in signed_in.get(page.url).content.decode()


def test_of_a_bad_file_every_problem_is_listed_with_its_place_and_nothing_is_saved(signed_in):
    wrong = LEAST.replace("chains: 2", "chains: 0").replace("votes: 1", "votes: <b>")
    problems = told(send(signed_in, wrong))
    assert len(problems) == 2
    assert problems[1].startswith("line 11, column 1: chains: ")
    assert problems[0].startswith("line 10, column 5: judges.0.votes: ")
    assert not Campaign.objects.exists()
    assert send(signed_in, LEAST).status_code == 302
    assert Campaign.objects.count() == 1


def test_what_an_import_cannot_find_is_told_on_the_drafts_page(signed_in, researcher):
    answer = send(signed_in, written_file(SETUPS["quest"](researcher)))
    page = signed_in.get(answer.url).content.decode()
    assert "ada has no endpoint “A writer”, which writes the texts. Register it before the start." in page
    assert "This site offers no scorer “comet”" in page


def test_a_list_that_is_not_there_is_asked_for(signed_in):
    (problem,) = told(send(signed_in, as_text(WHOLE)))
    assert "file: is not here: send a ZIP with campaign.yaml and “texts.csv”" in problem


def zipped(change) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(files.NAME, LEAST)
        change(packed)
    return made.getvalue()


def _link(packed):
    info = zipfile.ZipInfo("files/x.csv")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    packed.writestr(info, "/etc/passwd")


def _twice(packed):
    with pytest.warns(UserWarning, match="Duplicate"):
        packed.writestr(files.NAME, "version: 1")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda packed: packed.writestr("../../campaign.yaml", "x"), "lies outside of it"),
        (lambda packed: packed.writestr("/etc/passwd", "x"), "lies outside of it"),
        (_link, "is a link to another file"),
        (_twice, "is in the ZIP twice"),
        (lambda packed: packed.writestr("a", "x", zipfile.ZIP_LZMA), "packed in a way that is not read"),
        (lambda packed: [packed.writestr(f"{n}.txt", "") for n in range(1001)], "more than 1000 files"),
        (lambda packed: [packed.writestr(f"{n}{'n' * 60_000}", "") for n in range(20)], "more than 1000 files"),
    ],
)
def test_a_hostile_zip_is_refused(signed_in, change, reason):
    (problem,) = told(send(signed_in, zipped(change), "setup.zip"))
    assert reason in problem
    assert not Campaign.objects.exists()


def test_a_zip_that_unpacks_to_more_than_it_may_is_refused(signed_in):
    bomb = archive({files.NAME: b"#" * (files.MAX_YAML_BYTES + 1)})
    assert len(bomb) < 2**20
    (problem,) = told(send(signed_in, bomb, "setup.zip"))
    assert "campaign.yaml is larger than 8 MiB" in problem


def test_a_zip_with_a_harmless_neighbour_is_imported(signed_in):
    """The control."""
    assert send(signed_in, zipped(lambda packed: packed.writestr("folder/notes.txt", "x")), "s.zip").status_code == 302


def test_a_duplicate_is_a_draft_of_the_same_setup(signed_in, researcher):
    before = SETUPS["started"](researcher)
    answer = signed_in.post(reverse("console:duplicate", args=[before.pk]))
    after = Campaign.objects.order_by("-pk").first()
    assert answer.url == after.get_absolute_url()
    assert (after.name, after.is_draft) == ("Copy of An earlier one", True)
    wait_until_idle()
    assert "This is a copy of “An earlier one”" in signed_in.get(answer.url).content.decode()


def test_members_get_neither_the_setup_nor_a_duplicate(researcher, django_user_model):
    campaign = SETUPS["base"](researcher)
    member = django_user_model.objects.create_user("bo")
    access.add_member(campaign, "bo", Membership.Role.MANAGER)
    browser = browser_of(member)
    assert "Download the setup" not in browser.get(campaign.get_absolute_url()).content.decode()
    assert browser.get(reverse("console:setup-file", args=[campaign.pk])).status_code == 404
    assert browser.post(reverse("console:duplicate", args=[campaign.pk])).status_code == 404
    # And who is no researcher makes no campaign of their own.
    assert send(browser, LEAST).status_code == 403
    assert Campaign.objects.count() == 1


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(st.data())
def test_a_damaged_zip_becomes_a_draft_or_is_told_in_sentences(signed_in, data):
    content = bytearray(archive({files.NAME: LEAST.encode(), "notes.txt": b"x" * 300}))
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    assert_draft_or_sentences(send(signed_in, bytes(content), "setup.zip"))


def assert_draft_or_sentences(answer) -> None:
    if answer.status_code == 302:
        return
    problems = told(answer)
    assert problems or "The submitted file is empty" in answer.content.decode()
    assert all(len(problem) > 10 and "Traceback" not in problem for problem in problems)

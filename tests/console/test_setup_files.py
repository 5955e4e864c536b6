"""A setup in the browser: downloaded, imported, refused with every reason, and copied.

A file that was chosen on a form that is not saved: it is kept for the next try, for whoever chose it.

A list in the setup's form: pasted or in files, what the answer says of it, and that nothing of a bad one stays.
"""

import io
import os
import re
import stat
import time
import zipfile

import pytest
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from prefmh_web import config_files
from prefmh_web.accounts.models import make_researcher
from prefmh_web.campaigns import catalogs
from prefmh_web.campaigns.models import Campaign
from tests.console.test_pages import form
from tests.drafts.configs import LEAST, WHOLE, as_text, draft, setup, written_file
from tests.sampler.objects.test_lists import SHEET
from tests.support.campaigns import TEXTS
from tests.support.people import content_of
from tests.support.process import wait_until_idle
from tests.support.uploads import archive

IMPORT = "/campaigns/import/"


def send(client, content: bytes | str, name: str = "campaign.yaml"):
    raw = content.encode() if isinstance(content, str) else content
    return client.post(IMPORT, {"file": SimpleUploadedFile(name, raw)})


def told(answer) -> list[str]:
    """Return the problems that a page lists."""
    assert answer.status_code == 200
    shown = re.search(r'<ul class="problems">(.*?)</ul>', answer.content.decode(), re.DOTALL)
    return re.findall(r"<li>(.*?)</li>", shown[1], re.DOTALL) if shown else []


@pytest.mark.parametrize("name", ["written", "list", "finished", "prolific"])
def test_a_downloaded_setup_is_imported_and_is_the_same_file(signed_in, researcher, name):
    before = setup(researcher, name)
    answer = signed_in.get(reverse("console:setup-file", args=[before.pk]))
    content = content_of(answer)
    assert content == written_file(before)
    ending = ".zip" if before.config.file else ".yaml"
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


def test_a_column_that_the_list_does_not_have_is_refused_with_the_columns_that_it_has(signed_in):
    listed = SimpleUploadedFile("t.csv", b"text,source\none,1\ntwo,2\n")
    shown = {f"space.catalog.context.0.{name}": "prompt" for name in ("column", "label")}
    sent = {"space.catalog.file": listed, **shown}
    page = signed_in.post(reverse("console:create"), form(**sent)).content.decode()
    assert "The file has no “prompt”. It has “source”." in page
    assert not Campaign.objects.exists()


def test_what_an_import_cannot_find_is_told_on_the_drafts_page(signed_in, researcher):
    answer = send(signed_in, written_file(draft(researcher, "quest")))
    page = signed_in.get(answer.url).content.decode()
    assert "ada has no endpoint “A writer”, which writes the texts. Register it before the start." in page
    assert "This site offers no scorer “comet”" in page


def test_a_list_that_is_not_there_is_asked_for(signed_in):
    (problem,) = told(send(signed_in, as_text(WHOLE)))
    assert "file: is not here: send a ZIP with campaign.yaml and “texts.csv”" in problem


def zipped(change) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(config_files.NAME, LEAST)
        change(packed)
    return made.getvalue()


def _link(packed):
    info = zipfile.ZipInfo("files/x.csv")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    packed.writestr(info, "/etc/passwd")


def _twice(packed):
    with pytest.warns(UserWarning, match="Duplicate"):
        packed.writestr(config_files.NAME, "version: 1")


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
    bomb = archive({config_files.NAME: b"#" * (config_files.MAX_YAML_BYTES + 1)})
    assert len(bomb) < 2**20
    (problem,) = told(send(signed_in, bomb, "setup.zip"))
    assert "campaign.yaml is larger than 8 MiB" in problem


def test_a_zip_with_a_harmless_neighbour_is_imported(signed_in):
    """The control."""
    assert send(signed_in, zipped(lambda packed: packed.writestr("folder/notes.txt", "x")), "s.zip").status_code == 302


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(st.data())
def test_a_damaged_zip_becomes_a_draft_or_is_told_in_sentences(signed_in, data):
    content = bytearray(archive({config_files.NAME: LEAST.encode(), "notes.txt": b"x" * 300}))
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    assert_draft_or_sentences(send(signed_in, bytes(content), "setup.zip"))


def assert_draft_or_sentences(answer) -> None:
    if answer.status_code == 302:
        return
    problems = told(answer)
    assert problems or "The submitted file is empty" in answer.content.decode()
    assert all(len(problem) > 10 and "Traceback" not in problem for problem in problems)


_TICKET = re.compile(r'name="kept-space\.catalog\.file" value="([^"]+)"')


@pytest.fixture(autouse=True)
def nothing_kept():
    for name in catalogs.all_names():
        default_storage.delete(name)


def csv(name: str = "people.csv", text: str = TEXTS) -> SimpleUploadedFile:
    return SimpleUploadedFile(name, text.encode())


def ticket_in(page: str) -> str:
    return _TICKET.search(page)[1]


def refused(client, url: str | None = None, **changes) -> str:
    return client.post(url or reverse("console:create"), form(**{"name": ""} | changes)).content.decode()


def test_a_file_is_kept_past_an_error_and_used_by_the_next_save(signed_in, idle_tasks):
    page = refused(signed_in, **{"space.catalog.file": csv()})
    assert "<strong>people.csv</strong>, kept." in page
    # A second error changes nothing.
    page = refused(signed_in, **{"space.catalog.file": "", "kept-space.catalog.file": ticket_in(page)})
    assert "<strong>people.csv</strong>, kept." in page
    assert len(catalogs.all_names()) == 1
    signed_in.post(
        reverse("console:create"), form(**{"space.catalog.file": "", "kept-space.catalog.file": ticket_in(page)})
    )
    idle_tasks()
    campaign = Campaign.objects.get()
    assert (campaign.catalog.filename, campaign.states.count()) == ("people.csv", 12)
    assert catalogs.all_names() == []


def test_nobody_else_can_use_it(signed_in, client, django_user_model):
    ticket = ticket_in(refused(signed_in, **{"space.catalog.file": csv()}))
    stranger = django_user_model.objects.create_user("stranger")
    make_researcher(stranger)
    client.force_login(stranger)
    for wrong in (ticket, ticket[:-2] + "xx", "nonsense"):
        page = client.post(
            reverse("console:create"), form(**{"space.catalog.file": "", "kept-space.catalog.file": wrong})
        )
        assert "Paste your objects, or choose the file with them." in page.content.decode()
        assert "people.csv" not in page.content.decode()
    assert not Campaign.objects.exists()


def test_only_a_few_are_kept_and_none_for_long(signed_in):
    for number in range(catalogs.MAX_FILES + 2):
        page = refused(signed_in, **{"space.catalog.file": csv(f"{number}.csv")})
    assert len(catalogs.all_names()) == catalogs.MAX_FILES
    for name in catalogs.all_names():
        long_ago = time.time() - catalogs.KEPT_FOR_S - 60
        os.utime(default_storage.path(name), (long_ago, long_ago))
    catalogs.remove_leftovers()
    assert catalogs.all_names() == []
    page = signed_in.post(
        reverse("console:create"), form(**{"space.catalog.file": "", "kept-space.catalog.file": ticket_in(page)})
    ).content.decode()
    assert "Paste your objects, or choose the file with them." in page


def test_own_fragments_are_kept_too(signed_in, idle_tasks):
    fields = {"space.kind": "molecules", "space.molecules.start": "CC"}
    fragments = SimpleUploadedFile("fragments.tsv", b"# mine\n*O\t5\n*N\t3\n")
    page = refused(signed_in, **fields, **{"space.molecules.vocabulary": fragments})
    assert "<strong>fragments.tsv</strong>, kept." in page
    ticket = re.search(r'name="kept-space\.molecules\.vocabulary" value="([^"]+)"', page)[1]
    sizes = SimpleUploadedFile("sizes.tsv", b"1\t0\n2\t0\n3\t0\n4\t-1.5\n")
    signed_in.post(
        reverse("console:create"),
        form(**fields, **{"kept-space.molecules.vocabulary": ticket, "space.molecules.size_log_weights": sizes}),
    )
    space = Campaign.objects.get().config_data["space"]
    assert (space["vocabulary"], space["size_log_weights"]) == (["*O", "*N"], [0, 0, 0, -1.5])


FILE, PASTE = "space.catalog.file", "space.catalog.paste"
OF_IMAGES = {"space.catalog.objects": "images", FILE: ""}


def picture(colour: str) -> SimpleUploadedFile:
    file = io.BytesIO()
    Image.new("RGB", (8, 8), colour).save(file, "PNG")
    return SimpleUploadedFile(f"{colour}.png", file.getvalue())


def reply(client, **changes) -> str:
    answer = client.post(reverse("console:list"), form(**{"name": ""} | changes))
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_look_at_a_list_adds_no_row(signed_in):
    assert signed_in.post(reverse("console:list"), form(**{PASTE: "a\nb", "add": "judges"})).status_code == 400


def create(client, **changes):
    return client.post(reverse("console:create"), form(**changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({FILE: SimpleUploadedFile("a.xlsx", SHEET[:900])}, "The file is no Excel workbook"),
        ({FILE: SimpleUploadedFile("a.csv", b"one\ntwo\n"), PASTE: "three\nfour"}, "Empty one of them"),
        ({FILE: [SimpleUploadedFile(f"{n}.csv", b"one\ntwo\n") for n in "ab"]}, "Choose one file"),
        (OF_IMAGES | {PASTE: "one\ntwo"}, "cannot be pasted"),
    ],
)
def test_a_broken_list_says_why_and_nothing_of_it_is_saved_or_kept(signed_in, changes, message):
    for sent in changes.values():
        for each in sent if isinstance(sent, list) else [sent]:
            if isinstance(each, SimpleUploadedFile):
                each.seek(0)
    answer = create(signed_in, **changes)
    assert message in answer.content.decode()
    # What was typed can be fixed.
    assert answer.context["form"][PASTE].value() == changes.get(PASTE, None)
    assert not Campaign.objects.exists()
    assert catalogs.all_names() == []


def choices_in(page: str) -> dict[str, list[str]]:
    """Return what may be chosen of a list, by the fields' names."""
    found = re.findall(r'<select name="space\.catalog\.(\w+)">(.*?)</select>', page)
    return {name: re.findall(r"<option[^>]*>([^<]*)", options) for name, options in found}


def test_a_list_that_was_taken_for_the_wrong_thing_is_put_right_with_the_same_file(signed_in):
    def sent(**chosen) -> str:
        return reply(signed_in, **{FILE: SimpleUploadedFile("a.csv", b"id,sequence\n1,one\n2,two\n")} | chosen)

    assert "no first row says which column" in sent()
    seen = {"space.catalog.seen": "a.csv", "space.catalog.header": "yes"}
    page = sent(**seen)
    assert "must say which column" in page
    assert choices_in(page)["column"] == ["choose one", "id", "sequence"]
    assert "<strong>2</strong> rows, 2 texts." in sent(**seen, **{"space.catalog.column": "sequence"})
    # Of another file nothing was said.
    assert "no first row says which column" in sent(**seen | {"space.catalog.seen": "b.csv"})


def test_several_pictures_need_no_zip(signed_in, idle_tasks):
    page = reply(signed_in, **OF_IMAGES | {FILE: [picture("red"), picture("blue")]})
    assert "<strong>2</strong> files, 2 images." in page
    assert page.count("data:image/png;base64,") == 2
    (kept,) = catalogs.all_names()
    ticket = re.search(r'name="kept-space\.catalog\.file" value="([^"]+)"', page)[1]
    create(signed_in, **OF_IMAGES | {"kept-space.catalog.file": ticket})
    idle_tasks()
    found = Campaign.objects.get().states.order_by("index").values_list("content", flat=True)
    assert list(found) == ["blue.png", "red.png"]
    assert not default_storage.exists(kept)

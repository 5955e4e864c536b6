"""The voter's pages over HTTP: joining, pictures, what no page of ours sends, and frames from memory.

Voters' pages speak the language of their campaign, and every language has every sentence.

People report a problem with a pair: they skip it, and the researcher reads why.
"""

import gettext
import re
import shutil
import subprocess
import uuid
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.conf import settings
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import translation

from prefmh_web.campaigns.models import Event, Lease, Vote, Voter
from prefmh_web.campaigns.objects import options_of
from prefmh_web.objects import OBJECT_KINDS
from prefmh_web.settings import SOURCE
from prefmh_web.voting import screens
from prefmh_web.voting.responses import ResponseError, response_in
from prefmh_web.voting.screens import Progress, html_of
from sampler import PAPER_MIXTURE
from tests.security.world import browser_of
from tests.support import servers
from tests.support.campaigns import create_draft, invitation_path, make_campaign, make_config, started_now
from tests.support.people import WHOLE, pair_of, prolific, recruited_campaign
from tests.support.process import wait_until_idle
from tests.support.records import everything_in, export_to, happened


@pytest.fixture
def vote_path(campaign):
    return f"{invitation_path(campaign)}vote/"


@pytest.fixture
def joined(client, campaign):
    client.post(invitation_path(campaign))
    return client


def test_the_welcome_page_names_the_questions_and_joins_once(client, campaign, vote_path):
    page = client.get(invitation_path(campaign)).content.decode()
    assert "Which is darker?" in page
    assert not Voter.objects.exists()
    for _ in range(2):
        assert client.post(invitation_path(campaign)).url == vote_path
    assert Voter.objects.count() == 1


def test_a_choice_of_no_screen_is_refused_with_all_that_there_are():
    with pytest.raises(ResponseError, match="choice must be first, second, skip, not-shown, changed or continue"):
        response_in({"choice": "up"})


def test_pictures_are_for_those_who_joined(client, researcher, idle_tasks):
    space = {"kind": "catalog", "objects": "molecules", "neighbours": 2}
    campaign = make_campaign(
        researcher, file="smiles\nCCO\nCCN\nCCC\nCCCl\n", filename="m.csv", config=make_config(space=space)
    )
    client.post(invitation_path(campaign))
    page = client.get(f"{invitation_path(campaign)}vote/").content.decode()
    lease = Lease.objects.get()
    url = reverse("voting:picture", args=[lease.key, "first"])
    assert f'src="{url}"' in page
    drawing = client.get(url)
    assert drawing.status_code == 200
    assert "immutable" in drawing["Cache-Control"]
    assert client.get(f"{url}?marked&dark").content != drawing.content
    assert Client().get(url).status_code == 403


def test_nothing_on_the_page_tells_which_object_is_the_proposal(client, researcher, idle_tasks):
    config = make_config(space={"kind": "images"}, kernel=PAPER_MIXTURE, chains=40)
    campaign = started_now(create_draft(owner=researcher, is_seed_typed=True, name="Patterns", config=config))
    client.post(invitation_path(campaign))
    page = client.get(f"{invitation_path(campaign)}vote/").content.decode()
    lease = Lease.objects.select_related("comparison__current", "comparison__proposal").get()
    # Rows are numbered as they are made: a number on the page would tell the new object from the old one.
    numbers = {str(number) for s in (lease.first, lease.second) for number in (s.pk, s.index) if number > 9}
    assert not numbers & set(re.findall(r"\d+", re.sub(r"[0-9a-f-]{36}", "", page.split('id="panel"')[1])))


PAIRS = {
    "texts": [('He said "no" & left.\n\nShe <b>stayed</b>.', "It's {{ late }}."), ("One.", "Two, 3.")],
    "markdown": [("# One\n\n<b>no</b> & *yes*", "| a |\n|---|\n| {{ b }} |"), ("1. One", "Two")],
    "molecules": [("CCO", "c1ccccc1"), ("CC(=O)O", "CC")],
    "images": [("1,2,3", "4,5,6"), ("7", "8")],
    "audio": [("one &.wav", "<two>.mp3"), ("3.wav", "4.wav")],
}
LOOK = {"is_stacked": False, "objects_lang": ""}
HOW_FAR = (Progress(1, 0, None, None, None), Progress(2, 50, None, None, None), Progress(3, 9, 20, 1.26, 30))


def shown_of(kind: str, left: str, right: str, question: str, **more: object) -> dict:
    options = options_of(OBJECT_KINDS[kind], left, right, lambda side: f"/pictures/{left}/{side}/")
    lease = SimpleNamespace(key=uuid.uuid4())
    return (
        {"lease": lease, "question": question, "kind": OBJECT_KINDS[kind], "options": options, "context": ()}
        | LOOK
        | more
    )


@pytest.mark.parametrize("kind", OBJECT_KINDS)
@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("name", ["pair", "check"])
def test_a_filled_frame_is_what_the_templates_give(kind, language, name):
    with translation.override(language):
        for question in ("Which is <darker>?", "Which is better?"):
            for left, right in PAIRS[kind]:
                for progress, must in zip(HOW_FAR, (False, True, False), strict=True):
                    shown = shown_of(
                        kind, left, right, question, must_be_answered=must, is_stacked=must, objects_lang="en" * must
                    )
                    whole = screens._rendered(
                        name, "pair", shown, screens._progress_html.__wrapped__(progress, language)
                    )
                    assert html_of(name, "pair", shown, progress) == whole
                    assert str(shown["lease"].key) in whole


def test_what_a_person_writes_into_a_text_is_never_a_place_to_fill_in():
    shown = shown_of("texts", screens._mark("lease"), screens._mark("progress"), "Which?")
    html = html_of("pair", "pair", shown, HOW_FAR[0])
    assert html.count(str(shown["lease"].key)) == 2
    assert html.count("<footer") == 1


LOCALE = Path(settings.LOCALE_PATHS[0])
TRANSLATED = sorted(code for code, _ in settings.LANGUAGES if code != SOURCE)
HOW = "needs gettext: apt install gettext"


@pytest.mark.parametrize("code", TRANSLATED)
def test_a_language_has_every_sentence(code, tmp_path, monkeypatch):
    servers.demand(shutil.which("xgettext"), HOW)
    for folder in ("templates", "prefmh_web"):
        shutil.copytree(settings.BASE_DIR / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(settings, "LOCALE_PATHS", [str(tmp_path / "prefmh_web/locale")])
    call_command("makemessages", locale=[code], no_wrap=True, no_location=True, verbosity=0, stdout=StringIO())
    file = tmp_path / f"prefmh_web/locale/{code}/LC_MESSAGES/django.po"
    for doubt in ("--untranslated", "--only-fuzzy", "--only-obsolete"):
        found = subprocess.run(["msgattrib", doubt, "--no-wrap", file], capture_output=True, text=True, check=True)
        assert found.stdout == "", f"run `manage.py makemessages --no-wrap --no-location -l {code}` and translate"


@pytest.mark.parametrize("code", TRANSLATED)
def test_a_language_is_compiled_and_its_placeholders_fit(code, tmp_path):
    servers.demand(shutil.which("msgfmt"), HOW)
    written, compiled = LOCALE / code / "LC_MESSAGES/django.po", tmp_path / "django.mo"
    subprocess.run(["msgfmt", "--check-format", "-o", compiled, written], check=True)
    now, shipped = (_catalog(file) for file in (compiled, written.with_suffix(".mo")))
    assert now == shipped, "run `manage.py compilemessages`"


def _catalog(file: Path) -> dict:
    with file.open("rb") as opened:
        return gettext.GNUTranslations(opened)._catalog


def test_every_page_of_a_participant_is_in_the_language_of_the_campaign(client, researcher):
    study = recruited_campaign(researcher, language="de", protocol=WHOLE, votes_per_person=1)
    path = invitation_path(study)
    assert "Im Link fehlt PROLIFIC_PID" in client.get(path, {"STUDY_ID": "x"}).content.decode()
    client.get(path, prolific("anna"))
    page = client.get(path).content.decode()
    assert '<html lang="de">' in page
    assert "Sie sehen jeweils zwei Texte." in page
    assert "Sie werden 1-mal gefragt." in page
    client.post(path)
    stage = client.get(f"{path}stage/").content.decode()
    assert "Über Sie" in stage
    again = client.post(f"{path}stage/", {"stage": "questions"}).content.decode()
    assert "Einige Antworten fehlen" in again
    assert "Dieses Feld ist zwingend erforderlich." in again
    # The researcher's own pages stay in English.
    client.force_login(researcher)
    assert '<html lang="en">' in client.get(study.get_absolute_url()).content.decode()


SAID = {"reason": "upsetting", "words": "=cmd() I am Anna"}


@pytest.fixture
def voter(client, campaign):
    client.post(invitation_path(campaign))
    return client


def report_on(campaign, key) -> str:
    return f"{invitation_path(campaign)}report/{key}/"


def test_who_reports_a_pair_skips_it_and_the_researcher_reads_why(voter, campaign, researcher, tmp_path):
    key = pair_of(voter, campaign)
    assert "What is wrong with this pair?" in voter.get(report_on(campaign, key)).content.decode()
    # Sent twice, it is one report; the first one holds.
    for _ in range(2):
        assert voter.post(report_on(campaign, key), SAID).url == f"{invitation_path(campaign)}vote/"
    voter.post(report_on(campaign, key), {"reason": "other", "words": "again"})
    wait_until_idle()
    [event] = Event.objects.filter(kind="reported")
    assert (event.data["key"], event.data["reason"], event.data["text"]) == (str(key), *SAID.values())
    assert Lease.objects.get(key=key).ending == Lease.Ending.SKIPPED
    assert not Vote.objects.exists()
    assert pair_of(voter, campaign) != key

    desk = browser_of(researcher)
    assert "1 problem reported" in desk.get(campaign.get_absolute_url()).content.decode()
    page = desk.get(f"{campaign.get_absolute_url()}problems/").content.decode()
    assert "upsetting" in page
    assert SAID["words"] in page.replace("&amp;", "&")
    # The record says which pair and why; what people wrote may name them.
    exported = export_to(campaign, tmp_path)
    [(_, said)] = happened(exported, "reported")
    assert (said["reason"], said["step"]) == ("upsetting", 1)
    assert "Anna" not in everything_in(exported)


@pytest.mark.parametrize("said", [{}, {"reason": "nonsense"}, {"reason": "other", "words": "x" * 501}])
def test_a_report_that_cannot_be_read_skips_nothing(voter, campaign, said):
    key = pair_of(voter, campaign)
    answer = voter.post(report_on(campaign, key), said)
    assert answer.status_code == 200
    assert "errorlist" in answer.content.decode()
    assert pair_of(voter, campaign) == key
    assert not Event.objects.filter(kind="reported").exists()


def test_a_pair_that_was_voted_on_cannot_be_reported_any_more(voter, campaign):
    key = pair_of(voter, campaign)
    voter.post(f"{invitation_path(campaign)}vote/", {"choice": "first", "lease": str(key)})
    voter.post(report_on(campaign, key), SAID)
    wait_until_idle()
    assert Vote.objects.count() == 1
    assert not Event.objects.filter(kind="reported").exists()

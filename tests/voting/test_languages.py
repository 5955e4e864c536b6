"""Voters' pages speak the language of their campaign, and every language has every sentence."""

import gettext
import shutil
import subprocess
from io import StringIO
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command

from prefmh_web.settings.languages import SOURCE
from tests.support import servers
from tests.support.campaigns import WHOLE, invitation_path, prolific, recruited_campaign

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
    study = recruited_campaign(researcher, language="de", protocol=WHOLE, votes_each=1)
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

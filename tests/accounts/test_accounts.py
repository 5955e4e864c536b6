"""Accounts: made on the server's own terminal only, signed in by password or link."""

import io
import re
from urllib.parse import urlencode

import pytest
from django.conf import settings
from django.contrib.auth.models import Group
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import NoReverseMatch, reverse

from prefmh_web.accounts.models import RESEARCHERS, is_researcher, make_researcher, sign_in_path
from prefmh_web.management.commands import researcher as command
from prefmh_web.transport import rate_limits


@pytest.fixture(autouse=True)
def fresh_limits():
    rate_limits.forget()


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command("researcher", *arguments, stdout=out)
    return out.getvalue()


def typed(monkeypatch, *answers: str) -> None:
    waiting = list(answers)

    def getpass(prompt: str) -> str:
        if not waiting:
            raise EOFError
        return waiting.pop(0)

    monkeypatch.setattr(command, "getpass", getpass)


def test_there_are_no_accounts_and_no_sign_up(db, django_user_model):
    assert not django_user_model.objects.exists()
    for name in ("sign-up", "register"):
        with pytest.raises(NoReverseMatch):
            reverse(f"accounts:{name}")


def test_the_command_asks_for_a_password_and_makes_a_researcher(db, django_user_model, monkeypatch, client):
    typed(monkeypatch, "long enough to be good", "long enough to be good")
    assert "grace can create campaigns" in run("grace")
    assert is_researcher(django_user_model.objects.get())
    assert client.login(username="grace", password="long enough to be good")


@pytest.mark.parametrize("answers", [("one thing", "another thing"), ("12345", "12345"), ("grace", "grace"), ()])
def test_a_password_that_is_missing_mistyped_or_weak_makes_no_account(db, django_user_model, monkeypatch, answers):
    typed(monkeypatch, *answers)
    with pytest.raises(CommandError, match="Nothing was changed"):
        run("grace")
    assert not django_user_model.objects.exists()


def test_the_command_prints_a_link_that_signs_in(db, client):
    [path] = re.findall(r"/accounts/sign-in/by-link/\S+", run("grace", "--link"))
    assert client.get(path).url == "/"
    assert client.get("/campaigns/new/").status_code == 200


def test_an_account_that_exists_keeps_its_password(db, django_user_model, monkeypatch):
    django_user_model.objects.create_user("grace", password="the old one stays")
    run("grace")
    user = django_user_model.objects.get()
    assert user.check_password("the old one stays")
    assert is_researcher(user)


def test_an_account_for_a_member_makes_no_campaigns(db, django_user_model):
    assert "grace can sign in" in run("grace", "--link", "--member")
    assert not is_researcher(django_user_model.objects.get())


@pytest.mark.parametrize("name", ["two words", "a" * 151, "<script>", ""])
def test_a_name_that_cannot_be_one_is_refused(db, django_user_model, name):
    with pytest.raises(CommandError, match="cannot be a user name"):
        run(name, "--link")
    assert not django_user_model.objects.exists()


def test_a_new_database_has_the_group_of_researchers(db):
    assert Group.objects.get().name == RESEARCHERS


def test_a_deactivated_researcher_is_none(db, django_user_model):
    user = django_user_model.objects.create_user("grace")
    make_researcher(user)
    user.is_active = False
    assert not is_researcher(user)


@pytest.mark.parametrize(
    "target", ["//evil.example/", "https://evil.example/", "javascript:alert(1)", "/\\evil.example"]
)
def test_signing_in_leads_to_no_other_site(db, django_user_model, target):
    user = django_user_model.objects.create_user("grace", password="the right one")
    answer = Client().post("/accounts/sign-in/", {"username": "grace", "password": "the right one", "next": target})
    assert answer.url == "/"
    assert Client().get(f"{sign_in_path(user)}&{urlencode({'next': target})}").url == "/"


def test_a_deactivated_account_signs_in_by_neither_way(db, django_user_model, client):
    user = django_user_model.objects.create_user("grace", password="the right one", is_active=False)
    assert client.post("/accounts/sign-in/", {"username": "grace", "password": "the right one"}).status_code == 200
    assert client.get(sign_in_path(user)).status_code == 403


def test_an_answer_under_an_ended_session_takes_no_cookie_away_but_signing_out_does(db, django_user_model):
    user, browser = django_user_model.objects.create_user("grace"), Client()
    # Signing in gives a session another key, while pictures of a pair are still on their way under the old one.
    browser.cookies[settings.SESSION_COOKIE_NAME] = "a" * 32
    assert settings.SESSION_COOKIE_NAME not in browser.get("/").cookies
    browser.get(sign_in_path(user))
    assert browser.post(reverse("accounts:sign-out")).cookies[settings.SESSION_COOKIE_NAME].value == ""

"""A session is its owner's: none that a stranger planted or kept is of use."""

import pytest
from django.test import Client

from prefmh_web.accounts.roles import sign_in_path

PASSWORD = "correct horse battery staple"
KEY = "prefmh_session"


def by_password(browser: Client, researcher) -> None:
    answer = browser.post("/accounts/sign-in/", {"username": researcher.username, "password": PASSWORD})
    assert answer.status_code == 302


def by_link(browser: Client, researcher) -> None:
    assert browser.get(sign_in_path(researcher)).status_code == 302


def is_signed_in(browser: Client) -> bool:
    return browser.get("/").status_code == 200


def with_session(key: str) -> Client:
    browser = Client()
    browser.cookies[KEY] = key
    return browser


@pytest.mark.parametrize("sign_in", [by_password, by_link])
@pytest.mark.parametrize("is_stored", [False, True], ids=["made up", "a stranger's own"])
def test_a_planted_session_is_left_behind_on_signing_in(researcher, sign_in, is_stored):
    stranger = Client()
    if is_stored:
        session = stranger.session
        session["mine"] = True
        session.save()
    planted = session.session_key if is_stored else "a" * 32
    victim = with_session(planted)
    sign_in(victim, researcher)
    assert is_signed_in(victim)
    assert victim.cookies[KEY].value != planted
    assert not is_signed_in(with_session(planted))


def test_a_planted_session_is_left_behind_on_joining(campaign):
    victim = with_session("a" * 32)
    link = campaign.invitations.get().get_absolute_url()
    victim.post(link)
    assert victim.get(f"{link}vote/").status_code == 200
    assert with_session("a" * 32).get(f"{link}vote/").status_code == 302


def test_a_cookie_kept_from_before_signing_out_is_of_no_use(researcher):
    browser = Client()
    by_password(browser, researcher)
    kept = browser.cookies[KEY].value
    browser.post("/accounts/sign-out/")
    assert not is_signed_in(with_session(kept))


def test_a_new_password_ends_every_session_and_every_link(researcher):
    browser, link = Client(), sign_in_path(researcher)
    by_password(browser, researcher)
    researcher.set_password("another one entirely")
    researcher.save()
    assert not is_signed_in(browser)
    assert Client().get(link).status_code == 403


def test_no_script_reads_the_cookies_and_no_other_site_sends_them(researcher):
    browser = Client()
    browser.get("/accounts/sign-in/")
    by_password(browser, researcher)
    for name in (KEY, "prefmh_csrf"):
        assert browser.cookies[name]["httponly"]
        assert browser.cookies[name]["samesite"] == "Lax"

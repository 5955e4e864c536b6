"""Tokens: made and withdrawn on a page, shown once, stored as a hash, and useless afterwards."""

import re

import httpx
import pytest
from django.test import override_settings

from prefmh_web.accounts import tokens
from prefmh_web.accounts.models import ApiToken
from prefmh_web.client import RequestRefused, Site
from prefmh_web.transport import rate_limits
from tests.security.world import browser_of

pytestmark = pytest.mark.django_db(transaction=True)


def made(browser, name: str = "my notebook", scope: str = "read") -> str:
    page = browser.post("/tokens/", {"name": name, "scope": scope}).content.decode()
    found = re.search(r'value="(prefmh_[\w-]+)"', page)
    assert found, page
    return found[1]


def test_a_token_is_shown_once_and_stored_as_a_hash(researcher):
    browser = browser_of(researcher)
    plain = made(browser)
    page = browser.get("/tokens/").content.decode()
    assert "my notebook" in page
    assert plain not in page
    assert plain not in str(ApiToken.objects.values().get())


def test_a_withdrawn_token_lets_nobody_in(live_site, researcher):
    browser = browser_of(researcher)
    with Site(live_site.url, made(browser)) as site:
        assert list(site.campaigns()) == []
        token = ApiToken.objects.get()
        assert token.used_at is not None
        browser.post(f"/tokens/{token.pk}/withdraw/")
        with pytest.raises(RequestRefused) as refused:
            list(site.campaigns())
        assert refused.value.status == 401


def test_an_account_that_is_closed_has_no_programs(live_site, researcher):
    with Site(live_site.url, made(browser_of(researcher))) as site:
        researcher.is_active = False
        researcher.save()
        with pytest.raises(RequestRefused):
            list(site.campaigns())


def test_there_is_an_end_to_tokens(researcher):
    for number in range(tokens.MOST):
        tokens.make(researcher, str(number), ApiToken.Scope.READ)
    page = browser_of(researcher).post("/tokens/", {"name": "one more", "scope": "run"}).content.decode()
    assert "Withdraw one" in page
    assert ApiToken.objects.count() == tokens.MOST


def test_a_session_is_no_token(live_site, researcher):
    """A page of another site could send a browser's cookie; it cannot send this header."""
    cookies = {name: morsel.value for name, morsel in browser_of(researcher).cookies.items()}
    assert httpx.get(f"{live_site.url}/api/campaigns", cookies=cookies).status_code == 401


def test_beyond_the_rate_a_program_is_told_when_to_come_back(live_site, researcher):
    _, plain = tokens.make(researcher, "eager", ApiToken.Scope.READ)
    with override_settings(RATE_LIMITS={"api": "2/minute"}):
        rate_limits.forget()
        get = [httpx.get(f"{live_site.url}/api/campaigns", headers={"Authorization": f"Bearer {plain}"}) for _ in "123"]
    rate_limits.forget()
    assert [answer.status_code for answer in get] == [200, 200, 429]
    assert 1 <= int(get[2].headers["Retry-After"]) <= 60


def test_a_program_reads_what_the_api_is_and_each_address_names_its_refusals(researcher):
    _, plain = tokens.make(researcher, "a tool", ApiToken.Scope.READ)
    browser = browser_of(None)
    assert browser.get("/api/openapi.json").status_code == 302
    described = browser.get("/api/openapi.json", headers={"Authorization": f"Bearer {plain}"}).json()
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            assert {"401", "404", "422", "429"} <= operation["responses"].keys(), (method, path)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("get", "/api/nothing", 404), ("get", "/api/campaigns/7/nothing/", 404), ("delete", "/api/campaigns", 405)],
)
def test_an_address_or_a_method_that_is_not_there_is_answered_in_the_one_shape(method, path, status):
    answer = getattr(browser_of(None), method)(path)
    assert answer.status_code == status
    [problem] = answer.json()["problems"]
    assert problem.keys() == {"message", "path", "line", "column"}
    assert ("Allow" in answer) == (status == 405)

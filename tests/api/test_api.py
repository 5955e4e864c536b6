"""Campaigns from a program: a whole life of one, setups of all kinds, and whatever is refused.

The record from a program: pages that together are the tables of the export, and the export itself.

Tokens: made and withdrawn on a page, shown once, stored as a hash, and useless afterwards.
"""

import csv
import io
import json
import re
import zipfile
from collections.abc import Iterator

import httpx
import pytest
from django.test import Client, override_settings
from django.utils import timezone

from prefmh_web.accounts.models import MAX_TOKENS, ApiToken, make_researcher
from prefmh_web.campaigns.lifecycle import access
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.campaigns.models import Campaign, Membership
from prefmh_web.campaigns.record import export
from prefmh_web.campaigns.record.rows import Snapshot
from prefmh_web.client import RequestRefused, Site
from prefmh_web.transport import rate_limits
from sampler.record.tables import unescaped
from tests.drafts.configs import draft
from tests.security.world import browser_of
from tests.support.campaigns import make_config, make_draft, voted_campaign
from tests.support.process import wait_until_idle

pytestmark = pytest.mark.django_db(transaction=True)
TEXTS = "text\nA quiet sea.\nA loud street.\nAn empty road.\n"
SETUP = """\
version: 1
name: From a program
space: {kind: catalog, objects: texts}
file: {name: texts.csv}
kernel: {kind: independent}
judges: [{question: Which is better?, votes: 1}]
chains: 2
steps: 6
"""


@pytest.fixture
def site(live_site, researcher) -> Iterator[Site]:
    """The site as a researcher's program sees it that may change campaigns."""
    plain = ApiToken.make(researcher, "a program", ApiToken.Scope.RUN)
    with Site(live_site.url, plain) as found:
        yield found


@pytest.fixture
def reader(live_site, researcher) -> Iterator[Site]:
    """The same for a program that may only read."""
    plain = ApiToken.make(researcher, "a reader", ApiToken.Scope.READ)
    with Site(live_site.url, plain) as found:
        yield found


def zipped(tmp_path, setup: str = SETUP, text: str = TEXTS) -> bytes:
    file = tmp_path / "setup.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("campaign.yaml", setup)
        archive.writestr("texts.csv", text)
    return file.read_bytes()


@pytest.mark.parametrize(("scope", "status"), [(None, 413), (ApiToken.Scope.READ, 413), (ApiToken.Scope.RUN, 422)])
def test_a_large_setup_is_taken_from_programs_that_may_change_campaigns_only(live_site, researcher, scope, status):
    headers = {} if scope is None else {"Authorization": f"Bearer {ApiToken.make(researcher, 'a program', scope)}"}
    answer = httpx.post(f"{live_site.url}/api/campaigns", content=b"x" * 2**21, headers=headers)
    assert answer.status_code == status
    assert answer.json()["problems"]


def test_a_large_list_comes_with_a_changed_setup_as_with_a_new_one(site, tmp_path):
    text = "text\n" + "".join(f"{number} {'x' * 999}\n" for number in range(1100))
    made = site.create(zipped(tmp_path))
    wait_until_idle()
    packed = tmp_path / "large.zip"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("campaign.yaml", SETUP.replace("From a program", "Larger"))
        archive.writestr("texts.csv", text)
    assert packed.stat().st_size > 2**20
    assert site.change(made.number, packed.read_bytes()).name == "Larger"
    wait_until_idle()
    assert Campaign.objects.get().states.count() == 1100


def test_a_program_that_may_only_read_changes_nothing(reader, campaign):
    with pytest.raises(RequestRefused) as refused:
        reader.pause(campaign.pk)
    assert refused.value.status == 403
    assert reader.campaign(campaign.pk).status == "running"


def test_campaigns_are_listed_a_page_at_a_time(site, researcher, campaign):
    for name in ("texts", "panel"):
        draft(researcher, name)
    numbers = [found.number for found in site.campaigns()]
    assert numbers == sorted(Campaign.objects.values_list("pk", flat=True), reverse=True)
    page = site._json("GET", "/campaigns", params={"limit": 1})
    assert [each["number"] for each in page["campaigns"]] == numbers[:1]
    assert page["cursor"] == numbers[0]
    with pytest.raises(RequestRefused) as refused:
        site._json("GET", "/campaigns", params={"limit": 0})
    assert refused.value.problems[0].path.endswith("limit")


def test_a_whole_campaign(site, tmp_path):
    """Created, started, paused, resumed and extended by a program; people do the rest."""
    made = site.create(zipped(tmp_path))
    wait_until_idle()
    assert site.check(zipped(tmp_path)) == []
    assert (made.status, made.objects, made.chains, made.steps) == ("draft", "texts", 2, 6)
    assert site.start(made.number).status == "running"
    assert site.pause(made.number).status == "paused"
    assert site.resume(made.number).status == "running"
    assert site.extend(made.number, 4).steps == 10
    with pytest.raises(TimeoutError):
        site.wait_for(made.number, lambda found: found.status == "finished", seconds=0)


@pytest.fixture
def finished(researcher):
    return voted_campaign(researcher, config=make_config(steps=7, burn_in=2))


def table_in(campaign, name: str) -> list[dict[str, str]]:
    text = "".join(export.as_csv(export.TABLES[f"{name}.csv"](Snapshot.now(campaign))))
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize("name", ["steps", "votes", "samples"])
@pytest.mark.parametrize("limit", [1, 3, 500])
def test_pages_together_are_the_table_of_the_export(finished, site, live_site, name, limit):
    rows, cursor, is_last = [], "", False
    while not is_last:
        page = site._json("GET", f"/campaigns/{finished.pk}/{name}", params={"cursor": cursor, "limit": limit})
        rows += page["rows"]
        cursor, is_last = page["cursor"], page["is_last"]
    exported = table_in(finished, name)
    assert len(rows) == len(exported) > 0
    for row, cells in zip(rows, exported, strict=True):
        assert row.keys() == cells.keys()
        for column, value in row.items():
            assert written(value) == unescaped(cells[column]), column


def written(value) -> str:
    """Return a value as the table has it, but for the apostrophe before what a spreadsheet would run."""
    if value is None:
        return ""
    if isinstance(value, list):
        return " ".join(map(str, value))
    return str(int(value)) if isinstance(value, bool) else str(value)


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        ({"chain_index": 9}, "chain_index"),
        ({"chain_index": 0, "cursor": "1.2"}, "cursor"),
        ({"cursor": "x"}, "cursor"),
        ({"limit": 0}, "limit"),
    ],
)
def test_a_page_that_cannot_be_is_refused_with_its_field(finished, site, wanted, field):
    with pytest.raises(RequestRefused) as refused:
        site._json("GET", f"/campaigns/{finished.pk}/votes", params=wanted)
    assert refused.value.status == 422
    problem = refused.value.problems[0]
    assert field in problem.path or problem.message.startswith(field)


def test_a_step_that_is_open_tells_nothing(site, campaign):
    """Neither its uniform nor its proposal, which voters must not know."""
    assert list(site.rows(campaign.pk, "steps")) == []
    assert list(site.rows(campaign.pk, "votes")) == []
    assert [row["step"] for row in site.rows(campaign.pk, "samples")] == [0, 0, 0]


def test_the_whole_record_comes_as_a_zip(finished, site, tmp_path):
    file = tmp_path / "record.zip"
    site.download(finished.pk, file)
    with zipfile.ZipFile(file) as archive:
        assert {"campaign.json", "steps.csv", "votes.csv", "codebook.csv"} <= set(archive.namelist())
        assert archive.testzip() is None
    assert not file.with_name("record.zip.part").exists()


def test_people_have_numbers_and_no_names(finished, site):
    people = list(site.people(finished.pk))
    assert sum(person["votes"] for person in people) == len(list(site.rows(finished.pk, "votes")))
    assert "external_id" not in people[0]


def test_a_start_that_is_under_way_says_what_it_is_doing(site, researcher):
    draft = make_draft(researcher)
    under_way = {"starting_since": timezone.now(), "start_progress": "testing the endpoint “local”"}
    Campaign.objects.filter(pk=draft.pk).update(**under_way)
    assert site.campaign(draft.pk).starting == "testing the endpoint “local”"
    Campaign.objects.filter(pk=draft.pk).update(starting_since=None)
    assert site.campaign(draft.pk).starting == ""


def test_a_draft_has_no_record(site, researcher):
    with pytest.raises(RequestRefused) as refused:
        list(site.rows(draft(researcher, "texts").pk, "steps"))
    assert refused.value.status == 409


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


@pytest.mark.parametrize("is_closed", [False, True], ids=["withdrawn", "of a closed account"])
def test_a_token_that_is_over_lets_nobody_in(live_site, researcher, is_closed):
    browser = browser_of(researcher)
    with Site(live_site.url, made(browser)) as site:
        assert list(site.campaigns()) == []
        token = ApiToken.objects.get()
        assert token.used_at is not None
        if is_closed:
            type(researcher).objects.update(is_active=False)
        else:
            browser.post(f"/tokens/{token.pk}/withdraw/")
        with pytest.raises(RequestRefused) as refused:
            list(site.campaigns())
        assert refused.value.status == 401


def test_there_is_an_end_to_tokens(researcher):
    for number in range(MAX_TOKENS):
        ApiToken.make(researcher, str(number), ApiToken.Scope.READ)
    page = browser_of(researcher).post("/tokens/", {"name": "one more", "scope": "run"}).content.decode()
    assert "Withdraw one" in page
    assert ApiToken.objects.count() == MAX_TOKENS


def test_a_session_is_no_token(live_site, researcher):
    """A page of another site could send a browser's cookie; it cannot send this header."""
    cookies = {name: morsel.value for name, morsel in browser_of(researcher).cookies.items()}
    assert httpx.get(f"{live_site.url}/api/campaigns", cookies=cookies).status_code == 401


def test_beyond_the_rate_a_program_is_told_when_to_come_back(live_site, researcher):
    plain = ApiToken.make(researcher, "eager", ApiToken.Scope.READ)
    with override_settings(RATE_LIMITS={"api": "2/minute"}):
        rate_limits.forget()
        get = [httpx.get(f"{live_site.url}/api/campaigns", headers={"Authorization": f"Bearer {plain}"}) for _ in "123"]
    rate_limits.forget()
    assert [answer.status_code for answer in get] == [200, 200, 429]
    assert 1 <= int(get[2].headers["Retry-After"]) <= 60


def test_a_program_reads_what_the_api_is_and_each_address_names_its_refusals(researcher):
    plain = ApiToken.make(researcher, "a tool", ApiToken.Scope.READ)
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


def test_a_form_that_cannot_be_read_is_refused_in_the_one_shape():
    answer = browser_of(None).generic("POST", "/api/campaigns", b"--x", content_type="multipart/form-data")
    assert answer.status_code == 400
    assert [problem["message"] for problem in answer.json()["problems"]] == ["This form cannot be read."]


RIGHTS = {
    ("get", ""): Right.WATCH,
    ("get", "/config"): Right.WATCH,
    ("put", "/config"): Right.OWN,
    ("get", "/setup"): Right.OWN,
    ("post", "", "pause"): Right.RUN,
    ("post", "", "resume"): Right.RUN,
    ("post", "", "extend"): Right.OWN,
    ("post", "", "start"): Right.RUN,
    ("get", "/record.zip"): Right.WATCH,
    ("get", "/people"): Right.RUN,
    ("get", "/results"): Right.WATCH,
    ("get", "/{table}"): Right.WATCH,
}
"""By method, address and action: what one needs in a campaign."""


def test_each_address_is_open_to_whom_it_should_be_and_to_nobody_else(campaign, researcher, django_user_model):
    accounts = {None: django_user_model.objects.create_user("stranger"), Right.OWN: researcher}
    for right, role in ((Right.WATCH, Membership.Role.VIEWER), (Right.RUN, Membership.Role.MANAGER)):
        accounts[right] = django_user_model.objects.create_user(role.value)
        access.add_member(campaign, role.value, role)
    browsers = {}
    for right, account in accounts.items():
        make_researcher(account)
        plain = ApiToken.make(account, "a program", ApiToken.Scope.RUN)
        browsers[right] = Client(headers={"Authorization": f"Bearer {plain}"})
    for (method, address, *action), needed in RIGHTS.items():
        path = f"/api/campaigns/{campaign.pk}{address.replace('{table}', 'steps')}"
        body = (
            {"data": json.dumps({"action": action[0], "steps": 1}), "content_type": "application/json"}
            if action
            else {}
        )
        for right, browser in browsers.items():
            answer = getattr(browser, method)(path, **body)
            status = answer.status_code
            assert answer["Cache-Control"] == "no-store", (method, address)
            assert (status != 404) == (right is not None and right >= needed), (method, address, action, right, status)
    described = browser.get("/api/openapi.json").json()["paths"]
    inside = {path.partition("{campaign_id}")[2]: each for path, each in described.items() if "{campaign_id}" in path}
    assert {(method, path) for path, each in inside.items() for method in each} == {key[:2] for key in RIGHTS}


def test_a_request_that_is_sent_again_creates_no_second_campaign(site, tmp_path):
    setup = zipped(tmp_path)
    first, again = site.create(setup, once="morning"), site.create(setup, once="morning")
    assert (first.created, again.created) == (True, False)
    assert first.number == again.number
    assert site.create(setup).number != first.number
    for key in ("x" * 101, "a\0b"):
        with pytest.raises(RequestRefused) as refused:
            site.create(setup, once=key)
        assert (refused.value.status, refused.value.problems[0].path) == (422, "once")

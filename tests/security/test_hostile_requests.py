"""Hostile requests: each gets a proper status, learns nothing and changes nothing. See `world.py`."""

import itertools

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from prefmh_web.accounts.models import ApiToken
from prefmh_web.campaigns.models import Campaign, number_of
from prefmh_web.transport import rate_limits
from tests.console.test_pages import form
from tests.security.world import METHODS, all_addresses, assert_leaks_nothing, browser_of
from tests.support.process import wait_until_idle

pytestmark = pytest.mark.usefixtures("unchanged")

# A body that would do something on most pages, if its sender were allowed to.
BODY = {
    "username": "colleague", "role": "manager", "voter": "1", "withdraw": "on", "single_use": "on",
    "choice": "first", "lease": "00000000-0000-4000-8000-000000000000", "elapsed_ms": "1",
}  # fmt: skip
# Pages for whoever comes: probes, signing in, and joining by a link one was given.
OPEN = ("operations:", "accounts:", "voting:")
REFUSED = {400, 401, 403, 404, 405}


def send(client: Client, method: str, path: str, **options):
    # A test tries every address, and none is to be spared because of the others.
    rate_limits.forget()
    data = BODY if method == "POST" else {}
    return getattr(client, method.lower())(path, data=data, **options)


def test_nobody_gets_anything_without_signing_in(world):
    for address, method in itertools.product(all_addresses(), METHODS):
        answer = send(browser_of(None), method, address.path(world.names))
        assert_leaks_nothing(answer, world)
        if answer.status_code == 302:
            assert answer.url.startswith(("/accounts/sign-in/", "/join/")), (address, method)
        elif address.name.startswith(OPEN) and not address.parts:
            assert answer.status_code in REFUSED | {200, 503}, (address, method)
        else:
            assert answer.status_code in REFUSED, (address, method)


@pytest.mark.parametrize("stranger", ["colleague", "bystander"])
def test_a_stranger_gets_nothing_of_the_victims(world, stranger):
    """Neither another researcher, nor a bystander, whose own list is their own."""
    who = getattr(world, stranger)
    addresses = [address for address in all_addresses() if address.parts or stranger == "colleague"]
    methods = METHODS if stranger == "colleague" else ("GET", "POST")
    for address, method in itertools.product(addresses, methods):
        answer = send(browser_of(who), method, address.path(world.names))
        assert_leaks_nothing(answer, world)
        if not address.parts or address.name == "console:docs":
            # Their own pages, and the documentation.
            assert answer.status_code in REFUSED | {200, 302, 503}, (address, method)
        elif address.name in ("voting:vote", "voting:stage", "voting:withdraw", "voting:report"):
            # Whoever has not joined is led to the page that says so.
            assert answer.status_code in REFUSED | {302}, (address, method)
        else:
            assert answer.status_code in REFUSED, (address, method)


OF_A_CAMPAIGN = [address for address in all_addresses() if "campaign_id" in address.parts]
WATCHING = ("console:campaign", "console:download", "console:payments", "console:answers", "console:problems")
WATCHING += ("console:people", "console:person", "console:suspended", "console:panel", "console:record")
WATCHING += ("console:steps", "console:step", "console:step-picture", "console:results", "console:found")
WATCHING += ("console:properties", "console:verdict", "console:chains", "console:convergence")
# Owners read these, and nobody can post to them.
READ_BY_OWNERS = ("console:tried-picture", "console:setup-file")
FOR_PROGRAMS = [address for address in OF_A_CAMPAIGN if address.name.startswith("api:")]
CHANGING = [
    each for each in OF_A_CAMPAIGN if each.name not in (*WATCHING, *READ_BY_OWNERS) and each not in FOR_PROGRAMS
]


def test_a_viewer_watches_and_changes_nothing(world):
    invitation = world.watched.invitations.get().pk
    member = world.watched.memberships.get().pk
    values = world.names | {"campaign_id": world.watched.pk, "invitation_id": invitation, "member_id": member}
    viewer = browser_of(world.bystander)
    assert viewer.get(world.watched.get_absolute_url()).status_code == 200
    for address in CHANGING:
        assert send(viewer, "POST", address.path(values)).status_code == 404, address


@pytest.mark.parametrize("address", FOR_PROGRAMS, ids=lambda address: address.name)
def test_programs_do_no_more_than_who_they_act_for(world, address):
    """A viewer's changes nothing; a stranger's learns nothing. Both hold tokens for changes."""
    for who, campaign in ((world.bystander, world.watched), (world.colleague, world.campaign)):
        plain = ApiToken.make(who, "a program", ApiToken.Scope.RUN)
        path = address.path(world.names | {"campaign_id": campaign.pk})
        for method in METHODS:
            answer = send(browser_of(None), method, path, headers={"Authorization": f"Bearer {plain}"})
            if who == world.colleague or method not in ("GET", "HEAD"):
                assert answer.status_code in {404, 405, 415, 422}, (who, method)
                assert_leaks_nothing(answer, world)
        ApiToken.live_of(who).delete()


OWNERS_PAGES = (*READ_BY_OWNERS, "console:answers", "console:participants", "console:payments", "console:protocol")


def test_neither_a_viewer_nor_a_manager_reads_what_is_the_owners(world):
    addresses = [address for address in OF_A_CAMPAIGN if address.name in OWNERS_PAGES]
    assert len(addresses) == len(OWNERS_PAGES)
    for address in addresses:
        for who, campaign in ((world.bystander, world.watched), (world.manager, world.campaign)):
            path = address.path(world.names | {"campaign_id": campaign.pk})
            assert browser_of(who).get(path).status_code == 404, address


# What a manager may post; all else is the owner's.
MANAGED = ("start", "pause", "resume", "finish", "end-warm-up", "remind", "invite", "revoke", "ask-again", "end-chain")
MANAGED += ("try-again", "score-again", "accept-model", "end-part")


def test_a_manager_does_nothing_that_is_the_owners(world):
    manager = browser_of(world.manager)
    for address in (each for each in CHANGING if each.name.partition(":")[2] not in MANAGED):
        assert send(manager, "POST", address.path(world.names)).status_code == 404, address


def test_a_viewers_page_offers_nothing_they_may_not_do(world):
    page = browser_of(world.bystander).get(world.watched.get_absolute_url()).content.decode()
    assert world.watched.invitations.get().token not in page
    # Signing out is all they can post.
    assert page.count("<form") == 1


def test_a_page_of_another_site_posts_nothing_in_the_victims_name(world):
    victim = browser_of(world.victim, enforce_csrf_checks=True)
    for address in OF_A_CAMPAIGN:
        answer = send(victim, "POST", address.path(world.names))
        # 405: this address takes no post at all. 401: it goes by tokens, which a browser does not send by itself.
        assert answer.status_code in {401, 403, 405}, address


@pytest.mark.parametrize("path", ["/accounts/sign-in/", "/accounts/sign-out/", "/join/{}/", "/join/{}/vote/"])
@pytest.mark.parametrize("token", ["", "guessed"])
def test_no_form_works_without_its_token(world, path, token):
    client = browser_of(None, enforce_csrf_checks=True)
    answer = client.post(path.format(world.token), BODY | ({"csrfmiddlewaretoken": token} if token else {}))
    assert answer.status_code == 403
    assert "<h1>This page is out of date</h1>" in answer.content.decode()


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://testserver.evil.example", "https://testserver"]
)
def test_a_forged_origin_posts_nothing(world, origin):
    victim = browser_of(world.victim, enforce_csrf_checks=True)
    victim.get(world.campaign.get_absolute_url())
    token = victim.cookies["prefmh_csrf"].value
    pause = f"/campaigns/{world.campaign.pk}/pause/"
    answer = victim.post(pause, {"csrfmiddlewaretoken": token}, headers={"origin": origin})
    assert answer.status_code == 403


HOSTS = ["evil.example", "testserver.evil.example", "testserver@evil.example", "evil.example:80", "[::2]", "a" * 300]


@pytest.mark.parametrize("path", ["/", "/accounts/sign-in/", "/join/{}/"])
def test_a_forged_host_is_refused(world, path):
    for host in HOSTS:
        answer = browser_of(world.victim).get(path.format(world.token), headers={"host": host})
        assert answer.status_code == 400, host
        assert_leaks_nothing(answer, world)


def test_a_forwarded_host_stands_in_no_link(world):
    page = browser_of(world.victim).get(world.campaign.get_absolute_url(), headers={"x-forwarded-host": "evil.example"})
    assert "evil.example" not in page.content.decode()


NUMBERS = ["0", str(2**31), str(2**63), "9" * 300, "-1", "1e3", "0x1", "%00", "%D9%A1", "1%2F..", "1;", "' OR 1=1"]


@pytest.mark.parametrize(
    "path",
    [
        "/campaigns/{}/",
        "/campaigns/{}/files/votes.csv",
        "/campaigns/pictures/{}/",
        "/pairs/{}/first/",
        "/join/guessed/practice/{}/first/",
    ],
)
def test_odd_numbers_in_addresses_are_not_found(world, path):
    for number in NUMBERS:
        answer = browser_of(world.victim).get(path.format(number))
        assert answer.status_code == 404, number


FILE_NAMES = [
    "../secret-key", "..%2f..%2fsecret-key", "%2e%2e/votes.csv", "..\\secret-key", "/etc/passwd", "%2fetc%2fpasswd",
    "votes.csv%00.zip", "votes.csv/", "VOTES.CSV", "export.zip%0d%0aX: y", "votes.json;.csv", "~root", "a" * 3000,
]  # fmt: skip


def test_no_file_name_leads_out_of_the_record(world):
    victim = browser_of(world.victim)
    for name in FILE_NAMES:
        assert victim.get(f"/campaigns/{world.campaign.pk}/files/{name}").status_code == 404, name


TOKENS = ["", "%00", "..", "%2e%2e%2f", "A" * 43, "A" * 5000, "' OR '1'='1", "%F0%9F%A6%93", "{{7*7}}", "%ff%fe", "*"]


def test_a_guessed_link_leads_nowhere(world):
    for token, client in itertools.product(TOKENS, (browser_of(None), world.voter)):
        answer = client.get(f"/join/{token}/")
        assert answer.status_code == 404, token
        assert_leaks_nothing(answer, world)


POSTS = ("/campaigns/{0}/members/", "/campaigns/{0}/people/{2}/end/", "/campaigns/new/", "/join/{1}/vote/")
BODIES = {
    "json": ("application/json", b'{"username": "colleague", "role": "manager", "choice": "first"}'),
    "xml": ("text/xml", b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>'),
    "broken multipart": ("multipart/form-data; boundary=x", b"--x\r\nContent-Disposition: form-data; name=role"),
    "multipart without boundary": ("multipart/form-data", b"--x--"),
    "two thousand fields": ("application/x-www-form-urlencoded", b"&".join(b"a%d=1" % n for n in range(2000))),
    "no UTF-8": ("application/x-www-form-urlencoded", b"username=%ff%fe&role=%ff&voter=%ff&choice=%ff&lease=%ff"),
    "NUL": (
        "application/x-www-form-urlencoded",
        b"username=a%00b&role=viewer%00&voter=1%00&choice=first&lease=%00",
    ),
    "other charset": ("application/x-www-form-urlencoded; charset=utf-7", b"username=+ADw-&choice=+ADw-"),
    "unknown charset": ("application/x-www-form-urlencoded; charset=no-such", b"username=a&role=viewer&choice=first"),
    "no type": ("", b"username=colleague&role=manager&choice=first"),
    "two of each": (
        "application/x-www-form-urlencoded",
        b"role=viewer&role=x&username=&username=&choice=first&choice=up",
    ),
    "brackets": ("application/x-www-form-urlencoded", b"username[]=colleague&role[$ne]=1&choice[]=first&voter[]=1"),
}


@pytest.mark.parametrize("path", POSTS)
def test_a_body_no_page_sends_changes_nothing(world, path):
    client = world.voter if path.startswith("/join/") else browser_of(world.victim)
    address = path.format(world.campaign.pk, world.token, number_of(world.pair.voter))
    for body, (media_type, content) in BODIES.items():
        answer = client.generic("POST", address, content, content_type=media_type)
        # 200 and 302: the form again, or the page that says what was wrong with it.
        assert answer.status_code in {200, 302, 400, 404, 415}, body


def test_no_number_of_questions_makes_a_page_without_end(world):
    answer = browser_of(world.victim).post(
        "/campaigns/new/", form(**{"judges.9999.votes": "x", f"judges.{'9' * 5000}.votes": "1"})
    )
    assert answer.content.count(b'name="judges.') < 1000


@pytest.mark.parametrize("role", ["admin", "owner", "superuser", "", "manager ", "viewer,manager"])
def test_no_role_but_ours_can_be_given(world, role):
    path = f"/campaigns/{world.campaign.pk}/members/"
    answer = browser_of(world.victim).post(path, {"username": "colleague", "role": role}, follow=True)
    assert "choose a permission" in answer.content.decode()


@pytest.mark.parametrize("number", ["0", "-1", "1.5", "9" * 30, "1 OR 1=1", "", "the victim's"])
def test_no_voter_of_elsewhere_can_be_ended(world, number):
    number = str(number_of(world.pair.voter)) if number == "the victim's" else number
    own = Campaign.objects.get(owner=world.colleague)
    grounds = {"reason": "other", "text": "mine"}
    for campaign in (world.campaign, own):
        answer = browser_of(world.colleague).post(f"/campaigns/{campaign.pk}/people/{number}/end/", grounds)
        assert answer.status_code == 404


@pytest.mark.parametrize("header", ["HTTP_X_FORWARDED_USER", "HTTP_REMOTE_USER", "REMOTE_USER", "HTTP_AUTHORIZATION"])
def test_no_header_signs_anybody_in(world, header):
    answer = browser_of(None).get(world.campaign.get_absolute_url(), **{header: "victim"})
    assert answer.status_code == 302


@pytest.mark.parametrize("sesame", ["", "A" * 40, "AAAAAAAA", "%00", "é" * 30])
def test_no_guessed_link_signs_anybody_in(world, sesame):
    assert browser_of(None).get("/accounts/sign-in/by-link/", {"sesame": sesame}).status_code == 403


def test_an_upload_named_like_a_path_stays_in_its_folder(world):
    file = SimpleUploadedFile("t.csv", b"text\none\ntwo\n")
    file._name = "../../../secret-key"
    answer = browser_of(world.victim).post("/campaigns/new/", form(**{"space.catalog.file": file}))
    made = Campaign.objects.get(pk=int(answer.url.strip("/").split("/")[-1]))
    wait_until_idle()
    assert made.catalog.file.name.startswith("uploads/")
    assert made.catalog.filename == "secret-key.csv"
    made.delete()

"""Responses that no page of ours sends: forged, stolen, old, malformed; by form post and by socket."""

import json
import uuid

import pytest
from django.test import Client
from websockets.exceptions import InvalidStatus

from prefmh_web.campaigns.models import Lease, Vote, Voter
from tests.security.world import browser_of, digest
from tests.support.installations import closing_code, cookies_after_joining, open_socket, send
from tests.support.people import cookies_of
from tests.support.process import wait_until_idle

LEASES = [
    "",
    "1",
    "no-uuid",
    "00000000-0000-0000-0000-000000000000",
    "{}",
    "[]",
    "\x00",
    "é" * 36,
    "a" * 100_000,
    "' OR 1=1",
]
CHOICES = ["up", "LEFT", "left ", "right\x00", "proposal", "0", "null", "🙂", "<script>", "a" * 100_000]


@pytest.mark.usefixtures("unchanged")
class TestByPost:
    """By form post, in the browser of somebody who has joined."""

    @pytest.mark.parametrize("lease", LEASES, ids=range(len(LEASES)))
    def test_a_forged_lease_votes_nothing(self, world, lease):
        answer = world.voter.post(world.vote_path, {"choice": "first", "lease": lease})
        assert answer.status_code in {400, 404}

    @pytest.mark.parametrize("choice", CHOICES, ids=range(len(CHOICES)))
    def test_no_other_choice_can_be_made(self, world, choice):
        assert world.voter.post(world.vote_path, {"choice": choice, "lease": world.pair.key}).status_code == 400

    @pytest.mark.parametrize("choice", ["first", "skip"])
    def test_nobody_votes_with_somebody_elses_lease(self, world, choice):
        thief = browser_of(world.colleague)
        answer = thief.post(world.vote_path, {"choice": choice, "lease": world.pair.key})
        assert answer.url == f"/join/{world.token}/"

    @pytest.mark.parametrize("cookie", ["", "A" * 32, "../" * 10, "\x7f", "a" * 4000, "' OR 1=1"])
    def test_no_forged_session_votes(self, world, cookie):
        thief = Client()
        thief.cookies["prefmh_session"] = cookie
        answer = thief.post(world.vote_path, {"choice": "first", "lease": world.pair.key})
        assert answer.status_code == 302

    @pytest.mark.parametrize("method", ["put", "patch", "delete"])
    def test_the_pages_take_no_other_method(self, world, method):
        assert getattr(world.voter, method)(world.vote_path).status_code == 405


@pytest.mark.parametrize("choice", ["first", "second", "skip"])
def test_an_old_vote_sent_again_stays_what_it_was(world, choice):
    before = digest(without=(Lease,))
    answer = world.voter.post(world.vote_path, {"choice": choice, "lease": world.voted, "elapsed_ms": "9"})
    assert answer.status_code == 302
    wait_until_idle()
    assert digest(without=(Lease,)) == before


def test_a_thief_who_has_joined_gets_nothing_of_another_persons_pair(world):
    thief = Client()
    thief.post(f"/join/{world.token}/")
    before = digest()
    for choice in ("first", "second", "skip"):
        assert thief.post(world.vote_path, {"choice": choice, "lease": world.pair.key}).status_code == 404
    report = {"reason": "upsetting", "words": "mine"}
    assert thief.post(f"/join/{world.token}/report/{world.pair.key}/", report).status_code == 404
    for side in ("first", "second"):
        assert thief.get(f"/pairs/{world.pair.key}/{side}/").status_code == 403
    wait_until_idle()
    assert digest() == before


@pytest.fixture(scope="module")
def member(world, world_site) -> str:
    """The cookies of somebody who has joined."""
    return cookies_after_joining(f"{world_site.url}/join/{world.token}/")


MESSAGES = [
    b"", "", "\x00", "null", "true", "7", '"first"', "[]", "[{}]", "{}", "{", '{"choice"}', "🙂", "NaN",
    '{"choice": null}', '{"choice": true}', '{"choice": ["first"]}', '{"choice": {"first": 1}}', '{"choice": "first"}',
    '{"choice": "first", "lease": null}', '{"choice": "first", "lease": 1e999}', '{"choice": "first", "lease": []}',
    '{"choice": "first", "lease": "\\u0000"}', '{"choice": "first", "lease": "\\ud800"}', "[" * 9000,
    '{"choice": ' + "9" * 9000 + "}", '{"choice": "' + "a" * 50_000 + '"}', b"\xff\xfe", b"\x80" * 500,
    json.dumps({"choice": "first", "lease": str(uuid.UUID(int=1))}),
    json.dumps({"choice": "skip", "lease": "x" * 9000}),
]  # fmt: skip


@pytest.mark.parametrize("message", MESSAGES, ids=range(len(MESSAGES)))
def test_a_message_no_page_sends_closes_the_socket_and_changes_nothing(world, world_site, member, message):
    with open_socket(world_site.url, f"/ws/join/{world.token}/", member) as socket:
        socket.recv(timeout=10)
        # The person's own presence and pair are theirs to have.
        before = digest(without=(Voter, Lease))
        socket.send(message)
        assert closing_code(socket) == 4400
    assert digest(without=(Voter, Lease)) == before


@pytest.mark.parametrize("choice", ["first", "second", "skip"])
def test_a_socket_votes_with_nobody_elses_lease(world, world_site, member, choice):
    with open_socket(world_site.url, f"/ws/join/{world.token}/", member) as socket:
        socket.recv(timeout=10)
        send(socket, lease=str(world.pair.key), choice=choice)
        assert closing_code(socket) == 4400
    assert Lease.objects.get(pk=world.pair.pk).is_live
    assert not Vote.objects.filter(key=world.pair.key).exists()


PATHS = ["/ws/", "/ws/join/", "/ws/join/a/b/", "/ws/campaigns/x/", "/ws/campaigns/-1/", "/elsewhere/"]


@pytest.mark.parametrize("path", PATHS)
def test_no_other_socket_opens(world_site, member, path):
    with pytest.raises((InvalidStatus, EOFError)):
        open_socket(world_site.url, path, member)


@pytest.mark.parametrize("token", ["guessed", "A" * 22, "%00", "%2e%2e", "A" * 3000, "%F0%9F%99%82"])
def test_no_guessed_link_opens_the_voters_socket(world, world_site, member, token):
    with open_socket(world_site.url, f"/ws/join/{token}/", member) as socket:
        assert closing_code(socket) == 4401


@pytest.mark.parametrize(
    ("who", "campaign"),
    [*(("victim", each) for each in ("0", "999999999", "9" * 30)), (None, ""), ("colleague", ""), ("bystander", "")],
)
def test_nobody_else_watches_the_victims_board_and_none_opens_that_is_not_there(world, world_site, who, campaign):
    browser = browser_of(getattr(world, who) if who else None)
    with open_socket(world_site.url, f"/ws/campaigns/{campaign or world.campaign.pk}/", cookies_of(browser)) as socket:
        assert closing_code(socket) == 4401


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "file://", "http://127.0.0.1", "https://127.0.0.1.evil.example", "http://["],
)
def test_no_other_site_opens_a_socket(world, world_site, member, origin):
    with pytest.raises(InvalidStatus) as refused:
        open_socket(world_site.url, f"/ws/join/{world.token}/", member, origin)
    assert refused.value.response.status_code == 403

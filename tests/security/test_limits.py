"""How often somebody may do something, and what they see beyond that: nothing is lost."""

import ipaddress
import threading
from collections.abc import Callable, Sequence
from functools import partial

import pytest
from django.db import connections
from django.test import Client, RequestFactory
from limits.errors import StorageError

from prefmh_web.accounts.models import sign_in_path
from prefmh_web.campaigns.models import Vote, Voter
from prefmh_web.transport import rate_limits
from prefmh_web.voting import consumer
from tests.security.world import browser_of
from tests.support.campaigns import invitation_path
from tests.support.installations import closing_code, cookies_after_joining, open_socket, send
from tests.voting.test_socket import lease_in


@pytest.fixture
def rates(settings):
    """Return a call that sets rates."""

    def set_rates(**changes: str) -> None:
        settings.RATE_LIMITS = {name.replace("_", "-"): rate for name, rate in changes.items()}

    return set_rates


def test_one_persons_uses_are_not_anothers(rates):
    rates(votes="2/minute")
    for person in (1, 1, 2, 2):
        rate_limits.spend("votes", person)
    with pytest.raises(rate_limits.TooMany) as refused:
        rate_limits.spend("votes", 1)
    assert 1 <= refused.value.retry_after <= 60


def test_without_its_storage_each_process_counts_for_itself(rates, monkeypatch):
    class Broken:
        def hit(self, *arguments):
            raise StorageError(OSError("gone"))

    rates(votes="1/minute")
    with monkeypatch.context() as patch:
        patch.setattr(rate_limits, "_shared", Broken)
        rate_limits.spend("votes", 1)
        with pytest.raises(rate_limits.TooMany):
            rate_limits.spend("votes", 1)


def try_to_sign_in(name: str, address: str = "192.0.2.1", password: str = "guessed"):
    return Client(REMOTE_ADDR=address).post("/accounts/sign-in/", {"username": name, "password": password})


def test_guessing_one_accounts_password_is_slowed_down(researcher):
    for _ in range(6):
        assert try_to_sign_in("ada").status_code == 200
    answer = try_to_sign_in("ADA", password="correct horse battery staple")
    assert answer.status_code == 429
    assert 0 < int(answer["Retry-After"]) <= 300
    assert "_auth_user_id" not in answer.client.session
    # The owner of the account, elsewhere, is not locked out.
    assert try_to_sign_in("ada", "198.51.100.7", "correct horse battery staple").status_code == 302


def sign_in(name: str = "ada", address: str = "192.0.2.1"):
    return try_to_sign_in(name, address, "correct horse battery staple")


def test_whoever_knows_their_password_is_never_counted(researcher, rates):
    rates(sign_in_name_here="2/hour", sign_in_name="2/hour", sign_in_address="2/hour")
    assert [sign_in().status_code for _ in range(6)] == [302] * 6
    # Two mistakes are still forgiven, and the third attempt is not, right or wrong.
    assert [try_to_sign_in("ada").status_code for _ in range(3)] == [200, 200, 429]
    assert sign_in().status_code == 429


# Blanks of all kinds around a name, full-width letters, capitals.
SPELLINGS = ["  ada \t", "\u00a0ada", "ada\u3000", "\r\n ada", "\uff41\uff44\uff41", "\u2003\uff21\uff24\uff21 ", "ADA"]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_spelling_of_a_name_buys_more_guesses(researcher, rates, spelling):
    rates(sign_in_name_here="2/hour")
    assert [try_to_sign_in(name).status_code for name in (spelling, "ada", spelling, "ada")] == [200] * 2 + [429] * 2
    assert sign_in(spelling).status_code == 429
    assert sign_in().status_code == 429


def test_an_hour_of_guesses_from_one_place_locks_no_account_everywhere():
    here, anywhere = (rate_limits._rate(rate_limits.RATES[name]) for name in ("sign-in-name-here", "sign-in-name"))
    # So many windows of the shorter rate touch one of the longer.
    touching = anywhere.get_expiry() // here.get_expiry() + 1
    assert here.amount * touching < anywhere.amount


def test_an_account_of_ones_own_buys_no_more_guesses_at_another(researcher, rates):
    rates(sign_in_address="3/hour")
    answers = []
    for number in range(5):
        answers.append(try_to_sign_in(f"victim{number}").status_code)
        sign_in()
    assert answers == [200] * 3 + [429] * 2


def test_opening_ones_own_sign_in_link_is_not_counted(researcher, rates):
    rates(sign_in_address="2/hour")
    assert [Client().get(sign_in_path(researcher)).status_code for _ in range(4)] == [302] * 4
    forged = [Client().get("/accounts/sign-in/by-link/", {"sesame": "A" * 40}).status_code for _ in range(4)]
    assert forged == [403, 403, 429, 429]


def test_a_link_signs_in_where_wrong_passwords_have_exhausted_every_rate(researcher, rates):
    rates(sign_in_name_here="2/hour", sign_in_name="2/hour", sign_in_address="2/hour")
    assert [try_to_sign_in("ada").status_code for _ in range(3)] == [200, 200, 429]
    assert Client(REMOTE_ADDR="192.0.2.1").get("/accounts/sign-in/by-link/", {"sesame": "A" * 40}).status_code == 429
    browser = Client(REMOTE_ADDR="192.0.2.1")
    assert browser.get(sign_in_path(researcher)).status_code == 302
    assert browser.get("/campaigns/new/").status_code == 200


def all_at_once(calls: Sequence[Callable[[], object]]) -> None:
    """Make each call in a thread of its own, all in the same moment; return when all are over."""
    together = threading.Barrier(len(calls))

    def call(one: Callable[[], object]) -> None:
        try:
            together.wait()
            one()
        finally:
            connections.close_all()

    threads = [threading.Thread(target=call, args=(one,)) for one in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_of_guesses_sent_all_at_once_no_more_are_answered_than_one_by_one(researcher, rates, monkeypatch):
    rates(sign_in_name_here="3/hour")
    start, answers = threading.Barrier(12), []
    # All of them have passed the first look before any is judged; the right password comes in last.
    checked = threading.Semaphore(0)

    def authenticate(self, request, username=None, password=None, **others):
        start.wait()
        if password == "right":
            for _ in range(11):
                checked.acquire()
            return researcher
        return None

    monkeypatch.setattr("django.contrib.auth.backends.ModelBackend.authenticate", authenticate)

    def guess(password: str) -> None:
        answers.append((password, try_to_sign_in("ada", password=password).status_code))
        checked.release()

    passwords = [f"wrong{number}" for number in range(11)] + ["right"]
    all_at_once([partial(guess, password) for password in passwords])
    assert sorted(status for _, status in answers) == [200] * 3 + [429] * 9
    assert ("right", 429) in answers


def test_joining_again_and_again_from_one_address_is_slowed_down(campaign, rates):
    rates(join="3/minute")
    answers = [Client(REMOTE_ADDR="192.0.2.1").post(invitation_path(campaign)).status_code for _ in range(5)]
    assert answers == [302] * 3 + [429] * 2
    assert Client(REMOTE_ADDR="192.0.2.2").post(invitation_path(campaign)).status_code == 302
    assert Voter.objects.count() == 4
    # Reading is free.
    assert Client(REMOTE_ADDR="192.0.2.1").get(invitation_path(campaign)).status_code == 200


def test_a_vote_by_post_beyond_the_rate_is_not_stored_and_can_be_sent_again(client, campaign, rates):
    vote = f"{invitation_path(campaign)}vote/"
    client.post(invitation_path(campaign))
    first = client.get(vote).context["screen"].lease.key
    rates(votes="1/minute")
    client.post(vote, {"choice": "first", "lease": first})
    second = client.get(vote).context["screen"].lease.key
    refused = client.post(vote, {"choice": "first", "lease": second})
    assert (refused.status_code, Vote.objects.count()) == (429, 1)
    rate_limits.forget()
    client.post(vote, {"choice": "first", "lease": second})
    assert Vote.objects.filter(key=second, number__isnull=False).exists()


def test_a_vote_by_socket_beyond_the_rate_is_sent_again_after_reconnecting(live_site, campaign, rates):
    link = invitation_path(campaign)
    cookies = cookies_after_joining(live_site.url + link)
    rates(votes="2/minute")
    with open_socket(live_site.url, f"/ws{link}", cookies) as socket:
        for _ in range(2):
            send(socket, lease=lease_in(socket.recv(timeout=10)), choice="first")
        third = lease_in(socket.recv(timeout=10))
        send(socket, lease=third, choice="first")
        assert closing_code(socket) == consumer.TOO_OFTEN
    assert not Vote.objects.filter(key=third).exists()
    rate_limits.forget()
    with open_socket(live_site.url, f"/ws{link}", cookies) as socket:
        assert lease_in(socket.recv(timeout=10)) == third
        send(socket, lease=third, choice="first")
        socket.recv(timeout=10)
    assert Vote.objects.filter(key=third, number__isnull=False).exists()


def test_pages_that_connect_again_and_again_are_told_to_wait(live_site, campaign, rates):
    link = invitation_path(campaign)
    cookies = cookies_after_joining(live_site.url + link)
    rates(sockets="2/minute")
    for _ in range(2):
        with open_socket(live_site.url, f"/ws{link}", cookies) as socket:
            socket.recv(timeout=10)
    with open_socket(live_site.url, f"/ws{link}", cookies) as socket:
        assert closing_code(socket) == consumer.TOO_OFTEN


def test_a_researchers_forms_are_counted(researcher, campaign, rates):
    rates(forms="2/minute")
    owner = browser_of(researcher)
    answers = [owner.post(f"/campaigns/{campaign.pk}/invitations/").status_code for _ in range(3)]
    assert answers == [302, 302, 429]
    assert owner.get(campaign.get_absolute_url()).status_code == 200


@pytest.mark.parametrize(
    ("peer", "forwarded", "proxies", "address"),
    [
        ("192.0.2.1", "", [], "192.0.2.1"),
        ("192.0.2.1", "10.9.9.9", [], "192.0.2.1"),
        ("10.0.0.1", "198.51.100.7", ["10.0.0.0/8"], "198.51.100.7"),
        # What the visitor wrote stands on the left.
        ("10.0.0.1", "1.2.3.4, 198.51.100.7", ["10.0.0.0/8"], "198.51.100.7"),
        ("10.0.0.1", "1.2.3.4, 198.51.100.7, 10.0.0.2", ["10.0.0.0/8"], "198.51.100.7"),
        ("192.0.2.1", "198.51.100.7", ["10.0.0.0/8"], "192.0.2.1"),
        ("10.0.0.1", "", ["10.0.0.0/8"], "10.0.0.1"),
        ("", "198.51.100.7", ["10.0.0.0/8"], ""),
        # Of the newer addresses one customer has a whole network.
        ("2001:db8:1:2:3:4:5:6", "", [], "2001:db8:1:2::/64"),
    ],
)
def test_the_address_that_is_counted(settings, peer, forwarded, proxies, address):
    settings.TRUSTED_PROXIES = tuple(map(ipaddress.ip_network, proxies))
    headers = {"x-forwarded-for": forwarded} if forwarded else {}
    assert rate_limits.by_address(RequestFactory().get("/", REMOTE_ADDR=peer, headers=headers)) == address

"""A session is its owner's: none that a stranger planted or kept is of use.

Who sees a campaign: its owner, members by their role, admins; and nobody any more once removed.

Links that let people join, and how their access ends.
"""

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from prefmh_web.accounts.models import is_researcher, make_researcher, sign_in_path
from prefmh_web.campaigns.lifecycle import access
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.campaigns.models import Invitation, Lease, Membership, ReportReason, Vote, Voter, number_of
from prefmh_web.participants import joining
from prefmh_web.transport import sockets
from prefmh_web.voting import admission, consumer
from tests.security.test_limits import all_at_once
from tests.security.world import browser_of
from tests.support.installations import closing_code, cookies_after_joining, open_socket, send
from tests.support.people import cookies_of
from tests.voting.test_socket import lease_in

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


@pytest.fixture
def friend(campaign, django_user_model):
    return django_user_model.objects.create_user("grace")


def board(site, campaign, browser):
    cookies = cookies_of(browser)
    return open_socket(site.url, f"/ws/campaigns/{campaign.pk}/", cookies)


def add(browser, campaign, **fields):
    return browser.post(reverse("console:add-member", args=[campaign.pk]), fields, follow=True).content.decode()


def test_the_owner_adds_changes_and_removes_a_member(campaign, researcher, friend):
    owner, page = browser_of(researcher), reverse("console:campaign", args=[campaign.pk])
    assert browser_of(friend).get(page).status_code == 404
    assert "grace may watch and download" in add(owner, campaign, username="grace", role="viewer")
    assert campaign.name in browser_of(friend).get("/").content.decode()
    assert browser_of(friend).get(page).status_code == 200
    add(owner, campaign, username="grace", role="manager")
    member = Membership.objects.get()
    assert access.right_in(access.campaigns_for(friend).get(), friend) == Right.RUN
    owner.post(reverse("console:remove-member", args=[campaign.pk, member.pk]))
    assert browser_of(friend).get(page).status_code == 404


def test_a_member_must_have_an_account_and_not_be_the_owner(campaign, researcher, friend):
    assert "There is no account" in add(browser_of(researcher), campaign, username="nobody", role="viewer")
    assert "owns this campaign" in add(browser_of(researcher), campaign, username="ada", role="viewer")
    assert not Membership.objects.exists()


def test_a_manager_runs_a_campaign_and_does_not_own_it(campaign, friend):
    access.add_member(campaign, "grace", Membership.Role.MANAGER)
    manager = browser_of(friend)
    for change, status in (("pause", "paused"), ("resume", "running")):
        manager.post(reverse(f"console:{change}", args=[campaign.pk]))
        campaign.refresh_from_db()
        assert campaign.status == status
    manager.post(reverse("console:invite", args=[campaign.pk]))
    assert campaign.invitations.count() == 2
    page = manager.get(reverse("console:edit", args=[campaign.pk])).content.decode()
    assert "Create another link" in page
    assert "Researchers with access" not in page
    assert "Extend the campaign" not in page
    page = manager.get(campaign.get_absolute_url()).content.decode()
    assert "Download the setup" not in page


def test_what_voters_report_in_their_words_is_for_those_who_run_it(campaign, researcher, friend, joined, link):
    key = joined.get(f"{link.get_absolute_url()}vote/").context["screen"].lease.key
    joined.post(reverse("voting:report", args=[link.token, key]), {"reason": "other", "words": "I am Grace's sister"})
    page = reverse("console:problems", args=[campaign.pk])
    for role, is_told in ((Membership.Role.VIEWER, False), (Membership.Role.MANAGER, True)):
        access.add_member(campaign, "grace", role)
        told = browser_of(friend).get(page).content.decode()
        assert ReportReason.OTHER.label in told
        assert ("Grace&#x27;s sister" in told) == is_told
    assert "Grace&#x27;s sister" in browser_of(researcher).get(page).content.decode()


def test_an_admin_sees_and_owns_everything(campaign, django_user_model):
    admin = browser_of(django_user_model.objects.create_superuser("root"))
    assert campaign.name in admin.get("/").content.decode()
    page = admin.get(reverse("console:edit", args=[campaign.pk])).content.decode()
    assert "Researchers with access" in page
    admin.post(reverse("console:pause", args=[campaign.pk]))
    campaign.refresh_from_db()
    assert campaign.status == "paused"


def test_only_researchers_make_campaigns(researcher, friend):
    page = browser_of(friend).get(reverse("console:create"))
    assert page.status_code == 403
    assert "manage.py researcher grace" in page.content.decode()
    assert browser_of(friend).post(reverse("console:import")).status_code == 403
    make_researcher(friend)
    assert is_researcher(friend)
    assert browser_of(friend).get(reverse("console:create")).status_code == 200


def test_a_removed_members_board_closes(live_site, campaign, friend):
    member = access.add_member(campaign, "grace", Membership.Role.VIEWER)
    with board(live_site, campaign, browser_of(friend)) as socket:
        assert 'id="board-now"' in socket.recv(timeout=10)
        access.remove_member(member)
        assert closing_code(socket) == 4401


@pytest.mark.parametrize("change", [{"is_active": False}, {"password": "!"}])
def test_the_board_of_a_deactivated_account_or_an_old_password_closes(live_site, campaign, researcher, change):
    with board(live_site, campaign, browser_of(researcher)) as socket:
        socket.recv(timeout=10)
        type(researcher).objects.filter(pk=researcher.pk).update(**change)
        # Whatever makes the board look again; without a notification it does so every ten seconds.
        sockets.notify(sockets.watchers(campaign.pk))
        assert closing_code(socket) == 4401


@pytest.fixture
def link(campaign) -> Invitation:
    return campaign.invitations.get()


@pytest.fixture
def joined(client, link):
    client.post(link.get_absolute_url())
    return client


def test_links_cannot_be_guessed(campaign):
    tokens = {access.invite(campaign).token for _ in range(50)}
    assert len(tokens) == 50
    # 16 bytes of the system's own randomness.
    assert all(len(token) == 22 for token in tokens)


def test_a_revoked_link_lets_nobody_else_join_and_those_who_have_go_on(joined, link):
    access.revoke(link)
    page = Client().get(link.get_absolute_url())
    assert page.status_code == 403
    assert "This link is closed" in page.content.decode()
    assert Client().post(link.get_absolute_url()).status_code == 403
    assert Voter.objects.count() == 1
    assert joined.get(f"{link.get_absolute_url()}vote/").status_code == 200


def test_a_link_that_was_closed_after_it_was_read_lets_nobody_join(campaign, link):
    access.revoke(Invitation.objects.get())
    with pytest.raises(joining.NotAdmitted):
        admission.join(SessionStore(), link)
    assert not Voter.objects.exists()


def test_a_link_for_one_person_admits_one(campaign):
    single = access.invite(campaign, is_single_use=True)
    first = Client()
    for _ in range(2):
        assert first.post(single.get_absolute_url()).status_code == 302
    second = Client().post(single.get_absolute_url())
    assert second.status_code == 403
    assert "for one person" in second.content.decode()
    assert single.voters.count() == 1


def test_of_many_who_open_a_link_for_one_person_at_once_one_gets_in(campaign):
    single = access.invite(campaign, is_single_use=True)
    outcomes = []

    def join() -> None:
        try:
            admission.join(SessionStore(), single)
            outcomes.append("in")
        except joining.NotAdmitted:
            outcomes.append("out")

    all_at_once([join] * 8)
    assert sorted(outcomes) == ["in"] + ["out"] * 7
    assert single.voters.count() == 1


def test_withdrawing_a_link_with_its_people_closes_pages_returns_pairs_and_keeps_votes(live_site, campaign, link):
    cookies = cookies_after_joining(live_site.url + link.get_absolute_url())
    with open_socket(live_site.url, f"/ws{link.get_absolute_url()}", cookies) as socket:
        first = lease_in(socket.recv(timeout=10))
        send(socket, lease=first, choice="first")
        second = lease_in(socket.recv(timeout=10))
        access.revoke(link, withdraw=True)
        assert closing_code(socket) == 4401
    assert not Lease.objects.get(key=second).is_live
    assert [str(key) for key in Vote.objects.values_list("key", flat=True)] == [first]
    with open_socket(live_site.url, f"/ws{link.get_absolute_url()}", cookies) as socket:
        assert closing_code(socket) == 4401


def test_one_button_ends_somebodys_part_and_withdraws_their_link(campaign, researcher, joined, link):
    removed = Voter.objects.get()
    staying, other = Client(), access.invite(campaign)
    staying.post(link.get_absolute_url())
    vote = f"{link.get_absolute_url()}vote/"
    key = joined.get(vote).context["screen"].lease.key
    path = reverse("console:end-part", args=[campaign.pk, number_of(removed)])
    grounds = {"reason": "other", "text": "Sent me a mail", "with_link": "on"}
    told = browser_of(researcher).post(path, grounds, follow=True).content.decode()
    assert "is ended. Their votes are kept" in told
    assert "is still open" not in told
    assert joined.post(vote, {"choice": "first", "lease": key}).url == link.get_absolute_url()
    assert "removed you from this campaign" in joined.get(link.get_absolute_url()).content.decode()
    assert not Vote.objects.exists()
    assert not Lease.objects.get(key=key).is_live
    # From the old browser and from a fresh one alike; and, from the old one, by no other link either.
    for browser in (joined, Client()):
        assert browser.get(link.get_absolute_url()).status_code == 403
        assert browser.post(link.get_absolute_url()).status_code == 403
    assert joined.post(other.get_absolute_url()).status_code == 403
    # Those who came by it go on, and other links stay open.
    assert staying.get(vote).status_code == 200
    assert Client().post(other.get_absolute_url()).status_code == 302


def test_the_heartbeat_shows_out_whom_no_notification_has_reached(live_site, campaign, link, monkeypatch):
    monkeypatch.setattr(consumer, "HEARTBEAT_S", 0.2)
    cookies = cookies_after_joining(live_site.url + link.get_absolute_url())
    with open_socket(live_site.url, f"/ws{link.get_absolute_url()}", cookies) as socket:
        socket.recv(timeout=10)
        Voter.objects.update(removed_at=timezone.now())
        assert closing_code(socket) == 4401


def test_the_heartbeat_asks_a_page_whose_session_has_ended_to_connect_again(live_site, campaign, link, monkeypatch):
    monkeypatch.setattr(consumer, "HEARTBEAT_S", 0.2)
    cookies = cookies_after_joining(live_site.url + link.get_absolute_url())
    [key] = [part.split("=")[1] for part in cookies.split("; ") if part.startswith("prefmh_session=")]
    with open_socket(live_site.url, f"/ws{link.get_absolute_url()}", cookies) as socket:
        socket.recv(timeout=10)
        sockets.stored(key).flush()
        assert closing_code(socket) == 1011
    with open_socket(live_site.url, f"/ws{link.get_absolute_url()}", cookies) as socket:
        assert closing_code(socket) == 4401


def test_links_are_made_and_withdrawn_from_the_page(campaign, researcher, joined, link):
    owner = browser_of(researcher)
    owner.post(reverse("console:invite", args=[campaign.pk]), {"single_use": "on"})
    single = campaign.invitations.get(is_single_use=True)
    page = owner.get(reverse("console:edit", args=[campaign.pk])).content.decode()
    assert single.token in page
    assert "one person" in page
    owner.post(reverse("console:revoke", args=[campaign.pk, link.pk]), {"withdraw": "on"})
    link.refresh_from_db()
    assert link.revoked_at
    assert Voter.objects.get().removed_at
    # The card at the top offers a link that everybody can use, and there is none now.
    page = owner.get(campaign.get_absolute_url())
    assert page.context["invitation"] is None

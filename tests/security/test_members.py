"""Who sees a campaign: its owner, members by their role, admins; and nobody any more once removed."""

import pytest
from django.urls import reverse

from prefmh_web.accounts.roles import is_researcher, make_researcher
from prefmh_web.campaigns.lifecycle import access
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.campaigns.models import Membership
from prefmh_web.transport import sockets
from tests.security.world import browser_of
from tests.support.installations import closing_code, open_socket


@pytest.fixture
def friend(campaign, django_user_model):
    return django_user_model.objects.create_user("grace")


def board(site, campaign, browser):
    cookies = "; ".join(f"{name}={morsel.value}" for name, morsel in browser.cookies.items())
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
    for owned in ("add-member", "edit", "discard"):
        assert manager.post(reverse(f"console:{owned}", args=[campaign.pk])).status_code == 404


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
        # Whatever makes the board look again; without a nudge it does so every ten seconds.
        sockets.nudge(sockets.watchers(campaign.pk))
        assert closing_code(socket) == 4401

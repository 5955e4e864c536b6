"""The researcher's socket: for the owner only, and it sends the board again when something changes."""

from django.test import Client

from prefmh_web.campaigns import lifecycle
from tests.support.installations import closing_code, open_socket


def cookies_of(user) -> str:
    client = Client()
    client.force_login(user)
    return "; ".join(f"{name}={morsel.value}" for name, morsel in client.cookies.items())


def test_the_owner_sees_the_board_and_its_changes(live_site, campaign, researcher):
    with open_socket(live_site.url, f"/ws/campaigns/{campaign.pk}/", cookies_of(researcher)) as socket:
        assert 'data-status="running"' in socket.recv(timeout=10)
        lifecycle.pause(campaign)
        while 'data-status="paused"' not in socket.recv(timeout=10):
            pass


def test_signing_out_closes_the_board(live_site, campaign, researcher):
    client = Client()
    client.force_login(researcher)
    cookies = "; ".join(f"{name}={morsel.value}" for name, morsel in client.cookies.items())
    with open_socket(live_site.url, f"/ws/campaigns/{campaign.pk}/", cookies) as socket:
        socket.recv(timeout=10)
        client.post("/accounts/sign-out/")
        assert closing_code(socket) == 4401


def test_nobody_else_sees_it(live_site, campaign, django_user_model):
    for cookies in ("", cookies_of(django_user_model.objects.create_user("colleague"))):
        with open_socket(live_site.url, f"/ws/campaigns/{campaign.pk}/", cookies) as socket:
            assert closing_code(socket) == 4401

"""The researcher's socket: for the owner only, and it sends the board again when something changes."""

import pytest
from django.test import Client
from websockets.exceptions import ConnectionClosed

from prefmh_web.campaigns import lifecycle
from tests.support.sockets import open_socket


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


def test_nobody_else_sees_it(live_site, campaign, django_user_model):
    for cookies in ("", cookies_of(django_user_model.objects.create_user("colleague"))):
        with (
            open_socket(live_site.url, f"/ws/campaigns/{campaign.pk}/", cookies) as socket,
            pytest.raises(ConnectionClosed) as closed,
        ):
            socket.recv(timeout=10)
        assert closed.value.rcvd.code == 4401

"""The ASGI application: pages over HTTP, live screens over WebSockets."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "prefmh_web.settings")
django.setup(set_prefix=False)

# Consumers import models, which need the line above first.
from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from django.urls import path

from prefmh_web.celery import load_everything
from prefmh_web.console.board import BoardConsumer, DownloadConsumer
from prefmh_web.operations.metrics import Latency
from prefmh_web.transport.bodies import BoundedHandler
from prefmh_web.transport.sockets import SameOriginValidator
from prefmh_web.voting.consumer import VotingConsumer

load_everything()

_voting, _board, _download = VotingConsumer.as_asgi(), BoardConsumer.as_asgi(), DownloadConsumer.as_asgi()
# Channels routes sockets with Django's paths, whose types know pages only.
sockets = URLRouter(
    [
        path("ws/join/<str:token>/", _voting),  # type: ignore[arg-type, list-item]  # a socket is no page
        path("ws/downloads/<str:token>/", _download),  # type: ignore[arg-type, list-item]  # a socket is no page
        path("ws/campaigns/<int:campaign_id>/", _board),  # type: ignore[arg-type, list-item]  # a socket is no page
    ]
)
application = Latency(
    ProtocolTypeRouter(
        {"http": BoundedHandler(), "websocket": SameOriginValidator(AuthMiddlewareStack(sockets), allowed_origins=())}
    )
)

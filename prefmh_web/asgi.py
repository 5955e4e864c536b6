"""The ASGI application: pages over HTTP, live panels over WebSockets."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "prefmh_web.settings")
django.setup(set_prefix=False)

# Consumers import models, which need the line above first.
from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from django.urls import path

from prefmh_web.annotate.consumer import VotingConsumer
from prefmh_web.console.consumer import BoardConsumer
from prefmh_web.operations.latency import Latency
from prefmh_web.transport.body_limit import BoundedHandler
from prefmh_web.transport.origin import SameOriginValidator

sockets = URLRouter(
    [
        path("ws/join/<str:token>/", VotingConsumer.as_asgi()),
        path("ws/campaigns/<int:campaign_id>/", BoardConsumer.as_asgi()),
    ]
)
application = Latency(
    ProtocolTypeRouter(
        {"http": BoundedHandler(), "websocket": SameOriginValidator(AuthMiddlewareStack(sockets), allowed_origins=())}
    )
)

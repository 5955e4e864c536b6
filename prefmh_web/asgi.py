"""The ASGI application: pages over HTTP, live panels over WebSockets."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "prefmh_web.settings")
http = get_asgi_application()

# Consumers import models, which need the line above first.
from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from django.urls import path

from prefmh_web.annotate.consumer import VotingConsumer
from prefmh_web.body_limit import BodyLimit
from prefmh_web.console.consumer import BoardConsumer
from prefmh_web.operations.latency import Latency
from prefmh_web.origin import SameOriginValidator

sockets = URLRouter(
    [
        path("ws/join/<str:token>/", VotingConsumer.as_asgi()),
        path("ws/campaigns/<int:campaign_id>/", BoardConsumer.as_asgi()),
    ]
)
application = Latency(
    ProtocolTypeRouter(
        {"http": BodyLimit(http), "websocket": SameOriginValidator(AuthMiddlewareStack(sockets), allowed_origins=())}
    )
)

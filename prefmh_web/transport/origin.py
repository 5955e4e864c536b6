"""A socket may be opened only by a page of this very site: same host, same port."""

from asgiref.typing import ASGI3Application
from channels.security.websocket import OriginValidator, WebsocketDenier
from django.conf import settings
from django.http.request import split_domain_port, validate_host


class SameOriginValidator(OriginValidator):
    """Refuses a socket whose Origin is not the Host it was opened to, or whose Host is not ours.

    Django's CSRF check does not see sockets, and channels' own AllowedHostsOriginValidator takes any port of an
    allowed host for the same site.
    """

    application: ASGI3Application

    async def __call__(self, scope, receive, send):
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin1").lower()
        origin = headers.get(b"origin", b"").decode("latin1").lower()
        domain, _ = split_domain_port(host)
        is_ours = validate_host(domain, settings.ALLOWED_HOSTS)
        if is_ours and origin in (f"http://{host}", f"https://{host}"):
            return await self.application(scope, receive, send)
        return await WebsocketDenier()(scope, receive, send)

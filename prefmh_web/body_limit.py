"""A bound on request bodies, kept while they arrive: Django looks at an upload's size only once it is all there."""

import re

from django.http import HttpResponse

DEFAULT_BYTES = 2**20
# Room for the largest catalog file and the form around it.
SETUP_BYTES = 513 * 2**20
_SETUP = re.compile(r"^/campaigns/(new|\d+/setup)/$")


class BodyLimit:
    """An ASGI application that answers 413 to a body larger than its path may have."""

    def __init__(self, application):
        self.application = application

    async def __call__(self, scope, receive, send):
        limit = SETUP_BYTES if _SETUP.match(scope["path"]) else DEFAULT_BYTES
        stated = dict(scope["headers"]).get(b"content-length", b"0")
        if not stated.isdigit() or int(stated) > limit:
            await _refuse(send)
            return
        arrived = 0

        async def counted():
            nonlocal arrived
            message = await receive()
            arrived += len(message.get("body", b""))
            # As if the client had gone: Django drops what it has of the request, and sends nothing.
            return {"type": "http.disconnect"} if arrived > limit else message

        await self.application(scope, counted, send)
        if arrived > limit:
            await _refuse(send)


async def _refuse(send) -> None:
    response = HttpResponse("The request is too large.", status=413, content_type="text/plain")
    headers = [(name.lower().encode(), value.encode()) for name, value in response.items()]
    await send({"type": "http.response.start", "status": 413, "headers": [*headers, (b"connection", b"close")]})
    await send({"type": "http.response.body", "body": response.content})

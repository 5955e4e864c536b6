"""A bound on how long a connection may be open without having asked for anything.

Uvicorn waits for ever for the rest of a request's head, and who opens connections enough, each with half a head, leaves
none to others. In front of several processes nginx sees to that; embedded, nothing else does.
"""

import asyncio

from uvicorn.protocols.http.auto import AutoHTTPProtocol

HEAD_WITHIN_S = 30


class PatientProtocol(AutoHTTPProtocol):  # type: ignore[valid-type, misc]  # one of two classes: uvicorn chooses
    """Closes connections on which no new request has begun for a while, and none is being answered."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._look_later()

    def _look_later(self) -> None:
        self.loop.call_later(HEAD_WITHIN_S, self._look, self.cycle)

    def _look(self, before) -> None:
        # A socket has a protocol of its own from its handshake on.
        if self.transport.is_closing() or self.transport.get_protocol() is not self:
            return
        is_idle = self.cycle is None or self.cycle.response_complete
        if is_idle and self.cycle is before:
            self.transport.close()
        else:
            self._look_later()

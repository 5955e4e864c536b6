"""Keys, read from the environment when a request is made, and kept nowhere.

A researcher names the variable; which variables may be named, and to which hosts each one's value may go, is the
site's business (ENDPOINT_KEYS): otherwise an endpoint named SECRET_KEY on a server of one's own would read it.
"""

import os
import re
from collections.abc import Generator

import httpx
from django.conf import settings

from prefmh_web.endpoints.errors import KeyMissing

# Marks a request that carries a key, among its extensions.
HOLDS_KEY = "prefmh_holds_key"
# What may stand in an HTTP header. A stray line break would end up in an exception's text, with the key around it.
_SENDABLE = re.compile(r"[\x21-\x7e]+")


def check_key(variable: str, host: str) -> None:
    """Check that a variable may be named, may go to this host, and holds a key; an empty name needs none.

    Raises:
        KeyMissing: it may not, or does not.
    """
    if not variable:
        return
    hosts = settings.ENDPOINT_KEYS.get(variable)
    if hosts is None:
        raise KeyMissing(
            f"{variable} is not a variable that keys are read from; whoever runs this site can add it to ENDPOINT_KEYS"
        )
    if host not in hosts:
        raise KeyMissing(f"the key in {variable} may not be sent to {host}, only to {', '.join(hosts)}")
    if not os.environ.get(variable):
        raise KeyMissing(f"the environment variable {variable} is not set")
    if not _SENDABLE.fullmatch(os.environ[variable]):
        raise KeyMissing(f"the environment variable {variable} holds white space or characters that no key has")


class KeyFromEnvironment(httpx.Auth):
    """Writes the header that carries the key. The key is no attribute of anything, and in no frame that raises.

    Args:
        variable: of the environment; empty to send no key.
        header, prefix: where the key goes, and what stands before it.
    """

    def __init__(self, variable: str, header: str = "Authorization", prefix: str = "Bearer ") -> None:
        self._variable, self._header, self._prefix = variable, header, prefix

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Yield the request with its header."""
        if self._variable:
            check_key(self._variable, request.url.host)
            request.headers[self._header] = f"{self._prefix}{os.environ[self._variable]}"
            # Whoever connects must know, whichever header it is in.
            request.extensions = {**request.extensions, HOLDS_KEY: True}
        yield request


def without_key(text: str, variable: str) -> str:
    """Return a text with the key, should a server repeat it, struck out."""
    key = os.environ.get(variable, "") if variable else ""
    return text.replace(key, "[key]") if key else text

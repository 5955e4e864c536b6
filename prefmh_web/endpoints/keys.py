"""Keys, read from the environment when a request is made, and kept nowhere.

A researcher names the variable; which variables may be named, and to which hosts each one's value may go, is the
site's business (ENDPOINT_KEYS): otherwise an endpoint named SECRET_KEY on a server of one's own would read it.
"""

import os
import re

from django.conf import settings

from prefmh_web.endpoints.errors import KeyMissing

HEADERS_WITH_KEYS = ("Authorization", "api-key", "x-api-key", "x-goog-api-key")
"""In which headers the kinds of servers take their keys."""
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


def key_header(variable: str, host: str, header: str, prefix: str) -> dict[str, str]:
    """Return the header that carries the key; nothing where no variable is named. Keep it nowhere.

    Args:
        variable: of the environment; empty to send no key.
        host: where the request goes.
        header, prefix: where the key goes, and what stands before it.

    Raises:
        KeyMissing: the key may not go there, or there is none.
    """
    if not variable:
        return {}
    check_key(variable, host)
    return {header: f"{prefix}{os.environ[variable]}"}


def without_key(text: str, variable: str) -> str:
    """Return a text with the key, should a server repeat it, struck out."""
    key = os.environ.get(variable, "") if variable else ""
    return text.replace(key, "[key]") if key else text

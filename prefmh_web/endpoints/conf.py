"""The settings this folder reads, with what holds where a project does not set them.

ENDPOINT_ALLOWED_HOSTS      hosts that a base URL may name: "api.example.com", "gpu1:8000" (that port only) or
                            ".example.com" (and all below); default: none
ENDPOINT_ALLOW_PRIVATE      False; True for loopback and private networks; or a list of networks, such as
                            ["127.0.0.1/32", "10.1.0.0/16"], for those only
ENDPOINT_KEYS               the environment variables that hold keys, each with the hosts it may be sent to:
                            {"OPENAI_API_KEY": ["api.openai.com"]}; default: none
ENDPOINT_FAILURES_TO_OPEN   failures in a row after which the circuit opens; default 3
ENDPOINT_LONGEST_PAUSE_S    the longest the circuit stays open before it is tried again; default 300
"""

import ipaddress
from collections.abc import Mapping, Sequence

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_PRIVATE = ("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1/128", "fc00::/7")


def allowed_hosts() -> tuple[str, ...]:
    return tuple(host.lower() for host in getattr(settings, "ENDPOINT_ALLOWED_HOSTS", ()))


def private_networks() -> tuple[Network, ...]:
    """Return the networks that may be called although they are not public.

    Raises:
        ImproperlyConfigured: the setting is none of what it may be.
    """
    allowed = getattr(settings, "ENDPOINT_ALLOW_PRIVATE", False)
    if isinstance(allowed, bool):
        allowed = _PRIVATE if allowed else ()
    if isinstance(allowed, str):
        raise ImproperlyConfigured("ENDPOINT_ALLOW_PRIVATE must be True, False or a list of networks, not a text")
    try:
        return tuple(ipaddress.ip_network(network) for network in allowed)
    except (TypeError, ValueError) as error:
        raise ImproperlyConfigured(
            f"ENDPOINT_ALLOW_PRIVATE must be True, False or a list of networks: {error}"
        ) from None


def key_hosts() -> Mapping[str, Sequence[str]]:
    return getattr(settings, "ENDPOINT_KEYS", {})


def failures_to_open() -> int:
    return getattr(settings, "ENDPOINT_FAILURES_TO_OPEN", 3)


def longest_pause_s() -> float:
    return getattr(settings, "ENDPOINT_LONGEST_PAUSE_S", 300.0)

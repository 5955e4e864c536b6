"""Which addresses may be called, and which key goes where: a campaign must not be a way into the network.

Which hosts and private networks whoever runs the site allows are two settings: ENDPOINT_ALLOWED_HOSTS and
ENDPOINT_ALLOW_PRIVATE.

An address is checked three times. When it is saved: its form, and its host against the allow-list. When a connection is
made: every address that the host resolves to, or the host itself where it is an address (for these no resolver is
asked). And before a request goes over a connection: the address at its other end, so that a name cannot point somewhere
else a moment later. Redirects are not followed, and proxies named in the environment are not used.

Keys are read from the environment when a request is made, and kept nowhere. A researcher names the variable; which
variables may be named, and to which hosts each one's value may go, is the site's business (ENDPOINT_KEYS): otherwise an
endpoint named SECRET_KEY on a server of one's own would read it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import re
import socket
import ssl
from functools import cache

import aiohttp
import certifi
from aiohttp.abc import AbstractResolver, ResolveResult
from django.conf import settings
from yarl import URL

from prefmh_web.endpoints.errors import AddressRefused, EndpointError, KeyMissing, Unreachable

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# Many servers close an idle connection after five seconds; one that is used in that moment is cut.
_KEPT_FOR_S = 3.0
_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
# The last label holds a letter: 2130706433 and 0x7f.1 are ways to write 127.0.0.1, not names.
_NAME = re.compile(rf"({_LABEL}\.)*(?=[a-z0-9-]*[a-z])(?!0x){_LABEL}\.?")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
# All that has been given out of the newer addresses. What lies outside may lead home in ways of its own: ::127.0.0.1.
_IPV6_GIVEN_OUT = ipaddress.ip_network("2000::/3")
# Public in form only: Azure tells a machine there about itself; protocol assignments; a retired relay of 6to4.
_NOT_PUBLIC = tuple(map(ipaddress.ip_network, ("168.63.129.16/32", "192.0.0.0/24", "192.88.99.0/24")))
_SCHEMES = ("http", "https")
# In which headers the kinds of servers take their keys.
_HEADERS_WITH_KEYS = ("Authorization", "api-key")
# What may stand in an HTTP header. A stray line break would end up in an exception's text, with the key around it.
_SENDABLE_KEY = re.compile(r"[\x21-\x7e]+")


def checked_base_url(text: str) -> str:
    """Return a base URL without its trailing slash.

    Raises:
        AddressRefused: its form is not that of a base URL, or its host is not on the allow-list.
    """
    url = _checked(text)
    if "?" in text or "#" in text:
        raise AddressRefused("the base URL must end with its path: no ? and no #")
    _check_host(url)
    return str(url).rstrip("/")


def _checked(text: str) -> URL:
    # The parser that checks is the one that will connect: two parsers may see two hosts in one text.
    text = text.strip()
    if "\\" in text or any(character.isspace() for character in text):
        raise AddressRefused("the base URL must hold no white space and no backslash")
    try:
        url = URL(text)
        is_whole = bool(url.host) and url.port is not None
    except (ValueError, UnicodeError):
        raise AddressRefused("the base URL is not a URL") from None
    if url.scheme not in _SCHEMES:
        raise AddressRefused("the base URL must begin with http:// or https://")
    if not is_whole:
        raise AddressRefused("the base URL is not a URL")
    if url.user is not None or url.password is not None:
        raise AddressRefused("the base URL must hold no user name or password; keys come from the environment")
    return url


def _check_host(url: URL) -> None:
    host, port = (url.raw_host or "").lower(), url.port or 0
    if not is_address(host) and not _NAME.fullmatch(host):
        raise AddressRefused(f"{host!r} is not the name of a host, nor an address in its usual form")
    if not 0 < port < 2**16:
        raise AddressRefused(f"there is no port {port}")
    if not any(_matches(host, port, pattern) for pattern in settings.ENDPOINT_ALLOWED_HOSTS):
        raise AddressRefused(
            f"{host} is not among the hosts that may be called; "
            "whoever runs this site can add it to ENDPOINT_ALLOWED_HOSTS"
        )


def is_address(host: str) -> bool:
    """Say whether a host is an address in its usual form, and no name."""
    try:
        return str(ipaddress.ip_address(host.strip("[]"))) == host.strip("[]")
    except ValueError:
        return False


def _matches(host: str, port: int, pattern: str) -> bool:
    name, colon, wanted_port = pattern.rpartition(":")
    if colon and wanted_port.isdigit() and not (":" in name and not name.endswith("]")):
        if int(wanted_port) != port:
            return False
        pattern = name
    pattern, host = pattern.lower().strip("[]"), host.strip("[]").rstrip(".")
    return host == pattern.removeprefix(".") or (pattern.startswith(".") and host.endswith(pattern))


def check_address(address: Address) -> None:
    """Let public addresses pass, and others only if the settings name their network.

    Raises:
        AddressRefused: this one may not be called.
    """
    inner = _within(address)
    private = map(ipaddress.ip_network, settings.ENDPOINT_ALLOW_PRIVATE)
    if any(inner.version == network.version and inner in network for network in private):
        return
    if not _is_public(inner):
        raise AddressRefused(
            f"{address} is not a public address; whoever runs this site can allow it in ENDPOINT_ALLOW_PRIVATE"
        )


def _is_public(inner: Address) -> bool:
    if inner.version == 6 and inner not in _IPV6_GIVEN_OUT:
        return False
    return inner.is_global and not inner.is_multicast and not any(inner in network for network in _NOT_PUBLIC)


def _within(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address leads to, if it does."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1] or address


class CheckedResolver(AbstractResolver):
    """Resolves a name to addresses that may all be called, and to none if one of them may not."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses of a host.

        Raises:
            AddressRefused: one of them may not be called.
            Unreachable: the name does not resolve.
        """
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, family=family)
        except (OSError, UnicodeError):
            raise Unreachable(f"the name {host} does not resolve") from None
        results: dict[str, ResolveResult] = {}
        for kind, _, protocol, _, place in found:
            # The zone of a link-local address, as in fe80::1%eth0, is no part of the address.
            address = str(place[0]).partition("%")[0]
            check_address(ipaddress.ip_address(address))
            results[address] = ResolveResult(
                hostname=host, host=address, port=port, family=kind, proto=protocol, flags=socket.AI_NUMERICHOST
            )
        return list(results.values())

    async def close(self) -> None:
        """Nothing is kept."""


class CheckedConnector(aiohttp.TCPConnector):
    """Connects to addresses that may be called, and sends nothing to others. As many connections as are asked for."""

    def __init__(self) -> None:
        super().__init__(
            resolver=CheckedResolver(), use_dns_cache=False, ssl=_tls(), limit=0, keepalive_timeout=_KEPT_FOR_S
        )

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[aiohttp.tracing.Trace], timeout: aiohttp.ClientTimeout
    ) -> aiohttp.connector.Connection:
        """Return a connection for a request, a new one or one that is kept.

        Raises:
            AddressRefused: its other end may not be called, or not with a key.
            Unreachable: it is cut already.
        """
        host = req.url.raw_host or ""
        if is_address(host):
            check_address(ipaddress.ip_address(host))
        connection = await super().connect(req, traces, timeout)
        try:
            _check_peer(connection, req)
        except EndpointError:
            connection.close()
            raise
        return connection


def _check_peer(connection: aiohttp.connector.Connection, request: aiohttp.ClientRequest) -> None:
    peer = None if connection.transport is None else connection.transport.get_extra_info("peername")
    if peer is None:
        raise Unreachable("the connection was cut")
    address = ipaddress.ip_address(str(peer[0]).partition("%")[0])
    check_address(address)
    holds_key = any(name in request.headers for name in _HEADERS_WITH_KEYS)
    if holds_key and request.url.scheme == "http" and _is_public(_within(address)):
        raise AddressRefused("a key goes to a public address over https:// only")


@cache
def _tls() -> ssl.SSLContext:
    # Reading the certificates of all authorities takes 20 ms: once a process. Not those that the environment names.
    return ssl.create_default_context(cafile=certifi.where())


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
    if not _SENDABLE_KEY.fullmatch(os.environ[variable]):
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

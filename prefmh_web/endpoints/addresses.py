"""Which addresses may be called: a campaign must not be a way into the network.

Which hosts and private networks whoever runs the site allows are two settings: ENDPOINT_ALLOWED_HOSTS and
ENDPOINT_ALLOW_PRIVATE.

An address is checked twice. When it is saved: its form, and its host against the allow-list. When a connection is made:
the host is resolved, every address it resolves to is checked, and the connection goes to one of these very addresses,
so that a name cannot point somewhere else a moment later. Redirects are not followed, and proxies named in the
environment are not used, since they would resolve the name once more.
"""

import contextlib
import ipaddress
import os
import re
import socket
import ssl
import threading
from functools import cache

import httpx
from django.conf import settings

from prefmh_web.endpoints.connections import BoundedTransport, NotConnected, seconds_left
from prefmh_web.endpoints.errors import AddressRefused, TimedOut, Unreachable
from prefmh_web.endpoints.keys import HOLDS_KEY

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
# The last label holds a letter: 2130706433 and 0x7f.1 are ways to write 127.0.0.1, not names.
_NAME = re.compile(rf"({_LABEL}\.)*(?=[a-z0-9-]*[a-z])(?!0x){_LABEL}\.?")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
# All that has been given out of the newer addresses. What lies outside may lead home in ways of its own: ::127.0.0.1.
_IPV6_GIVEN_OUT = ipaddress.ip_network("2000::/3")
# Public in form only: Azure tells a machine there about itself; protocol assignments; a retired relay of 6to4.
_NOT_PUBLIC = tuple(map(ipaddress.ip_network, ("168.63.129.16/32", "192.0.0.0/24", "192.88.99.0/24")))
_PORTS = {"http": 80, "https": 443}


def checked_base_url(text: str) -> str:
    """Return a base URL without its trailing slash.

    Raises:
        AddressRefused: its form is not that of a base URL, or its host is not on the allow-list.
    """
    url = _checked(text)
    if url.query or url.fragment or "?" in text or "#" in text:
        raise AddressRefused("the base URL must end with its path: no ? and no #")
    _check_host(url)
    return str(url).rstrip("/")


def _checked(text: str) -> httpx.URL:
    # The parser that checks is the one that will connect: two parsers may see two hosts in one text.
    try:
        url = httpx.URL(text.strip())
    except (httpx.InvalidURL, UnicodeError):
        raise AddressRefused("the base URL is not a URL") from None
    if url.scheme not in _PORTS:
        raise AddressRefused("the base URL must begin with http:// or https://")
    if url.userinfo:
        raise AddressRefused("the base URL must hold no user name or password; keys come from the environment")
    if "\\" in text or any(character.isspace() for character in text.strip()):
        raise AddressRefused("the base URL must hold no white space and no backslash")
    return url


def _check_host(url: httpx.URL) -> None:
    host = url.raw_host.decode("ascii").lower()
    if not _is_address(host) and not _NAME.fullmatch(host):
        raise AddressRefused(f"{host!r} is not the name of a host, nor an address in its usual form")
    port = _PORTS[url.scheme] if url.port is None else url.port
    if not 0 < port < 2**16:
        raise AddressRefused(f"there is no port {port}")
    if not any(_matches(host, port, pattern) for pattern in settings.ENDPOINT_ALLOWED_HOSTS):
        raise AddressRefused(
            f"{host} is not among the hosts that may be called; "
            "whoever runs this site can add it to ENDPOINT_ALLOWED_HOSTS"
        )


def _is_address(host: str) -> bool:
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


def resolve(host: str, port: int) -> tuple[Address, ...]:
    """Return the addresses of a host, all of them checked.

    Raises:
        AddressRefused: one of them may not be called.
        TimedOut: the look-up takes longer than the request has left.
        Unreachable: the name does not resolve.
    """
    # The zone of a link-local address, as in fe80::1%eth0, is no part of the address.
    addresses = [ipaddress.ip_address(found.partition("%")[0]) for found in _look_up(host, port)]
    for address in addresses:
        check_address(address)
    return tuple(dict.fromkeys(addresses))


def _look_up(host: str, port: int) -> list[str]:
    answers: list[list[str]] = []

    def ask() -> None:
        with contextlib.suppress(OSError, UnicodeError):
            answers.append([str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)])

    # The resolver knows no time limit: on a thread that nobody waits for, and that ends when the resolver gives up.
    thread = threading.Thread(target=ask, name="look-up", daemon=True)
    thread.start()
    thread.join(seconds_left())
    if thread.is_alive():
        raise TimedOut(f"the name {host} was not resolved in time")
    if not answers or not answers[0]:
        raise Unreachable(f"the name {host} does not resolve")
    return answers[0]


class CheckedTransport(httpx.BaseTransport):
    """Connects to addresses that `resolve` has checked, and to no others."""

    def __init__(self) -> None:
        self._transport = _kept_connections(_tls())

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request to an address its host resolves to now; to the next one where no connection comes about.

        The Host header was written from the URL already; TLS is told the name, so that it checks the certificate
        against the name and not the address.

        Raises:
            EndpointError: no address may be called, none can be reached, or the connection failed.
        """
        host, port = request.url.host, request.url.port or _PORTS[request.url.scheme]
        addresses = resolve(host, port)
        if request.extensions.get(HOLDS_KEY) and request.url.scheme == "http":
            _check_private(addresses)
        request.extensions = {**request.extensions, "sni_hostname": host}
        for address in addresses[:-1]:
            with contextlib.suppress(NotConnected):
                return self._send_to(address, request)
        try:
            return self._send_to(addresses[-1], request)
        except NotConnected as failure:
            raise failure.error from None

    def _send_to(self, address: Address, request: httpx.Request) -> httpx.Response:
        request.url = request.url.copy_with(host=str(address))
        return self._transport.handle_request(request)

    def close(self) -> None:
        """Close nothing: connections are kept for the next request of this process to the same address."""


def _check_private(addresses: tuple[Address, ...]) -> None:
    if any(_is_public(_within(address)) for address in addresses):
        raise AddressRefused("a key goes to a public address over https:// only")


@cache
def _kept_connections(context: ssl.SSLContext) -> BoundedTransport:
    return BoundedTransport(context)


# A child must not go on with its parent's connections.
os.register_at_fork(after_in_child=_kept_connections.cache_clear)


@cache
def _tls() -> ssl.SSLContext:
    # Reading the certificates of all authorities takes 20 ms: once a process.
    return httpx.create_ssl_context(trust_env=False)

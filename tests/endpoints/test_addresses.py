"""A campaign is no way into the network: hostile base URLs, names that lead home, redirects."""

import asyncio
import gc
import ipaddress
import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime

import aiohttp
import pytest
import trustme
from yarl import URL

from prefmh_web.endpoints import addresses, client, loop
from prefmh_web.endpoints.addresses import CheckedResolver, check_address, checked_base_url
from prefmh_web.endpoints.errors import AddressRefused, EndpointError, Refused, ServerError, Unreachable
from tests.endpoints.conftest import chat
from tests.support.models import Script, says, scripted_server, status, wire


def resolve(name: str, port: int) -> list[str]:
    return [found["host"] for found in loop.run(CheckedResolver().resolve(name, port))]


@pytest.fixture
def some_hosts(settings) -> None:
    settings.ENDPOINT_ALLOWED_HOSTS = [
        "api.example.com",
        ".models.example.org",
        "gpu1:8000",
        "[2001:db8::1]:8000",
        "8.8.8.8",
    ]
    settings.ENDPOINT_ALLOW_PRIVATE = []


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("https://api.example.com/v1/", "https://api.example.com/v1"),
        ("http://gpu1:8000/v1", "http://gpu1:8000/v1"),
        ("https://eu.models.example.org", "https://eu.models.example.org"),
        ("https://models.example.org", "https://models.example.org"),
        ("HTTPS://API.Example.com/v1", "https://api.example.com/v1"),
        ("https://8.8.8.8/v1", "https://8.8.8.8/v1"),
        ("http://[2001:db8::1]:8000/v1", "http://[2001:db8::1]:8000/v1"),
    ],
)
def test_a_host_on_the_list_passes(some_hosts, url: str, kept: str) -> None:
    assert checked_base_url(url) == kept


@pytest.mark.parametrize(
    "url",
    [
        "", "api.example.com/v1", "ftp://api.example.com/v1", "file:///etc/passwd", "gopher://api.example.com",
        "https://evil.example/v1", "https://api.example.com.evil.example/v1", "https://evilmodels.example.org/v1",
        "https://api.example.com@evil.example/v1", "https://evil.example#@api.example.com/v1",
        "https://evil.example\\@api.example.com/v1", "https://evil.example/@api.example.com/v1",
        "https://user:secret@api.example.com/v1", "https://user@api.example.com/v1",
        "https://api.example.com/v1?next=http://evil.example", "https://api.example.com/v1#x",
        "https://api.example.com/v1?", "https://api.example.com:x/v1", "https://api.example.com:0/v1",
        "https://api.example.com:65536/v1", "https://api.example.com:65979/v1", "https://api.exa\tmple.com/v1",
        "http://gpu1:8001/v1", "http://gpu1/v1", "http://127.0.0.1/v1", "http://2130706433/v1",
        "http://0x7f000001/v1", "http://0177.0.0.1/v1", "http://127.1/v1", "http://[::1]/v1",
        "http://[::ffff:127.0.0.1]/v1", "http://169.254.169.254/latest/meta-data", "http://localhost/v1",
        "http://①②⑦.0.0.1/v1",
    ],
)  # fmt: skip
def test_anything_else_is_refused(some_hosts, url: str) -> None:
    with pytest.raises(AddressRefused):
        checked_base_url(url)


def test_nothing_passes_unless_the_settings_name_it(settings) -> None:
    with pytest.raises(AddressRefused, match="ENDPOINT_ALLOWED_HOSTS"):
        checked_base_url("https://api.example.com/v1")


# The one of 2001:0: is Teredo to 127.0.0.1, that of 64:ff9b:1: a network's own NAT64 to 10.0.0.1.
@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.9.9.9", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0", "100.64.0.1",
        "224.0.0.1", "239.1.1.1", "255.255.255.255", "::1", "::", "fe80::1", "fd00::1", "ff02::1", "::ffff:127.0.0.1",
        "::ffff:169.254.169.254", "64:ff9b::7f00:1", "2002:7f00:1::", "2001:0:0:0:0:0:80ff:fffe", "::127.0.0.1",
        "::ffff:0:127.0.0.1", "64:ff9b:1::a00:1", "fec0::1", "5f00::1", "168.63.129.16", "192.0.0.8", "192.88.99.1",
        "::ffff:168.63.129.16",
    ],
)  # fmt: skip
def test_no_address_but_a_public_one_is_called(some_hosts, address: str) -> None:
    with pytest.raises(AddressRefused, match="ENDPOINT_ALLOW_PRIVATE"):
        check_address(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"])
def test_a_public_address_is_called(some_hosts, address: str) -> None:
    check_address(ipaddress.ip_address(address))


def test_private_networks_pass_as_far_as_the_settings_say(settings) -> None:
    loopback, neighbour, metadata = (ipaddress.ip_address(a) for a in ("127.0.0.1", "10.1.2.3", "169.254.169.254"))
    settings.ENDPOINT_ALLOW_PRIVATE = ["10.1.0.0/16"]
    check_address(neighbour)
    for address in (loopback, metadata):
        with pytest.raises(AddressRefused):
            check_address(address)
    settings.ENDPOINT_ALLOW_PRIVATE = ["127.0.0.0/8", "::1/128"]
    check_address(loopback)
    check_address(ipaddress.ip_address("::ffff:127.0.0.1"))
    with pytest.raises(AddressRefused):
        check_address(metadata)


@pytest.mark.parametrize("name", ["localhost", "2130706433", "0x7f000001", "127.1"])
def test_a_name_that_resolves_to_loopback_is_refused_when_it_is_called(settings, name: str) -> None:
    settings.ENDPOINT_ALLOW_PRIVATE = []
    with pytest.raises(AddressRefused, match="ENDPOINT_ALLOW_PRIVATE"):
        resolve(name, 80)


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "2130706433", "0x7f000001", "0.0.0.0", "localhost"],
)
def test_nothing_is_sent_home_however_home_is_written(settings, script: Script, host: str) -> None:
    settings.ENDPOINT_ALLOW_PRIVATE = []
    # No resolver is asked about addresses, and this is below the check of the base URL. aiohttp takes no bare number.
    with pytest.raises(Unreachable if host.isdigit() else AddressRefused):
        loop.run(client.exchange(f"http://{host}:{URL(script.url).port}/version", None, {}, 5.0))
    assert not script.connections
    with pytest.raises(AddressRefused, match="ENDPOINT_ALLOW_PRIVATE"):
        loop.run(client.exchange("http://[::ffff:10.0.0.1]/", None, {}, 5.0))


def resolver(monkeypatch, *answers: list[str]) -> list[str]:
    """Let names resolve to these addresses, one answer a look-up; return the names looked up."""
    asked: list[str] = []

    def look_up(host, port, *arguments, **options):
        asked.append(host)
        found = answers[min(len(asked), len(answers)) - 1]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in found]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return asked


def test_a_name_with_one_private_address_among_public_ones_is_refused(monkeypatch, some_hosts) -> None:
    resolver(monkeypatch, ["8.8.8.8", "10.0.0.1"])
    with pytest.raises(AddressRefused):
        resolve("api.example.com", 443)


@pytest.fixture
def named(settings, script: Script) -> str:
    """The base URL of a server under a name, which a test lets resolve as it likes."""
    settings.ENDPOINT_ALLOWED_HOSTS = ["models.example.org"]
    settings.ENDPOINT_ALLOW_PRIVATE = ["127.0.0.0/8"]
    return f"http://models.example.org:{URL(script.url).port}"


def test_the_address_that_was_checked_is_the_one_that_is_called(monkeypatch, script: Script, named: str) -> None:
    # The name's second answer, which a second look-up would have followed, leads nowhere.
    asked = resolver(monkeypatch, ["127.0.0.1"], ["169.254.169.254"])
    chat(named)
    assert asked == ["models.example.org"]
    assert script.headers[0]["Host"] == named.removeprefix("http://")


def test_each_connection_is_made_to_an_address_that_was_looked_up_and_checked_for_it(
    monkeypatch, script: Script, named: str
) -> None:
    asked = resolver(monkeypatch, ["127.0.0.1"], ["169.254.169.254"])
    script.faults.append(status(500, Connection="close"))
    for kind in (ServerError, AddressRefused):
        with pytest.raises(kind):
            chat(named)
    assert (len(asked), len(script.requests)) == (2, 1)


def test_a_connection_that_is_kept_is_looked_at_again(settings, monkeypatch, script: Script, named: str) -> None:
    asked = resolver(monkeypatch, ["127.0.0.1"])
    chat(named)
    settings.ENDPOINT_ALLOW_PRIVATE = []
    with pytest.raises(AddressRefused, match=r"127\.0\.0\.1"):
        chat(named)
    assert (len(asked), len(script.requests)) == (1, 1)


def test_an_address_where_nobody_listens_is_passed_over(monkeypatch, script: Script, named: str) -> None:
    resolver(monkeypatch, ["127.0.0.2", "127.0.0.1"])
    chat(named)
    assert len(script.requests) == 1


def test_a_connection_that_is_cut_before_anything_is_sent_is_closed(monkeypatch, script: Script, named: str) -> None:
    resolver(monkeypatch, ["127.0.0.1"])
    connected = aiohttp.TCPConnector.connect

    async def cut(*arguments, **options):
        connection = await connected(*arguments, **options)
        connection.transport.abort()
        while connection.transport is not None:
            await asyncio.sleep(0)
        return connection

    monkeypatch.setattr(aiohttp.TCPConnector, "connect", cut)
    with pytest.raises(Unreachable):
        chat(named)
    # One that were not closed would be a warning here, and so an error.
    gc.collect()


def test_a_name_that_does_not_resolve_is_unreachable(settings) -> None:
    with pytest.raises(Unreachable, match="does not resolve"):
        resolve("no-such-host.invalid", 80)


ELSEWHERE = "http://169.254.169.254/latest/meta-data"
NOWHERE = ["http://[", "http://\x80/", "//" + "a" * 10_000, "ftp://127.0.0.1", "\u0130", ""]


@pytest.mark.parametrize(
    ("code", "location"),
    [*((code, ELSEWHERE) for code in (301, 302, 303, 307, 308)), *((302, location) for location in NOWHERE)],
)
def test_a_redirect_is_not_followed(local_allowed, script: Script, code: int, location: str) -> None:
    head = f"HTTP/1.1 {code} Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n"
    script.faults.append(wire(head.encode()))
    with pytest.raises(Refused, match="not followed"):
        chat(script.url)
    assert len(script.requests) == 1


def test_proxies_of_the_environment_are_not_used(monkeypatch, local_allowed, script: Script) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    chat(script.url)
    assert len(script.requests) == 1


# What is said of a server whose TLS is wrong: enough to fix it.


@pytest.fixture(scope="module")
def trusted() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def it_is_known(trusted: trustme.CA, monkeypatch) -> Iterator[None]:
    """Let the authority be among those that are known everywhere."""
    # These are read once, and connections are made with them by one session.
    with monkeypatch.context() as patches, trusted.cert_pem.tempfile() as known:
        patches.setattr("certifi.where", lambda: known)
        patches.setattr(client, "_sessions", {})
        addresses._tls.cache_clear()
        yield
    addresses._tls.cache_clear()


def signed(authority: trustme.CA, name: str = "127.0.0.1", **validity: datetime) -> ssl.SSLContext:
    """Return what a server shows whose certificate an authority has signed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name, **validity).configure_cert(context)
    return context


def self_signed(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with authority.cert_pem.tempfile() as certificate, authority.private_key_pem.tempfile() as key:
        context.load_cert_chain(certificate, key)
    return context


def answer(tls: ssl.SSLContext | None, change=lambda url: url) -> str:
    """Return what a server's reply comes to: its text, or the reason why there is none."""
    with scripted_server(dict, tls=tls) as script:
        script.faults.append(says("A"))
        try:
            return chat(change(script.url))
        except EndpointError as error:
            return error.reason


@pytest.mark.parametrize(
    ("name", "validity", "host", "said"),
    [
        ("127.0.0.1", {}, "127.0.0.1", "A"),
        ("127.0.0.1", {"not_after": datetime(2020, 1, 2, tzinfo=UTC)}, "127.0.0.1", "certificate has expired"),
        ("127.0.0.1", {"not_before": datetime(2037, 1, 1, tzinfo=UTC)}, "127.0.0.1", "not yet valid"),
        ("models.example.org", {}, "127.0.0.1", "not valid for '127.0.0.1'"),
        ("127.0.0.1", {}, "localhost", "not valid for 'localhost'"),
    ],
)
def test_what_a_certificate_of_a_known_authority_comes_to(
    trusted, it_is_known, local_allowed, name, validity, host, said
) -> None:
    assert said in answer(signed(trusted, name, **validity), lambda url: url.replace("127.0.0.1", host))


def test_certificates_that_nobody_vouches_for(trusted, local_allowed) -> None:
    assert "self-signed certificate" in answer(self_signed(trusted))
    assert "unable to get local issuer certificate" in answer(signed(trusted))


def test_one_side_speaks_tls_and_the_other_does_not(trusted, local_allowed) -> None:
    reason = answer(None, lambda url: url.replace("http://", "https://"))
    assert "http://" in reason
    assert "TLS" in reason
    assert "https://" in answer(self_signed(trusted), lambda url: url.replace("https://", "http://"))
    assert "cannot be reached" in answer(None, lambda _: "https://127.0.0.1:9/v1")

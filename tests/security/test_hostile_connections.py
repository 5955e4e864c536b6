"""What no browser sends: bytes that mean two things, paths out of their folder, bombs in a socket.

Strings that only a stranger sends, wherever a stranger can put one: none makes the server fail.

Driven through the real server: what a test client would refuse to send, or decode by itself, arrives as it was sent.
"""

import itertools
import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from urllib.parse import unquote_to_bytes, urlsplit

import httpx
import pytest

from prefmh_web.campaigns.models import Campaign, Lease, Vote
from tests.console.test_pages import form
from tests.security.test_limits import all_at_once
from tests.security.world import browser_of
from tests.support.installations import closing_code, cookies_after_joining, open_socket
from tests.support.process import wait_until_idle
from tests.voting.test_socket import lease_in


def exchange(site_url: str, head: str, body: bytes = b"") -> bytes:
    """Send these lines and this body; return the beginning of what comes back."""
    address = urlsplit(site_url)
    text = head.format(host=address.netloc).replace("\n", "\r\n") + "\r\nConnection: close\r\n\r\n"
    with socket.create_connection((address.hostname, address.port), timeout=10) as connection:
        connection.sendall(text.encode("latin-1") + body)
        answer = b""
        while piece := connection.recv(2**16):
            answer += piece
    return answer


OUTSIDE = [
    "/static/../manage.py", "/static/..%2f..%2fmanage.py", "/static/%2e%2e/%2e%2e/manage.py", "/static//etc/passwd",
    "/static/..\\..\\manage.py", "/static/%252e%252e/manage.py", "/static/css/../../prefmh_web/urls.py",
    "/../manage.py", "/media/uploads/", "/static/", "/static/css/", "//evil.example/%2f..", "/%2f%2fevil.example/",
]  # fmt: skip


@pytest.mark.parametrize("path", OUTSIDE)
def test_no_path_leads_to_a_file_that_is_no_page(world_site, path):
    answer = exchange(world_site.url, f"GET {path} HTTP/1.1\nHost: {{host}}")
    assert b" 404 " in answer.splitlines()[0]
    assert b"location:" not in answer.lower()


HEADS = {
    "two lengths": "POST /x/ HTTP/1.1\nHost: {host}\nContent-Length: 4\nContent-Length: 40",
    "a negative length": "POST /x/ HTTP/1.1\nHost: {host}\nContent-Length: -4",
    "a length of many digits": "POST /x/ HTTP/1.1\nHost: {host}\nContent-Length: " + "9" * 5000,
    "two hosts": "GET / HTTP/1.1\nHost: {host}\nHost: evil.example",
    "no host": "GET / HTTP/1.1",
    "a NUL in the path": "GET /\x00 HTTP/1.1\nHost: {host}",
    "a tunnel": "CONNECT evil.example:80 HTTP/1.1\nHost: evil.example:80",
}


@pytest.mark.parametrize("head", HEADS)
def test_a_request_that_means_two_things_is_refused(world_site, head):
    status = exchange(world_site.url, HEADS[head]).splitlines()[0]
    assert b" 400 " in status or b" 413 " in status


def test_a_trace_echoes_nothing(world_site):
    answer = exchange(world_site.url, "TRACE / HTTP/1.1\nHost: {host}\nCookie: prefmh_session=told-to-nobody")
    assert b"told-to-nobody" not in answer


def test_an_address_of_another_site_in_the_request_line_stands_in_no_answer(world_site):
    answer = exchange(world_site.url, "GET http://evil.example/ HTTP/1.1\nHost: {host}")
    assert b"location: http" not in answer.lower()


@pytest.mark.parametrize("size", [70_000, 60_000_000])
def test_a_message_that_unpacks_to_more_than_the_bound_closes_the_socket(world, world_site, size):
    member = cookies_after_joining(f"{world_site.url}/join/{world.token}/")
    with open_socket(world_site.url, f"/ws/join/{world.token}/", member) as connection:
        connection.recv(timeout=10)
        # Sixty megabytes of one letter are sixty kilobytes on the wire.
        connection.send("a" * size)
        assert closing_code(connection) == 1009
    assert httpx.get(f"{world_site.url}/healthz").status_code == 200


def test_a_vote_sent_forty_times_at_once_by_both_doors_is_one_vote(world, world_site):
    link = f"/join/{world.token}/"
    with httpx.Client(base_url=world_site.url, follow_redirects=True, timeout=60) as browser:
        page = browser.get(link).text
        token = page.split('csrfmiddlewaretoken" value="')[1].split('"')[0]
        page = browser.post(link, data={"csrfmiddlewaretoken": token}, headers={"Origin": world_site.url}).text
        token = page.split('csrfmiddlewaretoken" value="')[1].split('"')[0]
        cookies = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    with open_socket(world_site.url, f"/ws{link}", cookies) as connection:
        lease = lease_in(connection.recv(timeout=10))
        statuses = []

        def post(choice: str) -> None:
            fields = {"csrfmiddlewaretoken": token, "lease": lease, "choice": choice}
            headers = {"Origin": world_site.url, "Cookie": cookies}
            answer = httpx.post(f"{world_site.url}{link}vote/", data=fields, headers=headers, timeout=60)
            statuses.append(answer.status_code)

        by_socket = partial(connection.send, f'{{"lease": "{lease}", "choice": "first"}}')
        all_at_once([by_socket, *(partial(post, choice) for choice in ["first", "second"] * 20)])
    wait_until_idle()
    assert set(statuses) == {302}
    assert Vote.objects.filter(key=lease).count() == 1
    person = Lease.objects.get(key=lease).voter
    assert Vote.objects.filter(voter=person).count() == 1


# As bytes of a header or a form, percent-encoded where an address needs it.
STRINGS = {
    "NUL": "%00",
    "NUL inside": "abcdefgh%00ijklmnop",
    "a whole key with NUL": "a" * 31 + "%00",
    "controls": "%01%02%08%0b%0c%1b%1f%7f",
    "line ends": "a%0d%0aSet-Cookie: b=c",
    "no UTF-8": "%ff%fe%80",
    "a lone surrogate": "%ed%a0%80",
    "overlong": "%c0%80%e0%80%80",
    "bidi": "%e2%80%aeabc%e2%80%ac",
    "no character": "%ef%bf%be%ef%bf%bf%f4%8f%bf%bf",
    "long": "A" * 5000,
    "quotes": "'%22%5c;--",
    "percent": "%25s%25n%7b0%7d%7b%7b7*7%7d%7d",
    "a number with five thousand digits": "9" * 5000,
    "other digits": "%d9%a1%d9%a2",
    "hyphens": "-" * 36,
    "36 hex digits": "0" * 36,
    "a key of 36": "00000000-0000-4000-8000-00000000000g".replace("g", "0"),
}
PATHS = [
    "/{}", "/join/{}/", "/join/{}/vote/", "/campaigns/{}/", "/campaigns/{}/setup/", "/campaigns/1/files/{}",
    "/campaigns/pictures/{}/", "/pairs/{}/first/", "/pairs/{}/second/?dark&marked", "/endpoints/{}/", "/static/{}",
    "/accounts/sign-in/?next={}", "/accounts/sign-in/by-link/?sesame={}", "/accounts/sign-in/by-link/?next={}&sesame=a",
    "/?{}", "/campaigns/new/?{}={}", "/ws/join/{}/", "/ws/campaigns/{}/", "/metrics?{}", "/healthz?{}",
]  # fmt: skip
HEADERS = [
    "Accept", "Accept-Language", "Accept-Encoding", "Authorization", "If-Modified-Since", "If-None-Match", "Range",
    "Origin", "Referer", "User-Agent", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Request-ID",
    "HX-Request", "HX-Current-URL", "Content-Type", "X-CSRFToken", "Forwarded", "X-HTTP-Method-Override", "Cookie",
]  # fmt: skip


@contextmanager
def no_failure(site, caplog) -> Iterator[None]:
    """Fail if anything was logged as an error meanwhile: a socket's failure shows nowhere else."""
    caplog.clear()
    with caplog.at_level(logging.ERROR):
        yield
    # What strangers are refused for is told on this level by one logger of Django's, as it should be.
    refused = "django.security.DisallowedHost"
    assert [record.getMessage()[:300] for record in caplog.records if record.name != refused] == []


def raw(text: str) -> bytes:
    """Return the bytes that a percent-encoded text stands for."""
    return unquote_to_bytes(text)


def ask(site, path: str, method: str = "GET", headers: dict[bytes, bytes] | None = None, body: bytes = b"") -> int:
    """Send a request as it stands and return the status; 400 where the server hung up without one."""
    address = urlsplit(site.url)
    fields = {b"Host": address.netloc.encode(), b"Connection": b"close"} | (headers or {})
    if body or method == "POST":
        fields[b"Content-Length"] = str(len(body)).encode()
    head = b"".join(b"%s: %s\r\n" % pair for pair in fields.items())
    with socket.create_connection((address.hostname, address.port), timeout=20) as connection:
        connection.sendall(b"%s %s HTTP/1.1\r\n%s\r\n%s" % (method.encode(), path.encode("latin1"), head, body))
        answer = b""
        while len(answer) < 12 and (piece := connection.recv(4096)):
            answer += piece
    return int(answer[9:12] or 400)


def cookie_of(user) -> bytes:
    return f"prefmh_session={browser_of(user).cookies['prefmh_session'].value}".encode()


@pytest.mark.parametrize("string", STRINGS)
def test_no_address_makes_the_server_fail(world, world_site, caplog, string):
    text = STRINGS[string]
    signed_in = {b"Cookie": cookie_of(world.victim)}
    with no_failure(world_site, caplog):
        for method, path in itertools.product(("GET", "POST"), PATHS):
            status = ask(world_site, path.replace("{}", text), method, signed_in)
            assert (path, method, status < 500) == (path, method, True)


# In an octal escape a cookie may hold any byte at all.
COOKIES = [
    rb'prefmh_session="\000aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"',
    rb'prefmh_session="aaaaaaaaaaaaaaa\000aaaaaaaaaaaaaaaa"',
    rb'prefmh_session="\000"',
    rb'prefmh_session="\377\376\001\002\003\004\005\006"',
    b"prefmh_session=" + b"\xff" * 32,
    b"prefmh_session=" + b"A" * 4000,
    rb'prefmh_csrf="\000aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"',
    rb'messages="\000"',
    rb'messages="[[\"__json_message\",0,20,\"\000\"]]:abc"',
    b"prefmh_session",
    b"=;=;=",
    b"prefmh_session=" + b"%00" * 12,
    rb'prefmh_session="\200\300aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"',
    rb"prefmh_session=\000aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
]


@pytest.mark.parametrize("cookie", COOKIES, ids=ascii)
def test_no_cookie_makes_the_server_fail(world, world_site, caplog, cookie):
    paths = ("/", world.campaign.get_absolute_url(), f"/join/{world.token}/", world.vote_path, "/accounts/sign-in/")
    with no_failure(world_site, caplog):
        for path, method in itertools.product(paths, ("GET", "POST")):
            assert ask(world_site, path, method, {b"Cookie": cookie}) < 500
        # The largest form is read only for whoever is signed in, which is asked while the body arrives.
        assert ask(world_site, "/campaigns/new/", "POST", {b"Cookie": cookie}, b"x" * 2_000_000) in (400, 413)
        # Sockets look for the session as pages do.
        for path in (f"/ws/join/{world.token}/", f"/ws/campaigns/{world.campaign.pk}/"):
            assert upgrade(world_site, path, cookie) in (101, 400, 403)


def upgrade(site, path: str, cookie: bytes = b"", origin: str = "") -> int:
    headers = {
        b"Connection": b"Upgrade", b"Upgrade": b"websocket", b"Sec-WebSocket-Version": b"13", b"Cookie": cookie,
        b"Sec-WebSocket-Key": b"AAAAAAAAAAAAAAAAAAAAAA==", b"Origin": (origin or site.url).encode(),
    }  # fmt: skip
    return ask(site, path, headers=headers)


@pytest.mark.parametrize("string", STRINGS)
def test_no_header_makes_the_server_fail(world, world_site, caplog, string):
    with no_failure(world_site, caplog):
        cookie = {b"Cookie": cookie_of(world.victim)}
        for name in HEADERS:
            sent = cookie | {name.encode(): raw(STRINGS[string])}
            assert (name, ask(world_site, "/endpoints/", headers=sent) < 500) == (name, True)
        origin = {b"Origin": b"http://[" + raw(STRINGS[string])}
        assert ask(world_site, f"/ws/join/{world.token}/", headers=origin) < 500


CHARSETS = [
    "utf-7", "utf-16", "unicode_escape", "raw_unicode_escape", "idna", "punycode", "rot13", "hex", "zlib", "latin1",
]  # fmt: skip
# Each, in the charset that makes a lone surrogate or a NUL of it.
ENCODED = [b"+2AA-", rb"\ud800", rb"\u0000", b"a\x00", b"%00", b"xn--a", b"00", b"\xd8\x00\xd8\x00"]


@pytest.mark.parametrize("charset", CHARSETS)
def test_no_charset_smuggles_in_what_cannot_be_stored(world, world_site, caplog, charset):
    cookies, token, fields = good_form(world)
    headers = {b"Cookie": cookies, b"Content-Type": f"multipart/form-data; boundary=xx; charset={charset}".encode()}
    before = Campaign.objects.count()
    with no_failure(world_site, caplog):
        for encoded in ENCODED:
            # Of two parts of one name the last one holds.
            parts = fields + b"".join(part(name, encoded) for name in ("name", "instructions", "judges.0.question"))
            # The name of the file ends the quotation of the part's own name.
            parts += part(f'space.catalog.file"; filename="{encoded.decode("latin1")}.csv', b"text\none\ntwo\n")
            assert ask(world_site, "/campaigns/new/", "POST", headers, parts + token + b"--xx--\r\n") < 500
            sign_in = part("username", encoded) + part("password", encoded) + token + b"--xx--\r\n"
            assert ask(world_site, "/accounts/sign-in/", "POST", headers, sign_in) < 500
            following = encoded.decode("latin1").encode("unicode_escape").decode().replace(" ", "")
            query = f"/accounts/sign-in/?next={following}"
            assert ask(world_site, query, "GET", {b"Content-Type": b"text/plain; charset=" + charset.encode()}) < 500
    assert Campaign.objects.count() == before


def good_form(world) -> tuple[bytes, bytes, bytes]:
    """Return the victim's cookies, the token of a form, and all fields of a good setup but its file."""
    browser = browser_of(world.victim)
    browser.get("/campaigns/new/")
    token = browser.cookies["prefmh_csrf"].value
    fields = [(name, str(value)) for name, value in form().items() if name != "space.catalog.file"]
    cookies = cookie_of(world.victim) + f"; prefmh_csrf={token}".encode()
    whole = b"".join(part(name, value.encode()) for name, value in fields)
    return cookies, part("csrfmiddlewaretoken", token.encode()), whole


def part(name: str, value: bytes) -> bytes:
    return b'--xx\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (name.encode("latin1"), value)


CONTENT_TYPES = [
    "text/plain; charset*=utf-8''%00",
    'text/plain; charset=""',
    "text/plain; a*=no-such''b",
    "text/plain; a*=x; a*0=y",
    "text/plain; charset*=utf-8''%ed%a0%80",
    "text/plain; charset*0=utf; charset*1=-8",
    ";",
    ";;;=",
    "text/plain; a*9*=x",
    f"text/plain; a*{'9' * 5000}=x",
    "multipart/form-data",
    "multipart/form-data; boundary=",
    "text/plain; charset=undefined",
    "multipart/form-data; boundary*=utf-8''xx",
    "multipart/mixed; boundary=xx",
    "application/x-www-form-urlencoded; charset=hex",
    'text/plain; charset="a\\',
    "text/plain; charset*=undefined''a",
    "text/plain; charset*=hex''a",
    "text/plain; a*=idna''%ff",
]


@pytest.mark.parametrize("kind", CONTENT_TYPES, ids=range(len(CONTENT_TYPES)))
def test_no_content_type_makes_the_server_fail(world, world_site, caplog, kind):
    part_of = f"--xx\r\nContent-Disposition: form-data; name=a\r\nContent-Type: {kind}\r\n\r\nb\r\n"
    named = f"--xx\r\nContent-Disposition: form-data; name=a; {kind.partition(';')[2]}\r\n\r\nb\r\n"
    parts = b"".join((part_of.encode(), named.encode(), part("username", b"a"), b"--xx--\r\n"))
    whole = {b"Content-Type": b"multipart/form-data; boundary=xx"}
    with no_failure(world_site, caplog):
        for path in ("/", "/accounts/sign-in/", world.vote_path):
            assert ask(world_site, path, "GET", {b"Content-Type": kind.encode()}) < 500
            assert ask(world_site, path, "POST", {b"Content-Type": kind.encode()}, b"--xx\r\n\r\n--xx--") < 500
            assert ask(world_site, path, "POST", whole, parts) < 500


FILE_NAMES = [
    "a." + "x" * 150,
    "\U0001f600" * 90 + ".csv",
    "." * 200,
    "a" * 900,
    "\u202e.csv",
    "..",
    "con.csv",
    "\x7f\x01",
    "%00",
]


@pytest.mark.parametrize("size", [10, 3 * 2**20], ids=["small", "large"])
def test_no_file_name_makes_the_server_fail(world, world_site, caplog, size):
    cookies, token, fields = good_form(world)
    headers = {b"Cookie": cookies, b"Content-Type": b"multipart/form-data; boundary=xx"}
    content = b"text\none\ntwo\n" + (b"x" * 1000 + b"\n") * (size // 1000)
    for name in FILE_NAMES:
        file = (
            b'--xx\r\nContent-Disposition: form-data; name="space.catalog.file"; filename="%s"\r\n\r\n' % name.encode()
        )
        with no_failure(world_site, caplog):
            parts = fields + token + file + content + b"\r\n--xx--\r\n"
            status = ask(world_site, "/campaigns/new/", "POST", headers, parts)
            wait_until_idle()
        assert (name, status < 500) == (name, True)

"""What no browser sends: bytes that mean two things, paths out of their folder, bombs in a socket."""

import socket
import threading
from urllib.parse import urlsplit

import httpx
import pytest

from prefmh_web.campaigns.models import Lease, Vote
from tests.support.campaigns import wait_until_idle
from tests.support.installations import closing_code, cookies_after_joining, open_socket
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

        threads = [threading.Thread(target=post, args=(choice,)) for choice in ["first", "second"] * 20]
        for thread in threads:
            thread.start()
        connection.send(f'{{"lease": "{lease}", "choice": "first"}}')
        for thread in threads:
            thread.join()
    wait_until_idle()
    assert set(statuses) == {302}
    assert Vote.objects.filter(key=lease).count() == 1
    person = Lease.objects.get(key=lease).annotator
    assert Vote.objects.filter(annotator=person).count() == 1

"""Bare WebSocket clients: what a browser sends, and what no browser of ours would."""

import json
import urllib.parse
import urllib.request
from http.cookiejar import CookieJar

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect


def cookies_after_joining(link: str) -> str:
    """Open an invitation and join; return the session's Cookie header."""
    jar = CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    browser.open(link).close()
    [token] = [cookie.value for cookie in jar if cookie.name == "prefmh_csrf"]
    form = urllib.parse.urlencode({"csrfmiddlewaretoken": token}).encode()
    browser.open(urllib.request.Request(link, form, {"Referer": link})).close()
    return "; ".join(f"{cookie.name}={cookie.value}" for cookie in jar)


def open_socket(site_url: str, path: str, cookies: str = "", origin: str | None = None) -> ClientConnection:
    """Open a socket as a page of this site would, or with another origin."""
    address = site_url.replace("http", "ws", 1) + path
    headers = {"Cookie": cookies} if cookies else {}
    return connect(address, origin=origin or site_url, additional_headers=headers, open_timeout=10)


def closing_code(socket: ClientConnection) -> int:
    """Read until the server closes the socket and return its code."""
    try:
        while True:
            socket.recv(timeout=10)
    except ConnectionClosed as closed:
        return closed.rcvd.code


def send(socket: ClientConnection, **fields) -> None:
    socket.send(json.dumps(fields))

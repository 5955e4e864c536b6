"""What is said of a server whose TLS is wrong: enough to mend it."""

import ssl
from collections.abc import Iterator

import pytest

from prefmh_web.endpoints import addresses
from prefmh_web.endpoints.client import Client, Target
from prefmh_web.endpoints.errors import EndpointError
from tests.support.certificates import Authority, authority
from tests.support.scripted_server import says, scripted_server

ASK = [{"role": "user", "content": "Hello."}]


@pytest.fixture(scope="module")
def trusted(tmp_path_factory) -> Authority:
    return authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def it_is_known(trusted: Authority, monkeypatch) -> Iterator[None]:
    """Let the authority be among those that are known everywhere."""
    monkeypatch.setattr("certifi.where", lambda: str(trusted.certificate))
    addresses._tls.cache_clear()
    yield
    addresses._tls.cache_clear()


def answer(tls: ssl.SSLContext | None, change=lambda url: url) -> str:
    """Return what a server's reply comes to: its text, or the reason why there is none."""
    with scripted_server(dict, tls=tls) as script:
        script.faults.append(says("A"))
        with Client(Target(change(script.url), "tiny", "vllm", timeout_s=5)) as client:
            try:
                return client.chat(ASK, temperature=1.0, seed=1)
            except EndpointError as error:
                return error.reason


def test_a_good_certificate_passes(trusted, it_is_known, local_allowed) -> None:
    assert answer(trusted.context("IP:127.0.0.1")) == "A"


def test_a_certificate_that_has_expired(trusted, it_is_known, local_allowed) -> None:
    assert "certificate has expired" in answer(trusted.context("IP:127.0.0.1", ends="20200102000000Z"))


def test_a_certificate_that_is_not_valid_yet(trusted, it_is_known, local_allowed) -> None:
    assert "not valid yet" in answer(trusted.context("IP:127.0.0.1", begins="20900101000000Z"))


@pytest.mark.parametrize("name", ["IP:127.0.0.2", "DNS:models.example.org"])
def test_a_certificate_for_another_name(trusted, it_is_known, local_allowed, name: str) -> None:
    assert "certificate is not for 127.0.0.1" in answer(trusted.context(name))
    assert "certificate is not for localhost" in answer(
        trusted.context(name), lambda url: url.replace("127.0.0.1", "localhost")
    )


def test_a_certificate_signed_by_itself(trusted, local_allowed) -> None:
    assert "certificate is signed by itself" in answer(trusted.own_context())


def test_a_certificate_of_an_unknown_authority(trusted, local_allowed) -> None:
    assert "authority that is not known" in answer(trusted.context("IP:127.0.0.1"))


def test_plain_http_where_tls_was_asked_for(local_allowed) -> None:
    reason = answer(None, lambda url: url.replace("http://", "https://"))
    assert "http://" in reason
    assert "TLS" in reason


def test_tls_where_plain_http_was_asked_for(trusted, local_allowed) -> None:
    reason = answer(trusted.own_context(), lambda url: url.replace("https://", "http://"))
    assert "https://" in reason


def test_a_port_where_nobody_listens(local_allowed) -> None:
    assert "cannot be reached" in answer(None, lambda _: "https://127.0.0.1:9/v1")

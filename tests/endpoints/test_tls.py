"""What is said of a server whose TLS is wrong: enough to mend it."""

import ssl
from collections.abc import Iterator

import pytest

from prefmh_web.endpoints import addresses, client
from prefmh_web.endpoints.errors import EndpointError
from tests.endpoints.conftest import chat
from tests.support.models import says, scripted_server
from tests.support.servers import Authority, authority


@pytest.fixture(scope="module")
def trusted(tmp_path_factory) -> Authority:
    return authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def it_is_known(trusted: Authority, monkeypatch) -> Iterator[None]:
    """Let the authority be among those that are known everywhere."""
    # These are read once, and connections are made with them by one session.
    with monkeypatch.context() as patches:
        patches.setattr("certifi.where", lambda: str(trusted.certificate))
        patches.setattr(client, "_sessions", {})
        addresses._tls.cache_clear()
        yield
    addresses._tls.cache_clear()


def answer(tls: ssl.SSLContext | None, change=lambda url: url) -> str:
    """Return what a server's reply comes to: its text, or the reason why there is none."""
    with scripted_server(dict, tls=tls) as script:
        script.faults.append(says("A"))
        try:
            return chat(change(script.url))
        except EndpointError as error:
            return error.reason


@pytest.mark.parametrize(
    ("certificate", "said"),
    [
        ({"names": "IP:127.0.0.1"}, "A"),
        ({"names": "IP:127.0.0.1", "ends": "20200102000000Z"}, "certificate has expired"),
        ({"names": "IP:127.0.0.1", "begins": "20900101000000Z"}, "not yet valid"),
        ({"names": "DNS:models.example.org"}, "not valid for '127.0.0.1'"),
    ],
)
def test_what_a_certificate_of_a_known_authority_comes_to(
    trusted, it_is_known, local_allowed, certificate, said
) -> None:
    names = certificate.pop("names")
    assert said in answer(trusted.context(names, **certificate))


def test_a_certificate_for_another_name_than_the_hosts(trusted, it_is_known, local_allowed) -> None:
    reason = answer(trusted.context("IP:127.0.0.1"), lambda url: url.replace("127.0.0.1", "localhost"))
    assert "not valid for 'localhost'" in reason


def test_certificates_that_nobody_vouches_for(trusted, local_allowed) -> None:
    assert "self-signed certificate" in answer(trusted.own_context())
    assert "unable to get local issuer certificate" in answer(trusted.context("IP:127.0.0.1"))


def test_one_side_speaks_tls_and_the_other_does_not(trusted, local_allowed) -> None:
    reason = answer(None, lambda url: url.replace("http://", "https://"))
    assert "http://" in reason
    assert "TLS" in reason
    assert "https://" in answer(trusted.own_context(), lambda url: url.replace("https://", "http://"))
    assert "cannot be reached" in answer(None, lambda _: "https://127.0.0.1:9/v1")

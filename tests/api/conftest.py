"""Programs with tokens, at the real server, and receivers of webhooks."""

from collections.abc import Iterator

import pytest

from prefmh_web.accounts import tokens
from prefmh_web.accounts.models import ApiToken
from prefmh_web.campaigns.lifecycle import webhooks
from prefmh_web.campaigns.models import Webhook
from prefmh_web.client import Site
from tests.support.receiver import Receiver


@pytest.fixture
def site(live_site, researcher) -> Iterator[Site]:
    """The site as a researcher's program sees it that may change campaigns."""
    _, plain = tokens.make(researcher, "a program", ApiToken.Scope.RUN)
    with Site(live_site.url, plain) as found:
        yield found


@pytest.fixture
def reader(live_site, researcher) -> Iterator[Site]:
    """The same for a program that may only read."""
    _, plain = tokens.make(researcher, "a reader", ApiToken.Scope.READ)
    with Site(live_site.url, plain) as found:
        yield found


@pytest.fixture
def allowed(settings) -> None:
    """The site lets webhooks call this machine, and waits for half a second."""
    settings.WEBHOOK_ALLOWED_HOSTS = ("127.0.0.1",)
    settings.WEBHOOK_ALLOW_PRIVATE = ("127.0.0.1/32",)
    settings.WEBHOOK_TIMEOUT_SECONDS = 0.5


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.stop()


@pytest.fixture
def hook(campaign, receiver, allowed) -> tuple[Webhook, str]:
    """A webhook of a running campaign for every event, and its secret."""
    return webhooks.make(campaign, receiver.url, Webhook.Event.values)

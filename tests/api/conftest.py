"""Programs with tokens, at the real server."""

from collections.abc import Iterator

import pytest

from prefmh_web.accounts.models import ApiToken
from prefmh_web.client import Site


@pytest.fixture
def site(live_site, researcher) -> Iterator[Site]:
    """The site as a researcher's program sees it that may change campaigns."""
    plain = ApiToken.make(researcher, "a program", ApiToken.Scope.RUN)
    with Site(live_site.url, plain) as found:
        yield found


@pytest.fixture
def reader(live_site, researcher) -> Iterator[Site]:
    """The same for a program that may only read."""
    plain = ApiToken.make(researcher, "a reader", ApiToken.Scope.READ)
    with Site(live_site.url, plain) as found:
        yield found

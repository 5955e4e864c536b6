"""Downloads of the record: kept by nobody on the way."""

import httpx
import pytest

from prefmh_web.campaigns.record import export
from sampler import tables
from tests.security.world import browser_of


@pytest.mark.parametrize("name", [*export.TABLES, tables.CONFIG, tables.PROPERTIES.file, "export.zip"])
def test_no_cache_on_the_way_keeps_a_download(live_site, campaign, researcher, name):
    cookies = {name: morsel.value for name, morsel in browser_of(researcher).cookies.items()}
    address = f"{live_site.url}{campaign.get_absolute_url()}files/{name}"
    answer = httpx.get(address, cookies=cookies, timeout=30)
    assert answer.status_code == 200
    assert answer.headers.get("Cache-Control") == "no-store"
    assert f'filename="twelve-texts-{name}"' in answer.headers["Content-Disposition"]
    assert len(answer.content) > 0
    # The same without its content, which is then not even computed.
    head = httpx.head(address, cookies=cookies, timeout=30)
    assert (head.status_code, head.content, head.headers.get("Cache-Control")) == (200, b"", "no-store")
    assert head.headers["Content-Type"] == answer.headers["Content-Type"]

"""Pages in Chromium, and a real server of a tiny model, for the flows of a file."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.models import model_server, port_from, write_model

# Not where nobody opens a browser.
if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.fixture
def open_page(chromium, live_site) -> "Iterator[Callable[..., Page]]":
    """Return a call that opens a page in a browser profile of its own, as another person would. No page may have an
    error of a script, or ask anybody but the site for anything.
    """
    contexts, wrong = [], []

    def open_as_somebody(path: str = "about:blank", **options) -> "Page":
        context = chromium.new_context(base_url=live_site.url, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda sent: sent.url.startswith(live_site.url) or wrong.append(sent.url))
        page.goto(path)
        return page

    yield open_as_somebody
    found = list(wrong)
    for context in contexts:
        context.close()
    assert not found


@pytest.fixture(scope="module")
def llama_url(tmp_path_factory) -> Iterator[str]:
    with model_server(write_model(tmp_path_factory.mktemp("model") / "tiny.gguf"), port_from(23_000)) as url:
        yield url

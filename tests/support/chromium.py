"""The browser of the tests: where it is, how it is started (it asks nobody but the site), and how it answers a pair."""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

# Sooner than people can judge a pair, the page takes no answer (`TOO_SOON_MS` in static/js/voting/vote.js).
MS_TO_JUDGE = 300
_TIMES_TO_PRESS = 10
_IS_ANOTHER = "key => document.querySelector('input[name=lease]')?.value !== key"


def lease_on(page: "Page") -> str:
    return page.locator("input[name=lease]").input_value()


def press_and_wait(page: "Page", key: str) -> None:
    """Press a key on a pair until the page shows something else: it drops hasty keys, also on a busy machine."""
    from playwright.sync_api import TimeoutError as PlaywrightTimeout

    before = lease_on(page)
    for _ in range(_TIMES_TO_PRESS):
        page.wait_for_timeout(MS_TO_JUDGE)
        if page.evaluate(_IS_ANOTHER, before):
            return
        page.keyboard.press(key)
        with suppress(PlaywrightTimeout):
            page.wait_for_function(_IS_ANOTHER, arg=before, timeout=5_000)
            return
    raise AssertionError(f"nothing happened on {key} in {_TIMES_TO_PRESS} times")

"""People in a real Chromium who take part in a paid study: each does what its fate says, and writes down what."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlencode

from playwright.async_api import Browser, Page, async_playwright
from playwright.async_api import TimeoutError as PlaywrightTimeout

from tests.support.chromium import ARGUMENTS, CHROMIUM
from tests.support.recruited import prolific

KEYS = {"left": "ArrowLeft", "right": "ArrowRight"}
OTHER_SIDE = {"left": "right", "right": "left"}
# Sooner the page takes no answer: nobody judges a pair in less.
_MS_TO_JUDGE = 350
_TIMES_TO_PRESS = 12
_HAS_PAIR_OR_END = """() => document.querySelector('input[name=lease]')
    || /Thank you|ended/.test(document.querySelector('h1')?.textContent ?? '')"""
_IS_ANOTHER = "key => document.querySelector('input[name=lease]')?.value !== key"
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}


@asynccontextmanager
async def a_browser() -> AsyncIterator[Browser]:
    """Yield a Chromium that runs as long as the block does."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(ARGUMENTS))
        yield browser
        await browser.close()


@dataclass
class Person:
    """Somebody with a fate, and what the simulation itself writes down of them."""

    name: str
    fate: str
    session: str = "first"
    votes: int = 0
    passed: int = 0
    failed: int = 0
    keys: list[str] = field(default_factory=list)
    began: float = 0
    ended: float = 0

    @property
    def outcome(self) -> str:
        """How their part ends. Whoever would fail a check may have met none before their last vote."""
        return "completed" if self.fate == "checks-failed" and not self.failed else self.fate


async def arrive(page: Page, link: str, person: Person, session: str = "first", *, agrees: bool = True) -> None:
    """Open the platform's link, agree, and come to the first page after that."""
    person.session, person.began = session, person.began or time.time()
    await page.goto(f"{link}?{urlencode(prolific(person.name, session=session))}")
    if await page.get_by_role("button", name="Start", exact=True).count():
        await page.get_by_role("button", name="Start", exact=True).click()
    else:
        await page.get_by_role("button", name="I agree: start" if agrees else "I do not agree").click()
    await page.wait_for_load_state()


async def tell_about_themselves(page: Page, *, is_student: bool = True) -> None:
    """Answer the questions of `tests.participants.test_stages.WHOLE`."""
    await page.get_by_label("student" if is_student else "other").check()
    await page.get_by_label("How old are you?").fill("30")
    await page.get_by_label("2", exact=True).check()
    # What is killed before it has answered has lost the answers, and the person sees that.
    async with page.expect_navigation():
        await page.get_by_role("button", name="Continue").click()


async def understand(page: Page, *, understands: bool = True) -> None:
    """Read the instructions and answer the question about them; whoever does not understand does so twice."""
    async with page.expect_navigation():
        await page.get_by_role("button", name="I have read this").click()
    for _ in range(1 if understands else 2):
        await page.get_by_label("both" if understands else "one").check()
        async with page.expect_navigation():
            await page.get_by_role("button", name="Check my answers").click()


async def vote(page: Page, person: Person, most: int | None = None) -> None:
    """Answer what is shown until there is no more, or `most` votes are given and no check is due."""
    while True:
        await page.wait_for_function(_HAS_PAIR_OR_END, timeout=60_000)
        if not await page.locator("input[name=lease]").count():
            return
        told = re.search(r"choose the one on the (\w+)", await page.locator("#question").text_content() or "")
        if most is not None and person.votes >= most and not told:
            return
        await _answer(page, person, told and told[1])


async def _press_until_heard(page: Page, key: str, lease: str) -> None:
    """Press a key until the page shows something else: it hears none before it has loaded, and drops hasty ones."""
    for _ in range(_TIMES_TO_PRESS):
        await asyncio.sleep(_MS_TO_JUDGE / 1000)
        if await page.evaluate(_IS_ANOTHER, lease):
            return
        await page.keyboard.press(key)
        with suppress(PlaywrightTimeout):
            await page.wait_for_function(_IS_ANOTHER, arg=lease, timeout=5_000)
            return
    raise AssertionError(f"nothing happened on {key} in {_TIMES_TO_PRESS} times")


async def _answer(page: Page, person: Person, told: str | None) -> None:
    key = await page.locator("input[name=lease]").input_value()
    side = "left" if told is None else OTHER_SIDE[told] if person.fate == "checks-failed" else told
    await _press_until_heard(page, KEYS[side], key)
    if told is None:
        person.votes += 1
        person.keys.append(key)
    elif side == told:
        person.passed += 1
    else:
        person.failed += 1

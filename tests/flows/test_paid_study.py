"""A paid study as people meet it: nine in Chromium, on PostgreSQL, Redis, web processes, a worker and beat."""

import asyncio
import base64
import csv
import io
import re
import threading
import time
import zipfile
from collections import Counter
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import urlencode

import pytest
import redis
from playwright.async_api import Browser, Page, async_playwright
from playwright.async_api import TimeoutError as PlaywrightTimeout

from tests.support import servers
from tests.support.installations import (
    ARGUMENTS,
    CHROMIUM,
    IS_ANOTHER,
    MS_TO_JUDGE,
    TIMES_TO_PRESS,
    Desk,
    nginx_before,
    wait_for,
)
from tests.support.people import CODES_OF_ALL, prolific

pytestmark = pytest.mark.browser
VOTES_PER_PERSON, AT_ONCE, PLACES = 3, 5, 6
FATES = {
    "completed": 3,
    "not-understood": 1,
    "checks-failed": 1,
    "no-consent": 1,
    "time-over": 1,
    "withdrawn": 1,
    "not-eligible": 1,
}
PAID = {"completed": "in full", "time-over": "in part", "withdrawn": "in part"}
CODES = CODES_OF_ALL | {"no-consent": "N0C0NSENT", "withdrawn": "W1THDREW"}


# People in a real Chromium who take part in a paid study: each does what its fate says, and writes down what.


OTHER_KEY = {"1": "2", "2": "1"}
_HAS_PAIR_OR_END = """() => document.querySelector('input[name=lease]')
    || /Thank you|ended/.test(document.querySelector('h1')?.textContent ?? '')"""
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}


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
        told = re.search(r"choose object (\d)", await page.locator("#question").text_content() or "")
        if most is not None and person.votes >= most and not told:
            return
        await _answer(page, person, told and told[1])


async def _press_until_heard(page: Page, key: str, lease: str) -> None:
    """Press a key until the page shows something else: it hears none before it has loaded, and drops hasty ones."""
    for _ in range(TIMES_TO_PRESS):
        await asyncio.sleep(MS_TO_JUDGE / 1000)
        if await page.evaluate(IS_ANOTHER, lease):
            return
        await page.keyboard.press(key)
        with suppress(PlaywrightTimeout):
            await page.wait_for_function(IS_ANOTHER, arg=lease, timeout=5_000)
            return
    raise AssertionError(f"nothing happened on {key} in {TIMES_TO_PRESS} times")


async def _answer(page: Page, person: Person, told: str | None) -> None:
    key = await page.locator("input[name=lease]").input_value()
    pressed = "1" if told is None else OTHER_KEY[told] if person.fate == "checks-failed" else told
    await _press_until_heard(page, pressed, key)
    if told is None:
        person.votes += 1
        person.keys.append(key)
    elif pressed == told:
        person.passed += 1
    else:
        person.failed += 1


@pytest.fixture
def proxy(installation, tmp_path):
    """nginx in front of both web processes: one address for all."""
    servers.demand(CHROMIUM.exists(), f"needs {CHROMIUM} (Debian: apt-get install chromium)")
    with nginx_before([f"127.0.0.1:{port}" for port in installation.ports], tmp_path) as proxy:
        yield proxy


class Overheard:
    """All that is said to Redis, task messages with what their bodies hold."""

    def __init__(self, url: str) -> None:
        self.lines: list[str] = []
        self._url, self._is_over = url, threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)

    def _listen(self) -> None:
        with redis.Redis.from_url(self._url).monitor() as monitor:
            for command in monitor.listen():
                self.lines.append(command["command"])
                if self._is_over.is_set():
                    return

    @contextmanager
    def listening(self):
        self._thread.start()
        try:
            yield self
        finally:
            self._is_over.set()
            # What it hears last.
            with redis.Redis.from_url(self._url) as client:
                client.ping()
            self._thread.join(10)

    @property
    def text(self) -> str:
        """Every command, and every task message in clear."""
        said = "\n".join(self.lines)
        bodies = re.findall(r'\\?"body\\?": \\?"([A-Za-z0-9+/=]+)', said)
        return said + "\n".join(base64.b64decode(body).decode() for body in bodies)


def kept_in(url: str) -> str:
    """Return all that Redis holds."""
    client = redis.Redis.from_url(url)
    return "\n".join(f"{key!r} {client.dump(key)!r}" for key in client.scan_iter())


def payments_on(desk: Desk, study: int) -> list[dict[str, str]]:
    file = desk.file(study, "participants/payments.csv").decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(file, newline="")))


async def take_part(browser: Browser, link: str, person: Person, at_once: asyncio.Semaphore, *, devices: int) -> None:
    """Go the whole way, as far as this person gets; with a second device in the middle of the votes, or beside them."""
    async with at_once:
        context = await browser.new_context()
        await _go(browser, context, link, person, devices)
        await context.close()
        person.ended = time.time()


async def _go(browser: Browser, context, link: str, person: Person, devices: int) -> None:
    page = await context.new_page()
    await arrive(page, link, person, agrees=person.fate != "no-consent")
    if person.fate == "no-consent":
        return
    await tell_about_themselves(page, is_student=person.fate != "not-eligible")
    if person.fate == "not-eligible":
        return
    await understand(page, understands=person.fate != "not-understood")
    if person.fate == "not-understood":
        return
    leaves = person.fate in ("withdrawn", "time-over")
    if devices:
        page = await _on_a_second_device(browser, page, link, person, together=devices == 2)
    await vote(page, person, 1 if leaves else None)
    if person.fate == "withdrawn":
        await page.get_by_role("link", name="Withdraw from this study").click()
        await page.get_by_role("button", name="Withdraw").click()
    elif not leaves:
        await page.locator("code.completion", has_text=CODES[person.outcome]).wait_for()


async def _on_a_second_device(browser: Browser, page, link: str, person: Person, *, together: bool):
    """Come again by the same link on a phone, with the first page still open, or after one vote and a closed lid."""
    await vote(page, person, 1)
    before = await page.locator("input[name=lease]").input_value()
    if not together:
        await page.context.close()
    phone = await (await browser.new_context(**PHONE)).new_page()
    await arrive(phone, link, person, session="second")
    await phone.wait_for_url("**/vote/")
    if together:
        # Both show one pair.
        assert await phone.locator("input[name=lease]").input_value() == before
    return phone


async def everybody(site: str, path: str, people: list[Person]) -> None:
    link, at_once = site + path, asyncio.Semaphore(AT_ONCE)
    # Of those who complete: one goes on with a second device, one has both open at once.
    devices = {person.name: 2 - index for index, person in enumerate(people[:2])}
    async with (
        async_playwright() as playwright,
        await playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(ARGUMENTS)) as browser,
    ):
        *others, guest, last = people
        tasks = [take_part(browser, link, each, at_once, devices=devices.get(each.name, 0)) for each in others]
        await asyncio.gather(*tasks)
        # Two sit down at a computer that somebody else has used.
        context = await browser.new_context()
        for person in (guest, last):
            await _go(browser, context, link, person, 0)
            person.ended = time.time()


def row_of(person: Person) -> dict[str, str]:
    """Return what payments.csv should say of somebody, in all columns that are no times."""
    outcome = person.outcome
    return {
        "external_id": person.name,
        "session_id": person.session,
        "outcome": outcome,
        "code": CODES[outcome],
        "paid": PAID.get(outcome, "not"),
        "votes": str(person.votes),
        "checks_passed": str(person.passed),
        "checks_failed": str(person.failed),
    }


def assert_times_fit(person: Person, row: dict[str, str]) -> None:
    """Whoever runs out of time is settled after they have gone; all others while they are there."""
    arrived, finished = (datetime.fromisoformat(row[name]).timestamp() for name in ("arrived_at", "finished_at"))
    latest = float("inf") if person.fate == "time-over" else person.ended
    # The record has milliseconds.
    assert person.began - 0.001 <= arrived <= finished <= latest + 0.001
    assert 0 <= float(row["active_minutes"]) * 60 <= person.ended - person.began + 6


def test_people_get_the_outcome_code_and_pay_of_what_they_did(installation, proxy):
    config = {"judges": [{"question": "Which is darker?", "votes": 1}], "chains": 20, "steps": 20}
    recruitment = {"votes_per_person": VOTES_PER_PERSON, "quota": PLACES, "max_minutes": 60, "codes": CODES}
    study, path = installation.call("study", config, recruitment)
    fates = [fate for fate, count in FATES.items() for _ in range(count)]
    people = [Person(f"zzwho-{number:03d}", fate) for number, fate in enumerate(fates)]
    for process in installation.all:
        process.mark()
    with Overheard(installation.redis.url).listening() as overheard:
        asyncio.run(everybody(proxy.url, path, people))
        late = tuple(person.name for person in people if person.fate == "time-over")
        installation.query(
            "UPDATE campaigns_voter SET joined_at = joined_at - interval '59 minutes' WHERE id IN (SELECT"
            " p.voter_id FROM participants_participation p JOIN participants_participant q ON q.id ="
            " p.participant_id WHERE q.external_id = ANY(%s))",
            list(late),
        )
        open_parts = "SELECT count(*) FROM participants_participation WHERE campaign_id = %s AND outcome = ''"
        wait_for(lambda: installation.query(open_parts, study) == [(0,)], "every part settled")

    with closing(Desk(installation)) as desk:
        rows = {row["external_id"]: row for row in payments_on(desk, study)}
        export = zipfile.ZipFile(io.BytesIO(desk.file(study, "files/export.zip")))
    wanted = row_of(people[0]).keys()
    assert [{name: rows[person.name][name] for name in wanted} for person in people] == [row_of(p) for p in people]
    assert len(rows) == len(people)
    for person in people:
        assert_times_fit(person, rows[person.name])
    # The simulation did what it set out to do; that nobody of four meets a check in three votes is rare, not never.
    assert set(Counter(person.outcome for person in people)) >= set(FATES) - {"checks-failed"}
    installation.assert_record_is_whole_and_replays(study)
    votes = export.read("votes.csv").decode().count("\n") - 1
    assert votes == sum(person.votes for person in people)
    assert sorted(installation.vote_keys(study)) == sorted(key for person in people for key in person.keys)

    logs = "".join(process.log_since() for process in installation.all) + proxy.log.read_text()
    files = "".join(export.read(name).decode() for name in export.namelist())
    assert "settle_parts" in overheard.text
    for each in (logs, overheard.text, kept_in(installation.redis.url), files):
        assert "zzwho-" not in each
    assert "Traceback" not in logs

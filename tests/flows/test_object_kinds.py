"""Kinds of objects that are more than a card to press, in a real browser: shown, chosen by mouse and by keyboard,
harmless.
"""

import os
import zipfile

import pytest
from playwright.sync_api import Page, expect

from prefmh_web.campaigns.models import Side, Vote
from tests.support import uploads
from tests.support.campaigns import invitation_path, make_campaign, make_config
from tests.support.installations import (
    MS_TO_JUDGE,
    NARROW,
    WIDE,
    is_too_wide,
    join,
    lease_on,
    press_and_wait,
    violations,
    wait_for_another_pair,
)
from tests.support.records import checked_export
from tests.support.uploads import recording

pytestmark = pytest.mark.browser
TAKEN = "document.title = 'taken'"
HOSTILE = f"""## Plain words

<script>{TAKEN}</script><img src=x onerror="{TAKEN}"> <b onmouseover="{TAKEN}">here</b>

[press me](javascript:{TAKEN.replace(" ", "")}) and <javascript:{TAKEN.replace(" ", "")}>

<iframe src="https://spy.example"></iframe><style>body {{ display: none }}</style>
"""


def campaign_of(kind: str, owner, file: bytes, filename: str):
    space = {"kind": "catalog", "objects": kind, "neighbours": 1}
    judges = [{"question": "Which is more helpful?", "votes": 1}]
    config = make_config(space=space, kernel={"kind": "neighbours"}, judges=judges, chains=1, steps=6)
    return make_campaign(owner, file=file, filename=filename, config=config)


def check_look(page: Page, name: str) -> None:
    """Look at a page on a narrow screen and on a wide one, which it then has."""
    page.wait_for_load_state("networkidle")
    for size in (NARROW, WIDE):
        assert not is_too_wide(page, size)
        if folder := os.environ.get("SCREENSHOTS"):
            page.screenshot(path=f"{folder}/{name}-{size['width']}.png")
        assert violations(page) == []


def choose_by_keyboard(page: Page, side: str) -> None:
    """Go to a side's button by the tabulator, as somebody without a mouse does, and press it."""
    before, button = lease_on(page), page.locator(f"button[name=choice][value={side}]")
    page.wait_for_timeout(MS_TO_JUDGE)
    page.locator("#question").focus()
    for _ in range(20):
        page.keyboard.press("Tab")
        if button.evaluate("button => button === document.activeElement"):
            break
    expect(button).to_be_focused()
    page.keyboard.press("Enter")
    wait_for_another_pair(page, before)


def hear_both(page: Page) -> None:
    players = page.locator(".option audio")
    players.evaluate_all("players => players.forEach((each) => { each.playbackRate = 4; })")
    choose = page.locator("button.choose").last
    for _ in range(60):
        # While something plays, the button stops it.
        if players.evaluate_all("players => players.every((each) => each.paused)") and choose.is_disabled():
            page.get_by_role("button", name="Play both").click()
        page.wait_for_timeout(250)
        if choose.is_enabled():
            break
    expect(choose).to_be_enabled()


def finish(page: Page, votes: int) -> None:
    for _ in range(votes):
        if page.locator("audio").count():
            hear_both(page)
        press_and_wait(page, "2")
    expect(page.locator("#panel")).to_contain_text("finished")


def test_hostile_markdown_does_nothing(open_page, researcher):
    table = uploads.spreadsheet([["text"], [HOSTILE], [HOSTILE + "\nAnd again."]])
    page = join(open_page, campaign_of("markdown", researcher, table, "answers.csv"))
    check_look(page, "markdown-hostile")
    for paragraph in page.locator(".option p").all():
        paragraph.click()
    page.wait_for_timeout(MS_TO_JUDGE)
    assert page.title() != "taken"
    assert page.locator(".option :is(a, img, script, iframe, style, b)").count() == 0
    assert not Vote.objects.exists()


TAKES = {"secret-name.wav": recording(220, seconds=1.0), "other.mp3": recording(440, "MP3", seconds=1.0)}


def is_playing(page: Page, side: int) -> bool:
    return page.locator(".option audio").nth(side).evaluate("player => !player.paused")


def wait_until_playing(page: Page, side: int) -> None:
    page.wait_for_function(
        "side => [...document.querySelectorAll('.option audio')].every((each, at) => each.paused === (at !== side))",
        arg=side,
    )


def test_recordings_are_heard_and_voted_on(open_page, researcher, tmp_path):
    campaign = campaign_of("audio", researcher, uploads.archive(TAKES), "takes.zip")
    page = join(open_page, campaign)
    check_look(page, "audio")
    assert "secret-name" not in page.content()
    # One plays at a time, and what is pressed on a player is no vote.
    page.get_by_role("button", name="Play both").click()
    wait_until_playing(page, 0)
    wait_until_playing(page, 1)
    page.keyboard.press("p")
    page.wait_for_function("[...document.querySelectorAll('.option audio')].every((each) => each.paused)")
    page.locator(".option audio").nth(0).evaluate("player => player.play()")
    wait_until_playing(page, 0)
    page.locator(".option audio").nth(1).evaluate("player => player.play()")
    wait_until_playing(page, 1)
    # What was heard in part cannot be chosen.
    expect(page.get_by_text("Play both, each to its end")).to_be_visible()
    expect(page.locator("button.choose").last).to_be_disabled()
    page.keyboard.press("2")
    assert not Vote.objects.exists()
    page.keyboard.press("p")
    hear_both(page)
    expect(page.get_by_text("Play both, each to its end")).to_be_hidden()
    key = lease_on(page)
    choose_by_keyboard(page, "second")
    assert Vote.objects.get(key=key).chosen_side == Side.SECOND
    assert not is_playing(page, 0)
    assert not is_playing(page, 1)
    finish(page, 5)
    export = checked_export(campaign, tmp_path)
    with zipfile.ZipFile(export) as record:
        found = {name for name in record.namelist() if name.startswith("recordings/")}
    assert found == {"recordings/0.flac", "recordings/1.mp3"}


def test_a_recording_that_cannot_be_played_takes_no_vote(open_page, researcher):
    """Both are asked for again, and somebody who hears half a pair is asked not to choose."""
    page = open_page()
    broken = {"is": True}
    page.route("**/second/*", lambda route: route.abort() if broken["is"] else route.continue_())
    page.goto(invitation_path(campaign_of("audio", researcher, uploads.archive(TAKES), "takes.zip")))
    page.get_by_role("button", name="Start").click()
    expect(page.locator("#not-shown")).to_be_visible()
    expect(page.locator("button.choose").first).to_be_disabled()
    page.keyboard.press("ArrowLeft")
    assert not Vote.objects.exists()
    broken["is"] = False
    page.locator("#load-again").click()
    expect(page.locator("#not-shown")).to_be_hidden()
    hear_both(page)
    press_and_wait(page, "ArrowLeft")
    assert Vote.objects.count() == 1

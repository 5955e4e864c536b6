"""Pictures of two records side by side in a real browser, at both widths, answered by key."""

import io

import pytest
from django.core.management import call_command
from playwright.sync_api import expect

from prefmh_web.campaigns.models import Campaign, Vote
from tests.flows.test_browser import open_page as open_page
from tests.support.chromium import press_and_wait
from tests.support.compared_records import write_images
from tests.support.files import picture
from tests.support.stack import invitation_path, wait_until_idle

pytestmark = pytest.mark.browser
COLOURS = {"one": "red", "two": "blue"}
ARE_LOADED = "() => [...document.querySelectorAll('form img')].filter(each => each.naturalWidth === 300).length === 2"


@pytest.fixture
def compared(researcher, tmp_path) -> Campaign:
    records = [
        write_images(tmp_path / f"{name}.zip", lambda _, colour=colour: picture(colour, size=(300, 200)), 4)
        for name, colour in COLOURS.items()
    ]
    options = [
        "--people",
        "--owner",
        researcher.username,
        "--question",
        "Which is redder?",
        "--answers",
        "1",
        "--matches",
        "1",
    ]
    call_command(
        "experiment", "compare", *options, "--out", str(tmp_path / "out"), *map(str, records), stdout=io.StringIO()
    )
    wait_until_idle()
    return Campaign.objects.get()


@pytest.mark.parametrize("width", [1280, 360])
def test_both_pictures_are_shown_and_a_key_chooses(open_page, compared, width):
    page = open_page(invitation_path(compared), viewport={"width": width, "height": 900})
    page.get_by_role("button", name="Start").click()
    page.wait_for_function(ARE_LOADED)
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    press_and_wait(page, "ArrowLeft")
    page.wait_for_function(ARE_LOADED)
    expect(page.get_by_text("You: 1 vote")).to_be_visible()
    assert Vote.objects.count() == 1
    assert page.broken == []

"""A study is set up as a new user would: on at most four screens, with at most twenty fields touched. All else stays as
it is, and is right: the campaign starts, and somebody whom Prolific sends comes through all stages to the code.
"""

import pytest

from prefmh_web.accounts.roles import sign_in_path

pytestmark = pytest.mark.browser


def test_a_press_on_create_right_after_typing_is_not_lost(chromium, live_site, researcher):
    """What the votes come to is worked out again between press and release; the button stays where it is."""
    tall = {"width": 1280, "height": 4000}
    page = chromium.new_context(base_url=live_site.url, viewport=tall).new_page()
    page.goto(sign_in_path(researcher))
    page.goto("/campaigns/new/")
    page.locator("#votes-estimate .cost").wait_for()
    create = page.get_by_role("button", name="Create")
    create.scroll_into_view_if_needed()
    page.locator("[name=steps]").fill("")
    with page.expect_response(lambda response: "/estimate/" in response.url):
        create.hover()
        page.mouse.down()
        box = create.bounding_box()
    page.wait_for_timeout(200)
    assert create.bounding_box() == box
    page.mouse.up()
    # Nothing is known of no steps, and now the page may say so.
    page.locator("#votes-estimate .cost").wait_for(state="detached")

"""Every tab of a campaign: axe-core's rules of WCAG 2.2 A and AA in light and dark, a narrow screen, and the keyboard
alone. The tabs are those of the registry, so a new one is looked at without a line here.
"""

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from django.urls import reverse

from prefmh_web.accounts.roles import sign_in_path
from prefmh_web.campaigns.models import Annotator
from prefmh_web.console.views.common import TABS
from tests.flows.test_browser import open_page as open_page
from tests.flows.test_keyboard import Keyboard
from tests.support.campaigns import make_campaign, make_config, vote_until_finished

pytestmark = pytest.mark.browser
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
NARROW = 360
MOST_STOPS = 400
LIKES = {0: lambda place: place / 6, 1: lambda place: -place / 6}


@pytest.fixture(params=["running", "finished"])
def campaign(request, researcher, idle_tasks):
    """A campaign that has just started, or one that has its last vote."""
    steps = 60 if request.param == "running" else 12
    made = make_campaign(researcher, config=make_config(chains=2, steps=steps))
    if request.param == "finished":
        people = [Annotator.objects.create(campaign=made) for _ in range(3)]
        vote_until_finished(made, people, LIKES, np.random.default_rng(5))
        made.refresh_from_db()
    assert made.status == request.param
    return made


@pytest.fixture
def desk(open_page, researcher):
    return open_page(sign_in_path(researcher))


@pytest.mark.parametrize("tab", TABS, ids=lambda tab: tab.label)
def test_a_tab_can_be_read_by_everybody(desk, campaign, tab):
    desk.goto(reverse(tab.address, args=[campaign.pk]))
    desk.wait_for_load_state("networkidle")
    assert desk.locator("nav.tabs [aria-current=page]").inner_text() == tab.label
    for scheme in ("dark", "light"):
        desk.emulate_media(color_scheme=scheme)
        found = Axe().run(desk, options={"runOnly": RULES}).response["violations"]
        assert [(scheme, wrong["id"], wrong["nodes"][0]["html"][:200]) for wrong in found] == []
    desk.set_viewport_size({"width": NARROW, "height": 800})
    assert desk.evaluate("document.documentElement.scrollWidth") <= NARROW


@pytest.mark.parametrize("tab", TABS, ids=lambda tab: tab.label)
def test_a_tab_is_walked_by_keyboard(desk, campaign, tab):
    desk.goto(reverse(tab.address, args=[campaign.pk]))
    desk.wait_for_load_state("networkidle")
    desk.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    keyboard = Keyboard(desk)
    stops = 0
    while keyboard.tab() is not None:
        stops += 1
        assert stops < MOST_STOPS, "the focus never leaves the page"
    assert stops > len(TABS)
    assert keyboard.lost == []

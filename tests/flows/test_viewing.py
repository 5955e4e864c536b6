"""How a pair is looked at in Chromium: long texts scroll together, pictures are enlarged together, and differences are
shown on demand. Each by keyboard, by pointer without dragging, and without ever being a vote.

Pictures that do not load, and tabs that are hidden, in a real browser.
"""

import re

import pytest
from playwright.sync_api import Page, expect

from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.models import Comparison, Event, Lease, Vote
from tests.support import uploads
from tests.support.campaigns import create_draft, invitation_path, make_campaign, make_config, started_now
from tests.support.installations import join, lease_on, press_and_wait, violations

pytestmark = pytest.mark.browser
ONE_VOTE = [{"question": "Which is calmer?", "votes": 1}]
WORDS = ["lamp", "rain", "marsh", "door", "page", "house", "letter"]
# Each longer than the one before.
LONG = [[f"{word} {' '.join(WORDS)}. " * (60 + 60 * index)] for index, word in enumerate(WORDS)]
MOLECULES = "smiles\nCC(=O)Oc1ccccc1C(=O)O\nCn1cnc2c1c(=O)n(C)c(=O)n2C\nCC(C)Cc1ccc(cc1)C(C)C(=O)O\nCCN\n"
# How far each of the two is moved, as a share of its own way down and to the right; and that way.
_PLACES = """() => {
  const frames = [...document.querySelectorAll('.sides .zoomable')];
  return (frames.length ? frames : [...document.querySelectorAll('.sides .reading')]).map((each) => {
    const room = [each.scrollHeight - each.clientHeight, each.scrollWidth - each.clientWidth];
    return [each.scrollTop / Math.max(1, room[0]), each.scrollLeft / Math.max(1, room[1]), room[0]];
  });
}"""


@pytest.fixture
def texts(researcher):
    table = uploads.spreadsheet([["text"], *LONG])
    return make_campaign(researcher, file=table, config=make_config(judges=ONE_VOTE, chains=1, steps=60))


@pytest.fixture
def molecules(researcher):
    space = {"kind": "catalog", "objects": "molecules", "neighbours": 2}
    config = make_config(space=space, judges=ONE_VOTE, chains=1, steps=60)
    return make_campaign(researcher, file=MOLECULES, filename="m.csv", config=config)


@pytest.fixture
def images(researcher):
    config = make_config(version=1, space={"kind": "images"}, kernel={"kind": "independent"}, judges=ONE_VOTE)
    return started_now(create_draft(owner=researcher, config=config))


def settled(page: Page) -> Page:
    """Wait until the socket has drawn the pair again, and its pictures are there."""
    page.wait_for_load_state("networkidle")
    page.wait_for_function("() => !document.querySelector('.sides.loading')")
    page.wait_for_timeout(300)
    return page


def scrolled(page: Page) -> list[list[float]]:
    page.wait_for_timeout(150)
    return page.evaluate(_PLACES)


def test_texts_start_at_the_top_and_scroll_together_by_the_same_share(open_page, texts):
    page = settled(join(open_page, texts))
    (top, _, room), (other_top, _, other_room) = scrolled(page)
    assert (top, other_top) == (0, 0)
    # Runs of blanks and tabs stand as they were written.
    expect(page.locator(".option .text").first).to_have_css("white-space", "pre-wrap")
    assert abs(room - other_room) > 300
    page.keyboard.press("PageDown")
    first, second = (each[0] for each in scrolled(page))
    assert first > 0.02
    assert first == pytest.approx(second, abs=0.002)
    # A wheel over the other one moves both as well.
    page.locator(".option").last.hover()
    page.mouse.wheel(0, 400)
    first_then, second_then = (each[0] for each in scrolled(page))
    assert first_then > first
    assert first_then == pytest.approx(second_then, abs=0.002)
    page.keyboard.press("End")
    assert [each[0] for each in scrolled(page)] == pytest.approx([1, 1], abs=0.002)
    assert not Vote.objects.exists()
    # One key still votes, and the next pair begins at its top.
    press_and_wait(page, "ArrowRight")
    assert [each[0] for each in scrolled(page)] == [0, 0]
    assert Vote.objects.count() == 1


@pytest.mark.parametrize("kind", ["molecules", "images"])
def test_pictures_are_enlarged_and_moved_together_and_the_next_pair_is_whole(open_page, request, kind):
    page = settled(join(open_page, request.getfixturevalue(kind)))
    page.get_by_role("button", name="Larger").click()
    page.keyboard.press("+")
    expect(page.locator("#zoom-level")).to_have_text("200 %")
    # What was in the middle still is.
    for down, across, room in scrolled(page):
        assert (down, across) == pytest.approx((0.5, 0.5), abs=0.01)
        assert room > 50
    page.get_by_role("button", name="Move to the left").click()
    page.keyboard.press("Shift+ArrowUp")
    first, second = scrolled(page)
    assert first == pytest.approx(second, abs=0.01)
    assert first[0] < 0.45
    assert first[1] < 0.45
    lease = lease_on(page)
    # A mouse drags, and that is no vote.
    box = page.locator(".zoomable").first.bounding_box()
    page.mouse.move(box["x"] + 100, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 40, box["y"] + 60, steps=5)
    page.mouse.up()
    dragged = scrolled(page)
    assert dragged[0][1] > first[1]
    assert dragged[0] == pytest.approx(dragged[1], abs=0.01)
    assert lease_on(page) == lease
    page.keyboard.press("0")
    expect(page.locator("#zoom-level")).to_have_text("100 %")
    page.keyboard.press("+")
    press_and_wait(page, "ArrowLeft")
    settled(page)
    expect(page.locator("#zoom-level")).to_have_text("100 %")
    assert [each[2] for each in scrolled(page)] == pytest.approx([0, 0], abs=1)
    assert Vote.objects.count() == 1


def test_differences_are_shown_on_demand_and_leave_no_trace_when_they_are_off(open_page, campaign, molecules):
    page = settled(join(open_page, campaign))
    look = """() => [...document.querySelectorAll('.text span')].map((each) => {
      const style = getComputedStyle(each);
      return [style.color, style.backgroundColor, style.opacity, style.fontWeight, style.textDecorationLine].join();
    })"""
    assert len(set(page.evaluate(look))) == 1
    page.keyboard.press("d")
    assert len(set(page.evaluate(look))) > 1
    press_and_wait(page, "ArrowLeft")
    expect(page.locator("#differences")).to_have_attribute("aria-pressed", "true")
    assert not violations(page)
    page.get_by_role("button", name="Show differences").click()
    assert len(set(page.evaluate(look))) == 1
    # The choice is this tab's: nobody else has it, and it does not outlive it.
    assert page.evaluate("Object.keys(localStorage).filter((key) => key.includes('differences'))") == []
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(invitation_path(molecules))
    page.get_by_role("button", name="Start").click()
    settled(page)
    pictures = [url for url in asked if "/picture/" in url or re.search(r"/(first|second)/", url)]
    assert len(pictures) >= 2
    assert not [url for url in pictures if "marked" in url]
    page.keyboard.press("d")
    page.wait_for_timeout(500)
    assert [url for url in asked if "marked" in url]


PICTURES = "**/pairs/**"
# Counts how often one picture of a pair stands there without the other.
COUNT_HALVES = """() => {
    window.halves = 0;
    setInterval(() => {
        const pictures = [...document.querySelectorAll(".sides:not(.loading) .option img")];
        const seen = pictures.filter(picture => picture.complete && picture.naturalWidth > 0);
        if (seen.length === 1) window.halves += 1;
    }, 10);
}"""
# Tells the page what a browser tells it when somebody turns to another tab.
TURN = """isHidden => {
    Object.defineProperty(document, "hidden", {value: isHidden, configurable: true});
    document.dispatchEvent(new Event("visibilitychange"));
}"""


# What a translator does: it wraps each text, and other words stand there. Some heed "translate".
TRANSLATE = """([selector, heeds, other]) => {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT, ({ data, parentElement: parent }) =>
        data.trim() && parent.closest(selector) && !(heeds && parent.closest("[translate]")?.matches("[translate=no]"))
            ? NodeFilter.FILTER_ACCEPT : NodeFilter.FILTER_REJECT);
    const nodes = [];
    while (walker.nextNode()) nodes.push(walker.currentNode);
    nodes.forEach(node => {
        const words = other ? node.data.replace(/[a-z]/g, "x") : node.data;
        node.replaceWith(document.createRange().createContextualFragment(`<font><font>${words}</font></font>`));
    });
}"""


def test_half_a_pair_takes_no_vote_and_two_reports_suspend_it(open_page, molecules):
    pages = [open_page() for _ in range(2)]
    for page in pages:
        page.route(PICTURES, lambda route: route.abort() if "second" in route.request.url else route.continue_())
        page.goto(invitation_path(molecules))
        page.get_by_role("button", name="Start").click()
        # Of one pair, whose one vote is on the first page until it gives it back.
        notice = page.get_by_role("alert")
        expect(notice).to_contain_text("cannot be shown")
        key = lease_on(page)
        page.wait_for_timeout(400)
        page.keyboard.press("ArrowLeft")
        page.get_by_role("button", name="Report and skip this pair").click()
        expect(notice).to_be_hidden()
        assert Event.objects.get(kind="reported", data__key=str(key)).data["reason"] == "not-shown"
    suspended = Comparison.objects.get(suspended_at__isnull=False)
    assert (suspended.suspended_for, suspended.verdict) == ("not-shown", None)
    assert not Vote.objects.exists()


def joined(open_page, campaign):
    """Return the page once the server has sent its screen anew, which replaces what a translator has changed before."""
    page = join(open_page, campaign)
    page.wait_for_function("() => everShown")
    return page


@pytest.mark.parametrize("changed", ["#question", ".option"])
def test_words_that_a_translator_has_changed_take_no_vote_and_the_pair_goes_back_unasked(open_page, campaign, changed):
    page = joined(open_page, campaign)
    page.evaluate(TRANSLATE, [changed, False, False])
    expect(page.get_by_role("alert")).to_be_hidden()
    page.evaluate(TRANSLATE, [changed, False, True])
    expect(page.get_by_role("alert")).to_contain_text("Switch the translation off")
    expect(page.locator(".option").first).to_be_disabled()
    page.wait_for_timeout(400)
    page.keyboard.press("1")
    key = lease_on(page)
    press_and_wait(page, "s")
    expect(page.get_by_role("alert")).to_be_hidden()
    assert not Vote.objects.exists()
    lease = Lease.objects.get(key=key)
    assert lease.ending == "unasked"
    # No vote comes of it later, and it is no skip: of those, one suspends a step here.
    assert leases.answer(lease.key, lease.voter, "first", 900) is None
    assert not Comparison.objects.filter(suspended_at__isnull=False).exists()


def test_no_picture_comes_before_the_other_when_the_server_sends_the_pair_again(open_page, molecules):
    page, slow = open_page(), []
    page.route(PICTURES, lambda route: slow.append(route) if "second" in route.request.url else route.continue_())
    page.goto(invitation_path(molecules))
    page.get_by_role("button", name="Start").click(no_wait_after=True)
    page.wait_for_url("**/vote/", wait_until="commit")
    page.wait_for_function("() => document.querySelector('.sides.loading')")
    page.evaluate(COUNT_HALVES)
    # On connecting, the server sends what there is to see: the same pair, in new elements.
    page.wait_for_function("() => everShown")
    page.wait_for_timeout(500)
    assert slow
    for route in slow:
        route.continue_()
    page.wait_for_function("() => !document.querySelector('.sides.loading')")
    assert page.evaluate("window.halves") == 0
    assert page.locator(".option img").count() == 2
    press_and_wait(page, "ArrowLeft")


def test_the_time_in_a_hidden_tab_comes_with_the_vote(open_page, campaign):
    page = join(open_page, campaign)
    page.wait_for_timeout(400)
    page.evaluate(TURN, True)
    page.wait_for_timeout(300)
    page.evaluate(TURN, False)
    key = lease_on(page)
    page.keyboard.press("ArrowLeft")
    page.get_by_text("You: 1 vote").wait_for()
    vote = Vote.objects.get(key=key)
    assert 0 < vote.hidden_ms < vote.elapsed_ms
    page.wait_for_timeout(400)
    page.keyboard.press("ArrowLeft")
    page.get_by_text("You: 2 votes").wait_for()
    assert Vote.objects.exclude(key=key).get().hidden_ms == 0

"""Pictures that do not load, and tabs that are hidden, in a real browser."""

import pytest
from playwright.sync_api import expect

from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.models import Comparison, Event, Lease, Vote
from tests.flows.test_browser import join
from tests.flows.test_browser import open_page as open_page
from tests.support.campaigns import make_campaign, make_config
from tests.support.installations import lease_on, press_and_wait

pytestmark = pytest.mark.browser
SMILES = "smiles\nCCO\nCCN\nCCC\nCCCl\n"
ONE_CHAIN = make_config(
    space={"kind": "catalog", "objects": "molecules", "neighbours": 2},
    kernel={"kind": "neighbours"},
    judges=[{"question": "Which is better?", "votes": 1}],
    chains=1,
    steps=40,
)
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


@pytest.fixture
def drawn(researcher):
    return make_campaign(researcher, file=SMILES, filename="m.csv", config=ONE_CHAIN)


def test_half_a_pair_takes_no_vote_and_two_reports_suspend_it(open_page, drawn, eventually):
    pages = [open_page("about:blank") for _ in range(2)]
    link = drawn.invitations.get().get_absolute_url()
    for page in pages:
        page.route(PICTURES, lambda route: route.abort() if "second" in route.request.url else route.continue_())
        page.goto(link)
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
    assert leases.answer(lease.key, lease.annotator, "first", 900) is None
    assert not Comparison.objects.filter(suspended_at__isnull=False).exists()


def test_a_page_whose_interface_alone_is_translated_counts_and_says_so(open_page, campaign):
    page = joined(open_page, campaign)
    shown = page.locator("#question, .option").all_text_contents()
    page.evaluate(TRANSLATE, ["body", True, True])
    assert page.locator("#question, .option").all_text_contents() == shown
    expect(page.get_by_role("button", name="Sxxx xxxx xxxx")).to_be_visible()
    key = lease_on(page)
    press_and_wait(page, "1")
    assert Vote.objects.get(key=key).is_translated is True


def test_a_picture_that_loads_later_is_voted_on(open_page, drawn):
    page = open_page("about:blank")
    page.route(PICTURES, lambda route: route.abort())
    page.goto(drawn.invitations.get().get_absolute_url())
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("alert")).to_be_visible()
    page.unroute(PICTURES)
    page.get_by_role("button", name="Try again").press("Enter")
    expect(page.get_by_role("alert")).to_be_hidden()
    expect(page.locator("#question")).to_be_focused()
    press_and_wait(page, "ArrowLeft")
    page.get_by_text("You: 1 vote").wait_for()
    assert Vote.objects.get().hidden_ms == 0


def test_no_picture_comes_before_the_other_when_the_server_sends_the_pair_again(open_page, drawn):
    page, slow = open_page("about:blank"), []
    page.route(PICTURES, lambda route: slow.append(route) if "second" in route.request.url else route.continue_())
    page.goto(drawn.invitations.get().get_absolute_url())
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

"""The overview: what its first line says, what its socket sends, and the pages of chains.

The tab Convergence: what it says is what the record says, it follows live, and its work is bounded.

Plots: what is drawn lies where the numbers say, its size is bounded, and somebody who does not see it is told.
"""

import re
import uuid
from datetime import timedelta

import numpy as np
import pytest
from django.template.loader import render_to_string
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.models import Annotator, Campaign, Chain, Comparison, Vote
from prefmh_web.campaigns.monitoring.progress import progress_of
from prefmh_web.console.board import Group
from prefmh_web.console.plots import MOST_POINTS, traces
from tests.security.world import browser_of
from tests.support.campaigns import make_campaign, make_config, voted_campaign, wait_until_idle
from tests.support.installations import open_socket


def cookies_of(browser: Client) -> str:
    return "; ".join(f"{name}={morsel.value}" for name, morsel in browser.cookies.items())


def test_time_left_comes_from_votes_and_not_from_steps_that_need_none(campaign, signed_in):
    """Thirty steps were decided just now, and by nobody: their proposals were the current object."""
    now = timezone.now()
    Campaign.objects.filter(pk=campaign.pk).update(started_at=now - timedelta(hours=1))
    chain = campaign.chains.get(place=0)
    step = chain.comparisons.get()
    same = {"current": step.current, "proposal": step.current, "log_r0": 0, "uniform": 0.5, "verdict": "accept"}
    of_chain = same | {"chain": chain, "chain_campaign": campaign, "chain_place": 0, "decided_at": now}
    Comparison.objects.bulk_create(Comparison(step=100 + number, **of_chain) for number in range(30))
    Chain.objects.filter(campaign=campaign).update(length=20, step=0)
    Chain.objects.filter(campaign=campaign, place=2).update(ended_at=now, step=10, votes=25)
    page = signed_in.get(campaign.get_absolute_url()).content.decode()
    said = "No vote came in the last five minutes, so nothing tells how long it takes. 40 steps are left."
    assert f"Nobody is online.</strong> {said}" in " ".join(page.split())
    # Ten votes in five minutes, the eleventh before; ten steps have taken 2.5 votes each, those of the open one apart.
    given = {"comparison": step, "judge": campaign.judges.get(place=0), "proposal_side": "left", "chosen_side": "left"}
    for number in range(1, 12):
        person = Annotator.objects.create(campaign=campaign, online_until=now + timedelta(minutes=1))
        Vote.objects.create(key=uuid.uuid4(), annotator=person, number=number, **given)
    Vote.objects.filter(number=11).update(cast_at=now - timedelta(minutes=6))
    found = progress_of(Campaign.objects.get(pk=campaign.pk))
    assert (found.lately, found.answers, found.steps_left) == (10, 36, 40)
    assert found.minutes_left == pytest.approx(40 * 3.6 / (10 / found.minutes))
    page = signed_in.get(campaign.get_absolute_url()).content.decode()
    assert "at the rate of the last 5 min: 2.0 votes a minute. 40 steps are left." in " ".join(page.split())


def test_the_first_screen_shows_some_chains_and_leads_to_pages_of_all(signed_in, researcher, idle_tasks):
    made = make_campaign(researcher, config=make_config(chains=30, steps=5))
    page = signed_in.get(made.get_absolute_url()).content.decode()
    assert page.count('<article class="chain">') == 6
    assert "All 30 chains" in page
    address = reverse("console:chains", args=[made.pk])
    shown = [signed_in.get(address, {"page": number}).content.decode() for number in (1, 2)]
    assert [each.count('<article class="chain">') for each in shown] == [24, 6]


def test_the_socket_sends_a_part_again_only_if_it_has_changed(live_site, campaign, signed_in):
    with open_socket(live_site.url, f"/ws/campaigns/{campaign.pk}/", cookies_of(signed_in)) as socket:
        first = socket.recv(timeout=10)
        for part in ("now", "heads", "trace", "details"):
            assert f'id="board-{part}"' in first
        lifecycle.pause(campaign)
        while 'data-status="paused"' not in (message := socket.recv(timeout=10)):
            pass
        assert 'id="board-heads"' not in message


def simulated(group: Group, part, seconds: int) -> list[tuple[int, int]]:
    """Return when a page got how many bytes, if all parts change every second."""
    sent = []
    for now in range(seconds):
        found = group.due(lambda name, at=now: part(name, at), now)
        sent += [(now, len(each)) for each in found]
    return sent


def test_no_minute_takes_more_than_the_allowance_however_much_changes():
    capacity, a_minute, size = 10_000, 20_000, 4_000
    group = Group(capacity, a_minute, ("one", "two", "three"))
    sent = simulated(group, lambda name, at: f"{name}{at}".ljust(size), 600)
    for start in range(540):
        assert sum(each for at, each in sent if start <= at < start + 60) <= capacity + a_minute + size
    # Without an allowance it would be twelve kB a second: the bound is one of this test's numbers.
    free = simulated(Group(1e12, 0, ("one", "two", "three")), lambda n, at: f"{n}{at}".ljust(size), 60)
    assert sum(each for _, each in free) > 20 * (capacity + a_minute + size)


TEXTS = "text\n" + "".join(
    f"The {colour} {'old ' * place}{thing} stood there.\n"
    for place, (colour, thing) in enumerate((c, t) for c in ("red", "blue", "grey") for t in ("house", "tree", "sea"))
)


@pytest.fixture
def finished(researcher):
    """A campaign of 3 chains with 40 steps each, the first 10 of which are burn-in."""
    return voted_campaign(researcher, file=TEXTS, config=make_config(steps=40, burn_in=10))


def page_of(campaign, user, query=""):
    return browser_of(user).get(reverse("console:convergence", args=[campaign.pk]) + query)


def test_the_page_follows_while_objects_are_measured_and_until_the_end(finished, researcher):
    # The objects are measured because somebody looks.
    assert 'hx-trigger="every 5s"' in page_of(finished, researcher).content.decode()
    wait_until_idle()
    page = page_of(finished, researcher).content.decode()
    assert "Trace of" in page
    assert 'hx-trigger="every' not in page
    Campaign.objects.filter(pk=finished.pk).update(status=Campaign.Status.RUNNING)
    assert 'hx-trigger="every 60s"' in page_of(finished, researcher).content.decode()


_NUMBERS = re.compile(r"-?\d+")


def points_of(path):
    """The points of a path that `traces` has drawn, in units of the drawing."""
    head, _, steps = path.partition("l")
    first = [int(each) for each in _NUMBERS.findall(head)]
    moves = np.array([int(each) for each in _NUMBERS.findall(steps)]).reshape(-1, 2)
    return np.concatenate([[first[:2]], first[:2] + moves.cumsum(axis=0)]) if len(moves) else np.array([first[:2]])


def shown(plot):
    return render_to_string("console/_plot.html", {"plot": plot})


@pytest.mark.parametrize(
    ("chains", "steps", "drawn", "told", "most_bytes"),
    [
        (200, 1001, 200, "One step in 72 is drawn", 30_000),
        (5000, 50, 1000, "1,000 lines, one a chain, chosen evenly from 5,000 chains;", 60_000),
    ],
)
def test_a_page_stays_small_however_many_chains_are_drawn_and_says_what_is_left_out(
    chains, steps, drawn, told, most_bytes
):
    numbers = np.random.default_rng(3).normal(size=(chains, steps))
    plot = traces("words", list(enumerate(numbers)))
    lines = [points_of(f"M{path}") for mark in plot.marks for path in mark.path.split("M")[1:]]
    assert len(lines) == drawn
    assert sum(map(len, lines)) <= MOST_POINTS
    assert told in plot.description
    assert len(shown(plot)) < most_bytes


def test_who_does_not_see_a_plot_is_told_what_it_shows_and_labels_are_escaped():
    page = shown(traces("<b>Words</b>", [(0, np.array([1.0, 2.0]))]))
    assert 'role="img" aria-label="Trace of &lt;b&gt;Words&lt;/b&gt;. 1 line, one a chain; ' in page
    assert "the numbers lie between 1 and 2." in page
    assert "chain 0" in page
    assert "<b>" not in page
    assert "style=" not in page

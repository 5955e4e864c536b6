"""The overview: what its first line says, what its socket sends, and the pages of chains."""

import uuid
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.models import Annotator, Campaign, Chain, Comparison, Vote
from prefmh_web.campaigns.monitoring.progress import progress_of
from prefmh_web.console.consumer import Allowance, Group
from tests.support.campaigns import make_campaign, make_config
from tests.support.installations import closing_code, open_socket


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
    assert f"Nobody is online.</strong> {said}" in page
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
    assert "at the rate of the last 5 min: 2.0 votes a minute. 40 steps are left." in page


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


def test_signing_out_closes_the_board(live_site, campaign, signed_in):
    with open_socket(live_site.url, f"/ws/campaigns/{campaign.pk}/", cookies_of(signed_in)) as socket:
        socket.recv(timeout=10)
        signed_in.post("/accounts/sign-out/")
        assert closing_code(socket) == 4401


def simulated(group: Group, part, seconds: int) -> list[tuple[int, int]]:
    """Return when a page got how many bytes, if all parts change every second."""
    sent = []
    for now in range(seconds):
        found = group.due(lambda name, at=now: part(name, at), now)
        sent += [(now, len(each)) for each in found]
    return sent


def test_no_minute_takes_more_than_the_allowance_however_much_changes():
    capacity, a_minute, size = 10_000, 20_000, 4_000
    group = Group(Allowance(capacity, a_minute), ("one", "two", "three"))
    sent = simulated(group, lambda name, at: f"{name}{at}".ljust(size), 600)
    for start in range(540):
        assert sum(each for at, each in sent if start <= at < start + 60) <= capacity + a_minute + size
    # Without an allowance it would be twelve kB a second: the bound is one of this test's numbers.
    free = simulated(Group(Allowance(1e12, 0), ("one", "two", "three")), lambda n, at: f"{n}{at}".ljust(size), 60)
    assert sum(each for _, each in free) > 20 * (capacity + a_minute + size)

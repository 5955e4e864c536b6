"""The overview: what its first line says, what its socket sends, and the pages of chains."""

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.models import Chain, Comparison
from prefmh_web.campaigns.monitoring.outlook import pace_of
from prefmh_web.console.durations import in_words
from prefmh_web.console.following import Allowance, Group
from tests.support.campaigns import make_campaign, make_recipe, voted_to_the_end
from tests.support.installations import closing_code, open_socket


def cookies_of(browser: Client) -> str:
    return "; ".join(f"{name}={morsel.value}" for name, morsel in browser.cookies.items())


def test_the_time_left_is_what_is_left_at_the_rate_of_the_last_minutes(campaign):
    """Of 40 steps that chains have left, one was decided every ten seconds for two minutes."""
    now = timezone.now()
    campaign.started_at = now - timedelta(hours=1)
    chain = campaign.chains.get(place=0)
    step = chain.comparisons.get()
    for number in range(12):
        Comparison.objects.create(
            chain=chain, chain_campaign=campaign, chain_place=0, step=100 + number, current=step.current,
            proposal=step.proposal, log_r0=0, uniform=0.5,
            verdict="reject", decided_at=now - timedelta(seconds=10 * number),
        )  # fmt: skip
    # Too long ago.
    Comparison.objects.filter(step=111).update(decided_at=now - timedelta(minutes=6))
    Chain.objects.filter(campaign=campaign).update(length=20, step=0)
    Chain.objects.filter(campaign=campaign, place=2).update(ended_at=now)
    pace = pace_of(campaign, list(campaign.chains.all()), now)
    assert (pace.decided, pace.left, pace.seconds) == (11, 40, 300)
    assert pace.seconds_left == pytest.approx(40 * 300 / 11)
    assert pace.a_minute == pytest.approx(11 / 5)


def test_the_first_line_says_how_the_campaign_is_getting_on(signed_in, researcher, idle_tasks):
    made = make_campaign(researcher, recipe=make_recipe(chains=2, steps=12))
    address = made.get_absolute_url()
    assert "No step was decided in the last five minutes" in signed_in.get(address).content.decode()
    lifecycle.pause(made)
    assert "Paused.</strong> Nobody is asked. 24 steps are left." in signed_in.get(address).content.decode()
    lifecycle.resume(made)
    voted_to_the_end(made)
    page = signed_in.get(address).content.decode()
    assert "Finished.</strong> Every chain has come to its last step." in page
    idle_tasks()
    assert "Trace of words" in signed_in.get(address).content.decode()


def test_the_first_screen_shows_some_chains_and_leads_to_pages_of_all(signed_in, researcher, idle_tasks):
    made = make_campaign(researcher, recipe=make_recipe(chains=30, steps=5))
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


def test_every_part_has_its_turn_and_what_has_not_changed_takes_nothing():
    group = Group(Allowance(1_000, 6_000), ("one", "two"))
    sent: list[str] = []
    for now in range(60):
        sent += group.due(lambda name, at=now: f"{name} {at}".ljust(900), now)
    counts = [sum(each.startswith(name) for each in sent) for name in ("one", "two")]
    assert min(counts) >= 3
    assert max(counts) - min(counts) <= 1
    still = Group(Allowance(1_000, 0), ("one",))
    assert [len(still.due(lambda name: "as it was", now)) for now in range(3)] == [1, 0, 0]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (8.26, "8.3 s"), (9.96, "10 s"), (99.6, "2 min"), (5_900, "98 min"), (5_999, "1 h 40 min"), (86_400, "24 h"),
        (172_800, "2 days"), (10**9, "11,574 days"),
    ],
)  # fmt: skip
def test_a_duration_reads_as_people_say_it(seconds, words):
    assert in_words(seconds) == words

"""A simulated campaign, played: its people arrive, vote, wait, rest and leave on a clock that is moved.

Everything but the people and the clock is real: a draft is started, people join as a platform sends them, each look and
each answer goes through the functions that the pages call, and a part ends where the study's own limits end it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final

import numpy as np
import time_machine
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.backends.db import SessionStore
from scipy.special import expit

from prefmh_web.annotate import admission
from prefmh_web.annotate.screens import ShownScreen, response_in, screen_after, screen_for
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.engine import leases, open_comparisons, openings, reading
from prefmh_web.campaigns.lifecycle import drafts
from prefmh_web.campaigns.models import Annotator, Campaign, Lease, Side, Vote
from prefmh_web.participants import recruiting
from prefmh_web.participants.arrivals import Arrival
from prefmh_web.participants.models import Participation, Pay
from tests.benchmarks.planning.population import Person, SimulatedCampaign
from tests.support.recruited import CODES, WAY_BACK
from tests.support.stack import make_draft, wait_until_idle

_OPENS: Final = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


@dataclass(frozen=True)
class Played:
    """What a campaign came to."""

    votes: int
    steps: int
    hours: float
    """That people were there, from their arrival to the moment when they left or were done: reading, votes, waits."""
    waited_hours: float
    wall_hours: float
    """From the start to the moment when the last person left."""
    money: float
    chains: int
    complete: int
    """People whose part is paid in full."""


def drafted(owner: Any, simulated: SimulatedCampaign) -> Campaign:
    """Return the draft of a simulated campaign, with its limits for people."""
    fields = {"owner": owner, "name": f"Campaign {simulated.number}", "recipe": simulated.recipe}
    if simulated.file is None:
        campaign = drafts.create(**fields)
    else:
        campaign = make_draft(**fields, file=simulated.file)
    limits = {"votes_each": simulated.votes_each, "most_active_minutes": simulated.minutes_each}
    study = {"recruiter": "prolific", "codes": CODES, "way_back": WAY_BACK, "places": len(simulated.people)}
    recruiting.set_up(campaign, study | limits | {"place_pay": simulated.pay_place, "currency": "£"}, ())
    return Campaign.objects.get(pk=campaign.pk)


def play(campaign: Campaign, simulated: SimulatedCampaign, people: Sequence[Person], seed: int) -> Played:
    """Start a draft, let these people take part in it until the last one has gone, and return what it came to."""
    with time_machine.travel(_OPENS, tick=False) as clock:
        lifecycle.start(campaign)
        wait_until_idle()
        show = _Show(Campaign.objects.get(pk=campaign.pk), simulated, people, np.random.default_rng(seed), clock)
        show.run()
        return show.played()


@dataclass
class _Guest:
    """A person while they take part; times in seconds after the start."""

    who: Person
    pk: int = 0
    session: SessionBase = field(default_factory=SessionStore)
    answers: int = 0
    waits_since: float | None = None
    waited_s: float = 0.0
    left_s: float | None = None
    shown: ShownScreen | None = None


class _Show:
    """What happens, event by event."""

    def __init__(
        self,
        campaign: Campaign,
        simulated: SimulatedCampaign,
        people: Sequence[Person],
        rng: np.random.Generator,
        clock: time_machine.Traveller,
    ) -> None:
        self.campaign, self.simulated, self.rng, self.clock = campaign, simulated, rng, clock
        self.guests = [_Guest(each) for each in people]
        self.invitation = campaign.invitations.get()
        self.score: Callable[[Person, str], float] = lru_cache(maxsize=100_000)(simulated.own_score)
        self.now_s, self.order = 0.0, count()
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        for guest in self.guests:
            self._later(guest.who.arrives_s, lambda guest=guest: self._arrives(guest))

    def run(self) -> None:
        while self.events:
            self.now_s, _, happens = heappop(self.events)
            self.clock.move_to(_OPENS + timedelta(seconds=self.now_s))
            happens()
            wait_until_idle()
            self._serve_those_who_wait()

    def played(self) -> Played:
        recruitment = recruiting.recruitment_of(self.campaign)
        parts = Participation.objects.filter(campaign=self.campaign).exclude(outcome="").select_related("annotator")
        paid = [recruitment.paid_to(part, part.annotator.votes_cast or 0) for part in parts]
        hours = sum(self._left_s(guest) - guest.who.arrives_s for guest in self.guests) / 3600
        chains = self.campaign.chains.all()
        return Played(
            votes=Vote.objects.filter(judge__campaign=self.campaign, number__isnull=False).count(),
            steps=sum(chain.step for chain in chains),
            hours=hours,
            waited_hours=sum(guest.waited_s for guest in self.guests) / 3600,
            wall_hours=max(map(self._left_s, self.guests)) / 3600,
            money=self._money(hours, paid.count(Pay.FULL)),
            chains=len(chains),
            complete=paid.count(Pay.FULL),
        )

    def _money(self, hours: float, complete: int) -> float:
        if self.simulated.pay_hour is not None:
            return hours * self.simulated.pay_hour
        return complete * (self.simulated.pay_place or 0)

    def _left_s(self, guest: _Guest) -> float:
        assert guest.left_s is not None, "everybody goes in the end"
        return guest.left_s

    def _later(self, at_s: float, happens: Callable[[], None]) -> None:
        heappush(self.events, (at_s, next(self.order), happens))

    def _arrives(self, guest: _Guest) -> None:
        try:
            arrival = Arrival(f"person {self.guests.index(guest)}", "first")
            guest.pk = admission.join(guest.session, self.invitation, arrival).pk
        except admission.NotAdmitted:
            # The campaign is finished: nobody is paid for having come.
            guest.left_s = self.now_s
            return
        if admission.voter_by(guest.session, self.invitation.token) is None:
            guest.left_s = self.now_s
        else:
            self._later(self.now_s + guest.who.reads_s, lambda: self._sees(guest, screen_for(guest.pk)))

    def _sees(self, guest: _Guest, shown: ShownScreen) -> None:
        guest.shown = shown
        if lease := shown.visit.lease:
            self._is_asked(guest, lease)
        elif shown.visit.outcome:
            # Settles how the part ended, as the last page does.
            assert shown.context
            guest.left_s = self.now_s
        elif guest.waits_since is None:
            guest.waits_since = since = self.now_s
            self._later(since + guest.who.patience_s, lambda: self._is_tired_of_waiting(guest, since))

    def _is_asked(self, guest: _Guest, lease: Lease) -> None:
        who = guest.who
        middle = np.log(who.median_s) + who.drift * guest.answers / 100
        seconds = float(self.rng.lognormal(middle, who.spread))
        if self.rng.random() < who.break_share:
            seconds += float(self.rng.lognormal(np.log(who.break_s), 0.5))
        if seconds >= self.campaign.lease_seconds:
            self._later(self.now_s + self.campaign.lease_seconds, leases.expire)
        self._later(self.now_s + seconds, lambda: self._answers(guest, lease, seconds))

    def _answers(self, guest: _Guest, lease: Lease, seconds: float) -> None:
        guest.answers += 1
        choice, elapsed = self._choice(guest.who, lease), round(1000 * seconds)
        sent = {"choice": choice, "lease": str(lease.key), "elapsed_ms": str(elapsed)}
        shown = screen_after(response_in(sent), reading.person(guest.pk))
        if guest.who.leaves_after is not None and guest.answers >= guest.who.leaves_after:
            self._closes_the_page(guest)
        else:
            self._sees(guest, shown)

    def _choice(self, who: Person, lease: Lease) -> str:
        if self.rng.random() < who.lapses:
            return str(self.rng.choice([Side.LEFT, Side.RIGHT]))
        gain = self.score(who, lease.left.content) - self.score(who, lease.right.content)
        return Side.LEFT if self.rng.random() < expit(gain + who.lean) else Side.RIGHT

    def _closes_the_page(self, guest: _Guest) -> None:
        guest.left_s, guest.waits_since = self.now_s, None
        leases.orphan(Annotator.objects.select_related("campaign").get(pk=guest.pk), leases.FAREWELL_GRACE)
        self._later(self.now_s + leases.FAREWELL_GRACE.total_seconds(), leases.expire)

    def _is_tired_of_waiting(self, guest: _Guest, since: float) -> None:
        if guest.waits_since == since:
            guest.waited_s += self.now_s - since
            self._closes_the_page(guest)

    def _serve_those_who_wait(self) -> None:
        """Show people who wait what there is for them now, in the order in which they began to wait."""
        waiting = [guest for guest in self.guests if guest.waits_since is not None]
        if not waiting:
            return
        # As the pages of one process do (`annotate/waiting.py`).
        waiting.sort(key=lambda guest: guest.waits_since or 0.0)
        self.campaign.refresh_from_db()
        pks = [guest.pk for guest in waiting]
        takers = open_comparisons.takers(self.campaign, [(pk, Campaign.Status.RUNNING) for pk in pks])
        takers |= openings.seekers(self.campaign, pks)
        for guest in waiting:
            if guest.pk in takers:
                self._looks_again(guest)

    def _looks_again(self, guest: _Guest) -> None:
        shown = screen_for(guest.pk)
        if guest.waits_since is not None and (shown.visit.lease or shown.visit.outcome):
            guest.waited_s += self.now_s - guest.waits_since
            guest.waits_since = None
            self._sees(guest, shown)

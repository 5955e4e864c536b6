"""A budget in answers that fits exactly: people come, skip, let their time run out, answer too late and leave, and the
campaign ends by itself, with no answer too many and a code for everybody.
"""

from datetime import timedelta

import numpy as np
import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.utils import timezone

from prefmh_web.campaigns.engine import leases, locks
from prefmh_web.campaigns.models import Campaign, Comparison, Lease, Vote, Voter
from prefmh_web.config import Outcome
from prefmh_web.participants import limits, stages
from prefmh_web.participants.joining import Arrival
from prefmh_web.participants.models import AttentionCheck, Participation
from prefmh_web.tasks import settle_parts
from prefmh_web.voting import admission
from prefmh_web.voting.responses import response_in
from prefmh_web.voting.screens import screen_after, screen_for
from tests.support.campaigns import make_config
from tests.support.people import recruited_campaign
from tests.support.process import wait_until_idle
from tests.support.records import checked_export

SEATS, SEED = 5, 20261123
# Among objects that are all alike, one vote decides a step and every step needs it: all that is set aside is used.
TEXTS = "text\n" + "".join(f"text {index}\n" for index in range(6))
CONFIG = make_config(
    space={"kind": "catalog", "objects": "texts", "neighbours": 5},
    kernel={"kind": "neighbours"},
    judges=[{"question": "Which is darker?", "votes": 1}],
    chains=4,
    steps=8,
)
PROTOCOL = {"check_share": 0.125, "repeat_share": 0.125, "checks_end": False}
CODES = {outcome.value: f"C0DE-{outcome.value}" for outcome in Outcome}
VOTES, TRIALS = 32, 8
FITS = VOTES + TRIALS


class Crowd:
    """People at a few computers, one after another; each votes, and now and then does something else."""

    def __init__(self, campaign: Campaign, seats: int = SEATS) -> None:
        self.campaign, self.rng, self.arrived, self.late = campaign, np.random.default_rng(SEED), 0, 0
        self.seats = [self._newcomer() for _ in range(seats)]

    def _newcomer(self) -> int:
        self.arrived += 1
        arrival = Arrival(f"person {self.arrived}", "first")
        voter = admission.join(SessionStore(), self.campaign.invitations.get(), arrival)
        stages.arrive(Voter.objects.select_related("campaign").get(pk=voter.pk))
        return voter.pk

    def run(self) -> None:
        """Go on until the campaign is finished, and a little longer: everybody looks at their page once more."""
        for _ in range(600):
            self.campaign.refresh_from_db()
            if self.campaign.status == Campaign.Status.FINISHED:
                break
            self._does_something(int(self.rng.integers(len(self.seats))))
            wait_until_idle()
        for person in self.seats:
            assert screen_for(person).html()

    def _does_something(self, seat: int) -> None:
        person, screen = self.seats[seat], screen_for(self.seats[seat])
        shown = screen.lease or screen.check
        if shown is None:
            # Whose time has run out says that they are there.
            screen_after(response_in({"choice": "continue"}), locks.person(person))
            return
        deed = self.rng.random()
        if screen.lease and deed < 0.3:
            self._comes_too_late(person, screen.lease)
        elif deed < 0.4:
            self._sends(person, "skip", shown)
        elif deed < 0.5:
            # Leaves without a word: the pair comes back once its time is over.
            self._runs_out(screen.lease)
            self.seats[seat] = self._newcomer()
        else:
            self._sends(person, "first", shown)

    def _sends(self, person: int, choice: str, shown: Lease | AttentionCheck) -> None:
        fields = {"choice": choice, "lease": str(shown.key), "elapsed_ms": "900"}
        screen_after(response_in(fields), locks.person(person))

    def _runs_out(self, lease: Lease | None) -> None:
        if lease:
            Lease.objects.filter(pk=lease.pk).update(expires_at=timezone.now())
            leases.expire()

    def _comes_too_late(self, person: int, lease: Lease) -> None:
        """Somebody takes so long that others have answered meanwhile."""
        self._runs_out(lease)
        for other in self.seats:
            screen = screen_for(other)
            if other != person and screen.lease and screen.lease.comparison_id == lease.comparison_id:
                self._sends(other, "first", screen.lease)
        if Comparison.objects.filter(pk=lease.comparison_id, verdict=None).exists():
            return
        self.late += 1
        self._sends(person, "first", lease)


@pytest.fixture
def study(django_db_reset_sequences, researcher):
    """Return a function that makes a started study with a budget. The numbers of people are the same in every run, for
    the trials are drawn by them.
    """

    def make(most: int | None) -> Campaign:
        limits = {"max_minutes": 60, "quota": 1000, "budget": most}
        return recruited_campaign(researcher, file=TEXTS, config=CONFIG, protocol=PROTOCOL, codes=CODES, **limits)

    return make


def test_a_campaign_whose_budget_fits_exactly_ends_by_itself_with_a_code_for_everybody(study, tmp_path):
    campaign = study(FITS)
    crowd = Crowd(campaign)
    crowd.run()
    assert campaign.status == Campaign.Status.FINISHED
    assert not Comparison.objects.filter(verdict=None).exists()
    assert not Lease.objects.filter(ended_at=None).exists()
    # Those who have gone without a vote are settled when the platform's time is over.
    Voter.objects.update(joined_at=timezone.now() - timedelta(minutes=61), online_until=None)
    settle_parts()
    parts = Participation.objects.all()
    assert len(parts) == crowd.arrived > SEATS
    assert all(part.outcome and part.code == CODES[part.outcome] for part in parts)
    spent = limits.spent(campaign)
    assert spent.total <= FITS
    assert spent.votes == Vote.objects.count() == VOTES + spent.late
    # The trials and the late votes have used up what was there for them, and some late votes were not kept.
    assert spent.late + AttentionCheck.objects.exclude(answered_at__isnull=False, chosen_side="").count() == TRIALS
    assert 0 < spent.late < crowd.late
    checked_export(campaign, tmp_path)


def test_without_a_budget_the_same_people_answer_more(study):
    """The control: trials and late votes that nothing limits do not fit."""
    campaign = study(None)
    Crowd(campaign).run()
    assert campaign.status == Campaign.Status.FINISHED
    assert limits.spent(campaign).total > FITS
    assert limits.needs(campaign.config, campaign.config.study.protocol).total == FITS

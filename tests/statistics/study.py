"""A study through the real database: the people of a `Case` arrive, pass the stages, vote, and leave, each by the
functions that the pages call. Nothing is simulated but the people, and the time that passes.
"""

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta

import numpy as np
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.backends.db import SessionStore
from django.utils import timezone

from prefmh_web.campaigns.engine import leases, locks, suspension
from prefmh_web.campaigns.models import Campaign, Chain, Comparison, EndReason, Lease, Side, Voter
from prefmh_web.campaigns.monitoring.steps import suspended_in
from prefmh_web.participants import completion, stages
from prefmh_web.participants.joining import Arrival
from prefmh_web.participants.models import Stage
from prefmh_web.voting import admission
from prefmh_web.voting.responses import response_in
from prefmh_web.voting.screens import Screen, screen_after, screen_for
from tests.statistics.cases import SEED, Case
from tests.statistics.crowds import GONE, Deed, Pair, Reaction
from tests.statistics.distribution import WEIGHTS, Paths
from tests.statistics.simulated import SEATS
from tests.support.campaigns import make_config
from tests.support.people import recruited_campaign
from tests.support.process import wait_until_idle

TEXTS = "text,weight\n" + "".join(f"text {index},{weight}\n" for index, weight in enumerate(WEIGHTS))
VOTES_PER_PERSON, MINUTES = 60, 30
QUESTION = {"name": "role", "text": "What are you?", "options": ["student", "other"], "eligible": ["student"]}
COMPREHENSION = {"text": "What do you read?", "options": ["one", "both"], "right": "both"}
STAGES = {"questions": [QUESTION], "instructions": "Read both.", "comprehension": [COMPREHENSION], "tries": 1}
# How often somebody does each of these on the way to the votes, and with each check.
OTHER_ROLE, MISUNDERSTANDS, CARELESS, FAILS_WHEN_CARELESS, SLOW = 0.1, 0.1, 0.3, 0.6, 0.15


def campaign_of(owner, case: Case) -> Campaign:
    """Return the started campaign of a case."""
    orders = [{"order": order} for order in ("proposal-first", "proposal-second")] if case.is_in_both_orders else [{}]
    config = make_config(
        space={"kind": "catalog", "objects": "texts", "neighbours": len(WEIGHTS) - 1},
        kernel={"kind": "neighbours"},
        judges=[{"question": "Which is darker?", "votes": case.budget} | order for order in orders],
        chains=case.chains,
        max_chains=case.max_chains,
        steps=case.steps,
        seed=SEED,
    )
    limits = {"votes_per_person": VOTES_PER_PERSON, "max_minutes": MINUTES, "quota": 100_000} if case.is_limited else {}
    protocol = (STAGES if case.is_limited else {}) | {"check_share": case.check_share, "checks_may_fail": 2}
    suspends = {"suspend_after_skips": case.suspends_after}
    return recruited_campaign(owner, file=TEXTS, config=config, protocol=protocol, **limits, **suspends)


@dataclass
class Person:
    """Somebody who takes part.

    Args:
        kind: of the voters of the case.
        pk: the number of the voter that they are.
        session: of their browser.
        is_careless: fails checks more often than not.
        is_slow: their time is over before they have given all their votes.
        shown: what their page shows.
    """

    kind: int
    pk: int
    session: SessionBase
    is_careless: bool
    is_slow: bool
    shown: Screen = field(init=False)


class Study:
    """A campaign of a case, and the people who vote in it at the moment."""

    def __init__(self, owner, case: Case) -> None:
        self.case, self.rng = case, np.random.default_rng(SEED)
        self.campaign = campaign_of(owner, case)
        self.invitation = self.campaign.invitations.get()
        self.arrived = 0
        self.deeds: Counter[Deed] = Counter()
        self.indices = dict(self.campaign.states.values_list("pk", "index"))
        self.seats = [self._newcomer(seat % case.voters.kinds) for seat in range(SEATS)]

    def run(self) -> Paths:
        """Let one after another do something, whoever it is, until the campaign is finished; return its paths."""
        while not self._is_finished():
            seat = int(self.rng.integers(SEATS))
            if not self._does_something(self.seats[seat]):
                self.seats[seat] = self._newcomer(int(self.rng.integers(self.case.voters.kinds)))
        wait_until_idle()
        return paths_of(self.campaign)

    def _is_finished(self) -> bool:
        # Asked only when somebody finds nothing to do, as most of the time nobody does.
        if all(person.shown.status == "pair" for person in self.seats):
            return False
        self._tries_suspended_steps_again()
        self.campaign.refresh_from_db()
        return self.campaign.status == Campaign.Status.FINISHED

    def _tries_suspended_steps_again(self) -> None:
        """What the researcher does from time to time."""
        if self.case.suspends_after is not None:
            for comparison, _ in suspended_in(self.campaign):
                suspension.try_again(comparison.pk)

    def _newcomer(self, kind: int) -> Person:
        """Let people arrive until one of them has come to the votes."""
        while True:
            self.arrived += 1
            person = self._arrived(kind)
            if self._comes_to_votes(person):
                self._look(person)
                return person

    def _arrived(self, kind: int) -> Person:
        session, arrival = SessionStore(), Arrival(f"person {self.arrived}", "first")
        voter = admission.join(session, self.invitation, arrival)
        is_careless, is_slow = self.rng.random(2) < (CARELESS, SLOW)
        return Person(kind, voter.pk, session, is_careless, is_slow)

    def _comes_to_votes(self, person: Person) -> bool:
        voter = Voter.objects.select_related("campaign").get(pk=person.pk)
        stages.arrive(voter)
        if self.case.is_limited:
            self._passes_stages(voter)
        return admission.voter_at_votes(person.session, self.invitation.token) is not None

    def _passes_stages(self, voter: Voter) -> None:
        role = "other" if self.rng.random() < OTHER_ROLE else "student"
        stages.go_on(voter, Stage.QUESTIONS, {"answer-role": role})
        stages.go_on(voter, Stage.INSTRUCTIONS, {})
        understood = "one" if self.rng.random() < MISUNDERSTANDS else "both"
        stages.go_on(voter, Stage.COMPREHENSION, {"answer-check_0": understood, "answer-try": "0"})

    def _look(self, person: Person) -> None:
        person.shown = screen_for(person.pk)

    def _sends(self, person: Person, choice: str, key: object) -> None:
        response = response_in({"choice": choice, "lease": str(key), "elapsed_ms": "900"})
        person.shown = screen_after(response, locks.person(person.pk))

    def _does_something(self, person: Person) -> bool:
        """Do the next thing with what the page shows; return whether the person is still there."""
        if lease := person.shown.lease:
            return self._meets(person, lease)
        if check := person.shown.check:
            return self._checked(person, check)
        if person.shown.outcome:
            # Settles how the part ended, as the last page does.
            assert person.shown.context
            return False
        self._look(person)
        return True

    def _checked(self, person: Person, check) -> bool:
        fails = person.is_careless and self.rng.random() < FAILS_WHEN_CARELESS
        told = Side(check.expected_side)
        side = other(told) if fails else told
        self._sends(person, side, check.key)
        return admission.voter_at_votes(person.session, self.invitation.token) is not None

    def _meets(self, person: Person, lease: Lease) -> bool:
        indices = self.indices[lease.comparison.current_id], self.indices[lease.comparison.proposal_id]
        pair = Pair(*indices, lease.proposal_side == Side.FIRST)

        def answer() -> bool:
            return self.case.voters.prefers_proposal(self.rng, person.kind, pair)

        reaction = self.case.conduct(self.rng, pair, answer(), answer)
        self._reacts(person, lease, reaction)
        return reaction.deed not in GONE

    def _reacts(self, person: Person, lease: Lease, reaction: Reaction) -> None:
        if reaction.vote is not None:
            side = Side(lease.proposal_side)
            self._sends(person, side if reaction.vote else other(side), lease.key)
        if reaction.deed is not None:
            self.deeds[reaction.deed] += 1
            self._happens(person, lease, reaction.deed)
        elif person.is_slow and self.rng.random() < 1 / VOTES_PER_PERSON:
            self._lets_time_pass(person)

    def _happens(self, person: Person, lease: Lease, deed: Deed) -> None:
        voter = Voter.objects.select_related("campaign").get(pk=person.pk)
        if deed is Deed.SKIP:
            self._sends(person, "skip", lease.key)
        elif deed is Deed.REMOVED:
            completion.exclude(voter, self.campaign.owner, EndReason.OTHER, "drawn by lot", is_paid=True)
        elif deed is Deed.WITHDRAWN:
            completion.withdraw(voter)
        else:
            Lease.objects.filter(pk=lease.pk).update(expires_at=timezone.now())
            leases.expire()
            if deed is Deed.EXPIRE:
                leases.wake(voter)
                self._look(person)

    def _lets_time_pass(self, person: Person) -> None:
        """Somebody's time is over; what is on their screen may still be answered."""
        Voter.objects.filter(pk=person.pk).update(joined_at=timezone.now() - timedelta(minutes=MINUTES))


def paths_of(campaign: Campaign) -> Paths:
    """Return where the chains of a finished campaign went."""
    starts = Chain.objects.filter(campaign=campaign).order_by("index").values_list("start__index", flat=True)
    steps = Comparison.objects.filter(chain__campaign=campaign).order_by("chain__index", "step")
    rows = steps.values_list("verdict", "current__index", "proposal__index")
    after = [proposal if verdict == Comparison.Verdict.ACCEPT else current for verdict, current, proposal in rows]
    return np.column_stack([list(starts), np.reshape(after, (len(starts), -1))])


def other(side: Side) -> Side:
    """Return the side of the other object."""
    return Side.SECOND if side is Side.FIRST else Side.FIRST

"""Any conversation between ask and tell: whatever the order, the batches and the stop, the verdict of all votes."""

from __future__ import annotations

import copy
import math

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sampler import (
    Comparison,
    FewestVotes,
    JudgeByJudge,
    Position,
    RoundRobin,
    Tally,
    Verdict,
    VotePlan,
    acceptance_probability,
    advance,
    askable,
    tell,
)

judges = st.integers(0, 2)


class Conversation(RuleBasedStateMachine):
    """One step of a chain whose votes were all written down before; they are told in any order and any batches."""

    @initialize(
        budgets=st.lists(st.integers(1, 4), min_size=3, max_size=3),
        log_r0=st.floats(-4, 4) | st.floats(-800, 800) | st.just(-math.inf),
        uniform=st.floats(0, 1, exclude_max=True),
        data=st.data(),
    )
    def open_a_step(self, budgets, log_r0, uniform, data):
        self.position = Position(chain=2, step=6, state=10)
        self.comparison = Comparison(2, 7, 10, 11, log_r0, uniform, tuple(budgets))
        self.ballots = [data.draw(st.lists(st.booleans(), min_size=n, max_size=n)) for n in budgets]
        everything = [sum(votes) for votes in self.ballots]
        accepted = uniform < acceptance_probability(log_r0, everything, budgets)
        self.verdict_of_all = Verdict.ACCEPT if accepted else Verdict.REJECT
        self.tally = Tally.empty(3)
        self.settled = None

    def cast(self, judge, votes):
        """Take this judge's next votes, as many as there are."""
        begin = self.tally.votes_cast[judge]
        for vote in self.ballots[judge][begin : begin + votes]:
            self.tally = self.tally.add(judge, vote)

    @rule(judge=judges)
    def one_vote_arrives(self, judge):
        self.cast(judge, 1)

    @rule(votes=st.lists(st.tuples(judges, st.integers(1, 4)), min_size=1, max_size=4))
    def batches_arrive_together(self, votes):
        for judge, count in votes:
            self.cast(judge, count)

    @rule(policy=st.sampled_from([RoundRobin(), JudgeByJudge(), FewestVotes()]))
    def a_plan_is_followed(self, policy):
        plan = VotePlan(policy, self.comparison.log_r0, self.comparison.uniform, self.comparison.budgets)
        request = plan.next(self.tally.votes_for, self.tally.votes_cast)
        assert (request is None) == (tell(self.comparison, self.tally) is not Verdict.UNDECIDED)
        if request is not None:
            for _ in range(request.votes):
                assert tell(self.comparison, self.tally) is Verdict.UNDECIDED, "a vote came too late"
                self.cast(request.judge, 1)

    @rule()
    def what_is_askable_is_asked(self):
        waiting = askable(
            self.comparison.log_r0,
            self.comparison.uniform,
            self.tally.votes_for,
            self.tally.votes_cast,
            (0, 0, 0),
            self.comparison.budgets,
        )
        assert any(waiting) == (tell(self.comparison, self.tally) is Verdict.UNDECIDED)
        if any(waiting):
            self.cast(waiting.index(True), 1)

    @rule()
    def voting_goes_on_to_the_end(self):
        for judge in range(3):
            self.cast(judge, 4)
        assert tell(self.comparison, self.tally) is self.verdict_of_all

    @rule(judge=st.sampled_from([-1, 3]), answer=st.booleans())
    def an_unknown_judge_is_refused(self, judge, answer):
        self.refused(lambda: self.tally.add(judge, answer))

    @rule(judge=judges, excess=st.integers(1, 3))
    def a_vote_beyond_the_budget_is_refused(self, judge, excess):
        cast = list(self.tally.votes_cast)
        cast[judge] = self.comparison.budgets[judge] + excess
        self.refused(lambda: tell(self.comparison, Tally(self.tally.votes_for, tuple(cast))))

    @rule(judge=judges)
    def more_votes_for_than_cast_are_refused(self, judge):
        votes = list(self.tally.votes_for)
        votes[judge] = self.tally.votes_cast[judge] + 1
        self.refused(lambda: tell(self.comparison, Tally(tuple(votes), self.tally.votes_cast)))

    @rule()
    def a_tally_of_other_judges_is_refused(self):
        self.refused(lambda: tell(self.comparison, Tally.empty(2)))

    @rule()
    def an_open_step_is_not_left(self):
        self.refused(lambda: advance(self.position, self.comparison, Verdict.UNDECIDED))

    @precondition(lambda self: self.settled is not None)
    @rule()
    def the_step_is_left_once(self):
        after = advance(self.position, self.comparison, self.settled)
        assert after == Position(2, 7, 11 if self.settled is Verdict.ACCEPT else 10)
        self.refused(lambda: advance(after, self.comparison, self.settled))

    def refused(self, call):
        """An illegal call raises and changes nothing."""
        before = copy.deepcopy((self.position, self.comparison, self.tally))
        said = tell(self.comparison, self.tally)
        with pytest.raises(ValueError, match=r"must|has \d judges"):
            call()
        assert (self.position, self.comparison, self.tally) == before
        assert tell(self.comparison, self.tally) is said

    @invariant()
    def a_verdict_once_said_is_the_one_of_all_votes(self):
        if not hasattr(self, "comparison"):
            return
        said = tell(self.comparison, self.tally)
        if said is not Verdict.UNDECIDED:
            assert said is self.verdict_of_all
            self.settled = said
        assert self.settled is None or said is self.settled, "a settled verdict was opened again"


Conversation.TestCase.settings = settings(
    max_examples=150, stateful_step_count=20, deadline=None, derandomize=True, database=None
)
TestConversation = Conversation.TestCase

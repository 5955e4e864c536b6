"""Choices that are held before they are sent leave the rule exact; an undo while a step is open does not."""

import numpy as np
import pytest

from sampler import NVote

N, CHANGES = 3, 0.1
PREFERENCES = np.array([0.1, 0.3, 0.6, 0.9])
# Votes for the proposal that accept, with r0 = 1: at least k, where k is drawn with the step's uniform number. The
# acceptance probabilities min(1, K / (N - K + 1)) of K = 0, 1, 2, 3 votes are 0, 1/3, 1, 1.
NEEDED = {1: 1 / 3, 2: 2 / 3}


def accepts(preference, needed, undo, votes_for=0, votes=0):
    """Return the probability of an accept; voting stops once it is settled.

    Args:
        undo: from the probability of a vote for the proposal and whether each vote would settle the step, that of
            what counts in the end.
    """
    if votes_for >= needed:
        return 1.0
    if votes_for + N - votes < needed:
        return 0.0
    settles_for, settles_against = votes_for + 1 >= needed, votes_for + N - votes - 1 < needed
    counted = undo(preference, settles_for, settles_against)
    return counted * accepts(preference, needed, undo, votes_for + 1, votes + 1) + (1 - counted) * accepts(
        preference, needed, undo, votes_for, votes + 1
    )


def held(preference, settles_for, settles_against):
    """Whoever changes their mind chooses anew, whatever the choice would have settled."""
    return (1 - CHANGES) * preference + CHANGES * preference


def while_open(preference, settles_for, settles_against):
    """A choice that settles the step is gone; another one may be made anew."""
    again_for = 0.0 if settles_for else CHANGES
    again_against = 0.0 if settles_against else CHANGES
    again = preference * again_for + (1 - preference) * again_against
    return preference * (1 - again_for) + again * preference


def odds_of_acceptance(undo):
    """Return A(x, x') / A(x', x) for each preference: detailed balance with p0·exp(s) wants p / (1 - p)."""

    def acceptance(preference):
        return sum(share * accepts(preference, needed, undo) for needed, share in NEEDED.items())

    return np.array([acceptance(p) / acceptance(1 - p) for p in PREFERENCES])


def test_the_acceptance_that_is_written_out_here_is_the_rule_s():
    expected = NVote((N,)).mean_acceptance(0.0, PREFERENCES[:, None])
    found = [sum(share * accepts(p, needed, held) for needed, share in NEEDED.items()) for p in PREFERENCES]
    assert found == pytest.approx(expected, abs=1e-12)


def test_a_choice_that_is_held_leaves_the_chain_exact():
    assert odds_of_acceptance(held) == pytest.approx(PREFERENCES / (1 - PREFERENCES), rel=1e-12)


def test_an_undo_while_the_step_is_open_does_not():
    off = np.abs(odds_of_acceptance(while_open) / (PREFERENCES / (1 - PREFERENCES)) - 1)
    assert off.max() > 0.01

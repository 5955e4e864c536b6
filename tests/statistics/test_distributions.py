"""Whole studies through the real database: right ones follow their voters' distribution, and a broken rule is found.

Seeds are fixed. A right study falls below `LEVEL` in about one seed of a thousand.
"""

from dataclasses import replace

import pytest

from prefmh_web.campaigns.engine import transitions
from prefmh_web.campaigns.models import Comparison
from prefmh_web.config import Outcome
from prefmh_web.participants.models import Participation
from tests.statistics.cases import BROKEN, CLAIMED, LAPSES, LEVEL, RIGHT, VOTES_BY_OBJECT, WHOLE, Case
from tests.statistics.crowds import FATES
from tests.statistics.distribution import p_values
from tests.statistics.simulated import simulated
from tests.statistics.study import Study
from tests.support.records import assert_replay_passes, export_to


def test_people_with_every_fate_follow_the_target_and_replay_passes(researcher, tmp_path):
    """Checks failed, exclusions and withdrawals in mid-pair, skips, drop-outs, caps and time limits, and chains that
    open while people vote; N = 3.
    """
    study = Study(researcher, RIGHT[WHOLE])
    found = p_values(study.run(), RIGHT[WHOLE].true_chain())
    print(found)
    assert found.least > LEVEL
    # It did what it set out to do.
    assert set(study.deeds) == set(FATES)
    assert study.campaign.chains.count() > RIGHT[WHOLE].chains
    assert set(Participation.objects.values_list("outcome", flat=True).distinct()) >= {
        Outcome.COMPLETED, Outcome.TIME_OVER, Outcome.CHECKS_FAILED, Outcome.WITHDRAWN, Outcome.ENDED,
        Outcome.NOT_ELIGIBLE, Outcome.NOT_UNDERSTOOD,
    }  # fmt: skip
    assert_replay_passes(export_to(study.campaign, tmp_path))


@pytest.mark.parametrize("name", [name for name in RIGHT if name not in (WHOLE, LAPSES)])
def test_other_voters_follow_the_distribution_that_is_true_for_them(researcher, name):
    found = p_values(Study(researcher, RIGHT[name]).run(), RIGHT[name].true_chain())
    print(found)
    assert found.least > LEVEL


def test_voters_with_lapses_follow_their_stationary_distribution_and_not_that_of_their_scores(researcher):
    paths = Study(researcher, RIGHT[LAPSES]).run()
    found = p_values(paths, RIGHT[LAPSES].true_chain())
    [without] = (p_values(paths, case.true_chain()) for case in CLAIMED.values())
    print(found, without)
    assert found.least > LEVEL
    assert without.least < LEVEL


@pytest.mark.parametrize("name", RIGHT | BROKEN | CLAIMED)
def test_a_broken_rule_is_found(name):
    """With `sampler` alone, where thousands of votes take a second: the same people, and the same test of their steps.

    Nine of ten seeds of a broken study are found, so four of these five are.
    """
    case = (RIGHT | BROKEN | CLAIMED)[name]
    found = [p_values(simulated(case, seed), case.true_chain()) for seed in range(5)]
    print(found)
    rejected = sum(each.least < LEVEL for each in found)
    assert rejected == 0 if name in RIGHT else rejected >= 4


def test_max_votes_that_follow_from_the_current_object_are_found_in_a_campaign(researcher, monkeypatch):
    """Through the real database as well, which gives the test the same steps as it decides."""
    case = BROKEN[VOTES_BY_OBJECT]
    break_max_votes(monkeypatch, case)
    found = p_values(Study(researcher, case).run(), case.true_chain())
    print(found)
    assert found.least < LEVEL


def break_max_votes(monkeypatch, case: Case) -> None:
    """Let the current object say how many votes decide a step: what E10 forbids, and no campaign can be told."""
    right = transitions.asked_in

    def wrong(comparison: Comparison):
        return replace(right(comparison), max_votes=(case.wrong_budget(comparison.current.index),))

    monkeypatch.setattr(transitions, "asked_in", wrong)

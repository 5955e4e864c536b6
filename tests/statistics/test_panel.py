"""A panel of five people who differ, through the real database: their chains follow p0·exp(sum of their scores), and
not the distribution of a crowd of the same people. Nor do people who repeat what they have said follow it.

What the test can see is in `panel.py`: the power that `python -m tests.statistics.panel` printed, of twelve runs.
"""

import numpy as np

from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.models import Campaign, Side
from tests.statistics.cases import LEVEL
from tests.statistics.distribution import WEIGHTS
from tests.statistics.panel import CHAINS, SEED, STEPS_IN_DATABASE, TASTES, Members, p_values_of, simulated
from tests.statistics.study import TEXTS, other, paths_of
from tests.support.campaigns import panel_campaign, panel_judges, sit_down
from tests.support.process import wait_until_idle
from tests.support.records import assert_replay_passes, export_to

SKIPS = 0.05


def study_of(owner) -> Campaign:
    """Run a panel's campaign to its end: whoever comes next answers what they are asked, or skips it."""
    config = {
        "space": {"kind": "catalog", "objects": "texts", "neighbours": len(WEIGHTS) - 1},
        "kernel": {"kind": "neighbours"},
        "judges": panel_judges(len(TASTES)),
        "chains": CHAINS,
        "steps": STEPS_IN_DATABASE,
        "seed": SEED,
    }
    campaign = panel_campaign(owner, file=TEXTS, config=config)
    people = [sit_down(campaign, panelist) for panelist in range(1, len(TASTES) + 1)]
    rng, members = np.random.default_rng(SEED), Members()
    while True:
        panelist = int(rng.integers(len(people)))
        if (lease := leases.take(people[panelist])) is None:
            campaign.refresh_from_db()
            if campaign.status == Campaign.Status.FINISHED:
                wait_until_idle()
                return campaign
            continue
        if rng.random() < SKIPS:
            leases.skip(lease.key, people[panelist])
            continue
        comparison = lease.comparison
        chooses = members.prefers(rng, panelist, comparison.current.index, comparison.proposal.index)
        side = Side(lease.proposal_side)
        leases.answer(lease.key, people[panelist], side if chooses else other(side), 900)


def test_a_panel_follows_the_sum_of_its_scores_and_not_the_distribution_of_a_crowd(researcher, tmp_path):
    campaign = study_of(researcher)
    panel, crowd = p_values_of(paths_of(campaign))
    print(panel, crowd)
    assert panel.least > LEVEL
    assert crowd.least < LEVEL
    path = export_to(campaign, tmp_path)
    assert_replay_passes(path)


def test_members_who_repeat_their_answers_are_found():
    """With `sampler` alone, as a middle p-value of 5e-8 needs longer chains (`python -m tests.statistics.panel`)."""
    found = [p_values_of(simulated(Members(remember=True), seed))[0].least for seed in range(3)]
    print(found)
    assert np.median(found) < LEVEL

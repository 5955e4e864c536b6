"""What the record says of votes without a join: what stood where."""

import pytest

from prefmh_web.campaigns.models import Vote
from tests.support.campaigns import (
    assert_replay_passes,
    export_to,
    make_campaign,
    make_config,
    table,
    voted_to_the_end,
)


@pytest.fixture
def voted(researcher, idle_tasks):
    """A finished campaign."""
    return voted_to_the_end(make_campaign(researcher, config=make_config(chains=2, steps=4)))


def test_each_vote_names_the_states_that_stood_left_and_right_and_the_chosen_one(voted, tmp_path):
    path = export_to(voted, tmp_path)
    found = Vote.objects.filter(judge__campaign=voted).select_related("comparison__current", "comparison__proposal")
    expected = {
        str(vote.key): [
            str(vote.comparison.standing(side, vote.proposal_side).place)
            for side in ("first", "second", vote.chosen_side)
        ]
        for vote in found
    }
    rows = table(path, "votes.csv")
    assert {row["lease"]: [row["first_state"], row["second_state"], row["chosen_state"]] for row in rows} == expected
    assert {row["hidden_ms"] for row in rows} == {""}
    assert_replay_passes(path)

"""Two records compared: their states in one list with a hidden column, and the share of each source among samples."""

from collections import Counter

import numpy as np
import pytest

from prefmh_web.campaigns.models import Annotator
from tests.support import campaigns
from tests.support.campaigns import (
    assert_replay_passes,
    export_to,
    make_campaign,
    make_config,
    table,
    vote_until_finished,
)

STATES = [f"A state of {source}, number {number}." for number in range(3) for source in ("one", "other")]
LIST = campaigns.spreadsheet([["text", "source"], *([text, text.split()[3].strip(",")] for text in STATES)])
CONFIG = make_config(
    space={"kind": "catalog", "objects": "texts", "neighbours": 0},
    kernel={"kind": "independent"},
    judges=[{"question": "Which is better?", "votes": 1}],
    chains=4,
    steps=60,
)


def shares_by_source(export) -> dict[str, float]:
    """Return the share of each source among the states after the start."""
    source_of = {row["state"]: row["value"] for row in table(export, "columns.csv") if row["column"] == "source"}
    visited = Counter(source_of[row["state"]] for row in table(export, "samples.csv") if row["step"] != "0")
    return {source: count / visited.total() for source, count in visited.items()}


def test_the_source_that_voters_prefer_has_the_larger_share(researcher, idle_tasks, tmp_path):
    campaign = make_campaign(researcher, file=LIST, config=CONFIG)
    people = [Annotator.objects.create(campaign=campaign) for _ in range(3)]
    preferred = {state.place: float(state.content.startswith("A state of one")) for state in campaign.states.all()}
    # Of p0(x) exp(s(x)), with s = 3 for the one and 0 for the other, the first has 95 %.
    vote_until_finished(campaign, people, {0: lambda place: 3 * preferred[place]}, np.random.default_rng(7))
    export = export_to(campaign, tmp_path)
    assert_replay_passes(export)
    shares = shares_by_source(export)
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["one"] > 0.8
    assert shares["other"] < 0.2

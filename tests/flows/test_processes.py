"""A whole campaign on PostgreSQL and Redis, with two web processes, a worker and beat, each a process of its own."""

import numpy as np

from tests.support.campaigns import AnyScore, CarefulVoter
from tests.support.installations import Crowd, hurried

VOTERS = 8


def test_a_campaign_runs_to_its_end_through_separate_processes(installation):
    processes = (*installation.webs, installation.worker, installation.beat)
    before = {process.name: process.log() for process in processes}
    judges = [{"question": "Which is darker?", "votes": 3}, {"question": "Which is better?", "votes": 2}]
    [(campaign, path)] = installation.make_campaigns({"judges": judges, "chains": 6, "steps": 8})
    crowd = Crowd(
        [
            CarefulVoter(installation.urls[seed % 2] + path, AnyScore(), np.random.default_rng(seed), hurried)
            for seed in range(VOTERS)
        ]
    )
    crowd.start()
    crowd.wait(120)

    assert installation.query("SELECT status FROM campaigns_campaign WHERE id = %s", campaign) == [("finished",)]
    stored = [
        str(key)
        for (key,) in installation.query(
            "SELECT v.key FROM campaigns_vote v JOIN campaigns_judge j ON j.id = v.judge_id WHERE j.campaign_id = %s",
            campaign,
        )
    ]
    assert len(stored) == len(set(stored))
    assert set(crowd.acknowledged) <= set(stored)
    # Nobody's vote came too late: no lease is given for a vote that could be, whichever process gives it.
    late = "SELECT count(*) FROM campaigns_vote v JOIN campaigns_judge j ON j.id = v.judge_id"
    assert installation.query(f"{late} WHERE v.number IS NULL AND j.campaign_id = %s", campaign) == [(0,)]
    installation.assert_record_is_whole_and_replays(campaign)
    for process in processes:
        process.assert_runs()
        # What other tests did to these processes before is no concern of this one.
        log = process.log()[len(before[process.name]) :]
        assert "Traceback" not in log, log

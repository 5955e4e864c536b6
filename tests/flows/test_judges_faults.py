"""What may go wrong between a campaign and the model that judges it. No vote is lost, none is asked twice for nothing.

Everything runs as processes, on PostgreSQL and Redis, with the model servers in one of their own. Each fault has a
server and a campaign; they run side by side, and only what the servers counted, the pages and the record are looked at.

    FAULT_STRETCH_S=600 pytest -n 0 tests/flows/test_judges_faults.py -k out-of-order

lets the server that answers 500 do so for ten minutes.
"""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from tests.support import servers
from tests.support.installations import (
    VARIABLES,
    Desk,
    FaultyModels,
    Installation,
    is_ready,
    judged_by,
    wait_for,
)
from tests.support.models import (
    LINES,
)

CHAINS, STEPS, AT_ONCE = 12, 4, 36
STRETCH_S = float(os.environ.get("FAULT_STRETCH_S", "10"))
RETRY_AFTER_S = 6
BIAS = 0.2
FAULTS = {
    "hangs": {"kind": "hang", "lasts_s": 10},
    "trickles": {"kind": "trickle", "lasts_s": 10},
    "resets": {"kind": "reset", "lasts_s": 10},
    "out-of-order": {"kind": "error", "lasts_s": STRETCH_S},
    "asks-to-wait": {"kind": "limit", "lasts_s": 15, "retry_after": str(RETRY_AFTER_S)},
    "refuses": {"kind": "limit", "lasts_s": 10},
}
# Replies that count for nothing, as a share of the votes.
MAX_WASTE = 0.02
# Every preference between .2 and .8.
SCORES = {line: (index - 5.5) / 8 for index, line in enumerate(LINES)}

# As many under way as there are on a busy machine, too, where chains open slowly and a reply takes its time.
FORCE_CHAINS, FORCE_STEPS, UNDER_WAY, REPLY_S = 40, 3, 12, 4
# As many as there are chains.
ROOM = 1024
# What a process that was killed had claimed is its own for another minute.
_END_CLAIMS = "UPDATE campaigns_turn SET until = now() - interval '1 second' WHERE until > now()"
_VOTES = """
    SELECT count(*), count(v.number), count(DISTINCT (v.comparison_id, v.judge_id, v.slot)) FROM campaigns_vote v
    JOIN campaigns_judge j ON j.id = v.judge_id WHERE j.campaign_id = %s
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Iterator[FaultyModels]:
    judge = {"bias": BIAS, "scores": SCORES}
    plans = {name: judge | {"faults": [fault]} for name, fault in FAULTS.items()}
    slow = {"slow": judge | {"latency_s": REPLY_S}}
    found = FaultyModels(tmp_path_factory.mktemp("models"), plans | slow)
    found.start()
    yield found
    found.stop()


@pytest.fixture(scope="module")
def site(tmp_path_factory, models) -> Iterator[Installation]:
    """An installation with a process that asks model servers, which a test may kill."""
    servers.require_engines()
    found = Installation(tmp_path_factory.mktemp("site"), VARIABLES)
    found.worker_queues = "default,files"
    try:
        found.start()
        # A server that says nothing is given up after three seconds, and no test waits for long.
        models.register(found, concurrency=ROOM, timeout_s=60)
        found.query("UPDATE endpoints_endpoint SET concurrency = %s, timeout_s = 3 WHERE name <> 'slow'", AT_ONCE)
        yield found
    finally:
        found.stop()


@pytest.fixture(scope="module")
def asking(site):
    """The process that asks model servers; it says first what it needs."""
    assert "DATABASE_POOL_SIZE=4" in site.run("manage.py", "judges", check=False).stderr
    judges = site.judges()
    site.launch(judges)
    return judges


@pytest.fixture(scope="module")
def desk(site) -> Iterator[Desk]:
    found = Desk(site)
    yield found
    found.close()


@pytest.fixture(scope="module")
def studies(site, asking, desk) -> dict[str, int]:
    """The campaigns of all faults, started: they go on side by side."""
    configs = [{"judges": [judged_by(name)], "chains": CHAINS, "steps": STEPS} for name in FAULTS]
    made = site.make_campaigns(*configs, start=False)
    found = {name: campaign for name, (campaign, _) in zip(FAULTS, made, strict=True)}
    for campaign in found.values():
        desk.press(campaign, "start")
    return found


def finish(site: Installation, campaign: int, seconds: float = 150) -> int:
    """Wait until a campaign is finished, without a hand from anybody; return how many of its votes counted."""
    status = "SELECT status FROM campaigns_campaign WHERE id = %s"
    wait_for(lambda: site.query(status, campaign)[0][0] == "finished", "the campaign is finished", seconds)
    [(stored, counted, slots)] = site.query(_VOTES, campaign)
    # None is doubled.
    assert stored == slots
    assert stored > CHAINS * STEPS
    return counted


def assert_little_was_wasted(models: FaultyModels, name: str, counted: int, lost: int = 0) -> None:
    """Of all replies that came to their end, no more than a few did not become a vote that counted, nor were lost."""
    assert models.count(name, "answered") <= counted * (1 + MAX_WASTE) + lost


@pytest.mark.parametrize("name", FAULTS)
def test_a_campaign_goes_on_by_itself_when_its_server_is_well_again(site, models, studies, name):
    counted = finish(site, studies[name], 150 + 3 * FAULTS[name]["lasts_s"])
    # After those that were under way together it is asked in no loop: half a second is the shortest pause there is.
    assert 0 < models.count(name, "struck") <= 2 * AT_ONCE + 2 * FAULTS[name]["lasts_s"]
    assert_little_was_wasted(models, name, counted)


def test_the_records_of_all_of_them_are_whole_and_replay(site, studies):
    for name in FAULTS:
        finish(site, studies[name])
    site.assert_record_is_whole_and_replays(*studies.values())


@dataclass
class Force:
    """A campaign with as many requests under way as its server takes, and what was lost by force."""

    site: Installation
    models: FaultyModels
    campaign: int
    lost: int = 0

    def strike(self, blow: Callable[[], None], least: int) -> None:
        """Do something bad while so many requests are under way; count those as lost."""
        wait_for(lambda: self.models.count("slow", "now") >= least, f"{least} requests are under way", 300)
        answered = self.models.count("slow", "answered")
        time.sleep(1)
        self.lost += self.models.count("slow", "now")
        blow()
        # Answered in the last moment, and not stored.
        self.lost += self.models.count("slow", "answered") - answered


def test_nothing_is_lost_or_doubled_by_force(site, models, asking, studies, desk):
    for name in FAULTS:
        finish(site, studies[name])
    judged = {"judges": [judged_by("slow")], "chains": FORCE_CHAINS, "steps": FORCE_STEPS}
    [(campaign, _)] = site.make_campaigns(judged, start=False)
    desk.press(campaign, "start")
    force = Force(site, models, campaign)

    def kill() -> None:
        asking.kill()
        site.query(_END_CLAIMS)
        asking.start()

    def restart_all() -> None:
        site.webs[0].kill()
        site.worker.kill()
        site.postgres.kill()
        site.postgres.start()
        site.webs[0].start()
        site.worker.start()

    force.strike(kill, UNDER_WAY)
    force.strike(kill, UNDER_WAY)
    force.strike(restart_all, UNDER_WAY)
    wait_for(lambda: is_ready(site.urls[0]), "the web process ready again")
    counted = finish(site, campaign, 240)
    assert_little_was_wasted(models, "slow", counted, force.lost)
    site.look_after(site.beat)
    asking.assert_runs()
    site.assert_record_is_whole_and_replays(campaign)

"""`manage.py judges` as a process of its own: many requests at a time, nothing lost or doubled when it is killed, and
hundreds of chains that come to their end.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import closing

import httpx
import pytest

from tests.support.faulty_models import Desk
from tests.support.ports import port_from
from tests.support.processes import ROOT, Installation, Process, wait_for
from tests.support.record import assert_replay_passes, table

CHAINS, STEPS, AT_ONCE = 30, 4, 24
MANY_CHAINS, FEW_STEPS = 200, 2
SETUP = """
import json, sys
import django
django.setup()
from prefmh_web.endpoints.models import Endpoint
from django.contrib.auth import get_user_model
wanted = json.loads(sys.argv[1])
owner, _ = get_user_model().objects.get_or_create(username="ada")
Endpoint.objects.create(owner=owner, name="steady", base_url=wanted["url"], model="m", dialect="vllm",
                        concurrency=wanted["at_once"])
"""


@pytest.fixture
def steady(tmp_path) -> Iterator[str]:
    """The address of a model server that takes .3 s over each vote, and refuses what is more than `AT_ONCE` at once."""
    port = port_from(23_500)
    command = [sys.executable, "-m", "uvicorn", "tests.benchmarks.judging_stub:application", "--port", str(port)]
    process = Process("steady", command, {"LATENCY_S": "0.3", "AT_ONCE": str(AT_ONCE), "PATH": ""}, tmp_path, cwd=ROOT)
    process.start()
    url = f"http://127.0.0.1:{port}"
    wait_for(lambda: answers(url), "the model server answers")
    yield url
    process.kill()


@pytest.fixture
def site(tmp_path) -> Iterator[Installation]:
    """An installation whose worker leaves model servers to `judges`."""
    variables = {"ENDPOINT_ALLOWED_HOSTS": "127.0.0.1", "ENDPOINT_ALLOW_PRIVATE": "127.0.0.1/32"}
    found = Installation(tmp_path, variables)
    found.worker_queues = "default,files"
    try:
        found.start()
        yield found
    finally:
        found.stop()


def answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/figures").is_success
    except httpx.HTTPError:
        return False


def figures(url: str) -> dict[str, int]:
    return httpx.get(f"{url}/figures", timeout=60).json()


def test_many_turns_are_under_way_at_a_time_and_a_kill_costs_no_more_than_those(site, steady):
    assert "DATABASE_POOL_SIZE=4" in site.run("manage.py", "judges", check=False).stderr
    site.run("-", json.dumps({"url": f"{steady}/v1", "at_once": AT_ONCE}), script=SETUP)
    judge = {"question": "Which is darker?", "budget": 3, "source": {"kind": "model", "endpoint": "steady"}}
    [(campaign, _)] = site.make_campaigns({"judges": [judge], "chains": CHAINS, "steps": STEPS}, start=False)
    judges = site.judges(calls=CHAINS)
    site.launch(judges)
    site.start_campaign(campaign)
    wait_for(lambda: figures(steady)["now"] > AT_ONCE // 2, "many requests are under way")
    judges.kill()
    judges.start()
    finished = "SELECT status FROM campaigns_campaign WHERE id = %s"
    wait_for(lambda: site.query(finished, campaign)[0][0] == "finished", "the campaign is finished", seconds=180)
    found = figures(steady)
    assert found["refused"] == 0
    assert found["most"] <= AT_ONCE
    [[votes, keys]] = site.query("SELECT count(*), count(DISTINCT (comparison_id, judge_id, slot)) FROM campaigns_vote")
    assert votes == keys
    # What was on its way when the process was killed may have been answered and not stored, and nothing else.
    assert found["votes"] <= votes + AT_ONCE
    site.assert_record_is_whole_and_replays(campaign)


def test_a_study_of_two_hundred_chains_is_judged_exported_and_replayed(site, steady, tmp_path):
    site.run("-", json.dumps({"url": f"{steady}/v1", "at_once": AT_ONCE}), script=SETUP)
    judge = {"question": "Which is darker?", "budget": 3, "source": {"kind": "model", "endpoint": "steady"}}
    recipe = {"judges": [judge], "chains": MANY_CHAINS, "steps": FEW_STEPS}
    [(campaign, _)] = site.make_campaigns(recipe, start=False)
    site.launch(site.judges(calls=2 * AT_ONCE))
    with closing(Desk(site)) as desk:
        desk.press(campaign, "start")
        finished = "SELECT status FROM campaigns_campaign WHERE id = %s"
        wait_for(lambda: site.query(finished, campaign)[0][0] == "finished", "the campaign is finished", seconds=180)
        path = tmp_path / "export.zip"
        path.write_bytes(desk.file(campaign, "export.zip"))
    assert_replay_passes(path)
    steps, votes = table(path, "steps.csv"), table(path, "votes.csv")
    assert {row["chain"] for row in steps} == {str(place) for place in range(MANY_CHAINS)}
    assert len(steps) == MANY_CHAINS * FEW_STEPS
    found = figures(steady)
    assert found["most"] <= AT_ONCE
    # No reply was asked for that no step could use.
    assert len(votes) <= found["votes"] <= 1.02 * len(votes)
    site.assert_record_is_whole_and_replays(campaign)

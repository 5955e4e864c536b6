"""A paid study through real sockets: people sent by a platform, on two devices, until their codes."""

from __future__ import annotations

import asyncio
import logging
from urllib.parse import urlencode

import numpy as np

from prefmh_web.campaigns.models import Annotator
from prefmh_web.demo.voters import Voter
from prefmh_web.participants.models import Participation
from tests.security.world import browser_of
from tests.support.record import assert_record_is_whole, assert_replay_passes, everything_in, export_to, table
from tests.support.recruited import CODES, payments_of, prolific, recruited_campaign
from tests.support.stack import invitation_path

PEOPLE, VOTES_EACH = 12, 6


class Told(logging.Handler):
    """All that is logged, with what stands around it."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.getMessage()} {record.__dict__}")


def test_everybody_gets_a_code_once_and_no_id_is_told_to_anybody(
    researcher, live_site, idle_tasks, tmp_path, caplog, eventually
):
    study = recruited_campaign(researcher, votes_each=VOTES_EACH)
    # Only now: the first task that is queued sets logging up.
    caplog.set_level(logging.DEBUG, logger="prefmh_web")
    told = Told()
    logging.getLogger().addHandler(told)
    scores = {judge.question: lambda text: float(len(text)) for judge in study.judges.all()}
    people = [f"PERSON-{number:03d}" for number in range(PEOPLE)]
    # Each third comes a second time, on a second device and at the same time.
    visits = [(person, 1) for person in people] + [(person, 2) for person in people[::3]]

    def voter(person: str, visit: int) -> Voter:
        query = urlencode(prolific(person, session=f"VISIT-{person}-{visit}"))
        link = f"{live_site.url}{invitation_path(study)}?{query}"
        seed = np.random.default_rng([int(person[-3:]), visit])
        return Voter(link, scores, seed, lambda rng: float(rng.uniform(0, 0.05)))

    async def vote() -> None:
        async with asyncio.timeout(120):
            await asyncio.gather(*(voter(*visit).run() for visit in visits))

    asyncio.run(vote())
    idle_tasks()
    assert eventually(lambda: not Participation.objects.filter(outcome="").exists())
    assert Annotator.objects.count() == PEOPLE
    rows = payments_of(browser_of(researcher), study)
    assert sorted(row["external_id"] for row in rows) == people
    for row in rows:
        assert (row["outcome"], row["code"], row["votes"]) == ("completed", CODES["completed"], str(VOTES_EACH))
        assert row["session_id"].startswith(f"VISIT-{row['external_id']}-")
    assert_record_is_whole(study)
    export = export_to(study, tmp_path)
    assert_replay_passes(export)
    logging.getLogger().removeHandler(told)
    # The negative control: of each vote something stands in both.
    assert sum("vote" in line for line in told.lines) >= PEOPLE * VOTES_EACH
    assert len(table(export, "votes.csv")) == PEOPLE * VOTES_EACH
    endings = [row["ending"] for row in table(export, "leases.csv")]
    assert endings.count("voted") == PEOPLE * VOTES_EACH
    assert all(float(row["active_minutes"]) < 2 for row in rows)
    assert "PERSON-" not in "".join(told.lines)
    assert "PERSON-" not in everything_in(export)

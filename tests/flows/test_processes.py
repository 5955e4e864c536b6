"""The process that serves everything, killed while people vote and started again."""

import asyncio
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.request
import zipfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from tests.support.campaigns import AnyScore, CarefulVoter
from tests.support.installations import ROOT
from tests.support.models import port_from

KILLS = 3
# Acknowledged before each kill, by all.
VOTES_BETWEEN = 20


class Demo:
    """`manage.py demo` in a data folder of its own, as a process that can be killed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = port_from(21_000)
        self.environment = {**os.environ, "PREFMH_DATA": str(folder), "DJANGO_SETTINGS_MODULE": "prefmh_web.settings"}

    def start(self) -> None:
        command = [sys.executable, "manage.py", "demo", "--port", str(self.port)]
        with (self.folder / "demo.log").open("w") as log:
            self.process = subprocess.Popen(command, cwd=ROOT, env=self.environment, stdout=log, stderr=log)
        while "Serving" not in self.log():
            assert self.process.poll() is None, self.log()
            time.sleep(0.05)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def log(self) -> str:
        return (self.folder / "demo.log").read_text()

    def query(self, sql: str) -> list[tuple]:
        """Read the record as another process sees it."""
        with closing(sqlite3.connect(self.folder / "prefmh.sqlite3")) as database:
            return database.execute(sql).fetchall()

    def export(self, campaign: int) -> Path:
        """Download the record the way a researcher does."""
        sign_in = re.search(r"http\S+sesame=\S+", self.log()).group()
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        browser.open(sign_in).close()
        path = self.folder / f"export-{campaign}.zip"
        url = f"http://127.0.0.1:{self.port}/campaigns/{campaign}/files/export.zip"
        with browser.open(url) as answer:
            path.write_bytes(answer.read())
        return path


@pytest.fixture
def demo(tmp_path):
    demo = Demo(tmp_path)
    demo.start()
    yield demo
    demo.kill()


def test_a_killed_server_loses_no_vote_and_draws_no_second_uniform(demo):
    links = re.findall(r"http\S+/join/\S+/", demo.log())
    voters = [
        CarefulVoter(link, AnyScore(), np.random.default_rng(seed), lambda rng: float(rng.exponential(0.05)))
        for link in links
        for seed in range(3)
    ]

    decided = []

    async def another_while() -> None:
        """Let people vote; on a busy machine for longer."""
        enough = sum(len(voter.acknowledged) for voter in voters) + VOTES_BETWEEN
        async with asyncio.timeout(60):
            while sum(len(voter.acknowledged) for voter in voters) < enough:
                await asyncio.sleep(0.1)

    async def vote_through_kills() -> None:
        running = [asyncio.create_task(voter.run()) for voter in voters]
        for _ in range(KILLS):
            await another_while()
            await asyncio.to_thread(demo.kill)
            seen = uniforms(demo)
            await asyncio.to_thread(demo.start)
            assert {step: drawn for step, drawn in uniforms(demo).items() if step in seen} == seen
            decided.append(sum(step for (step,) in demo.query("SELECT step FROM campaigns_chain")))
        await another_while()
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    asyncio.run(vote_through_kills())

    acknowledged = {key.replace("-", "") for voter in voters for key in voter.acknowledged}
    stored = [key for (key,) in demo.query("SELECT key FROM campaigns_vote")]
    assert len(acknowledged) > KILLS * VOTES_BETWEEN
    # The chains went on after every kill.
    assert 0 < decided[0] < decided[1] < decided[2]
    assert acknowledged <= set(stored)
    assert len(stored) == len(set(stored))
    for (campaign,) in demo.query("SELECT id FROM campaigns_campaign"):
        path = demo.export(campaign)
        assert zipfile.is_zipfile(path)
        replay = subprocess.run(
            [sys.executable, "manage.py", "replay", str(path)],
            cwd=ROOT, env=demo.environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert replay.returncode == 0, replay.stdout + replay.stderr
        assert "all agree" in replay.stdout


def uniforms(demo: Demo) -> dict:
    rows = demo.query("SELECT chain_id, step, uniform, log_r0, proposal_id FROM campaigns_comparison")
    return {(chain, step): rest for chain, step, *rest in rows}

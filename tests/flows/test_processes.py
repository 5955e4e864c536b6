"""The process that serves everything, killed while people vote and started again."""

import asyncio
import re
import urllib.request
import zipfile
from pathlib import Path

import numpy as np

from tests.support.campaigns import AnyScore, CarefulVoter
from tests.support.installations import Process, Program

KILLS = 3
# Acknowledged before each kill, by all.
VOTES_BETWEEN = 20


def test_a_killed_server_loses_no_vote_and_draws_no_second_uniform(program):
    demo, site = program.serve("demo")
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
            seen = uniforms(program)
            await asyncio.to_thread(demo.start)
            await asyncio.to_thread(demo.wait_until_it_says, "Serving")
            assert {step: drawn for step, drawn in uniforms(program).items() if step in seen} == seen
            decided.append(sum(step for (step,) in program.query("SELECT step FROM campaigns_chain")))
        await another_while()
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    asyncio.run(vote_through_kills())

    acknowledged = {key.replace("-", "") for voter in voters for key in voter.acknowledged}
    stored = [key for (key,) in program.query("SELECT key FROM campaigns_vote")]
    assert len(acknowledged) > KILLS * VOTES_BETWEEN
    # The chains went on after every kill.
    assert 0 < decided[0] < decided[1] < decided[2]
    assert acknowledged <= set(stored)
    assert len(stored) == len(set(stored))
    for (campaign,) in program.query("SELECT id FROM campaigns_campaign"):
        path = downloaded(demo, f"{site}/campaigns/{campaign}/files/export.zip", program.folder / "export.zip")
        assert zipfile.is_zipfile(path)
        assert "all agree" in program.run("manage.py", "replay", str(path)).stdout


def uniforms(program: Program) -> dict:
    rows = program.query("SELECT chain_id, step, uniform, log_r0, proposal_id FROM campaigns_comparison")
    return {(chain, step): rest for chain, step, *rest in rows}


def downloaded(demo: Process, url: str, path: Path) -> Path:
    """Download a file the way a researcher does, who signs in by the last link that the server has told."""
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    browser.open(re.search(r"http\S+sesame=\S+", demo.log_since())[0]).close()
    with browser.open(url) as answer:
        path.write_bytes(answer.read())
    return path

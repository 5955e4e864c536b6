"""The part of the run for a machine with a GPU that is a whole campaign: written there, killed on the way, replayed."""

from __future__ import annotations

import json
import re
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch

from tests.benchmarks.gpu_run import Run
from tests.benchmarks.gpu_texts import PROMPTS, random_llama
from tests.gpu.small_models import tokenizer_of
from tests.support.installations import Process, Program, in_folder, wait_for
from tests.support.models import port_from

KILLED, LAST = "the site, killed", "the site again"
A_TOKEN_ENDS = 16
"""One of so many tokens ends a text."""
PATIENCE_S = 200
"""The part's own limit comes first on a GPU."""
DJANGO = """
import sys
import django
django.setup()
from django.core.management import call_command
"""
# As a command of its own would: it starts the campaign, which loads the model for the first time, and ends.
STARTED = """
call_command("migrate", verbosity=0)
call_command("researcher", "ada", "--link")
call_command("campaign", "create", sys.argv[1], "--owner", "ada")
call_command("campaign", "start", "1")
"""
REPLAYED = """
from prefmh_web.campaigns.models import Campaign
from prefmh_web.campaigns.record import export
with open(sys.argv[1], "wb") as file:
    file.writelines(export.archive(Campaign.objects.get()))
call_command("replay", sys.argv[1])
"""


def campaign(run: Run) -> None:
    """Let a model with random weights write a campaign, kill the site in a batch, and replay the record of its end."""
    chains, steps, _ = run.size.campaign
    with tempfile.TemporaryDirectory() as folder:
        site = Site(run, Path(folder))
        before = _memory(run)
        site.prepare()
        seen: dict[tuple[int, int], tuple] = {}
        for name in (KILLED, LAST):
            # In this part's own group, with which it ends if the part takes too long.
            command = ("manage.py", "serve", "--port", str(port_from(23_000)))
            serving = site.process("site", *command, process_group=None)
            serving.start()
            site.wait(serving, site.is_finished if name is LAST else site.is_in_a_batch)
            run.found(f"{name}: GiB of the GPU in use", _memory(run) - before)
            run.found(f"{name}: GiB of the process at most", _peak(serving))
            serving.stop(signal.SIGTERM if name is LAST else signal.SIGKILL)
            drawn = site.drawn()
            if name is KILLED:
                run.above("chains that the model was at work for when it was killed", site.claimed(), 0)
                run.found("steps drawn by then", len(drawn))
            same = {step: drawn.get(step) for step in seen} == seen
            run.found(f"{name}: what was drawn before", same, "still there and the same", same)
            seen = drawn
            site.let_a_minute_pass()
        run.found("steps", len(seen), f"{chains} chains of {steps}", len(seen) == chains * steps)
        states = site.query('SELECT count(*), count(DISTINCT "index") FROM campaigns_state')[0]
        run.found(
            "states, and how many of their numbers are distinct", list(states), "none twice", states[0] == states[1]
        )
        said = site.replayed()
        run.found("replay", said, "all agree", "all agree" in said)
        run.found("GiB of the GPU in use at the end", _memory(run) - before)


def _memory(run: Run) -> float:
    """Return how much of the GPU's memory is in use, by whomever, in GiB."""
    if run.device != "cuda":
        return 0.0
    free, total = torch.cuda.mem_get_info()
    return (total - free) / 2**30


def _peak(process: Process) -> float:
    """Return the most memory that a process has had, in GiB."""
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 2**20


class Site(Program):
    """`manage.py serve` on a database of its own, with a model in a folder."""

    def __init__(self, run: Run, folder: Path) -> None:
        local = {"LOCAL_MODELS": f"random={folder / 'model'}", "LOCAL_DEVICE": run.device}
        super().__init__(folder, in_folder(folder, **local))
        self._run = run

    def prepare(self) -> None:
        """Save a model, and make a campaign that is to be started."""
        module = random_llama(self._run, torch.bfloat16 if self._run.device == "cuda" else torch.float32)
        vocabulary = module.config.vocab_size
        module.generation_config.eos_token_id = list(range(0, vocabulary, A_TOKEN_ENDS))
        module.save_pretrained(self.folder / "model")
        tokenizer_of([f"w{number}" for number in range(1, vocabulary)]).save_pretrained(self.folder / "model")
        del module
        if self._run.device == "cuda":
            torch.cuda.empty_cache()
        chains, steps, limit = self._run.size.campaign
        setup = {
            "name": "Written on a GPU",
            "space": {"kind": "model-texts", "model": "random", "prompts": list(PROMPTS), "limit": limit},
            "kernel": {"kind": "suffix", "cut": "length"},
            "rule": {"kind": "score", "form": "exponential", "scorers": ["words"], "beta": 0.1},
            "judges": [],
            "chains": chains,
            "steps": steps,
            "seed": 7,
        }
        (self.folder / "campaign.yaml").write_text(json.dumps(setup), encoding="utf-8")
        self.run("-c", DJANGO + STARTED, str(self.folder / "campaign.yaml"))

    def wait(self, serving: Process, condition: Callable[[], object]) -> None:
        """Return as soon as something holds; AssertionError where the site has ended, or it takes too long."""
        wait_for(lambda: serving.assert_runs() or condition(), "what the site does", PATIENCE_S, 0.002)

    def is_finished(self) -> bool:
        """True when all chains are at their end."""
        return self.query("SELECT status FROM campaigns_campaign") == [("finished",)]

    def is_in_a_batch(self) -> bool:
        """True when the site's process has written for some chains, and writes for others."""
        chains = self._run.size.campaign[0]
        [(decided,)] = self.query("SELECT count(*) FROM campaigns_comparison WHERE verdict IS NOT NULL")
        # The first step was drawn where the campaign was started.
        return decided > chains and self.claimed() > 0

    def claimed(self) -> int:
        """Return how many chains the model is at work for, or was when the site was killed."""
        [(chains,)] = self.query(
            "SELECT count(*) FROM campaigns_chain WHERE claimed_until IS NOT NULL AND texts_claimed > 0"
        )
        return chains

    def let_a_minute_pass(self) -> None:
        """Let what a killed process had claimed be free now; the site waits for a minute, since it may be alive."""
        self.query("UPDATE campaigns_chain SET claimed_until = '2000-01-01 00:00:00' WHERE claimed_until IS NOT NULL")

    def drawn(self) -> dict[tuple[int, int], tuple]:
        """Return proposal, base ratio and uniform of each step of each chain."""
        found = self.query("SELECT chain_id, step, current_id, proposal_id, log_r0, uniform FROM campaigns_comparison")
        return {(chain, step): tuple(rest) for chain, step, *rest in found}

    def replayed(self) -> str:
        """Return what the replay of the record says."""
        done = self.run("-c", DJANGO + REPLAYED, str(self.folder / "export.zip"))
        return done.stdout.strip().splitlines()[-1]

"""The part of the run for a machine with a GPU that is a whole campaign: written there, killed on the way, replayed."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from tests.benchmarks.gpu_run import ROOT, Run
from tests.benchmarks.gpu_texts import PROMPTS, random_llama
from tests.gpu.small_models import tokenizer_of

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
            site.serve()
            site.wait(site.is_finished if name is LAST else site.is_in_a_batch)
            run.found(f"{name}: GiB of the GPU in use", _memory(run) - before)
            run.found(f"{name}: GiB of the process at most", site.peak())
            site.stop(signal.SIGTERM if name is LAST else signal.SIGKILL)
            drawn = site.drawn()
            if name is KILLED:
                run.above("chains that the model was at work for when it was killed", site.claimed(), 0)
                run.found("steps drawn by then", len(drawn))
            same = {step: drawn.get(step) for step in seen} == seen
            run.found(f"{name}: what was drawn before", same, "still there and the same", same)
            seen = drawn
            site.let_a_minute_pass()
        run.found("steps", len(seen), f"{chains} chains of {steps}", len(seen) == chains * steps)
        states = site.ask("SELECT count(*), count(DISTINCT place) FROM campaigns_state")[0]
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


class Site:
    """`manage.py serve` on a database of its own, with a model in a folder."""

    def __init__(self, run: Run, folder: Path) -> None:
        self._run, self._folder = run, folder
        (folder / "data").mkdir()
        self._variables = os.environ | {
            "PREFMH_DATA": str(folder / "data"),
            "DJANGO_SETTINGS_MODULE": "prefmh_web.settings",
            "LOCAL_MODELS": f"random={folder / 'model'}",
            "LOCAL_DEVICE": run.device,
        }
        self._serving: subprocess.Popen | None = None

    def prepare(self) -> None:
        """Save a model, and make a campaign that is to be started."""
        module = random_llama(self._run, torch.bfloat16 if self._run.device == "cuda" else torch.float32)
        vocabulary = module.config.vocab_size
        module.generation_config.eos_token_id = list(range(0, vocabulary, A_TOKEN_ENDS))
        module.save_pretrained(self._folder / "model")
        tokenizer_of([f"w{number}" for number in range(1, vocabulary)]).save_pretrained(self._folder / "model")
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
        (self._folder / "campaign.yaml").write_text(json.dumps(setup), encoding="utf-8")
        self._python(STARTED, str(self._folder / "campaign.yaml"))

    def serve(self) -> None:
        """Start the site."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        command = [sys.executable, "manage.py", "serve", "--port", port]
        with (self._folder / "site.log").open("a", encoding="utf-8") as log:
            self._serving = subprocess.Popen(command, cwd=ROOT, env=self._variables, stdout=log, stderr=log)

    def wait(self, condition: Callable[[], object]) -> None:
        """Return as soon as something holds.

        Raises:
            RuntimeError: the site has ended, or it takes too long.
        """
        until = time.monotonic() + PATIENCE_S
        while not condition():
            if self._serving.poll() is not None or time.monotonic() > until:
                log = (self._folder / "site.log").read_text(encoding="utf-8")
                raise RuntimeError(f"the site came to nothing: {' '.join(log.split())[-1500:]}")
            time.sleep(0.002)

    def stop(self, how: signal.Signals) -> None:
        """End the site, and wait until it has."""
        self._serving.send_signal(how)
        self._serving.wait()

    def peak(self) -> float:
        """Return the most memory that the site's process has had, in GiB."""
        status = Path(f"/proc/{self._serving.pid}/status").read_text(encoding="utf-8")
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 2**20

    def ask(self, statement: str) -> list[tuple]:
        """Return what the database says; nothing while it has no tables."""
        with sqlite3.connect(self._folder / "data" / "prefmh.sqlite3", timeout=30) as database:
            return database.execute(statement).fetchall()

    def is_finished(self) -> bool:
        """True when all chains are at their end."""
        return self.ask("SELECT status FROM campaigns_campaign") == [("finished",)]

    def is_in_a_batch(self) -> bool:
        """True when the site's process has written for some chains, and writes for others."""
        chains = self._run.size.campaign[0]
        decided = self.ask("SELECT count(*) FROM campaigns_comparison WHERE verdict IS NOT NULL")[0][0]
        # The first step was drawn where the campaign was started.
        return decided > chains and self.claimed() > 0

    def claimed(self) -> int:
        """Return how many chains the model is at work for, or was when the site was killed."""
        return self.ask("SELECT count(*) FROM campaigns_chain WHERE claimed_until IS NOT NULL AND texts_claimed > 0")[
            0
        ][0]

    def let_a_minute_pass(self) -> None:
        """Let what a killed process had claimed be free now; the site waits for a minute, since it may be alive."""
        self.ask("UPDATE campaigns_chain SET claimed_until = '2000-01-01 00:00:00' WHERE claimed_until IS NOT NULL")

    def drawn(self) -> dict[tuple[int, int], tuple]:
        """Return proposal, base ratio and uniform of each step of each chain."""
        found = self.ask("SELECT chain_id, step, current_id, proposal_id, log_r0, uniform FROM campaigns_comparison")
        return {(chain, step): tuple(rest) for chain, step, *rest in found}

    def replayed(self) -> str:
        """Return what the replay of the record says."""
        return self._python(REPLAYED, str(self._folder / "export.zip")).strip().splitlines()[-1]

    def _python(self, script: str, argument: str) -> str:
        command = [sys.executable, "-c", DJANGO + script, argument]
        done = subprocess.run(command, cwd=ROOT, env=self._variables, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{script.splitlines()[1]}: {done.stderr[-1500:]}")
        return done.stdout

"""How fast a model judges, against a model server of which all is known: what it could give, and what was asked of it.

    python -m tests.benchmarks.judging [--latency 1] [--at-once 256] [--chains 400] [--seconds 60]
        [--all-at-once] [--log-probabilities] [--askers 1] [--kills 0] [--json FILE]

Starts PostgreSQL, Redis, a web process, a worker, beat and `manage.py judges` of its own, and the server
(`faulty_model_server.py` without a fault), which answers each vote after `--latency` seconds, `--at-once` at a time,
and refuses the rest. A campaign of so many chains has one judge of N votes.

    steps/s         decided steps about which the model was asked
    requests/s      votes that the server gave, beside its ceiling: min(at-once, questions that can be open) / latency.
                    With --all-at-once a chain has N open; with --log-probabilities, one for each order of the pair that
                    occurs among N at random, 2 - 2 / 2^N in the mean
    ms a request    processor time of all processes, PostgreSQL and Redis included, for each of these
    per vote        requests for each vote that counts; more than one is waste
    not needed      votes that came after their step was settled, and their share: with --all-at-once, what that wastes
    refused         requests that the server refused, in all
    lost            with --kills: answers of the server that are no votes, and how many it gave in the two seconds
                    before each kill of a process that asks; only those may be lost. The record must be whole and replay

The processor time of the model server is not counted. All of it runs on one machine, so a server that is at its ceiling
leaves less of the machine to the application.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.load_stage import Stage, commit
from tests.support.installations import VARIABLES, FaultyModels, Process, judged_by
from tests.support.models import SCORES

MODEL = "stub"

_ASKED_STEPS = """
    SELECT count(*) FROM campaigns_comparison c
    WHERE c.decided_at >= to_timestamp(%s) AND EXISTS (SELECT 1 FROM campaigns_vote v WHERE v.comparison_id = c.id)
"""
VOTES = "SELECT count(*) FROM campaigns_vote WHERE number IS NOT NULL AND cast_at >= to_timestamp(%s)"
_NOT_NEEDED = "SELECT count(*) FROM campaigns_vote WHERE number IS NULL AND cast_at >= to_timestamp(%s)"
_REPORT = """\
{chains} chains, N = {votes_a_judge}, {latency_s:g} s a vote, commit {commit:.7}
  steps/s       {asked_steps_per_s:.1f}
  requests/s    {requests_per_s:.1f} of {ceiling_per_s:.0f} ({share_of_ceiling:.0%})
  at once       {max_at_once} of {at_once}, {refused} refused
  ms a request  {ms:.2f} ({by_process})
  per vote      {requests_per_vote:.3f}
  not needed    {votes_not_needed} votes ({share_not_needed:.1%}); asked for all at once: {all_at_once}"""
_WARM_UP_S = 15
# What is not stored after this time would be lost.
_BEFORE_A_KILL_S = 2.0
# Until turns of killed processes are taken by others.
_AFTER_THE_KILLS_S = 75.0


class JudgingStage(Stage):
    """A stage with a process that asks the model server, and does nothing else."""

    asks: list[Process]

    def __init__(self, folder: Path, webs: int) -> None:
        super().__init__(folder, webs)
        self.worker_queues = "default,files"

    def ask(self, askers: int) -> None:
        """Start so many processes that ask."""
        self.asks = [self.launch(self.judges()) for _ in range(askers)]

    def roots(self) -> dict[str, list[int]]:
        return super().roots() | {"judges": [process.pid for process in self.asks]}


@contextlib.contextmanager
def staged(options: argparse.Namespace) -> Iterator[tuple[JudgingStage, FaultyModels]]:
    """Start everything; yield the stage and the model server."""
    with contextlib.ExitStack() as ends:
        folder = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="prefmh-judging-")))
        models = FaultyModels(
            folder, {MODEL: {"latency_s": options.latency, "at_once": options.at_once, "scores": SCORES}}
        )
        models.start()
        ends.callback(models.stop)
        stage = JudgingStage(folder, webs=1)
        stage.variables |= VARIABLES
        ends.callback(stage.stop)
        stage.start()
        models.register(stage, concurrency=options.at_once)
        stage.ask(options.askers)
        yield stage, models


def measure(stage: JudgingStage, models: FaultyModels, options: argparse.Namespace) -> dict[str, Any]:
    """Let the model judge, and return what that took."""
    judge = judged_by(MODEL) | {"votes": options.votes}
    if options.all_at_once:
        judge["source"]["all_at_once"] = True
    if options.log_probabilities:
        judge["source"]["votes"] = "log-probabilities"
    [(campaign, _)] = stage.make_campaigns({"judges": [judge], "chains": options.chains, "steps": 100_000})
    time.sleep(_WARM_UP_S)
    before, spent = models.counts(MODEL), stage.processor_seconds()
    began = time.time()
    may_be_lost = killed(stage, models, options) if options.kills else time.sleep(options.seconds) or 0
    after, spent_then = models.counts(MODEL), stage.processor_seconds()
    seconds = time.time() - began
    lost = after["answered"] - stage.query("SELECT count(*) FROM campaigns_vote")[0][0] if options.kills else 0
    asked_steps, votes = stage.query(_ASKED_STEPS, began)[0][0], stage.query(VOTES, began)[0][0]
    not_needed = stage.query(_NOT_NEEDED, began)[0][0]
    if options.kills:
        stage.assert_record_is_whole_and_replays(campaign)
    requests = after["answered"] - before["answered"]
    ceiling = min(options.at_once, _open_questions(options)) / options.latency
    return {
        "commit": commit(),
        "chains": options.chains,
        "votes_a_judge": options.votes,
        "latency_s": options.latency,
        "at_once": options.at_once,
        "seconds": seconds,
        "asked_steps_per_s": asked_steps / seconds,
        "requests_per_s": requests / seconds,
        "ceiling_per_s": ceiling,
        "share_of_ceiling": requests / seconds / ceiling,
        "max_at_once": after["most"],
        "refused": after["refused"],
        "requests_per_vote": requests / max(votes, 1),
        "all_at_once": options.all_at_once,
        "votes_not_needed": not_needed,
        "share_not_needed": not_needed / max(votes + not_needed, 1),
        "kills": options.kills,
        "lost": lost,
        "may_be_lost": may_be_lost,
        "ms_a_request": {name: 1000 * (spent_then[name] - spent[name]) / max(requests, 1) for name in spent},
    }


def _open_questions(options: argparse.Namespace) -> float:
    """Return how many questions can be open at a time, in the mean."""
    if not options.all_at_once:
        return options.at_once
    a_chain = 2 - 2 / 2**options.votes if options.log_probabilities else options.votes
    return options.chains * a_chain


def killed(stage: JudgingStage, models: FaultyModels, options: argparse.Namespace) -> int:
    """Kill processes that ask, one after another, and start each again; return how many answers may be lost by that."""
    rng, may_be_lost = np.random.default_rng(1), 0
    for _ in range(options.kills):
        time.sleep(max(options.seconds / options.kills - _BEFORE_A_KILL_S, 0) * 2 * rng.random())
        answered = models.count(MODEL, "answered")
        time.sleep(_BEFORE_A_KILL_S)
        process = stage.asks[int(rng.integers(len(stage.asks)))]
        process.kill()
        counts = models.counts(MODEL)
        may_be_lost += counts["answered"] + counts["now"] - answered
        process.start()
    time.sleep(_AFTER_THE_KILLS_S)
    return may_be_lost


def report(found: dict[str, Any]) -> None:
    each = found["ms_a_request"]
    by_process = ", ".join(f"{name} {ms:.2f}" for name, ms in each.items())
    print(_REPORT.format_map(found | {"by_process": by_process, "ms": sum(each.values())}))
    if found["kills"]:
        print("  lost          {lost} answers in {kills} kills, and {may_be_lost} may be".format_map(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--latency", type=float, default=1.0, help="seconds that the server takes over a vote")
    parser.add_argument("--at-once", type=int, default=256, help="votes that it takes at a time")
    parser.add_argument("--chains", type=int, default=400)
    parser.add_argument("--askers", type=int, default=1, help="processes that ask")
    parser.add_argument("--kills", type=int, default=0, help="how often one of them is killed and started again")
    parser.add_argument("--votes", type=int, default=3, help="N of the judge")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--all-at-once", action="store_true", help="ask for all N votes of a step at once")
    parser.add_argument("--log-probabilities", action="store_true", help="votes drawn from reported log-probabilities")
    parser.add_argument("--json", type=Path, help="a file for the figures")
    options = parser.parse_args()
    with staged(options) as (stage, models):
        found = measure(stage, models, options)
    report(found)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()

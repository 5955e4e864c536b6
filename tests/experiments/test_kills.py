"""`manage.py experiment` whole, killed at random moments while requests are in flight, and run again: one with a
tournament, and one whose writer and scorers are asked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from tests.support.installations import ROLES, Gate, KilledRun, Moment, Site
from tests.support.models import Writer, anything_else, declared, scripted_server


def writes_and_judges(body: dict) -> dict:
    is_chat = "messages" in body and "temperature" in body
    return anything_else(body) if is_chat else Writer()(body)


@dataclass(frozen=True)
class Case:
    """A small form of one experiment, and where it is killed.

    Args:
        moments: so many more requests of a kind, of which each part of a run has enough.
    """

    options: Sequence[str]
    moments: Sequence[Moment]
    roles: Mapping[str, str] = field(default_factory=lambda: {role: role for role in ROLES})
    scorers: Sequence[str] = ()


CASES = {
    # 32 ratings and 160 answers of the evaluator, and a vote at least for each of most of 12 steps.
    "stories": Case(
        ("--steps", "3", "--keep", "1", "--matches", "1"),
        (
            Moment("rating", 2, 12),
            Moment("vote", 1, 5),
            Moment("evaluation", 2, 60),
        ),
    ),
    # First in the start of a campaign. In each of two directions 40 ratings, and 6 steps of 3 votes at least.
    "translation": Case(
        ("--methods", "quest-0.1,pointwise,pref", "--prompts", "2", "--steps", "3", "--burn-in", "1", "--keep", "2"),
        (Moment("text", 1, 4), Moment("rating", 2, 20), Moment("vote", 1, 8)),
        {"writer": "writer", "judge": "judge"},
        scorers=("quality", "xcomet"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_run_that_is_killed_is_whole(name, tmp_path):
    case, gate = CASES[name], Gate(name)
    programs = declared(tmp_path, case.scorers)
    options = [name, "--scale", "laptop", *case.options, *(f"--scorer={role}={role}" for role in case.scorers)]
    with scripted_server(gate.before(writes_and_judges)) as server:
        site = Site.made(tmp_path, server.url, "vllm", options, roles=case.roles, also=programs.environment)
        run, rng = KilledRun(site, gate, programs.told), np.random.default_rng(20261124)
        for moment in case.moments:
            run.kill_at(moment, rng)
        run.end()
    run.assert_whole()
    run.assert_counted()

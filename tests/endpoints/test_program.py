"""The program that docs/models.md shows as a judge."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
from scipy.stats import binomtest

from prefmh_web.endpoints import judge_calls
from prefmh_web.endpoints.calls import called
from prefmh_web.endpoints.servers import Dialect
from sampler.judges import Exhibit
from tests.support.installations import wait_for
from tests.support.models import port_from

DOCS = Path(__file__).resolve().parents[2] / "docs" / "models.md"
LONG, SHORT = Exhibit("a text of twenty-one"), Exhibit("ten words.")
VOTES = 400


def test_the_program_of_the_docs_votes_by_its_law(make_endpoint):
    [code] = re.findall(r"```python\n(import json\n.*?)```", DOCS.read_text(), re.S)
    port = port_from(24_000)
    program = subprocess.Popen([sys.executable, "-c", code.replace("8100", str(port))], stderr=subprocess.DEVNULL)
    try:
        endpoint = make_endpoint(f"http://127.0.0.1:{port}", dialect=Dialect.PROGRAM)
        pair = judge_calls.Pair("texts", "Which is longer?", SHORT, LONG)

        def votes(count: int) -> judge_calls.Votes:
            first = [place % 2 == 0 for place in range(count)]
            return called(judge_calls.votes_by_sampling(endpoint, pair, first, np.random.default_rng(1)))

        wait_for(lambda: votes(1).failure is None, "the program answers")
        cast = votes(VOTES).cast
    finally:
        program.kill()
        program.wait()
    # Ten letters more: the odds are e. The program has no seed; a right one fails once in a million runs.
    assert binomtest(sum(vote.for_proposal for vote in cast), VOTES, np.e / (1 + np.e)).pvalue > 1e-6

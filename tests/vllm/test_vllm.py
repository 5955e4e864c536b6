"""Our dialect against vLLM's own server, on the CPU: `.ci/vllm` brings it. Elsewhere these tests are skipped."""

import math
import os
import subprocess

import httpx
import numpy as np
import pytest

from prefmh_web import tasks
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.models import Campaign
from prefmh_web.endpoints import judge_calls, truth
from prefmh_web.endpoints.calls import called
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.probe import probe
from prefmh_web.endpoints.servers import Dialect
from prefmh_web.endpoints.writer import ServedModel
from sampler.judges import ShownObject, pairwise_prompt
from tests.support.campaigns import create_draft, make_config, registered
from tests.support.installations import ROOT, Process, wait_for
from tests.support.models import port_from
from tests.support.records import checked_export

VOTES = 300
PROMPTS = ["w1 w2 w3", "w7 w8"]


@pytest.fixture(scope="module")
def vllm_url(tmp_path_factory):
    python = os.environ.get("VLLM_PYTHON")
    if not python:
        pytest.skip("needs VLLM_PYTHON, the Python of an environment with vLLM: .ci/vllm makes one")
    folder = tmp_path_factory.mktemp("vllm")
    model, port = folder / "tiny", port_from(23_000)
    subprocess.run([python, "-m", "tests.vllm.tiny_model", str(model)], cwd=ROOT, check=True)
    own = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    command = [python, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model), "--served-model-name", "tiny"]
    command += ["--dtype", "float32", "--max-model-len", "1024", "--enforce-eager", "--max-logprobs", "20"]
    server = Process("vllm", [*command, "--host", "127.0.0.1", "--port", str(port)], {**os.environ, **own}, folder)
    server.start()
    try:
        wait_for(lambda: server.assert_runs() or is_up(f"http://127.0.0.1:{port}/health"), "vLLM serves", seconds=300)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.kill()


def is_up(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False).is_success
    except httpx.TransportError:
        return False


@pytest.fixture
def endpoint(researcher, vllm_url, settings) -> Endpoint:
    return registered(researcher, vllm_url, settings, "tiny", concurrency=8)


def test_the_test_of_an_endpoint_sees_what_vllm_can_do(endpoint):
    seen, failure = probe(endpoint)
    assert (failure, endpoint.dialect) == (None, Dialect.VLLM)
    unable = [each.field for each in seen if each.effect != "obeyed"]
    assert unable == ["images"], seen
    for test in (truth.truth, truth.rare_label):
        (seen,), failure = test(endpoint)
        assert (failure, seen.effect) == (None, "obeyed"), seen


@pytest.mark.parametrize("temperature", [0.5, 1.5])
def test_sampled_votes_have_the_distribution_that_log_probabilities_tell(endpoint, temperature):
    pair = judge_calls.Pair(
        pairwise_prompt("texts", "Which is darker?"),
        "Which is darker?",
        ShownObject("w3 w5 w9"),
        ShownObject("w20 w4"),
        temperature,
    )
    rng = np.random.default_rng(20261121)
    told = called(judge_calls.votes(endpoint, pair, [True], rng, [0.5]))
    assert told.failure is None
    [chance] = [vote.preference for vote in told.given]
    votes = called(judge_calls.votes(endpoint, pair, [True] * VOTES, rng))
    assert (votes.failure, len(votes.given)) == (None, VOTES)
    in_favour = sum(vote.value for vote in votes.given)
    # Binomial(VOTES, chance); 4 standard deviations happen once in 16,000 runs.
    assert abs(in_favour - VOTES * chance) < 4 * math.sqrt(VOTES * chance * (1 - chance))


def test_texts_are_whole_sequences_that_keep_their_prefix_and_come_again(endpoint):
    model = ServedModel(endpoint, limit=12)
    rows = [np.random.default_rng([5, row]) for row in range(20)]
    texts = model.continue_batch(rows, [PROMPTS[0]] * 20, [(7, 9)] * 20)
    assert {text[:2] for text in texts} == {(7, 9)}
    assert {len(text) for text in texts} > {12}
    assert all(text[-1] == 0 or len(text) == 12 for text in texts)
    assert len(set(texts)) == 20
    alone = model.continue_batch([np.random.default_rng([5, 3])], [PROMPTS[0]], [(7, 9)])
    assert alone == [texts[3]]


def test_it_writes_and_judges_a_campaign_to_its_end(endpoint, idle_tasks, tmp_path):
    space = {"kind": "model-texts", "model": "tiny", "prompts": PROMPTS, "limit": 8}
    source = {"kind": "model", "endpoint": "tiny"}
    judges = [
        {"question": "Which is darker?", "votes": 2, "source": source},
        {"question": "Which is kinder?", "votes": 2, "source": source | {"votes": "log-probabilities"}},
    ]
    kernel = {"kind": "suffix", "cut": "length"}
    config = make_config(space=space, kernel=kernel, judges=judges, chains=4, steps=6)
    campaign = create_draft(owner=endpoint.owner, config=config)
    lifecycle.start(campaign)
    for _ in range(20):
        idle_tasks()
        tasks.sweep()
    campaign.refresh_from_db()
    assert campaign.status == Campaign.Status.FINISHED
    checked_export(campaign, tmp_path, "24 verdicts")

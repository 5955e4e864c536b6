"""Endpoints over a real llama.cpp server, and over a scripted one."""

import math
from collections.abc import Callable, Iterator

import pytest

from prefmh_web.endpoints import judge_calls, loop
from prefmh_web.endpoints.client import Client
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.servers import ChatRequest, Dialect
from sampler.judges import ShownObject, pairwise_prompt
from tests.support.models import KnownJudge, Script, model_server, port_from, scripted_server, write_model

# Logits at temperature 1, and the texts they are for.
KNOWN = KnownJudge({"the dark house": 0.4, "the red moon": 0.0}, bias=0.2, others={"Well": -3.0, "a": -4.0})

CURRENT, PROPOSAL = "the red moon", "the dark house"


def pair_of(kind: str, question: str, *shown: ShownObject, temperature: float = 1.0) -> judge_calls.Pair:
    return judge_calls.Pair(pairwise_prompt(kind, question), question, *shown, temperature)


def pair(temperature: float = 1.0) -> judge_calls.Pair:
    return pair_of("texts", "Which is darker?", ShownObject(CURRENT), ShownObject(PROPOSAL), temperature=temperature)


PAIR = pair()
DARKER = ChatRequest("tiny", [{"role": "user", "content": "the dark house or the red moon"}], 8, seed=1)


def chat(url: str, key: str = "", timeout_s: float = 5) -> str | None:
    """Ask a server something, with the key in a variable, and return its reply."""
    client = Client(Endpoint(base_url=url, dialect="vllm", api_key_variable=key, timeout_s=timeout_s))
    return loop.run(client.ask(DARKER)).text


def z_score(successes: int, trials: int, chance: float) -> float:
    """Return how many standard deviations of Binomial(trials, chance) the count lies off its mean."""
    return (successes - trials * chance) / math.sqrt(trials * chance * (1 - chance))


@pytest.fixture(scope="session")
def llama_url(tmp_path_factory) -> Iterator[str]:
    port = port_from(21_000)
    with model_server(write_model(tmp_path_factory.mktemp("model") / "tiny.gguf"), port) as url:
        yield url


@pytest.fixture
def script() -> Iterator[Script]:
    with scripted_server(KNOWN) as script:
        yield script


@pytest.fixture
def local_allowed(settings) -> None:
    settings.ENDPOINT_ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
    settings.ENDPOINT_ALLOW_PRIVATE = ["127.0.0.0/8", "::1/128"]


@pytest.fixture
def make_endpoint(db, django_user_model, local_allowed) -> Callable[..., Endpoint]:
    owner = django_user_model.objects.create_user("ada")

    def make(base_url: str, **fields) -> Endpoint:
        fields = {"name": "A model", "model": "tiny", "dialect": Dialect.VLLM, "timeout_s": 20} | fields
        endpoint = Endpoint(owner=owner, base_url=base_url, **fields)
        endpoint.full_clean()
        endpoint.save()
        return endpoint

    return make


@pytest.fixture
def scripted(make_endpoint, script) -> Endpoint:
    """An endpoint whose server does as it is told."""
    return make_endpoint(script.url)


@pytest.fixture
def llama(make_endpoint, llama_url) -> Endpoint:
    """An endpoint whose server is real."""
    return make_endpoint(llama_url, dialect=Dialect.LLAMA_CPP)

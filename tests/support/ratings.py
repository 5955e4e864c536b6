"""A scripted model that rates objects, the campaigns that it judges, and the fixtures of both."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

import sampler
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.models import Campaign
from prefmh_web.campaigns.tasks import sweep
from prefmh_web.endpoints.dialects import Dialect
from prefmh_web.endpoints.models import Endpoint
from tests.support.scripted_server import Script, anything_else, chat_reply, is_vote, scripted_server
from tests.support.stack import make_draft, make_recipe

TWO = [("How dark is it?", 3), ("How good is it?", 1)]
ONE = TWO[:1]


@dataclass(frozen=True)
class NoisyRater:
    """A model that likes some words, and gives each reply a point more or less, by its seed."""

    words: tuple[str, ...] = ("red", "dog", "the", "and")

    def __call__(self, body: dict) -> dict:
        if not is_vote(body):
            return anything_else(body)
        prompt = "".join(part["text"] for part in parts_of(body)).lower()
        noise = np.random.default_rng(body["seed"]).integers(-1, 2)
        rating = 4 + sum(prompt.count(word) for word in self.words) % 4 + noise
        return chat_reply(str(rating))


def parts_of(body: dict) -> list[dict]:
    content = body["messages"][-1]["content"]
    return [{"text": content}] if isinstance(content, str) else content


@pytest.fixture(name="script")
def rating_script() -> Iterator[Script]:
    with scripted_server(NoisyRater()) as script:
        script.strikes = is_vote
        yield script


@pytest.fixture(name="endpoint")
def rating_endpoint(researcher, script, settings) -> Endpoint:
    settings.ENDPOINT_ALLOWED_HOSTS = ["127.0.0.1"]
    settings.ENDPOINT_ALLOW_PRIVATE = ["127.0.0.0/8"]
    endpoint = Endpoint(owner=researcher, name="A model", base_url=script.url, model="tiny", dialect=Dialect.VLLM)
    endpoint.full_clean()
    endpoint.save()
    return endpoint


def rated_recipe(form: str = "separate", questions=TWO, **changes) -> dict:
    source = {"kind": "model", "endpoint": "A model", "temperature": 0.7}
    judges = [{"question": question, "budget": budget, "source": source} for question, budget in questions]
    recipe = make_recipe(judges=judges, rule={"kind": "pointwise", "form": form}, chains=2, steps=10) | changes
    return sampler.parse_recipe(recipe).model_dump(mode="json")


def make(owner, idle_tasks, *args, **changes) -> Campaign:
    campaign = make_draft(owner, recipe=rated_recipe(*args, **changes))
    lifecycle.start(campaign)
    idle_tasks()
    campaign.refresh_from_db()
    return campaign


def finish(campaign: Campaign, idle_tasks) -> None:
    for _ in range(20):
        sweep()
        idle_tasks()
    campaign.refresh_from_db()
    assert campaign.status == Campaign.Status.FINISHED

"""What models take is counted by campaign and judge, as the server saw it."""

import json

import pytest

import sampler
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.models import Annotator, Campaign, Side
from prefmh_web.endpoints.dialects import Dialect
from prefmh_web.endpoints.models import Endpoint
from tests.support.campaigns import TEXTS, create_draft, make_config, make_draft
from tests.support.models import KnownJudge, Script, Writer, is_vote, scripted_server

LINES = [line.rsplit(",", 1)[0] for line in TEXTS.splitlines()[1:]]
JUDGE = KnownJudge({line: (place - 6) / 4 for place, line in enumerate(LINES)})
QUESTION, OTHER_QUESTION = "Which is darker?", "Which is older?"
# What `chat_reply` says that each request took, and a price at which a request costs 0.01.
TOKENS_IN, TOKENS_OUT, PRICES = 50, 2, {"input_price": 160.0, "output_price": 1000.0}
A_REQUEST = 0.01


@pytest.fixture
def script():
    with scripted_server(JUDGE) as script:
        script.strikes = is_vote
        yield script


@pytest.fixture
def endpoint(researcher, script, settings) -> Endpoint:
    return registered(researcher, script, settings, **PRICES)


def registered(owner, script: Script, settings, name: str = "A model", **fields) -> Endpoint:
    settings.ENDPOINT_ALLOWED_HOSTS = ["127.0.0.1"]
    settings.ENDPOINT_ALLOW_PRIVATE = ["127.0.0.0/8"]
    fields = {"base_url": script.url, "model": "tiny", "dialect": Dialect.VLLM} | fields
    return Endpoint.objects.create(owner=owner, name=name, **fields)


def by_model(question: str = QUESTION, budget: int = 3, votes: str = "sampled") -> dict:
    source = {"kind": "model", "endpoint": "A model", "temperature": 0.7, "votes": votes}
    return {"question": question, "votes": budget, "source": source}


def draft(owner, *judges: dict, chains: int = 2, steps: int = 8, **fields) -> Campaign:
    config = make_config(judges=list(judges), chains=chains, steps=steps)
    campaign = make_draft(owner, config=sampler.parse_config(config).model_dump(mode="json"))
    Campaign.objects.filter(pk=campaign.pk).update(**fields)
    campaign.refresh_from_db()
    return campaign


def started(idle_tasks, campaign: Campaign) -> Campaign:
    lifecycle.start(campaign)
    idle_tasks()
    campaign.refresh_from_db()
    return campaign


def written(owner, script: Script, settings, **fields) -> Campaign:
    """Return a draft whose texts the server writes, for people to compare."""
    registered(owner, script, settings, **PRICES)
    space = {"kind": "model-texts", "model": "A model", "prompts": ["Write about the sea."], "limit": 8}
    judges = [{"question": QUESTION, "votes": 1}]
    config = make_config(space=space, kernel={"kind": "independent"}, judges=judges, chains=2, steps=6)
    config = sampler.parse_config(config).model_dump(mode="json")
    return create_draft(owner=owner, is_seed_typed=True, name="Written", config=config, **fields)


def writes(body: dict) -> dict:
    """Answer as `Writer` does, and say that a text took so many tokens."""
    reply = Writer()(body)
    return (
        reply | {"usage": {"prompt_tokens": 3, "completion_tokens": body["max_tokens"]}}
        if "choices" in reply
        else reply
    )


def texts_written(script: Script, since: int) -> int:
    return sum("max_tokens" in body and "prompt" in body for body in script.requests[since:])


def vote_on_all(campaign: Campaign, idle_tasks) -> None:
    """Vote on whatever is open, until there is no pair."""
    annotator = Annotator.objects.create(campaign=campaign)
    while lease := leases.take(annotator):
        leases.answer(lease.key, annotator, Side.FIRST, 0)
        idle_tasks()


def asked(script: Script, question: str) -> list[dict]:
    """Return the requests that put a question, the longest prompt that is tried at Start among them."""
    return [body for body in list(script.requests) if question in json.dumps(body)]


def test_the_counts_are_what_the_server_saw(researcher, endpoint, script, idle_tasks):
    campaign = started(idle_tasks, draft(researcher, by_model(), by_model(OTHER_QUESTION, 1, "log-probabilities")))
    assert campaign.status == Campaign.Status.FINISHED
    for usage, question in zip(campaign.model_usage.all(), (QUESTION, OTHER_QUESTION), strict=True):
        requests = len(asked(script, question))
        assert requests > 1
        assert (usage.requests, usage.failed, usage.unreadable) == (requests, 0, 0)
        assert (usage.tokens_in, usage.tokens_out) == (TOKENS_IN * requests, TOKENS_OUT * requests)
        assert usage.cost == pytest.approx(requests * A_REQUEST)
        assert usage.seconds > 0


def test_texts_that_a_model_writes_are_counted_without_a_judge(researcher, settings, idle_tasks):
    with scripted_server(writes) as script:
        campaign = written(researcher, script, settings)
        lifecycle.start(campaign)
        idle_tasks()
        at_start, seen = campaign.model_usage.get(), len(script.requests)
        assert at_start.is_of_proposals
        vote_on_all(campaign, idle_tasks)
        usage = campaign.model_usage.get()
        assert usage.requests - at_start.requests == len(script.requests) - seen > 0
        assert usage.tokens_out - at_start.tokens_out == 8 * texts_written(script, seen)

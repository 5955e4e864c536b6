"""Start tests the models that a campaign asks, and refuses those whose votes could not have the law of a judge's."""

import math

import numpy as np
import pytest
from django.urls import reverse

import sampler
from prefmh_web.campaigns import tasks
from prefmh_web.campaigns.models import Campaign, Vote
from prefmh_web.endpoints.models import Endpoint
from tests.console.test_endpoints import signed_in
from tests.support.campaigns import make_config, make_draft
from tests.support.models import (
    KnownJudge,
    chat_reply,
    model_server,
    port_from,
    reply,
    scripted_server,
    send,
    write_model,
)

__all__ = ["signed_in"]

QUESTION = "Which is darker?"
TWO = "text\nThe red house stood there.\nThe grey sea lay there.\n"
# A vote for the worse of the two has probability 1 / (1 + e^3.5) = 0.029.
SCORES = {"The red house stood there.": 0.0, "The grey sea lay there.": 3.5}
RARE = 1 / (1 + math.exp(3.5))


@pytest.fixture(scope="module")
def llama_url(tmp_path_factory):
    with model_server(write_model(tmp_path_factory.mktemp("model") / "tiny.gguf"), port_from(23_000)) as url:
        yield url


def registered(owner, url: str, **changes) -> Endpoint:
    """Return an endpoint as the form saves it: nobody has pressed Test."""
    return Endpoint.objects.create(owner=owner, name="A model", base_url=url, model="tiny", timeout_s=20, **changes)


def by_model(votes: str = "sampled", budget: int = 3, temperature: float = 1.0) -> dict:
    source = {"kind": "model", "endpoint": "A model", "temperature": temperature, "votes": votes}
    return {"question": QUESTION, "votes": budget, "source": source}


def draft(owner, judge: dict, file: str = TWO, **changes) -> Campaign:
    config = make_config(
        judges=[judge], space={"kind": "catalog", "objects": "texts"}, kernel={"kind": "independent"}, **changes
    )
    return make_draft(owner, file=file, config=sampler.parse_config(config).model_dump(mode="json"))


def press_start(client, campaign: Campaign, idle_tasks) -> str:
    """Press Start, let all tasks come to rest, and return the campaign's page."""
    client.post(reverse("console:start", args=[campaign.pk]))
    idle_tasks()
    campaign.refresh_from_db()
    return client.get(campaign.get_absolute_url()).content.decode()


def truncating(body: dict, obeys: bool) -> dict:
    """Answer as a server that keeps tokens of at least a twentieth of the likeliest one's probability.

    Args:
        obeys: whether it leaves that when it is told to: min_p = 0.
    """
    plain = KnownJudge(SCORES)
    if obeys and body.get("min_p") == 0.0:
        return completed(body) if "n_predict" in body else plain(body)
    if plain.is_asked_about_two(body) and not body.get("logprobs"):
        logits = plain.logits(body["messages"][-1]["content"])
        kept = [label for label, logit in logits.items() if logit >= max(logits.values()) + math.log(0.05)]
        return chat_reply(kept[0])
    if obeys or body.get("structured_outputs"):
        return plain(body)
    return three_words(body)


def three_words(body: dict) -> dict:
    """Answer a plain question with one of three words, and say that there are seventeen others."""
    words = [f"word{number}" for number in range(20)]
    said = words[int(np.random.default_rng(body["seed"]).integers(3))]
    top = [{"token": word, "logprob": math.log(0.2 if place < 3 else 0.4 / 17)} for place, word in enumerate(words)]
    return chat_reply(said, logprobs={"content": [{"token": said, "top_logprobs": top}]})


def completed(body: dict) -> dict:
    """Answer a completion as llama.cpp does."""
    settings = {"grammar": "", **{name: body[name] for name in ("samplers", "logit_bias", "mirostat", "temperature")}}
    limit = body["n_predict"]
    return {
        "generation_settings": settings | {"n_predict": limit},
        "tokens": [7] * limit,
        "tokens_evaluated": len(body["prompt"]),
        "tokens_predicted": limit,
    }


def like_llama_cpp(script) -> None:
    """Let a server answer as llama.cpp does where it is asked which kind it is."""
    script.pages["/props"] = lambda handler: reply(handler, {"default_generation_settings": {"n_ctx": 4096}})
    script.pages["/version"] = lambda handler: send(handler, 404, b"{}")


def test_an_endpoint_that_nobody_tested_does_not_vote_by_its_default_truncation(signed_in, researcher, idle_tasks):
    # Its default is min-p 0.05: a vote of probability 0.029 would never be cast.
    with scripted_server(lambda body: truncating(body, obeys=True)) as script:
        like_llama_cpp(script)
        registered(researcher, script.url)
        campaign = draft(researcher, by_model(budget=40), chains=10, steps=6)
        press_start(signed_in, campaign, idle_tasks)
        for _ in range(5):
            tasks.sweep()
            idle_tasks()
    votes = list(Vote.objects.select_related("comparison__current", "comparison__proposal"))
    for_worse = sum(SCORES[chosen(vote)] == 0.0 for vote in votes)
    assert len(votes) > 500
    # Binomial(votes, RARE); four standard deviations happen once in 16,000 runs. None at all is the default's law.
    spread = math.sqrt(len(votes) * RARE * (1 - RARE))
    assert abs(for_worse - len(votes) * RARE) < 4 * spread, f"{for_worse} of {len(votes)} votes are for the worse text"
    assert len(votes) * RARE > 4 * spread


def chosen(vote: Vote) -> str:
    return vote.comparison.standing(vote.chosen_side, vote.proposal_side).content


@pytest.mark.parametrize(("votes", "starts"), [("sampled", False), ("log-probabilities", True)])
def test_a_server_of_an_unknown_kind_may_only_be_read(signed_in, researcher, idle_tasks, votes, starts):
    with scripted_server(KnownJudge(SCORES)) as script:
        script.pages["/version"] = lambda handler: send(handler, 404, b"{}")
        registered(researcher, script.url)
        campaign = draft(researcher, by_model(votes), chains=2, steps=2)
        page = press_start(signed_in, campaign, idle_tasks)
    assert (campaign.status != Campaign.Status.DRAFT) == starts
    assert ("nobody can say whether a server of this kind truncates" in page) != starts


def test_the_longest_prompt_of_a_question_must_fit_into_the_context(signed_in, researcher, llama_url, idle_tasks):
    registered(researcher, llama_url)
    words = ["dark house moon red sea " * 20, "cat old and was the " * 21]
    # Each fits, and the shorter pairs do; the two longest do not fit together.
    file = "text\n" + "\n".join([*words, "The red house.", "The old sea."]) + "\n"
    campaign = draft(researcher, by_model(), file=file, chains=1, steps=1)
    page = press_start(signed_in, campaign, idle_tasks)
    assert campaign.status != Campaign.Status.DRAFT
    longer = "text\n" + "\n".join([word * 6 for word in words] + ["The red house.", "The old sea."]) + "\n"
    campaign = draft(researcher, by_model(), file=longer, chains=1, steps=1, seed=7)
    page = press_start(signed_in, campaign, idle_tasks)
    assert campaign.status == Campaign.Status.DRAFT
    assert "the two longest texts" in page
    assert "“A model”" in page

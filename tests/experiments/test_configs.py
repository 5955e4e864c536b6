"""The campaigns of a run: which prompt each chain answers, their seed, and what is counted of a start that died."""

from pathlib import Path

import pytest
from django.contrib.auth.models import User

import sampler
from prefmh_web.campaigns.engine import usage
from prefmh_web.campaigns.models import ModelUsage
from prefmh_web.experiments import campaigns
from prefmh_web.experiments.configs import Part, Run, config_of
from prefmh_web.management.commands.experiment import _inputs

PROMPTS, CHAINS = 2, 3


def part_of(experiment: str, method: str, owner: User, chains: int = CHAINS) -> Part:
    """Return the first campaign of a run with fewer prompts than there are."""
    if experiment == "stories":
        given = {"": [sampler.ExperimentInput(each.prompt) for each in sampler.STORY_SCENARIOS]}
    else:
        given = sampler.own_sentences()
    options = sampler.ExperimentOptions.of(
        experiment,
        "laptop",
        methods=[method],
        prompts=PROMPTS,
        chains=chains,
        available=[len(each) for each in given.values()],
    )
    assert min(map(len, given.values())) > PROMPTS
    endpoints = dict.fromkeys(("writer", "judge", "evaluator"), "tiny")
    return Run(options, owner, Path("out"), "hash", endpoints, given).parts[0]


@pytest.mark.parametrize("experiment", ["stories", "translation"])
def test_chains_answer_the_prompts_that_the_evaluation_says(experiment):
    method = "pref-sep" if experiment == "stories" else "pref"
    part = part_of(experiment, method, User())
    config = sampler.parse_config(config_of(part))
    assert config.chains == PROMPTS * CHAINS
    answered = [config.space.prompts[chain % len(config.space.prompts)] for chain in range(config.chains)]
    given = part.prompts
    # A chain's number modulo the prompts that the run has (`ExperimentOptions.chains_of`).
    for chain, prompt in enumerate(answered):
        assert given[chain % PROMPTS] in prompt
    assert len(set(answered)) == PROMPTS
    meetings = sampler.ExperimentOptions.of(
        experiment, "laptop", prompts=PROMPTS, chains=CHAINS, matches=PROMPTS, available=list(part.options.prompts)
    )
    for match in sampler.tournament_matches(meetings):
        for state in (match.one, match.other):
            assert given[match.prompt] in answered[state.chain] or state.direction != part.direction


def test_a_file_of_prompts_is_read_as_spreadsheets_and_editors_save_it():
    given = {"experiment": "stories", "data": Path("prompts.txt"), "scale": "laptop"}
    found = _inputs(given, "\ufeffTell of the sea.\r\n\r\nSing.\n".encode())
    assert found == {"": [sampler.ExperimentInput("Tell of the sea."), sampler.ExperimentInput("Sing.")]}
    with pytest.raises(sampler.OptionError, match=r"must be UTF-8; line 2 of prompts.txt is not") as refused:
        _inputs(given, "Tell of the sea.\nSing of Köln.\n".encode("latin-1"))
    assert refused.value.option == "--data"


@pytest.mark.django_db
@pytest.mark.parametrize("method", ["base", "pref-sep"])
def test_texts_prompts_and_trials_are_counted_once_for_each_start_that_died(method, django_user_model):
    part = part_of("stories", method, django_user_model.objects.create_user("researcher"))
    campaign = campaigns.ensure(part)
    assert (campaign.seed, campaign.is_seed_typed) == (part.seed, True)
    for deaths in (1, 2):
        usage.note_repeated_start(campaign)
        counted = dict(ModelUsage.objects.filter(campaign=campaign).values_list("judge_index", "repeated"))
        # Four requests a text at most, its prompt's among them; pref-sep has three judges, and base none.
        texts = deaths * 4 * PROMPTS * CHAINS
        judges = range(3 if method == "pref-sep" else 0)
        assert counted == {usage.PROPOSALS: texts, **dict.fromkeys(judges, deaths)}

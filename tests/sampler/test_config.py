"""Configs: good ones parse and build, bad ones list every problem with its path; what a panel may be."""

import copy
import json

import numpy as np
import pytest

import sampler
from sampler import Catalog, ConfigError, Independent, Mixture, Neighbours, parse_config
from sampler.judges.config import best_acceptance
from tests.support.campaigns import make_config
from tests.support.sampling import PATH, mixture, problems_of

# Configs: good ones parse and build, bad ones list every problem with its path.


MIXTURE = mixture((0.25, "independent"), (0.75, "neighbours"))
GOOD = make_config(
    kernel={"kind": "neighbours"},
    judges=[{"question": "Which one is more gothic?", "votes": 3}, {"question": "Which one is kinder?", "votes": 1}],
    chains=4,
    seed=2**53 - 1,
)
COMPONENTS = ["independent", "neighbours", "fragments", "suffix", "crank-nicolson"]
APART = Catalog(np.ones(4), ((1,), (0,), (3,), (2,)))


def changed(path, value):
    """Return the good config with the field at `path` set to `value`."""
    config = copy.deepcopy(GOOD)
    *parents, last = path
    where = config
    for part in parents:
        where = where[part]
    where[last] = value
    return config


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [({"kind": "independent"}, Independent), ({"kind": "neighbours"}, Neighbours), (MIXTURE, Mixture)],
)
def test_good_configs_parse_and_build(kernel, expected):
    config = parse_config(changed(["kernel"], kernel))
    plan = config.build(PATH)
    assert isinstance(plan.kernel, expected)
    assert (plan.seed, plan.max_votes, plan.space) == (2**53 - 1, (3, 1), PATH)
    assert parse_config(json.loads(config.model_dump_json())) == config


def test_a_question_loses_the_white_space_around_it():
    assert parse_config(changed(["judges", 0, "question"], "  Which? \n")).judges[0].question == "Which?"


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (["kernel"], {**MIXTURE, "parts": MIXTURE["parts"][:1]}, "kernel.parts"),
        (["kernel", "radius"], 2, "kernel.radius"),
        (["kernel"], mixture((2, "neighbours")), "kernel.parts.0.weight"),
        (["space"], {"kind": "molecules", "start": "C1CC"}, "space.start"),
        (["judges"], [], "judges"),
        (["judges", 1, "question"], "   ", "judges.1.question"),
        (["seed"], 2**53, "seed"),
        (["notes"], "extra", "notes"),
    ],
)
def test_a_bad_field_is_named_by_its_path(path, value, problem):
    found = problems_of(changed(path, value))
    assert list(found) == [problem]
    # The path has said where it is.
    assert not found[problem].startswith(f"{problem.split('.')[-1]}: ")


@pytest.mark.parametrize("temperature", [0, -1, 0.001, 6])
def test_a_model_is_asked_at_a_temperature_at_which_its_votes_have_a_distribution(temperature):
    # Below .01 vLLM samples at .01, and no vote can be drawn from log-probabilities.
    source = {"kind": "model", "endpoint": "A model", "temperature": temperature}
    assert list(problems_of(changed(["judges", 0, "source"], source))) == ["judges.0.source.temperature"]


@pytest.mark.parametrize(
    ("kernel", "path", "accepted"),
    [
        ({"kind": "teleport"}, "kernel.kind", [*COMPONENTS, "mixture", "walk"]),
        (mixture((1, MIXTURE)), "kernel.parts.0.kernel.kind", COMPONENTS),
    ],
)
def test_an_unknown_kind_is_told_what_would_be_accepted(kernel, path, accepted):
    told = f"Input should be one of {', '.join(map(repr, accepted))}"
    assert problems_of(changed(["kernel"], kernel)) == {path: told}


def test_every_problem_is_listed_at_once():
    config = changed(["chains"], 0) | {"seed": -1, "extra": 1}
    config["judges"][1]["votes"] = 0
    assert problems_of(config).keys() == {"chains", "seed", "extra", "judges.1.votes"}


def test_of_very_many_problems_a_hundred_are_listed_and_the_others_counted():
    found = problems_of(make_config(space={"kind": "texts", "scenarios": ["x"] * 1_100}))
    assert len(found) == 101
    assert found[""] == "1,000 more problems follow; fix these first"


@pytest.mark.parametrize("kernel", [{"kind": "neighbours"}, MIXTURE])
def test_a_kernel_that_moves_to_neighbours_needs_a_space_that_has_them(kernel):
    config = changed(["kernel"], kernel)
    config["space"]["neighbours"] = 0
    [(path, message)] = problems_of(config).items()
    assert (path, "must be 1 or more" in message) == ("space.neighbours", True)


@pytest.mark.parametrize(
    ("kernel", "catalog", "path", "message"),
    [
        ({"kind": "neighbours"}, Catalog(np.ones(3)), "space.neighbours", "no neighbour graph"),
        (MIXTURE, Catalog(np.ones(3)), "space.neighbours", "no neighbour graph"),
        ({"kind": "neighbours"}, APART, "kernel", "2 parts"),
        (mixture((1, "neighbours")), APART, "kernel", "2 parts"),
    ],
)
def test_moves_that_cannot_reach_every_item_are_refused_at_build(kernel, catalog, path, message):
    with pytest.raises(ConfigError, match=message) as refused:
        parse_config(changed(["kernel"], kernel)).build(catalog)
    assert [each.path for each in refused.value.problems] == [path]


@pytest.mark.parametrize("kernel", [{"kind": "independent"}, MIXTURE])
def test_independent_draws_connect_a_graph_in_parts(kernel):
    assert parse_config(changed(["kernel"], kernel)).build(APART)


@pytest.mark.parametrize("data", [{}, [], None, "config", 3])
def test_what_is_no_config_at_all_is_refused(data):
    assert problems_of(data)


MODEL = {"kind": "model", "endpoint": "A model"}
AS_DRAWN, FIRST, SECOND = (
    {"question": "Which one is kinder?", "votes": 2, "order": order}
    for order in ("random", "proposal-first", "proposal-second")
)
BOTH = ["judges.0.order", "judges.1.order"]


@pytest.mark.parametrize(
    ("judges", "problems"),
    [
        ([FIRST], ["judges.0.order"]),
        ([FIRST, FIRST], BOTH),
        ([FIRST, AS_DRAWN], ["judges.0.order"]),
        ([FIRST, SECOND | {"question": "Which is darker?"}], BOTH),
        ([FIRST, SECOND | {"source": MODEL}], BOTH),
        ([FIRST | {"source": MODEL}, SECOND | {"source": MODEL | {"temperature": 0.5}}], BOTH),
        ([FIRST, SECOND | {"votes": 3}], ["judges.1.votes"]),
        ([FIRST, SECOND, FIRST, SECOND | {"votes": 3}], ["judges.3.votes"]),
    ],
)
def test_a_judge_of_one_order_without_an_order_pair_is_refused(judges, problems):
    found = problems_of(changed(["judges"], judges))
    assert list(found) == problems
    assert all("each order is half of N" in message or "needs a second judge" in message for message in found.values())


def test_chains_that_open_later_are_between_a_least_and_a_most():
    config = parse_config(GOOD | {"max_chains": 9})
    assert (config.chains, config.chains_at_most, config.opens_on_demand) == (4, 9, True)
    assert config.model_dump(mode="json")["max_chains"] == 9
    fixed = parse_config(GOOD)
    assert (fixed.chains_at_most, fixed.opens_on_demand) == (4, False)
    assert "max_chains" not in fixed.model_dump(mode="json")


@pytest.mark.parametrize("chains", ["chains", "max_chains"])
def test_too_many_steps_of_all_chains_together_are_told_in_numbers(chains):
    parse_config(GOOD | {chains: 5_000, "steps": 400_000})
    with pytest.raises(ConfigError, match=r"^steps: .*5,000 chains of 400,001 steps are too many"):
        parse_config(GOOD | {chains: 5_000, "steps": 400_001})


def test_what_chains_that_open_later_do_not_go_with_names_the_field():
    by_model = {"judges": [{"question": "Which?", "votes": 2, "source": MODEL}]}
    assert "judge" in problems_of(GOOD | by_model | {"max_chains": 9})["max_chains"]
    assert "must be more than the 4 chains of the start" in problems_of(GOOD | {"max_chains": 4})["max_chains"]


def test_a_config_of_another_version_is_refused():
    with pytest.raises(ConfigError, match=r"^version: "):
        parse_config(GOOD | {"version": 2})
    assert parse_config(GOOD).version == 1


def test_a_right_target_is_accepted_and_a_wrong_one_refused():
    config = parse_config(changed(["judges"], [FIRST, SECOND]))
    assert "target" not in config.model_dump(mode="json")
    stated = config.model_dump(mode="json") | {"target": config.target_distribution}
    assert parse_config(stated).model_dump(mode="json") == stated
    for wrong in ("p0(x) * exp(s1(x))", config.target_distribution.replace("2*", ""), config.target_distribution + " "):
        with pytest.raises(ConfigError, match=r"^target: .*p0\(x\) \* exp\(2\*s1\(x\)\)"):
            parse_config(stated | {"target": wrong})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("vision", {"edge": 512, "format": "jpeg"}),
        ("prompt", {"user": "{{question}} A: {{first}} B: {{second}} A or B"}),
    ],
)
def test_what_is_not_said_of_a_model_is_not_in_the_config(field, value):
    def written(**source):
        judges = [{"question": "Which?", "votes": 2, "source": MODEL | source}]
        objects = GOOD | {"space": {"kind": "catalog", "objects": "images", "neighbours": 2}, "judges": judges}
        return parse_config(objects).model_dump(mode="json")

    assert field not in written()["judges"][0]["source"]
    kept = written(**{field: value})
    assert kept["judges"][0]["source"][field] == value
    assert parse_config(kept).model_dump(mode="json") == kept


@pytest.mark.parametrize(
    ("sources", "is_right"), [([MODEL], True), ([MODEL, {"kind": "people"}], False), ([{"kind": "people"}], False)]
)
def test_an_estimate_is_shown_where_models_alone_judge(sources, is_right):
    space = {"kind": "model-texts", "model": "writer", "prompts": ["Write."], "limit": 9, "estimate": "comet"}
    judges = [{"question": f"Which of {at}?", "votes": 2, "source": each} for at, each in enumerate(sources)]
    config = GOOD | {"space": space, "kernel": {"kind": "suffix"}, "judges": judges}
    if is_right:
        assert parse_config(config).estimate == "comet"
    else:
        assert "models behind endpoints only" in problems_of(config)["space.estimate"]


def test_recordings_are_not_put_to_a_model():
    """No prompt holds one."""
    recordings = GOOD | {"space": {"kind": "catalog", "objects": "audio", "neighbours": 2}}
    assert parse_config(recordings).space.objects == "audio"
    judged = recordings | {"judges": [{"question": "Which is clearer?", "votes": 1, "source": MODEL}]}
    assert problems_of(judged)["judges.0.source"] == "must not be a model: it hears no recordings. Let people judge"


# Panels: what a config of one may be, which distribution it samples, and pairs that somebody meets again.


NAMES = ("Ada", "Grace", "Alan")
PANEL = make_config(
    kernel={"kind": "neighbours"},
    judges=[{"question": "Which?", "votes": 1, "source": {"kind": "panelist", "name": name}} for name in NAMES],
)
WARM_UP = {"steps": 3, "grid": [1, 3], "properties": ["words"], "burn_in": 1}
WALK = {"kind": "walk", "kernel": {"kind": "neighbours"}, "length": 3, "warm_up": WARM_UP}


def test_steps_of_a_warm_up_and_after_it_are_told_apart():
    config = parse_config(changed(["kernel"], WALK))
    assert [config.phase_of(step) for step in range(1, 7)] == ["warm-up"] * 3 + ["burn-in"] + ["sampling"] * 2


def test_only_a_walk_of_several_lengths_has_parts():
    lengths = [{"weight": 0.5, "length": 1}, {"weight": 0.5, "length": 4}]
    for kernel, parts in (
        ({"kind": "neighbours"}, {None}),
        (WALK | {"warm_up": None}, {None}),
        (WALK | {"warm_up": None, "length": lengths}, {0, 1}),
    ):
        config = parse_config(changed(["kernel"], kernel))
        assert {config.part_of(0, step) for step in range(1, 20)} == parts


def with_judge(index: int, **changes) -> dict:
    judges = [judge | changes if at == index else judge for at, judge in enumerate(PANEL["judges"])]
    return PANEL | {"judges": judges}


def test_a_panel_samples_the_sum_of_the_scores_of_its_people():
    config = parse_config(PANEL)
    assert config.panelists == NAMES
    assert config.target_distribution == (
        "p0(x) * exp(s1(x) + s2(x) + s3(x)); "
        "s1: “Which?”, panelist 1; s2: “Which?”, panelist 2; s3: “Which?”, panelist 3"
    )


def test_a_model_may_answer_another_question():
    model = {"question": "Is it a text?", "votes": 4, "source": MODEL}
    assert parse_config(PANEL | {"judges": [*PANEL["judges"], model]}).panelists == NAMES


@pytest.mark.parametrize(
    ("config", "path", "message"),
    [
        (with_judge(0, votes=2), "judges.0.votes", "must be 1 for a panelist"),
        (with_judge(1, order="proposal-first"), "judges.1.order", "the same pair twice"),
        (with_judge(2, source={"kind": "people"}), "judges.2.source", "nobody else votes"),
        (with_judge(2, source={"kind": "panelist", "name": "Ada"}), "judges", "asked of each of the 2 panelists, once"),
        (with_judge(2, question="Another?"), "judges", "“Another?” must be asked of each of the 3 panelists, once"),
        (with_judge(2, source={"kind": "panelist", "name": " "}), "judges.2.source.name", "at least 1 character"),
        (with_judge(2, source={"kind": "panelist", "name": "1"}), "judges.2.source.name", "number of another panelist"),
        (PANEL | {"kernel": WALK}, "kernel.warm_up", "the panelists of a panel differ"),
        (PANEL | {"max_chains": 9}, "max_chains", "does not go with a panel"),
        (PANEL | {"rule": {"kind": "pointwise", "form": "separate"}}, "judges.0.source", "people compare"),
    ],
)
def test_what_a_panel_cannot_be_is_refused_where_it_stands(config, path, message):
    assert message in problems_of(config)[path]


def test_the_best_acceptance_is_that_of_people_who_do_not_care():
    even = np.full((1, 5), 0.5)
    assert best_acceptance(5) == pytest.approx(sampler.NVote((1,) * 5).mean_acceptance(np.zeros(1), even)[0])

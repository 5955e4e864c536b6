"""Texts as a space: the grammar as a language model, the openings that it writes, and the texts of a served model."""

import json
import math
from collections import Counter
from functools import cache

import pytest

from sampler import ConfigError, Purpose, parse_config, stream
from sampler.judges import PRESETS
from sampler.spaces.story_grammar import STORY_SCENARIOS, _Name, story_openings
from sampler.spaces.texts import TextsConfig
from tests.support.campaigns import make_config
from tests.support.enumerated import Grammar
from tests.support.outcomes import distribution_of

# The grammar as a language model, the story openings that it writes, and the space they make.


SMALL = {"story": [(3, "{^who} [slept|woke]."), (1, "Nothing.")], "who": [(1, "a fox"), (4, "an owl")]}
# Worked out by hand: {tokens: (text, probability)}.
WRITTEN_OUT = {
    (0, 0, 0): ("A fox slept.", 3 / 4 * 1 / 5 * 1 / 2), (0, 0, 1): ("A fox woke.", 3 / 4 * 1 / 5 * 1 / 2),
    (0, 1, 0): ("An owl slept.", 3 / 4 * 4 / 5 * 1 / 2), (0, 1, 1): ("An owl woke.", 3 / 4 * 4 / 5 * 1 / 2),
    (1,): ("Nothing.", 1 / 4),
}  # fmt: skip


@cache
def drawn(count=2_000):
    """Return (scenario, tokens, text) of openings over all scenarios."""
    grammar, found = story_openings(), []
    for draw in range(count):
        scenario = STORY_SCENARIOS[draw % len(STORY_SCENARIOS)]
        rng = stream(11, draw, 0, Purpose.START)
        (tokens,) = grammar.continue_batch([rng], [scenario.prompt], [()])
        found.append((scenario, tokens, grammar.text(scenario.prompt, tokens)))
    return found


def test_a_grammar_says_what_its_rules_say_with_the_probabilities_of_its_weights():
    grammar = Grammar(SMALL)
    assert list(grammar.derivations("any")) == list(WRITTEN_OUT)
    assert (grammar.limit, grammar.prompts) == (3, ())
    for tokens, (text, probability) in WRITTEN_OUT.items():
        assert grammar.text("any", tokens) == text
        assert grammar.score("any", tokens) == pytest.approx(math.log(probability), abs=1e-14)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_draws_follow_the_scores(temperature):
    grammar, other = (Grammar(SMALL, temperature=each) for each in (temperature, 2 * temperature))
    drawn = distribution_of(lambda rng: grammar.continue_batch([rng], ["any"], [()])[0])
    distribution, wrong = (
        {tokens: math.exp(each.score("any", tokens)) for tokens in each.derivations("any")} for each in (grammar, other)
    )
    assert math.fsum(distribution.values()) == pytest.approx(1, abs=1e-14)
    assert drawn == pytest.approx(distribution, abs=1e-14)
    # The control: these draws do not follow the distribution of another temperature.
    assert drawn != pytest.approx(wrong, abs=1e-2)


def test_temperature_raises_each_weight_to_its_inverse():
    grammar = Grammar(SMALL, temperature=0.5)
    assert grammar.score("any", (1,)) == pytest.approx(math.log(1 / (1 + 9)), abs=1e-14)
    assert grammar.score("any", (0, 1, 0)) == pytest.approx(math.log(9 / 10 * 16 / 17 / 2), abs=1e-14)


@pytest.mark.parametrize(
    ("tokens", "reason"),
    [((0, 0), "still open"), ((), "still open"), ((0, 2), "0 to 1"), ((-1,), "0 to 1"), ((1, 0), "there are more")],
)
def test_tokens_that_are_no_derivation_are_refused(tokens, reason):
    with pytest.raises(ValueError, match=reason):
        Grammar(SMALL).text("any", tokens)
    with pytest.raises(ValueError, match=reason):
        Grammar(SMALL).score("any", tokens)


def test_a_prefix_must_begin_some_text_and_a_prompt_be_known():
    rng = stream(1, 0, 0, Purpose.START)
    with pytest.raises(ValueError, match="0 to 1"):
        Grammar(SMALL).continue_batch([rng], ["any"], [(0, 7)])
    with pytest.raises(ValueError, match="scenarios"):
        story_openings().continue_batch([rng], ["an unheard-of scenario"], [()])


def ways(grammar, prompt, text):
    """Count the derivations of a text: dynamic programming over the places of the text that a part can span."""
    rulebook = grammar._rulebook(prompt)

    # In how many ways: up to where the text has been read, and whether the next letter is to be a capital.
    @cache
    def of_part(part, index, capital):
        if isinstance(part, str):
            literal = part[:1].upper() + part[1:] if capital else part
            return Counter({(index + len(literal), False): 1} if text.startswith(literal, index) else {})
        if isinstance(part, _Name):
            return of_part(rulebook[part.name], index, capital or part.capital)
        reached = Counter()
        for parts in part.alternatives:
            reached.update(of_parts(parts, index, capital))
        return reached

    def of_parts(parts, index, capital):
        reached = Counter({(index, capital): 1})
        for part in parts:
            onwards = Counter()
            for (begun, pending), found in reached.items():
                for ended, more in of_part(part, begun, pending).items():
                    onwards[ended] += found * more
            reached = onwards
        return reached

    reached = of_part(rulebook["story"], 0, False)
    return sum(found for (index, _), found in reached.items() if index == len(text))


def test_different_tokens_are_different_texts():
    """Every text that was drawn has one derivation only, so that derivations count texts.

    If a share f of all derivations, weighted by p0, shared their text with another, 500 draws would all have a text
    of their own with probability (1 - f)^500: f above 2 percent would be found out with probability 0.99996.
    """
    for scenario, _, text in drawn()[:500]:
        assert ways(story_openings(), scenario.prompt, text) == 1


def test_texts_of_several_derivations_are_found():
    grammar = Grammar({"story": ["[a|{b}]c", "ac"], "b": ["a", "A"]})
    assert ways(grammar, "any", "ac") == 3


def test_a_state_survives_its_code():
    texts = TextsConfig(temperature=0.7).build()
    for chain in range(50):
        state = texts.start(stream(2, chain, 0, Purpose.START), chain)
        code = texts.encode(state)
        assert texts.decode(code) == state
        assert texts.encode(texts.decode(code)) == code
        assert texts.content(state) == state.text


def test_codes_that_are_no_state_are_refused():
    texts = TextsConfig(scenarios=(0,)).build()
    state = texts.start(stream(2, 0, 0, Purpose.START), 0)
    good = json.loads(texts.encode(state))
    bad = {
        "JSON": "not json", "object": "[]", "tokens.0: .* valid integer": json.dumps({**good, "tokens": [True]}),
        "text: .* valid string": json.dumps({**good, "text": None}),
        "still open": json.dumps({**good, "tokens": good["tokens"][:-1]}),
        "prompt must be one of": json.dumps({**good, "prompt": STORY_SCENARIOS[1].prompt}),
        "what the tokens say": json.dumps({**good, "text": good["text"] + " "}),
        "prompt, tokens and text": json.dumps({**good, "more": 1}),
    }  # fmt: skip
    for reason, code in bad.items():
        with pytest.raises(ValueError, match=reason):
            texts.decode(code)


# What is shown with texts that a served model writes: the source of each, and a scorer's number.


PROMPTS = ["Translate: eins", "Translate: zwei"]
MODEL = {"kind": "model", "endpoint": "judge"}


def made(*, source=MODEL, **space):
    texts = {"kind": "model-texts", "model": "writer", "prompts": PROMPTS, **space}
    judges = [{"question": "Which is better?", "votes": 1, "source": source}]
    kernel = {"kind": "suffix", "cut": "length"}
    return parse_config(make_config(space=texts, kernel=kernel, judges=judges, chains=4))


def test_each_chain_has_its_source_and_judges_see_both_lines():
    words = PRESETS["translation"].template.model_dump(mode="json")
    config = made(sources=["eins", "zwei"], estimate="comet", source=MODEL | {"prompt": words})
    assert [config.space.source_of(chain) for chain in range(4)] == ["eins", "zwei", "eins", "zwei"]
    assert [shown.label for shown in config.context] == ["Source", "Quality estimate"]
    assert config.needed_scorers == ("comet",)
    assert parse_config(config.model_dump(mode="json")) == config


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"sources": ["eins"]}, "sources must be 2, one for each prompt, not 1"),
        ({"estimate": "no name"}, "space.estimate"),
        ({"estimate": "comet", "source": {"kind": "people"}}, "is shown to models behind endpoints only"),
    ],
)
def test_what_does_not_fit_is_refused(given, told):
    with pytest.raises(ConfigError) as error:
        made(**given)
    assert told in str(error.value)

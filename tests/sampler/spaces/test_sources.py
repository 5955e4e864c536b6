"""What is shown with texts that a served model writes: the source of each, and a scorer's number."""

import pytest

from sampler import ConfigError, parse_config
from sampler.judges import PRESETS

PROMPTS = ["Translate: eins", "Translate: zwei"]
MODEL = {"kind": "model", "endpoint": "judge"}


def made(*, source=MODEL, **space):
    texts = {"kind": "model-texts", "model": "writer", "prompts": PROMPTS, **space}
    judges = [{"question": "Which is better?", "votes": 1, "source": source}]
    return parse_config(
        {
            "space": texts, "kernel": {"kind": "suffix", "cut": "length"}, "judges": judges, "chains": 4, "steps": 2,
            "seed": 0,
        }
    )  # fmt: skip


def test_each_chain_has_its_source_and_judges_see_both_lines():
    words = PRESETS["translation"].template.model_dump(mode="json")
    config = made(sources=["eins", "zwei"], estimate="comet", source=MODEL | {"prompt": words})
    assert [config.space.source_of(chain) for chain in range(4)] == ["eins", "zwei", "eins", "zwei"]
    assert [shown.label for shown in config.context] == ["Source", "Quality estimate"]
    assert config.awaited_scorers == ("comet",)
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

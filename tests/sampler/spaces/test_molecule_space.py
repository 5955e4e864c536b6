"""Generated molecules as a space: configs, states and the texts that stand for them."""

import numpy as np
import pytest

from sampler.spaces.molecules.space import MAX_ARMS, MAX_HEAVY_ATOMS, MoleculesConfig, default_size_log_weights

OWN = {
    "kind": "molecules", "size_log_weights": [0.0, None, -1.5, -2.0], "elements": ["C", "O"], "ring_sizes": [3],
    "alerts": ["PAINS"], "vocabulary": ["*C", "C*", "*O"], "start": "C(C)O",
}  # fmt: skip


def test_the_default_is_the_frozen_law_from_ethane():
    space = MoleculesConfig().build()
    assert space.start(np.random.default_rng(0), chain=3) == "CC"
    assert space.law.size_log_weights == default_size_log_weights()
    assert space.law.largest == MAX_HEAVY_ATOMS
    assert len(space.vocabulary) == 1_000
    assert MoleculesConfig().objects == "molecules"


def test_a_config_is_whole_by_itself():
    config = MoleculesConfig.model_validate(OWN)
    again = MoleculesConfig.model_validate_json(config.model_dump_json())
    assert again == config
    assert again.build() is config.build()
    space = again.build()
    assert space.start(np.random.default_rng(0), chain=0) == "CCO"
    assert space.law.size_log_weights == (0.0, -np.inf, -1.5, -2.0)
    assert space.vocabulary.weights == pytest.approx({"*C": 2 / 3, "*O": 1 / 3})


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("start", "C1CC", "not a molecule"), ("start", "C.C", "not several"), ("start", "*C", "dummy atoms"),
        ("start", "C/C=C/O", "has stereochemistry, which generated molecules do not have; use “CC=CO”"),
        ("start", "CCN", "p0 allows"), ("start", "CC", "p0 allows"), ("start", "CCOCC", "p0 allows"),
        ("start", "C1CCC1", "p0 allows"), ("size_log_weights", [None, None], "at least one size"),
        ("size_log_weights", [0.0, float("-inf")], "finite number"), ("elements", ["C", "Xx"], "Xx"),
        ("alerts", ["LOUD"], "PAINS"), ("vocabulary", "my own", '"default" or a list'),
        ("vocabulary", [1], '"default" or a list'), ("vocabulary", [], "1 to 5,000"),
        ("vocabulary", ["*C"] * (MAX_ARMS + 1), "5,001"), ("vocabulary", ["*C", "CC"], "one dummy"),
        ("vocabulary", ["*" + "C" * 11], "11 heavy atoms"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_once_and_by_its_name(field, value, message):
    with pytest.raises(ValueError, match=field) as caught:
        MoleculesConfig.model_validate(OWN | {field: value})
    assert message in str(caught.value)
    assert [error["loc"][0] for error in caught.value.errors()] == [field]


def test_the_start_must_fit_also_where_it_is_not_given():
    with pytest.raises(ValueError, match="start must be a molecule that p0 allows"):
        MoleculesConfig(elements=("N",))


@pytest.mark.parametrize("state", ["CC", "CC(=O)Nc1ccc(O)cc1", "O=[N+]([O-])c1ccccc1", "c1cc[nH]c1"])
def test_a_state_and_its_code_are_the_same_text(state):
    space = MoleculesConfig().build()
    assert space.decode(space.encode(state)) == space.content(state) == state


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("OCC", "canonical"), ("C[C@H](F)Cl", "stereochemistry"), ("C" * 41, "p0 allows"),
        ("hello", "not a molecule"), ("", "not a molecule"),
    ],
)  # fmt: skip
def test_a_text_that_stands_for_no_state_is_refused(code, message):
    with pytest.raises(ValueError, match=message):
        MoleculesConfig().build().decode(code)

"""Catalogs: p0, the neighbour graph, and what is refused."""

import math

import numpy as np
import pytest
from pydantic import ValidationError

from sampler import Catalog, CatalogConfig
from tests.support.outcomes import distribution_of
from tests.support.sampling import LOPSIDED


def test_p0_is_proportional_to_the_weights():
    np.testing.assert_allclose(np.exp(LOPSIDED.log_p0), np.array([1, 2, 5, 0.5, 1.5]) / 10, rtol=1e-14)
    assert len(LOPSIDED) == 5


def test_items_are_drawn_as_often_as_p0_says():
    assert distribution_of(LOPSIDED.draw) == pytest.approx(dict(enumerate(np.exp(LOPSIDED.log_p0))), abs=1e-15)


def test_weights_may_differ_by_many_orders_of_magnitude():
    catalog = Catalog(np.array([1e-200, 1.0, 1e100]))
    assert np.all(np.isfinite(catalog.log_p0))
    assert catalog.draw(np.random.default_rng(0)) == 2


@pytest.mark.parametrize(
    "weights",
    [
        [], [1.0], [[1.0, 2.0]], [1.0, 0.0], [1.0, -2.0], [1.0, math.nan], [1.0, math.inf], [1e308] * 20,
        [1e-300, 1e300],
    ],
)  # fmt: skip
def test_bad_weights_are_refused(weights):
    with pytest.raises(ValueError, match="weights must"):
        Catalog(np.array(weights))


@pytest.mark.parametrize(
    ("neighbours", "reason"),
    [
        (((1,), (0,)), "must list 3 items"), (((0, 1), (0,), ()), "other items"), (((1, 1), (0,), ()), "each once"),
        (((3,), (), ()), "unknown item, 3"), (((-1,), (), ()), "unknown item, -1"),
        (((1,), (), ()), "symmetric: 0 lists 1"),
    ],
)  # fmt: skip
def test_a_bad_graph_is_refused(neighbours, reason):
    with pytest.raises(ValueError, match=reason):
        Catalog(np.ones(3), neighbours)


@pytest.mark.parametrize(
    ("neighbours", "parts"),
    [
        (((1,), (0, 2), (1, 3), (2,)), 1), (((1,), (0,), (3,), (2,)), 2), (((1,), (0,), (), ()), 3),
        (((), (), (), ()), 4),
    ],
)  # fmt: skip
def test_parts_of_a_graph_are_counted(neighbours, parts):
    assert Catalog(np.ones(4), neighbours).components() == parts


def test_a_config_says_which_columns_are_shown():
    space = {"kind": "catalog", "objects": "texts", "context": [{"column": " Prompt ", "label": "Asked for"}]}
    read = CatalogConfig.model_validate(space)
    assert read.model_dump(mode="json")["context"] == [{"column": "prompt", "label": "Asked for"}]
    assert CatalogConfig.model_validate(read.model_dump(mode="json")) == read


@pytest.mark.parametrize(
    "context",
    [
        [{"column": "", "label": "a"}], [{"column": "a", "label": ""}], [{"column": "a", "label": "two\nlines"}],
        [{"column": "a", "label": "x"}, {"column": "A", "label": "y"}],
        [{"column": "a", "label": "x"}, {"column": "b", "label": "x"}],
        [{"column": f"c{index}", "label": f"l{index}"} for index in range(11)],
    ],
    ids=["no column", "no label", "lines", "a column twice", "a label twice", "too many"],
)  # fmt: skip
def test_columns_that_cannot_be_shown_are_refused(context):
    with pytest.raises(ValidationError, match="context"):
        CatalogConfig(objects="texts", context=context)

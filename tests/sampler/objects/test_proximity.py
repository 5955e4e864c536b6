"""Nearest-neighbour graphs."""

import numpy as np
import pytest

from sampler.objects.items import nearest_by_distance


def test_two_items_are_linked_when_either_is_among_the_others_nearest():
    vectors = np.random.default_rng(5).normal(size=(60, 3))
    distances = np.linalg.norm(vectors[:, None] - vectors[None], axis=-1)
    np.fill_diagonal(distances, np.inf)
    nearest = [set(row[:4].tolist()) for row in np.argsort(distances, axis=1)]
    expected = tuple(
        tuple(other for other in range(60) if other in nearest[item] or item in nearest[other]) for item in range(60)
    )
    assert nearest_by_distance(vectors, 4, "euclidean") == expected


@pytest.mark.parametrize("count", [2, 3, 50])
def test_asking_for_more_neighbours_than_there_are_links_everything(count):
    graph = nearest_by_distance(np.array([[0.0], [1.0], [5.0]]), count, "euclidean")
    assert graph == ((1, 2), (0, 2), (0, 1))


def test_identical_items_are_never_their_own_neighbours():
    graph = nearest_by_distance(np.zeros((6, 2)), 2, "euclidean")
    assert all(item not in row and len(row) >= 2 for item, row in enumerate(graph))


def test_how_a_machine_rounds_does_not_choose_among_neighbours_at_one_distance():
    corners = np.array([[x, y, z] for x in (0.0, 1.0) for y in (0.0, 1.0) for z in (0.0, 1.0)])
    rng = np.random.default_rng(7)
    graphs = {
        nearest_by_distance(corners + rng.normal(scale=1e-9, size=corners.shape), 2, "euclidean") for _ in range(9)
    }
    assert len(graphs) == 1

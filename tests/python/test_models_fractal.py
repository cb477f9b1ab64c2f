"""The fractal cluster: its dimension, velocities that neighbours share."""

import math

import numpy as np
import pytest

from distributions import follow, radii
from grape6py import Tree, fractal, plummer

SEEDS = range(5)


def pairs(model):
    """Distances of all pairs."""
    i, j = np.triu_indices(len(model.mass), 1)
    return np.linalg.norm(model.pos[i] - model.pos[j], axis=1), i, j


@pytest.mark.parametrize("dimension", [1.6, 2, 2.5, 3])
def test_pairs_within_a_distance_grow_as_its_power(dimension):
    slopes = []
    for seed in SEEDS:
        distance, _, _ = pairs(fractal(1000, dimension, seed))
        size = 2 * np.sqrt((distance**2).mean() / 2)
        counts = [(distance < size * share).sum() for share in (1 / 4, 1 / 16)]
        slopes.append(math.log(counts[0] / counts[1]) / math.log(4))
    # The surface of the sphere takes some of the pairs away.
    assert np.mean(slopes) == pytest.approx(dimension, abs=0.3)
    assert np.mean(slopes) < dimension + 0.15


def test_a_homogeneous_sphere_has_dimension_three():
    assert follow(radii(fractal(2000, 3, 1)), lambda r: (r / r[-1]) ** 3, limit=3.6)


def test_sub_structure_moves_together():
    alike = []
    for model in (fractal(1000, 1.6, 3), fractal(1000, 3, 3), plummer(1000, 3)):
        near = Tree(model.pos, model.mass).nearest(1).index[:, 0]
        apart = ((model.vel[near] - model.vel) ** 2).sum(axis=1).mean()
        alike.append(apart / (2 * (model.vel**2).sum(axis=1).mean()))  # 1: independent
    assert max(alike[:2]) < 0.4 < 0.8 < alike[2]


@pytest.mark.parametrize("dimension", [1, 1.6])
def test_any_seed_has_members(dimension):
    for seed in range(100):  # trees of which some die out
        assert len(fractal(5, dimension, seed).mass) == 5

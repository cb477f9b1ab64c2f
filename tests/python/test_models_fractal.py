"""The fractal cluster: its dimension, its energies, velocities that neighbours share."""

import math

import numpy as np
import pytest

from grape6py import Tree, fractal, plummer, reference

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


@pytest.mark.parametrize("virial_ratio", [0, 0.3, 0.5])
@pytest.mark.parametrize("dimension", [1, 1.6, 3])
@pytest.mark.parametrize("n", [2, 300])
def test_energies_are_exact_and_the_centre_rests(n, dimension, virial_ratio):
    model = fractal(n, dimension, 2, virial_ratio)
    energy = reference.energy(*model)
    assert energy.total == pytest.approx(-0.25, rel=1e-12)
    assert energy.kinetic == pytest.approx(-virial_ratio * energy.potential, rel=1e-12)
    assert math.fsum(model.mass) == pytest.approx(1)
    assert np.abs(model.mass @ model.pos).max() < 1e-14
    assert np.abs(model.mass @ model.vel).max() < 1e-14


def test_a_homogeneous_sphere_has_dimension_three():
    radius = np.sort(np.linalg.norm(fractal(2000, 3, 1).pos, axis=1))
    inside = (radius / radius[-1]) ** 3
    assert np.abs(inside - (np.arange(2000) + 0.5) / 2000).max() < 0.08


def test_sub_structure_moves_together():
    alike = []
    for model in (fractal(1000, 1.6, 3), fractal(1000, 3, 3), plummer(1000, 3)):
        with Tree(model.pos, model.mass) as tree:
            near = tree.nearest(1).index[:, 0]
        apart = ((model.vel[near] - model.vel) ** 2).sum(axis=1).mean()
        alike.append(apart / (2 * (model.vel**2).sum(axis=1).mean()))  # 1: independent
    assert alike[0] < 0.4
    assert alike[1] < 0.4
    assert alike[2] > 0.8


@pytest.mark.parametrize("dimension", [1, 1.6])
def test_any_seed_has_members(dimension):
    for seed in range(100):  # trees of which some die out
        assert len(fractal(5, dimension, seed).mass) == 5


def test_the_same_seed_gives_the_same_fractal():
    one, two, other = (fractal(50, seed=seed) for seed in (1, 1, 2))
    assert all(np.array_equal(*pair) for pair in zip(one, two, strict=True))
    assert not np.array_equal(one.pos, other.pos)


@pytest.mark.parametrize(("wrong", "words"), [
    ({"n": 1}, "n = 1: a fractal needs two bodies"),
    ({"n": 0}, "n = 0"),
    ({"n": 10.5}, "n = 10.5 is not an integer"),
    ({"dimension": 0.9}, "dimension = 0.9 is not between 1 and 3"),
    ({"dimension": 3.1}, "dimension = 3.1 is not between 1 and 3"),
    ({"virial_ratio": 1}, r"virial_ratio = 1 is not in \[0, 1\)"),
    ({"virial_ratio": math.nan}, "virial_ratio = nan is not a finite number"),
])  # fmt: skip
def test_fractals_that_cannot_be_are_refused_in_words(wrong, words):
    with pytest.raises(ValueError, match=words):
        fractal(**{"n": 10, "seed": 1} | wrong)

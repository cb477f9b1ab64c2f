"""``Tree``: neighbours and nearest particles are those that brute force finds, to the last one,
wherever the tree is."""

import functools

import numpy as np
import pytest

from grape6py import Tree
from samples import SAMPLES, bodies

N = 1500


def squares(pos, targets):
    """Squared distances, (targets, particles), rounded as the library's are."""
    d = pos[None] - targets[:, None]
    with np.errstate(over="ignore"):
        return (d[..., 0] * d[..., 0] + d[..., 1] * d[..., 1]) + d[..., 2] * d[..., 2]


def without(r2, own):
    """The same with infinity instead of NaN where a target is the particle, to be left out."""
    r2 = r2.copy()
    rows = np.flatnonzero(np.asarray(own) >= 0)
    r2[rows, np.asarray(own)[rows]] = np.nan
    return r2


def lists(r2, radius):
    """Ascending numbers of the particles within a radius or radii; NaN in r2 is nobody."""
    radius = np.broadcast_to(radius, len(r2)).astype(float)
    inside = (r2 <= np.square(radius)[:, None]) & (radius >= 0)[:, None]
    return [np.flatnonzero(row) for row in inside]


def ranks(r2, k):
    """The k nearest: numbers and distances, ties to the lowest, -1 and infinity beyond."""
    index = np.full((len(r2), k), -1)
    distance = np.full((len(r2), k), np.inf)
    for i, row in enumerate(r2):
        order = np.argsort(row, kind="stable")[: np.isfinite(row).sum()][:k]
        index[i, : len(order)] = order
        distance[i, : len(order)] = np.sqrt(row[order])
    return index, distance


def assert_lists(found, right):
    assert len(found) == len(right)
    for a, b in zip(found, right, strict=True):
        assert np.array_equal(a, b)


def assert_nearest(found, right, ordered=True):
    """If `ordered`, of particles at equal distances the lowest number comes first."""
    assert np.array_equal(found.distance, right[1])
    assert not ordered or np.array_equal(found.index, right[0])


@functools.cache
def places(name, n=N):
    return bodies(name, n, seed=12)[1]


def typical(pos):
    """A radius that some have many neighbours within."""
    return np.median(np.sort(squares(pos, pos[::50]), axis=1)[:, 20]) ** 0.5


@functools.cache
def brute(name, n):
    """Squared distances of all pairs of the particles, and the 600 nearest of each."""
    pos = places(name, n)
    r2 = without(squares(pos, pos), np.arange(len(pos)))
    return r2, ranks(r2, 600)


SETS = [*SAMPLES, "one place", "few places", "all scales", "clusters far apart"]


@pytest.mark.parametrize("name", SETS)
def test_particles_find_those_that_brute_force_finds(where, name):
    """A radius that ends at a particle holds it: the distance of the tenth neighbour, or the number
    beside."""
    n, most = (N, 600) if where.name == "host" else (250, 129)
    pos, (r2, nearest) = places(name, n), brute(name, n)
    ordered = name != "lattice" or where.name != "ranks"
    tree, tenth = where.tree(1.0, pos), np.sqrt(np.nan_to_num(np.sort(r2, axis=1)[:, 9]))
    for radius in (0.0, 2 * typical(pos), tenth, np.nextafter(tenth, 0), np.nextafter(tenth, 9e99)):
        assert_lists(tree.neighbours(radius), lists(r2, radius))
    for k in (1, 2, 33, most):
        assert_nearest(tree.nearest(k), [a[:, :k] for a in nearest], ordered)


@pytest.mark.parametrize("name", SETS)
def test_targets_anywhere_find_those_that_brute_force_finds(where, name):
    pos, rng = places(name, 300), np.random.default_rng(1)
    low, high = pos.min(axis=0), pos.max(axis=0)
    targets = rng.uniform(low - (high - low) / 5, high + (high - low) / 5, (99, 3))
    own = np.where(rng.random(99) < 0.5, -1, rng.integers(0, len(pos), 99))
    targets[::3] = pos[own[::3]]
    tree, r2 = where.tree(1.0, pos), squares(pos, targets)
    radius = typical(pos) * 10 ** rng.uniform(-1, 1.5, 99)
    radius[:4] = -1.0, np.nan, -np.inf, np.inf
    ordered = name != "lattice" or where.name != "ranks"
    for kept, known in ((r2, {}), (without(r2, own), {"self_index": own})):
        assert_lists(tree.neighbours(radius, targets, **known), lists(kept, radius))
        assert_nearest(tree.nearest(7, targets, **known), ranks(kept, 7), ordered)


@pytest.mark.parametrize("scale", [1e-140, 1e-12, 1e30, 1e150])
def test_any_scale_and_any_offset(where, scale):
    for offset in (0, 1e3, 1e9):
        pos = (SAMPLES["clustered"](200, seed=3)[1] + offset) * scale
        r2 = without(squares(pos, pos), np.arange(len(pos)))
        tree, radius = where.tree(1.0, pos), typical(pos)
        assert_lists(tree.neighbours(radius), lists(r2, radius))
        assert_nearest(tree.nearest(5), ranks(r2, 5))


def test_the_largest_numbers_there_are(where):
    """Squared distances are infinite, and all equal: the lowest numbers come first."""
    pos = 1e308 * np.random.default_rng(2).uniform(-1, 1, (100, 3))
    tree, own = where.tree(1.0, pos), np.arange(100)
    assert_lists(tree.neighbours(np.inf), [np.delete(own, i) for i in own])
    assert not any(map(len, tree.neighbours(1e150)))
    index, distance = tree.nearest(3)
    assert np.array_equal(index[5:], np.tile([0, 1, 2], (95, 1)))
    assert (distance == np.inf).all()


def test_equal_distances_and_the_deepest_tree(where):
    """A lattice in any order, with some places taken twice; and pairs of places apart by ever
    smaller powers of two: a leaf on the last level there is."""
    steps = np.arange(6.0)
    lattice = np.array(np.meshgrid(steps, steps, steps)).reshape(3, -1).T
    twice = np.random.default_rng(1).permutation(np.vstack([lattice, lattice[:70]]))
    for pos in twice, np.repeat(0.5 ** np.arange(40), 8)[:, None] * np.ones(3):
        tree, r2 = where.tree(1.0, pos), without(squares(pos, pos), np.arange(len(pos)))
        for k in (1, 31, 32, 33, 128):
            assert_nearest(tree.nearest(k), ranks(r2, k), where.name != "ranks")
        assert_lists(tree.neighbours(1e-6), lists(r2, 1e-6))


def test_nobody_and_more_than_there_are(where):
    few, none = np.arange(15.0).reshape(5, 3), np.zeros((0, 3))
    empty, tree = where.tree(np.zeros(0), none), where.tree(1.0, few)
    assert empty.neighbours(1.0) == tree.neighbours(1.0, none) == []
    assert empty.nearest(3).index.shape == tree.nearest(3, none).index.shape == (0, 3)
    assert [len(a) for a in empty.neighbours(np.inf, np.ones((2, 3)))] == [0, 0]
    assert (empty.nearest(3, np.ones((2, 3))).index == -1).all()
    index, distance = tree.nearest(7, few[:1])
    assert index.tolist() == [[0, 1, 2, 3, 4, -1, -1]]
    assert np.isinf(distance).tolist() == [[False] * 5 + [True] * 2]
    assert tree.nearest(0).index.shape == (5, 0)


@pytest.mark.parametrize("where", ["host", "device"], indirect=True)
def test_compressed_rows_are_the_same_lists_in_order(where):
    """Of particles whose numbers are in no order in space."""
    for length in (1, 2, 3, 31, 32, 33, 63, 64, 65, 1000):
        pos = np.random.default_rng(length).random((length, 3))
        found = where.tree(1.0, pos).neighbours(np.inf, pos[:5].copy(), csr=True)
        assert np.array_equal(found.index, np.tile(np.arange(length), min(5, length))), length
        assert (found.start.dtype, found.index.dtype) == (np.int64, np.int32)
    tree = where.tree(1.0, pos)
    found, rows = tree.neighbours(0.1, csr=True), tree.neighbours(0.1)
    assert_lists(np.split(found.index, found.start[1:-1]), rows)
    assert_lists(list(found), rows)
    assert found.start[-1] == len(found.index)
    assert tree.neighbours(1.0, np.empty((0, 3)), csr=True).start.tolist() == [0]


def test_masses_make_no_difference_to_searches():
    pos, mass = places("plummer"), np.ones(N)
    for other in (np.where(np.arange(N) % 2, -mass, mass), 0.0):
        assert np.array_equal(Tree(pos, other).nearest(4).index, Tree(pos, mass).nearest(4).index)


# ---- places of the caller's ---------------------------------------------------------------

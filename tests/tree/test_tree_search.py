"""``Tree``: neighbours and nearest particles are those that brute force finds, to the last one,
wherever the tree is."""

import numpy as np
import pytest

from samples import SAMPLES, bodies


def squares(pos, targets=None, own=None):
    """Squared distances, (targets, particles), rounded as the library's are; NaN where a target is
    the particle. Without targets: of the particles."""
    if targets is None:
        targets, own = pos, np.arange(len(pos))
    d = pos[None] - targets[:, None]
    with np.errstate(over="ignore"):
        r2 = (d[..., 0] * d[..., 0] + d[..., 1] * d[..., 1]) + d[..., 2] * d[..., 2]
    if own is not None:
        rows = np.flatnonzero(own >= 0)
        r2[rows, own[rows]] = np.nan
    return r2


def assert_lists(found, r2, radius):
    """Ascending numbers of the particles within a radius or radii."""
    radius = np.broadcast_to(radius, len(r2)).astype(float)
    assert len(found) == len(r2)
    for ours, row, h in zip(found, r2, radius, strict=True):
        assert np.array_equal(ours, np.flatnonzero((row <= h * h) & (h >= 0)))


def assert_nearest(found, r2):
    """Numbers and distances, ties to the lowest, -1 and infinity beyond."""
    order = np.argsort(r2, axis=1, kind="stable")[:, : found.index.shape[1]]
    nearest = np.take_along_axis(r2, order, axis=1)
    there, k = ~np.isnan(nearest), order.shape[1]
    assert np.array_equal(found.index[:, :k], np.where(there, order, -1))
    assert np.array_equal(found.distance[:, :k], np.where(there, np.sqrt(nearest), np.inf))
    assert (found.index[:, k:] == -1).all()
    assert (found.distance[:, k:] == np.inf).all()


def typical(pos):
    """A radius that some have many neighbours within."""
    return np.median(np.sort(squares(pos, pos[::50]), axis=1)[:, 20]) ** 0.5


SETS = [*SAMPLES, "one place", "few places", "all scales", "clusters far apart"]


@pytest.mark.parametrize("name", SETS)
def test_particles_find_those_that_brute_force_finds(where, name):
    """A radius that ends at a particle holds it: the distance of the tenth neighbour, or the number
    beside."""
    n, most = (400, 300) if where.name == "host" else (150, 129)
    pos = bodies(name, n, seed=12)[1]
    tree, r2 = where.tree(1.0, pos), squares(pos)
    tenth = np.sqrt(np.nan_to_num(np.sort(r2, axis=1)[:, 9]))
    for radius in (0.0, 2 * typical(pos), tenth, np.nextafter(tenth, 0), np.nextafter(tenth, 9e99)):
        assert_lists(tree.neighbours(radius), r2, radius)
    for k in (1, 2, 33, most):
        assert_nearest(tree.nearest(k), r2)


@pytest.mark.parametrize("name", SETS)
def test_targets_anywhere_find_those_that_brute_force_finds(where, name):
    pos, rng = bodies(name, 300, seed=12)[1], np.random.default_rng(1)
    low, high = pos.min(axis=0), pos.max(axis=0)
    targets = rng.uniform(low - (high - low) / 5, high + (high - low) / 5, (99, 3))
    own = np.where(rng.random(99) < 0.5, -1, rng.integers(0, len(pos), 99))
    targets[::3] = pos[own[::3]]
    tree, radius = where.tree(1.0, pos), typical(pos) * 10 ** rng.uniform(-1, 1.5, 99)
    radius[:4] = -1.0, np.nan, -np.inf, np.inf
    for known in {}, {"self_index": own}:
        r2 = squares(pos, targets, known.get("self_index"))
        assert_lists(tree.neighbours(radius, targets, **known), r2, radius)
        assert_nearest(tree.nearest(7, targets, **known), r2)


@pytest.mark.parametrize("scale", [1e-140, 1e-12, 1e30, 1e150])
def test_any_scale_and_any_offset(where, scale):
    for offset in (0, 1e3, 1e9):
        pos = (SAMPLES["clustered"](200, seed=3)[1] + offset) * scale
        tree, r2, radius = where.tree(1.0, pos), squares(pos), typical(pos)
        assert_lists(tree.neighbours(radius), r2, radius)
        assert_nearest(tree.nearest(5), r2)


def test_the_largest_numbers_there_are(where):
    """Squared distances are infinite, and all equal: the lowest numbers come first."""
    pos = 1e308 * np.random.default_rng(2).uniform(-1, 1, (100, 3))
    tree = where.tree(1.0, pos)
    assert_lists(tree.neighbours(np.inf), squares(pos), np.inf)
    assert not any(map(len, tree.neighbours(1e150)))
    index, distance = tree.nearest(3)
    assert np.array_equal(index[5:], np.tile([0, 1, 2], (95, 1)))
    assert (distance == np.inf).all()


def test_equal_distances_and_the_deepest_tree(where):
    """A lattice in any order, with some places taken twice, on any scale; and pairs of places apart
    by ever smaller powers of two: a leaf on the last level there is. Of large masses and speeds."""
    lattice = np.indices((6, 6, 6)).reshape(3, -1).T * 1.0
    twice = np.random.default_rng(1).permutation(np.vstack([lattice, lattice[:70]]))
    deep = np.repeat(0.5 ** np.arange(40), 8)[:, None] * np.ones(3)
    small = [] if where.name == "device" else [twice * 1e-170]  # there, ties are in any order
    for pos in deep, twice, twice * 1e160, *small:
        tree = where.tree(np.full(len(pos), 1e300), pos, np.full(pos.shape, 1e300))
        r2 = squares(pos)
        for k in (1, 32, 33, 128):
            assert_nearest(tree.nearest(k), r2)
        assert_lists(tree.neighbours(1e-6), r2, 1e-6)


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
    for split in np.split(found.index, found.start[1:-1]), found:
        assert all(map(np.array_equal, split, rows))
    assert found.start[-1] == len(found.index)
    assert tree.neighbours(1.0, np.empty((0, 3)), csr=True).start.tolist() == [0]

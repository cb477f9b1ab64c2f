"""The tree's searches on the stand-in for a card: the numbers and squared distances that the tree
on the CPU finds, to the last bit."""

import numpy as np
import pytest

import samples
from grape6py import Tree
from grape6py.cuda.tree import search as tree_search
from grape6py.cuda.tree.octree import Octree
from test_tree_search import lists, ranks, squares, typical, without

N = 1200


@pytest.fixture(params=[*samples.SAMPLES, "one place"])
def pos(request):
    if request.param == "one place":
        return np.full((300, 3), 1e5 / 3)
    return np.ascontiguousarray(samples.SAMPLES[request.param](N, 12)[1])


@pytest.fixture
def search(tree_card):
    """Makes searches in a tree of some places."""

    def make(pos, *targets):
        return tree_search.Search(Octree(tree_card, pos, np.ones(len(pos))), *targets)

    return make


def anywhere(pos, count=200):
    """Targets in and about the box, a third of them at particles; and what they are, or -1."""
    rng = np.random.default_rng(1)
    low, high = pos.min(axis=0), pos.max(axis=0)
    targets = rng.uniform(low - (high - low) / 5, high + (high - low) / 5, (count, 3))
    own = np.where(rng.random(count) < 0.5, -1, rng.integers(0, len(pos), count))
    targets[::3] = pos[own[::3]]
    return targets, own.astype(np.int32)


def assert_same_rows(found, expected):
    start, index = found
    assert start.dtype == np.int64
    assert index.dtype == np.int32
    assert np.array_equal(start, expected.start)
    assert np.array_equal(index, expected.index)


def assert_same_ranks(found, expected):
    number, r2 = found
    assert number.dtype == np.int32
    assert np.array_equal(number, expected.index)
    assert np.sqrt(r2).tobytes() == expected.distance.tobytes()


def test_particles_find_what_they_find_on_the_cpu(search, pos):
    with Tree(pos, 1.0) as tree:
        for radius in (0.0, typical(pos), 3 * typical(pos)):
            h2 = np.full(len(pos), radius * radius)
            assert_same_rows(search(pos).within(h2), tree.neighbours(radius, csr=True))
        for k in (1, 2, 33):
            assert_same_ranks(search(pos).nearest(k), tree.nearest(k))


def test_particles_find_what_brute_force_finds(search, pos):
    r2 = without(squares(pos, pos), np.arange(len(pos)))
    start, index = search(pos).within(np.full(len(pos), typical(pos) ** 2))
    for i, row in enumerate(lists(r2, typical(pos))):
        assert np.array_equal(index[start[i] : start[i + 1]], row)
    number, found = search(pos).nearest(9)
    right = ranks(r2, 9)
    assert np.array_equal(number, right[0])
    assert np.array_equal(np.sqrt(found), right[1])


def test_targets_anywhere_find_what_they_find_on_the_cpu(search, pos):
    targets, own = anywhere(pos)
    radius = typical(pos) * 10 ** np.random.default_rng(2).uniform(-1, 1.5, len(targets))
    with Tree(pos, 1.0) as tree:
        for given in ((targets,), (targets, own)):
            who = dict(zip(("targets", "self_index"), given, strict=False))
            expected = tree.neighbours(radius, csr=True, **who)
            assert_same_rows(search(pos, *given).within(radius * radius), expected)
            assert_same_ranks(search(pos, *given).nearest(7), tree.nearest(7, **who))


def test_a_radius_that_ends_at_a_particle_holds_it(search, pos):
    """For each target, the distance of its tenth neighbour, or the next smaller number."""
    tenth = np.nan_to_num(Tree(pos, 1.0).nearest(10).distance[:, 9])
    for radius in (tenth, np.nextafter(tenth, 0), np.nextafter(tenth, np.inf)):
        expected = Tree(pos, 1.0).neighbours(radius, csr=True)
        assert_same_rows(search(pos).within(radius * radius), expected)


def test_all_or_nobody(search, pos):
    """Squared radii that are infinite, and those that Python makes of negative ones and NaN."""
    n = len(pos)
    start, index = search(pos).within(np.where(np.arange(n) % 100, -1.0, np.inf))
    assert np.array_equal(np.diff(start), np.where(np.arange(n) % 100, 0, n - 1))
    for i in range(0, n, 100):
        assert np.array_equal(index[start[i] : start[i + 1]], np.delete(np.arange(n), i))
    assert search(pos).within(np.full(n, np.nan))[1].size == 0


@pytest.mark.parametrize("length", [1, 2, 3, 31, 32, 33, 63, 64, 65, 1000])
def test_rows_of_any_length_are_put_in_order(search, length):
    """Of particles whose numbers are in no order in space."""
    pos = np.random.default_rng(length).random((length, 3))
    _, index = search(pos, pos[:5].copy()).within(np.full(min(5, length), np.inf))
    assert np.array_equal(index, np.tile(np.arange(length), min(5, length)))


@pytest.mark.parametrize("scale", [1e-140, 1e-30, 1e12, 1e150])
@pytest.mark.parametrize("offset", [0, 1e3, 1e9])
def test_any_scale_and_any_offset(search, scale, offset):
    pos = (samples.clustered(500, 3)[1] + offset) * scale
    radius = typical(pos)
    with Tree(pos, 1.0) as tree:
        found = search(pos).within(np.full(500, radius * radius))
        assert_same_rows(found, tree.neighbours(radius, csr=True))
        assert_same_ranks(search(pos).nearest(5), tree.nearest(5))


def test_the_largest_numbers_there_are(search):
    """Squared distances are infinite, and all equal: the lowest numbers come first."""
    pos = 1e308 * np.random.default_rng(2).uniform(-1, 1, (100, 3))
    number, r2 = search(pos).nearest(3)
    assert np.array_equal(number[5:], np.tile([0, 1, 2], (95, 1)))
    assert (r2 == np.inf).all()
    assert np.array_equal(np.diff(search(pos).within(np.full(100, np.inf))[0]), np.full(100, 99))


def test_more_nearest_than_there_are_particles(search):
    pos = np.arange(15.0).reshape(5, 3)
    number, r2 = search(pos, pos[:1].copy()).nearest(7)
    assert number.tolist() == [[0, 1, 2, 3, 4, -1, -1]]
    assert np.isfinite(r2[0, :5]).all()
    assert np.isinf(r2[0, 5:]).all()
    assert search(pos).nearest(0)[0].shape == (5, 0)
    assert search(pos[:1].copy()).nearest(1)[0].tolist() == [[-1]]


def test_no_targets(search):
    pos = samples.plummer(100, 1)[1]
    start, index = search(pos, np.empty((0, 3))).within(np.empty(0))
    assert start.tolist() == [0]
    assert index.shape == (0,)
    assert search(pos, np.empty((0, 3))).nearest(3)[0].shape == (0, 3)


def test_the_deepest_tree_fits(search):
    """Pairs of places apart by ever smaller powers of two: a leaf on the last level there is."""
    steps = np.repeat(0.5 ** np.arange(40), 40)
    pos = np.stack([steps, steps, steps], axis=-1)
    with Tree(pos, 1.0) as tree:
        assert_same_ranks(search(pos).nearest(50), tree.nearest(50))
        found = search(pos).within(np.full(1600, 1e-12))
        assert_same_rows(found, tree.neighbours(1e-6, csr=True))

"""``Tree``: neighbours and nearest particles are those that brute force finds, to the last one, in
NumPy's arrays and in those of the fake device."""

import functools

import numpy as np
import pytest

import capi
from grape6py.forces import tree as trees
from samples import SAMPLES

N = 1500
pytestmark = pytest.mark.backends("cpu cuda")


class OnDevice:
    """A Tree of arrays on the device, which gives NumPy's."""

    def __init__(self, put, pos, mass):
        self._tree = trees.Tree(put(pos), put(mass))

    def nearest(self, *given, **more):
        return trees.Nearest(*map(to_host, self._tree.nearest(*given, **more)))

    def neighbours(self, *given, csr=False, **more):
        found = self._tree.neighbours(*given, csr=csr, **more)
        return found.on(to_host) if csr else list(map(to_host, found))


def to_host(array):
    return array if isinstance(array, np.ndarray) else array.get()


@pytest.fixture
def Tree(on_backend, request):
    if on_backend == "cpu":
        return trees.Tree
    return functools.partial(OnDevice, request.getfixturevalue("put"))


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


def assert_nearest(found, right):
    assert np.array_equal(found.index, right[0])
    assert np.array_equal(found.distance, right[1])


def crowded():
    """Ten places that two thirds of the particles share, and a sphere around them."""
    pos, rng = SAMPLES["plummer"](N, seed=12)[1], np.random.default_rng(4)
    pos[N // 3 :] = rng.normal(size=(10, 3))[rng.integers(0, 10, N - N // 3)]
    return pos[rng.permutation(N)]


def far_apart():
    """Two spheres that no one box resolves, and a particle still farther away."""
    pos = SAMPLES["plummer"](1000, seed=12)[1]
    pos[500:, 0] += 1e11
    pos[-1] = -1e20, 0, 0
    return pos


OWN = {"one place": lambda: np.full((500, 3), 1e5 / 3), "crowded": crowded, "far apart": far_apart}


@functools.cache
def places(name):
    return OWN[name]() if name in OWN else SAMPLES[name](N, seed=12)[1]


@functools.cache
def brute(name):
    """Squared distances of all pairs of the particles, and the 600 nearest of each."""
    pos = places(name)
    r2 = without(squares(pos, pos), np.arange(len(pos)))
    return r2, ranks(r2, 600)


@pytest.fixture(params=[*SAMPLES, *OWN])
def sample(request):
    return request.param


@pytest.fixture
def pos(sample):
    return places(sample)


def typical(pos):
    """A radius that some have many neighbours within."""
    return np.median(np.sort(squares(pos, pos[::50]), axis=1)[:, 20]) ** 0.5


def test_particles_find_the_neighbours_that_brute_force_finds(Tree, pos, sample):
    tree, (r2, _) = Tree(pos, 1.0), brute(sample)
    for radius in (0.0, typical(pos), 3 * typical(pos)):
        assert_lists(tree.neighbours(radius), lists(r2, radius))


def test_a_radius_that_ends_at_a_particle_holds_it(Tree, pos, sample):
    """For each target, the distance of its tenth neighbour, or the next smaller number."""
    tree, (r2, _) = Tree(pos, 1.0), brute(sample)
    tenth = np.sqrt(np.nan_to_num(np.sort(r2, axis=1)[:, 9]))
    for radius in (tenth, np.nextafter(tenth, 0), np.nextafter(tenth, np.inf)):
        assert_lists(tree.neighbours(radius), lists(r2, radius))


def test_targets_anywhere_find_the_neighbours_that_brute_force_finds(Tree, pos):
    rng = np.random.default_rng(1)
    low, high = pos.min(axis=0), pos.max(axis=0)
    targets = rng.uniform(low - (high - low) / 5, high + (high - low) / 5, (300, 3))
    own = np.where(rng.random(300) < 0.5, -1, rng.integers(0, len(pos), 300))
    targets[::3] = pos[own[::3]]
    tree, r2 = Tree(pos, 1.0), squares(pos, targets)
    radius = typical(pos) * 10 ** rng.uniform(-1, 1.5, 300)
    assert_lists(tree.neighbours(radius, targets), lists(r2, radius))
    own_left_out = lists(without(r2, own), radius)
    assert_lists(tree.neighbours(radius, targets, self_index=own), own_left_out)
    assert_nearest(tree.nearest(7, targets), ranks(r2, 7))
    assert_nearest(tree.nearest(7, targets, self_index=own), ranks(without(r2, own), 7))


@pytest.mark.parametrize("k", [1, 2, 33, 600])
def test_particles_find_the_nearest_that_brute_force_finds(Tree, pos, sample, k):
    assert_nearest(Tree(pos, 1.0).nearest(k), [a[:, :k] for a in brute(sample)[1]])


@pytest.mark.parametrize("scale", [1e-140, 1e-30, 1e-12, 1e12, 1e30, 1e150])
@pytest.mark.parametrize("offset", [0, 1e3, 1e9])
def test_any_scale_and_any_offset(Tree, scale, offset):
    pos = (SAMPLES["clustered"](1000, seed=3)[1] + offset) * scale
    r2 = without(squares(pos, pos), np.arange(1000))
    tree, radius = Tree(pos, 1.0), typical(pos)
    assert_lists(tree.neighbours(radius), lists(r2, radius))
    assert_nearest(tree.nearest(5), ranks(r2, 5))


def test_the_largest_numbers_there_are(Tree):
    """Squared distances are infinite, and all equal: the lowest numbers come first."""
    rng = np.random.default_rng(2)
    pos = 1e308 * rng.uniform(-1, 1, (100, 3))
    tree, own = Tree(pos, 1.0), np.arange(100)
    assert_lists(tree.neighbours(np.inf), [np.delete(own, i) for i in own])
    assert not any(map(len, tree.neighbours(1e150)))
    index, distance = tree.nearest(3)
    assert np.array_equal(index[5:], np.tile([0, 1, 2], (95, 1)))
    assert (distance == np.inf).all()


def test_no_radius_holds_nobody_and_an_infinite_one_all(Tree, pos):
    tree, own = Tree(pos, 1.0), np.arange(len(pos))
    for radius in (-1.0, np.nan, -np.inf):
        assert not any(map(len, tree.neighbours(radius)))
    found = tree.neighbours(np.where(own % 100, -1.0, np.inf))
    for i in own[::100]:
        assert np.array_equal(found[i], np.delete(own, i))
    assert np.array_equal(tree.neighbours(np.inf, pos[:1])[0], own)


def test_more_nearest_than_there_are_particles(Tree):
    pos = np.arange(15.0).reshape(5, 3)
    index, distance = Tree(pos, 1.0).nearest(7, pos[:1])
    assert index.tolist() == [[0, 1, 2, 3, 4, -1, -1]]
    assert np.isfinite(distance[0, :5]).all()
    assert np.isinf(distance[0, 5:]).all()
    assert Tree(pos, 1.0).nearest(0).index.shape == (5, 0)


def test_nobody_among_nobody(Tree):
    tree = Tree(np.zeros((0, 3)), np.zeros(0))
    assert tree.neighbours(1.0) == []
    assert tree.nearest(3).index.shape == (0, 3)
    assert [len(a) for a in tree.neighbours(np.inf, np.ones((2, 3)))] == [0, 0]
    assert (tree.nearest(3, np.ones((2, 3))).index == -1).all()
    alone = Tree(np.zeros((1, 3)), 1.0)
    assert alone.nearest(1).index.tolist() == [[-1]]
    assert [len(a) for a in alone.neighbours(np.inf)] == [0]


def test_rows_of_any_length_are_put_in_order(Tree):
    """Of particles whose numbers are in no order in space."""
    for length in (1, 2, 3, 31, 32, 33, 63, 64, 65, 1000):
        pos = np.random.default_rng(length).random((length, 3))
        found = Tree(pos, 1.0).neighbours(np.inf, pos[:5].copy(), csr=True)
        assert np.array_equal(found.index, np.tile(np.arange(length), min(5, length))), length


def test_no_targets(Tree):
    tree, none = Tree(places("plummer"), 1.0), np.empty((0, 3))
    found = tree.neighbours(1.0, none, csr=True)
    assert found.start.tolist() == [0]
    assert found.index.shape == (0,)
    assert tree.nearest(3, none).index.shape == (0, 3)


def test_the_deepest_tree_fits(Tree):
    """Pairs of places apart by ever smaller powers of two: a leaf on the last level there is."""
    steps = np.repeat(0.5 ** np.arange(40), 40)
    pos = np.stack([steps, steps, steps], axis=-1)
    tree, r2 = Tree(pos, 1.0), without(squares(pos, pos), np.arange(len(pos)))
    assert_nearest(tree.nearest(50), ranks(r2, 50))
    assert_lists(tree.neighbours(1e-6), lists(r2, 1e-6))


def test_compressed_rows_are_the_same_lists(Tree, pos):
    tree = Tree(pos, 1.0)
    found = tree.neighbours(typical(pos), csr=True)
    start, index = found.start, found.index
    assert_lists(np.split(index, start[1:-1]), tree.neighbours(typical(pos)))
    assert_lists(list(found), tree.neighbours(typical(pos)))
    assert (start.dtype, index.dtype) == (np.int64, np.int32)
    assert start[-1] == len(index)


def test_masses_make_no_difference_to_searches(Tree):
    mass, pos = SAMPLES["plummer"](N, seed=12)
    signs = np.where(np.arange(N) % 2, -mass, mass)
    for found in (Tree(pos, signs), Tree(pos, 0.0)):
        assert np.array_equal(found.nearest(4).index, Tree(pos, mass).nearest(4).index)


# ---- places of the caller's ---------------------------------------------------------------


@pytest.fixture
def tree():
    pos = SAMPLES["plummer"](N, seed=12)[1]
    handle = capi.call("g6x_tree_open", N, pos, None, np.ones(N))
    assert handle > 0
    yield handle, pos
    assert capi.call("g6x_tree_close", handle) == 0


@pytest.mark.backends("cpu")
@pytest.mark.parametrize("capacity", [0, 1, 5, 15])
def test_lists_longer_than_their_places_are_cut_to_the_lowest(tree, capacity):
    handle, pos = tree
    right = lists(without(squares(pos, pos), np.arange(N)), 0.2)
    start = np.arange(N + 1, dtype=np.int64) * capacity
    count, found = np.zeros(N, np.int32), np.full(N * capacity + 5, -777, np.int32)
    args = handle, N, None, None, np.full(N, 0.2 * 0.2), start, count, found
    assert capi.call("g6x_tree_within", *args) == 1
    assert np.array_equal(count, [len(row) for row in right])
    assert (found[N * capacity :] == -777).all()
    for i, row in enumerate(right):
        assert np.array_equal(found[i * capacity : (i + 1) * capacity][: len(row)], row[:capacity])
        assert (found[i * capacity + len(row) : (i + 1) * capacity] == -777).all()


@pytest.mark.backends("cpu")
def test_gaps_between_places_are_left_alone(tree):
    handle, pos = tree
    right = lists(squares(pos, pos[:2]), 0.3)
    start = np.array([4, 4 + len(right[0]), 4 + len(right[0]) + len(right[1]) + 9])
    count, found = np.zeros(2, np.int32), np.full(start[-1] + 3, -777, np.int32)
    args = handle, 2, pos[:2].copy(), None, np.full(2, 0.3 * 0.3), start, count, found
    assert capi.call("g6x_tree_within", *args) == 0
    assert np.array_equal(found[4 : start[1]], right[0])
    assert np.array_equal(found[start[1] :][: len(right[1])], right[1])
    assert (found[:4] == -777).all()
    assert (found[-12:] == -777).all()

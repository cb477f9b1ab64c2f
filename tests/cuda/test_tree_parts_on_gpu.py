"""Trees of several ranks on the GPU's code: parts of other ranks' trees that join a sum. What is
promised: errors as of one tree of all particles, whatever their domains.

The device is the stand-in for a GPU, arrays are NumPy's. Forces are compared with direct sums in
double precision.
"""

import functools

import numpy as np
import pytest

import fake_arrays
from fake_gpu import relative
from grape6py import errors, plummer, reference
from grape6py._lib.tree_setting import WIDEST_BY_BOUND, Setting, Targets
from grape6py.cuda.tree.device_tree import DeviceTree
from grape6py.cuda.tree.octree import Octree
from grape6py.cuda.tree.share import HEADER, keys_of

N, RUN, EPS2 = 2500, 512, 1e-6
FMM, BH = Setting(0.6, 5, EPS2), Setting(0.7, 0, EPS2)
BOUND, BH_BOUND = Setting(WIDEST_BY_BOUND, 5, EPS2, 2e-5), Setting(WIDEST_BY_BOUND, 0, EPS2, 2e-2)
RNG = np.random.default_rng(3)


@functools.cache
def bodies(name):
    mass, pos, vel = plummer(N, seed=5)
    rng = np.random.default_rng(8)
    if name == "clustered":
        pos = 0.02 * pos + rng.normal(size=(12, 3))[rng.integers(0, 12, N)]
    if name == "disc":
        pos[:, 2] = 0
        mass = mass * np.where(np.arange(N) % 3, 1, -1)
    return mass, pos, vel


@functools.cache
def exact(name):
    return reference.direct_sum(*bodies(name), eps2=EPS2)


def whole_of(mass, pos, vel=None):
    """The numbers of a struct tree_whole."""
    fastest = -1.0 if vel is None else np.abs(vel).max()
    mean = np.zeros(3) if vel is None else np.abs(mass) @ vel / np.abs(mass).sum()
    scalars = [np.abs(mass).max(), len(mass), fastest]
    return np.array([*pos.min(axis=0), *pos.max(axis=0), *scalars, *mean, np.abs(mass).sum()])


def regions_of(tree, pos, last=None):
    """Boxes of runs of a tree's particles."""
    found = []
    for first in range(0, len(pos), RUN):
        rows = tree.order[first : first + RUN]
        least = 0.0 if last is None else last[rows].min()
        found.append([*pos[rows].min(axis=0), *pos[rows].max(axis=0), least])
    return np.array(found).reshape(-1, 7)


class Ranks:
    """Trees of domains, which are parts of the bodies in the order of their keys."""

    def __init__(self, gpu, mass, pos, vel, ranks, shares=None):
        self.whole, self.gpu = whole_of(mass, pos, vel), gpu
        order = np.argsort(keys_of(gpu, pos, self.whole), kind="stable")
        self.rows = np.split(order, shares or [k * len(pos) // ranks for k in range(1, ranks)])
        given = (mass, pos, vel)
        self.given = [[None if a is None else a[rows] for a in given] for rows in self.rows]
        self.trees = [Octree(gpu, p, m, v, self.whole) for m, p, v in self.given]

    def imports(self, setting, last=None):
        """Of each rank: parts of all others."""
        own = [None if last is None else last[rows] for rows in self.rows]
        of_each = zip(self.trees, self.given, own, strict=True)
        regions = [regions_of(tree, given[1], acc) for tree, given, acc in of_each]
        sent = [tree.parts(setting, regions) for tree in self.trees]
        ranks = range(len(self.trees))
        return [[sent[other][rank] for other in ranks if other != rank] for rank in ranks]

    def forces(self, setting, last=None):
        """Acc, pot and jerk of all bodies, in their own order."""
        n = sum(map(len, self.rows))
        out = [np.full((n, 3), np.nan), np.full(n, np.nan), np.full((n, 3), np.nan)]
        for tree, rows, parts in zip(self.trees, self.rows, self.imports(setting, last),
                                     strict=True):  # fmt: skip
            own = None if last is None else last[rows]
            *found, self.counts = tree.forces(setting, Targets(last_acc=own), parts)
            for to, values in zip(out, found, strict=True):
                if values is not None:
                    to[rows] = values
        return out


def errors_of(found, right):
    return np.median(relative(found[0], right.acc)), np.median(relative(found[2], right.jerk))


@pytest.mark.parametrize(
    ("name", "ranks", "setting"),
    [("plummer", 2, FMM), ("plummer", 3, BH), ("clustered", 3, FMM), ("clustered", 2, BH),
     ("disc", 2, FMM), ("disc", 3, BH), ("plummer", 3, BOUND), ("disc", 2, BH_BOUND)],
)  # fmt: skip
def test_errors_are_those_of_one_tree(tree_gpu, name, ranks, setting):
    mass, pos, vel = bodies(name)
    right = exact(name)
    last = np.linalg.norm(right.acc, axis=1) if setting.bound else None
    alone = Octree(tree_gpu, pos, mass, vel).forces(setting, Targets(last_acc=last))[:3]
    found = Ranks(tree_gpu, mass, pos, vel, ranks).forces(setting, last)
    for ours, theirs in zip(errors_of(found, right), errors_of(alone, right), strict=True):
        assert 0 < ours < 1.1 * theirs
    assert np.median(np.abs(found[1] / right.pot - 1)) < 2e-4


@pytest.mark.parametrize("tree_gpu", [8192], ids=["blocks"], indirect=True)
def test_groups_that_have_a_block_each(tree_gpu):
    mass, pos, vel = bodies("plummer")
    found = Ranks(tree_gpu, mass, pos, vel, 2).forces(FMM)
    alone = Octree(tree_gpu, pos, mass, vel).forces(FMM)[:3]
    ours, theirs = errors_of(found, exact("plummer")), errors_of(alone, exact("plummer"))
    assert ours[0] < 1.1 * theirs[0]
    assert ours[1] < 1.1 * theirs[1]


@pytest.mark.parametrize("setting", [Setting(0.02, 5, EPS2), Setting(0.05, 0, EPS2)])
def test_few_cells_are_far_enough_if_theta_is_tiny(tree_gpu, setting):
    mass, pos, vel = (a[:300] for a in bodies("plummer"))
    right = reference.direct_sum(mass, pos, vel, eps2=EPS2)
    ranks = Ranks(tree_gpu, mass, pos, vel, 3)
    found = ranks.forces(setting)
    assert relative(found[0], right.acc).max() < 3e-6
    assert np.abs(found[1] / right.pot - 1).max() < 1e-6
    assert np.median(relative(found[2], right.jerk)) < 3e-6
    taken = [np.frombuffer(part[:HEADER], np.int64)[1] for part in ranks.imports(setting)[0]]
    assert taken == [100, 100]


def test_a_part_has_the_mass_of_all_particles(tree_gpu):
    """In its root, and in its particles and the cells that come without theirs."""
    mass, pos, vel = bodies("clustered")
    ranks = Ranks(tree_gpu, mass, pos, vel, 3)
    for rank, parts in enumerate(ranks.imports(FMM)):
        others = [m for k, (m, *_) in enumerate(ranks.given) if k != rank]
        for part, expected in zip(parts, others, strict=True):
            cells, particles, moving, size = np.frombuffer(part[:HEADER], np.int64)
            assert (moving, size) == (1, len(part))
            assert particles < len(expected)
            at = HEADER + 16 * cells
            cell = part[HEADER:at].view(np.int32).reshape(-1, 4)
            far = part[at : at + 80 * cells].view(np.float32).reshape(-1, 20)
            high = part[at + 160 * cells :][: 16 * particles].view(np.float32).reshape(-1, 4)
            unit = 2.0 ** -np.round(np.log2(expected.sum() / far[0, 3]))
            assert far[0, 3] == pytest.approx(expected.sum() * unit, rel=1e-6)
            stubs = (cell[:, 2] < 0) & (cell[:, 0] == cell[:, 1])
            assert stubs.any()
            both = far[stubs, 3].sum(dtype=float) + high[:, 3].sum(dtype=float)
            assert both == pytest.approx(far[0, 3], rel=1e-5)
            leaves = cell[(cell[:, 2] < 0) & ~stubs]
            assert (leaves[:, 1] - leaves[:, 0]).sum() == particles
            inner = cell[cell[:, 2] >= 0]
            assert (inner[:, 3] - inner[:, 2]).sum() == cells - 1


@pytest.mark.parametrize("setting", [FMM, BH])
def test_targets_and_few_of_them(tree_gpu, setting):
    """Positions beside the particles, of which a rank may have none, or one cell."""
    mass, pos, vel = bodies("plummer")
    targets = 0.2 + RNG.normal(size=(40, 3))
    right = reference.direct_sum(mass, pos, vel, target_pos=targets, eps2=EPS2).acc
    box = np.array([[*targets.min(axis=0), *targets.max(axis=0), 0.0]])
    ranks = Ranks(tree_gpu, mass, pos, vel, 3, shares=[0, 9])
    assert [tree.n for tree in ranks.trees] == [0, 9, N - 9]
    for tree in ranks.trees:
        parts = [other.parts(setting, [box])[0] for other in ranks.trees if other is not tree]
        acc, _, _, counts = tree.forces(setting, Targets(targets, 0 * targets), parts)
        assert np.median(relative(acc, right)) < 2e-3
        assert counts.pairs < 40 * N
    empty = ranks.trees[0]
    assert not empty.forces(setting, Targets(targets))[0].any()
    assert empty.forces(setting)[0].shape == (0, 3)


def test_what_has_no_targets_needs_nothing(tree_gpu):
    mass, pos, vel = bodies("plummer")
    ranks = Ranks(tree_gpu, mass, pos, vel, 2)
    none = np.empty((0, 7))
    assert [len(part) for part in ranks.trees[0].parts(FMM, [none, none])] == [0, 0]
    with_nothing = ranks.trees[0].forces(FMM, imports=[np.empty(0, np.uint8)])
    alone = ranks.trees[0].forces(FMM)
    assert with_nothing[0].tobytes() == alone[0].tobytes()


def test_far_ranks_send_their_root_alone_and_there_may_be_thousands(tree_gpu):
    mass, pos, _ = (a[:200] for a in bodies("plummer"))
    box = np.array([[*pos.min(axis=0), *pos.max(axis=0), 0.0]])
    count = 3000
    far, weights = pos[:40] * 0.1 + [100, 0, 0], mass[:40]  # none is heavy: they act by expansions
    everywhere = np.vstack([pos, far])
    whole = whole_of(np.append(mass, weights), everywhere)
    other = Octree(tree_gpu, far, weights, None, whole)
    part = other.parts(Setting(0.6, 5, EPS2), [box])[0]
    assert np.frombuffer(part[:HEADER], np.int64).tolist() == [1, 0, 0, 32 + 16 + 80 + 16]
    tree = Octree(tree_gpu, pos, mass, None, whole)
    alone = tree.forces(FMM)[0]
    for setting in (FMM, Setting(0.6, 0, EPS2)):
        part = other.parts(setting, [box])[0]
        found = tree.forces(setting, imports=[part] * count)[0] - tree.forces(setting)[0]
        right = reference.direct_sum(weights, far, 0 * far, target_pos=pos).acc * count
        assert relative(found, right).max() < 1e-4
    assert tree.forces(FMM)[0].tobytes() == alone.tobytes()  # nothing of them is left


def test_a_pair_that_single_precision_cannot_sum(tree_gpu):
    """Its bodies are summed in double, other ranks' parts among them."""
    mass, pos, vel = (a.copy() for a in bodies("plummer"))
    ranks = Ranks(tree_gpu, mass, pos, vel, 2)
    a, b = ranks.rows[1][[5, 6]]
    pos[b], vel[b] = pos[a] + [1e-13 * np.abs(pos).max(), 0, 0], vel[a]
    mass[[a, b]] = 1e-24  # so that all others act as strongly
    ranks = Ranks(tree_gpu, mass, pos, vel, 2)
    right = reference.direct_sum(mass, pos, vel, rows=[a, b])
    alone = reference.direct_sum(mass[ranks.rows[1]], pos[ranks.rows[1]], target_pos=pos[[a, b]],
                                 target_index=[5, 6])  # fmt: skip
    for setting in (Setting(0.4, 5), Setting(0.4, 0)):
        found = [values[[a, b]] for values in ranks.forces(setting)]
        assert np.abs(found[1] / right.pot - 1).max() < 1e-4
        assert relative(found[0], right.acc).max() < 1e-3
        assert relative(found[2], right.jerk).max() < 1e-3
    assert np.abs(alone.pot / right.pot - 1).min() > 0.1  # other ranks matter


def test_keys_are_in_the_order_of_a_tree(tree_gpu):
    mass, pos, vel = bodies("clustered")
    whole = whole_of(mass, pos, vel)
    keys, tree = keys_of(tree_gpu, pos, whole), Octree(tree_gpu, pos, mass, vel, whole)
    assert keys.dtype == np.uint64
    assert np.array_equal(tree.order, np.argsort(keys, kind="stable"))
    alone = Octree(tree_gpu, pos, mass, vel)  # whose box is the same
    assert np.array_equal(tree.order, alone.order)
    assert tree.arrays["far"].tobytes() == alone.arrays["far"].tobytes()
    assert len(keys_of(tree_gpu, np.empty((0, 3)), whole)) == 0


def test_what_is_no_part_is_refused(tree_gpu):
    mass, pos, vel = bodies("plummer")
    ranks = Ranks(tree_gpu, mass, pos, vel, 2)
    tree, (part,) = ranks.trees[0], ranks.imports(FMM)[0]
    still = Ranks(tree_gpu, mass, pos, None, 2).imports(FMM)[0][0]
    for wrong in (part[:-16], part[:20], still, np.zeros(64, np.uint8)):
        with pytest.raises(errors.ArgumentError, match="part 1 is none of a tree like this one"):
            tree.forces(FMM, imports=[part, wrong])


# ---- the tree of ranks' arrays ------------------------------------------------------------------


def test_a_device_tree_has_parts_and_imports(put, cupy, tree_gpu):
    mass, pos, vel = bodies("plummer")
    ranks = Ranks(tree_gpu, mass, pos, vel, 2)
    trees = []
    for m, p, v in ranks.given:
        tree = DeviceTree(cupy, 0, of_host=False)
        with tree.using({"pos": put(p)}) as place:
            tree.build(place, put(p), put(m), put(v), ranks.whole)
            assert tree.keys(put(p), ranks.whole).get().dtype == np.uint64
        trees.append(tree)
    a, b = trees
    assert np.array_equal(a.order.get(), ranks.trees[0].order)
    regions = regions_of(ranks.trees[0], ranks.given[0][1])
    (part,) = b.parts(FMM, [regions])
    part = part.get()
    assert part.tobytes() == ranks.trees[1].parts(FMM, [regions])[0].tobytes()
    expected = ranks.trees[0].forces(FMM, imports=[part])
    for given in (part, put(part)):
        found = a.forces(FMM, Targets(), [given])
        assert isinstance(found[0], fake_arrays.Array)
        assert found[0].tobytes() == expected[0].tobytes()
        assert found[2].tobytes() == expected[2].tobytes()
    counts = expected[3]
    assert found.done == (counts.pairs, counts.points, counts.locals)


def test_a_box_of_all_ranks_that_does_not_resolve_a_rank(put, cupy):
    """Is found when the tree is made: 40 bodies close together, beside the size of the others."""
    pos = np.vstack([1e-12 * RNG.normal(size=(40, 3)), RNG.normal(size=(60, 3))])
    whole = whole_of(np.ones(100), pos)
    tree = DeviceTree(cupy, 0, of_host=False)
    with (
        pytest.raises(errors.RangeError, match="does not resolve"),
        tree.using({"pos": put(pos)}) as place,
    ):
        tree.build(place, put(pos), put(np.ones(100)), None, whole)


def test_a_device_tree_without_particles(put, cupy, tree_gpu):
    mass, pos, vel = bodies("plummer")
    whole, none = whole_of(mass, pos, vel), np.empty((0, 3))
    empty = DeviceTree(cupy, 0, of_host=False)
    with empty.using({"pos": put(none)}) as place:
        empty.build(place, put(none), put(np.empty(0)), put(none), whole)
    targets = pos[:50] + 0.01
    box = np.array([[*targets.min(axis=0), *targets.max(axis=0), 0.0]])
    setting = Setting(0.5, 0, EPS2)
    assert [len(part) for part in empty.parts(setting, [box])] == [0]
    assert len(empty.order) == 0
    part = Octree(tree_gpu, pos, mass, vel, whole).parts(setting, [box])[0]
    given = Targets(put(targets), put(vel[:50]))
    acc = empty.forces(setting, given, [part])[0].get()
    right = reference.direct_sum(mass, pos, vel, target_pos=targets, eps2=EPS2).acc
    assert np.median(relative(acc, right)) < 2e-3
    acc = empty.forces(setting, given)[0].get()
    assert not acc.any()
    assert empty.nearest(given, 1)[0].get().max() == -1

"""The tree's kernels on the stand-in for a GPU: lists that grow or are too long, and what is
launched. Their forces are those of tests/tree."""

import numpy as np
import pytest

from fake_gpu import METHODS, WARPS_AND_BLOCKS, relative, rows, shortened
from grape6py import models, reference
from grape6py._lib.tree_setting import Setting, Targets
from grape6py.cuda import workspace
from grape6py.cuda.tree import octree as fake_gpu_tree
from grape6py.cuda.tree import settings
from samples import bodies

EPS = 0.01
ORDERS = pytest.mark.parametrize("order", [0, 5], ids=["bh", "fmm"])


def made(tree_gpu, given):
    mass, pos, *vel = map(np.ascontiguousarray, given)
    return fake_gpu_tree.Octree(tree_gpu, pos, mass, *vel)


def all_sums(tree_gpu, given, theta=0.6, order=5, eps=EPS, targets=None, vel=None, self_index=None):
    """Acc, pot, jerk (None without velocities) and counts, by the kernels."""
    setting = Setting(theta, order, eps * eps)
    return made(tree_gpu, given).forces(setting, Targets(targets, vel, self_index))


def sums(tree_gpu, pos, mass, *args, **more):
    """Acc, pot and counts of bodies without velocities."""
    acc, pot, _, counts = all_sums(tree_gpu, (mass, pos), *args, **more)
    return acc, pot, counts


def jerks(tree_gpu, given, *args, **more):
    return all_sums(tree_gpu, given, *args, **more)[2]


def direct(given, eps=EPS, **targets):
    """Acc, pot and jerk."""
    right = reference.direct_sum(*given, eps2=eps * eps, **targets)
    return right.acc, right.pot, right.jerk


@pytest.fixture(scope="module")
def cluster():
    return models.plummer(1500, seed=3)


def test_long_groups_are_taken_in_parts_whose_lists_grow(tree_gpu, monkeypatch):
    mass, pos = bodies("plummer", 1500, 9)[:2]
    right = sums(tree_gpu, pos, mass, theta=0.3)
    shortened(monkeypatch, tree_gpu, [8, 0, 8], [4, 4, 4], [8, 8, 8])
    tree_gpu.launched.clear()
    acc, _, _ = sums(tree_gpu, pos, mass, theta=0.3)
    assert tree_gpu.launched.count("tree_traverse_level2") > 1
    assert tree_gpu.launched.count("tree_near_singles") > 1
    assert np.median(relative(acc, right[0])) < 1e-3
    assert relative(acc, right[0]).max() < 1e-2


@WARPS_AND_BLOCKS
def test_single_targets_whose_lists_are_long_are_summed_and_counted_once(tree_gpu, monkeypatch):
    mass, pos = bodies("plummer", 1500, 9)[:2]
    found = []
    for longest in [64, 64, 8], [480, 480, 60]:  # of few of the targets, and of many: of no eight
        shortened(monkeypatch, tree_gpu, [8, 0, 8], [4, 4, 4], longest)
        found.append(sums(tree_gpu, pos, mass, theta=0.3))
    (first, _, once), (again, _, counts) = found
    assert np.array_equal(first, again)
    assert counts == once


@WARPS_AND_BLOCKS
def test_how_many_parts_of_groups_are_summed_at_once_changes_no_digit(tree_gpu, monkeypatch):
    mass, pos = bodies("clustered", 3000, 9)[:2]
    monkeypatch.setattr(fake_gpu_tree, "SLOT_LISTS", 16)
    monkeypatch.setattr(fake_gpu_tree, "LIST_BYTES", 0)
    found = []
    for slots in 10**6, 100, 10:
        monkeypatch.setattr(fake_gpu_tree, "LEAST_SLOTS", slots)
        shortened(monkeypatch, tree_gpu, [8, 0, 8], [4, 4, 4], [120, 60, 60])
        found.append(sums(tree_gpu, pos, mass))
    assert tree_gpu.launched.count("tree_near_singles") > 10
    for acc, pot, counts in found[1:]:
        assert np.array_equal(acc, found[0][0])
        assert np.array_equal(pot, found[0][1])
        assert counts == found[0][2]


@WARPS_AND_BLOCKS
def test_how_long_lists_are_at_first_changes_no_digit(tree_gpu, monkeypatch):
    mass, pos = bodies("clustered", 3000, 9)[:2]
    right = sums(tree_gpu, pos, mass)
    longest = settings.Capacities.of(Setting(0.6)).longest
    monkeypatch.setattr(fake_gpu_tree, "LEAST_SLOTS", 3)
    monkeypatch.setattr(fake_gpu_tree, "LEAST_LISTS", 16)
    monkeypatch.setattr(fake_gpu_tree, "SLOT_LISTS", 16)
    monkeypatch.setattr(fake_gpu_tree, "LIST_BYTES", 0)
    shortened(monkeypatch, tree_gpu, [8, 0, 8], [4, 4, 4], longest)
    tree_gpu.launched.clear()
    short = sums(tree_gpu, pos, mass)
    assert tree_gpu.launched.count("tree_groups_of_kind") > 25
    (capacities,) = tree_gpu.capacities.values()
    assert capacities.groups == [8, 8, 8]
    lengthened = sums(tree_gpu, pos, mass)
    for again in short, lengthened:
        assert all(np.array_equal(a, b) for a, b in zip(again[:2], right[:2], strict=True))
        assert again[2] == right[2]


def test_lists_that_another_thread_lengthens_meanwhile_are_not_taken_for_long_ones(
    tree_gpu, monkeypatch
):
    mass, pos = bodies("plummer", 1500, 9)[:2]
    right = sums(tree_gpu, pos, mass)
    shortened(monkeypatch, tree_gpu, [8, 0, 8], [4000] * 3, [4000] * 3)
    launch = tree_gpu.launch

    def meanwhile(name, *rest):
        launch(name, *rest)
        if name == "tree_traverse_level1":
            (capacities,) = tree_gpu.capacities.values()
            capacities.large = [9000, 0, 9000]

    monkeypatch.setattr(tree_gpu, "launch", meanwhile)
    found = sums(tree_gpu, pos, mass)
    assert np.array_equal(found[0], right[0])


@pytest.mark.full
@pytest.mark.parametrize(("count", "made"), [(1200, 3), (320, 1)])  # of each other kind; of groups
def test_lists_of_tiny_angles_are_those_of_groups(tree_gpu, count, made):
    """Where most of them are long, parts of groups would cost many times as much."""
    mass, pos = bodies("plummer", 9000, 3)[:2]
    middle = np.ascontiguousarray(pos[np.argsort(rows(pos))[:count]])
    sums(tree_gpu, pos, mass, theta=0.1, targets=middle)
    assert tree_gpu.launched.count("tree_groups_of_kind") == made


def test_no_close_pair_is_forgotten_in_full_lists(tree_gpu, monkeypatch):
    monkeypatch.setattr(fake_gpu_tree, "AGAIN_ROOM", 8)
    mass, pos = bodies("plummer", 400, 19)[:2]
    pos[200:] = pos[:200]
    pos[200:, 1] += 5e-12
    acc, _, _ = sums(tree_gpu, pos, mass, theta=1e-3, eps=0.0)
    apart = pos[200:, 1] - pos[:200, 1]
    near = apart > 0  # where doubles tell them apart
    assert near.sum() > 100
    assert np.allclose(acc[:200, 1][near], (mass[200:] / apart**2)[near], rtol=1e-3)


def test_no_target_is_forgotten_where_most_are_summed_again(tree_gpu, monkeypatch):
    """Single targets: some are found at once, so many as half the space, the others later."""
    mass, pos = bodies("plummer", 1500, 9)[:2]
    shortened(monkeypatch, tree_gpu, [3000, 0, 3000], [4, 4, 4], [8, 8, 8])
    right = sums(tree_gpu, pos, mass, theta=0.3)
    for name, few in (
        ("AGAIN_ROOM", 1),
        ("LEAST_SLOTS", 100),
        ("SLOT_LISTS", 0),
        ("LIST_BYTES", 0),
    ):
        monkeypatch.setattr(fake_gpu_tree, name, few)
    found = sums(tree_gpu, pos, mass, theta=0.3)
    assert np.array_equal(found[0], right[0])
    assert found[2] == right[2]


@pytest.mark.parametrize("eps", [0.0, 0.01])
def test_targets_at_the_places_of_particles_are_summed_as_groups(tree_gpu, eps):
    mass, pos = bodies("plummer", 1500, 27)[:2]
    own = sums(tree_gpu, pos, mass, theta=0.5, eps=eps)
    parts = tree_gpu.launched.count("tree_groups_of_kind")
    tree_gpu.launched.clear()
    foreign = sums(tree_gpu, pos, mass, theta=0.5, eps=eps, targets=np.ascontiguousarray(pos))
    assert np.median(relative(foreign[0], own[0])) < 1e-6
    assert relative(foreign[0], own[0]).max() < 1e-5
    assert tree_gpu.launched.count("tree_groups_of_kind") == parts


# ---- jerks ---------------------------------------------------------------------------


@ORDERS
def test_groups_whose_lists_are_long_have_the_jerks_of_their_parts(
    tree_gpu, cluster, order, monkeypatch
):
    right = direct(cluster)[2]
    whole = relative(jerks(tree_gpu, cluster, 0.3, order), right)
    shortened(monkeypatch, tree_gpu, [8, 0, 8], [4, 4, 4], [150] * 3)
    parts = relative(jerks(tree_gpu, cluster, 0.3, order), right)
    assert np.median(parts) > 5 * np.median(whole)
    assert np.median(parts) < 1e-3
    assert np.quantile(parts, 0.99) < 6 * np.quantile(whole, 0.99)


@ORDERS
def test_jerks_of_pairs_too_close_for_single_precision_have_a_kernel(tree_gpu, order):
    """Two bodies 1e-13 apart where doubles resolve that, and two at one place, among others."""
    mass, pos, vel = given = bodies("close pairs", 60)
    acc, _, jerk, counts = all_sums(tree_gpu, given, 1e-6, order, eps=0.0)
    assert "tree_close_jerks" in tree_gpu.launched
    assert counts.zero_distances == 2
    right = direct(given, 0.0)
    assert relative(acc, right[0]).max() < 1e-5
    assert relative(jerk, right[2]).max() < 1e-5
    resting = sums(tree_gpu, pos, mass, 1e-6, order, eps=0.0)
    assert np.array_equal(resting[0], acc)
    index, fast = np.arange(len(pos), dtype=np.int32), 1e9 * vel
    found = jerks(tree_gpu, given, 1e-6, order, 0.0, targets=pos, vel=fast, self_index=index)
    right = direct(given, 0.0, target_pos=pos, target_vel=fast, target_index=index)[2]
    assert relative(found, right).max() < 1e-5


# ---- sums on few of the particles: groups are walked by themselves ------------------------------


N, FEW = 2000, 200


def on_some(tree_gpu, sample, theta, order, eps, chosen):
    _, pos, vel = (np.ascontiguousarray(array[chosen]) for array in sample)
    return all_sums(tree_gpu, sample, theta, order, eps, pos, vel, chosen)


def some(n, count, seed=1):
    return np.random.default_rng(seed).permutation(n)[:count].astype(np.int32)


@WARPS_AND_BLOCKS
@pytest.mark.parametrize(
    ("order", "eps"), [*((order, 0.01) for order in METHODS), (0, 0.0), (5, 0.0)]
)
def test_errors_are_those_of_a_sum_on_all(tree_gpu, order, eps):
    """But that more groups are wide beside what is in them, and summed in parts."""
    sample, chosen = bodies("plummer", N), some(N, FEW)
    exact = reference.direct_sum(*sample, eps2=eps * eps)
    all_of_them = all_sums(tree_gpu, sample, 0.6, order, eps)
    tree_gpu.launched.clear()
    found = on_some(tree_gpu, sample, 0.6, order, eps, chosen)
    assert "tree_traverse_level1" not in tree_gpu.launched
    assert "tree_ranks" not in tree_gpu.launched
    rights = exact.acc, exact.pot, exact.jerk
    for mine, usual, right in zip(found[:3], all_of_them[:3], rights, strict=True):
        error = relative(mine.reshape(FEW, -1), right[chosen].reshape(FEW, -1))
        whole = relative(usual.reshape(N, -1), right.reshape(N, -1))
        for share in 0.5, 0.99:
            assert np.quantile(error, share) < 2 * np.quantile(whole, share) + 1e-6


@pytest.mark.parametrize("order", [5, 0])
def test_bits_are_those_of_the_targets_in_any_order(tree_gpu, order):
    """But of several in one smallest cell, which keep the order in which they are given."""
    sample, chosen = bodies("plummer", N), some(N, FEW)
    first = on_some(tree_gpu, sample, 0.6, order, 0.01, chosen)
    turned = on_some(tree_gpu, sample, 0.6, order, 0.01, np.ascontiguousarray(chosen[::-1]))
    for a, b in zip(first[:3], turned[:3], strict=True):
        assert np.array_equal(a, b[::-1])
    assert first[3] == turned[3]


@pytest.mark.parametrize("order", [5, 0])
def test_a_target_among_others_at_its_place_is_not_its_own_neighbour(tree_gpu, order):
    """Particles of one key are told apart by their numbers."""
    mass, pos, vel = bodies("plummer", N)
    pos[100:N:40] = pos[100]  # 73 of them
    mass *= np.random.default_rng(2).uniform(0.5, 2.0, N)
    chosen = np.arange(100, N, 40, dtype=np.int32)
    acc, pot, _, _ = on_some(tree_gpu, (mass, pos, vel), 1e-3, order, 0.01, chosen)
    exact = reference.direct_sum(mass, pos, vel, eps2=1e-4)
    assert np.allclose(pot, exact.pot[chosen], rtol=1e-6)
    assert relative(acc, exact.acc[chosen]).max() < 1e-4


def test_lists_that_are_too_long_lead_to_parts(tree_gpu, monkeypatch):
    sample, chosen = bodies("clustered", N), some(N, FEW)
    exact = reference.direct_sum(*sample, eps2=1e-4).acc[chosen]
    monkeypatch.setattr("grape6py.cuda.tree.settings.LONGEST", (0.2, 0.2, 0.1))
    tree_gpu.capacities.clear()
    tree_gpu.launched.clear()
    acc, *_ = on_some(tree_gpu, sample, 0.5, 5, 0.01, chosen)
    assert {"tree_near_eights", "tree_near_singles"} < set(tree_gpu.launched)
    assert np.median(relative(acc, exact)) < 1e-3


def test_after_a_want_of_memory_lists_are_as_short_as_at_first(tree_gpu, monkeypatch):
    sample, chosen = bodies("plummer", N), some(N, FEW)
    first = on_some(tree_gpu, sample, 0.6, 5, 0.01, chosen)
    (capacities,) = tree_gpu.capacities.values()
    capacities.groups = [2 * n for n in capacities.groups]

    def full(self, **sizes):
        if "lists_2" in sizes:
            raise MemoryError
        return cut(self, **sizes)

    cut = workspace.Workspace.cut
    with monkeypatch.context() as patch:
        patch.setattr(workspace.Workspace, "cut", full)
        with pytest.raises(MemoryError):
            on_some(tree_gpu, sample, 0.6, 5, 0.01, chosen)
    assert not tree_gpu.capacities
    again = on_some(tree_gpu, sample, 0.6, 5, 0.01, chosen)
    assert np.array_equal(first[0], again[0])


@WARPS_AND_BLOCKS
@pytest.mark.parametrize("distance", [1e1, 1e3, 1e5, 1e7])
def test_short_lists_of_targets_far_away_change_no_digit(tree_gpu, distance, monkeypatch):
    sample = bodies("plummer", N)
    at = np.random.default_rng(8).normal(2, 1, (FEW, 3)) * distance
    tree_gpu.capacities.clear()
    acc, _, _, counts = all_sums(tree_gpu, sample, 0.5, 5, 0.01, at)
    (capacities,) = tree_gpu.capacities.values()
    shortened(monkeypatch, tree_gpu, [3000, 0, 3000], [1, 1, 1], capacities.longest)
    again = all_sums(tree_gpu, sample, 0.5, 5, 0.01, at)
    assert np.array_equal(acc, again[0])
    assert counts == again[3]

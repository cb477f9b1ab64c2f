"""Sums on few of the particles, on the stand-in for a GPU: groups are walked by themselves."""

import numpy as np
import pytest

import samples
from fake_gpu import METHODS, WARPS_AND_BLOCKS, relative, shortened
from grape6py import Tree, reference
from grape6py._lib.tree_setting import Setting, Targets
from grape6py.cuda import workspace
from grape6py.cuda.tree import octree as fake_gpu_tree

pytestmark = WARPS_AND_BLOCKS

N, FEW = 3000, 300


def sums(tree_gpu, sample, theta, order, eps, chosen=None, targets=None):
    """Forces on all particles, on some of them, or at places."""
    mass, pos, vel = sample
    tree = fake_gpu_tree.Octree(tree_gpu, pos, mass, vel)
    setting = Setting(theta, order, eps * eps)
    if chosen is not None:
        places = np.ascontiguousarray(pos[chosen])
        return tree.forces(setting, Targets(places, np.ascontiguousarray(vel[chosen]), chosen))
    return tree.forces(setting, Targets(targets))


def some(n, count, seed=1):
    return np.random.default_rng(seed).permutation(n)[:count].astype(np.int32)


def moving(name, seed=5):
    mass, pos = samples.SAMPLES[name](N, seed)[:2]
    return mass, pos, np.random.default_rng(seed).normal(size=pos.shape)


@pytest.mark.parametrize(
    ("order", "eps"), [*((order, 0.01) for order in METHODS), (0, 0.0), (5, 0.0)]
)
def test_errors_are_those_of_a_sum_on_all(tree_gpu, order, eps):
    """But that more groups are wide beside what is in them, and summed in parts."""
    sample, chosen = moving("plummer"), some(N, FEW)
    exact = reference.direct_sum(*sample, eps2=eps * eps)
    all_of_them = sums(tree_gpu, sample, 0.6, order, eps)
    tree_gpu.launched.clear()
    found = sums(tree_gpu, sample, 0.6, order, eps, chosen)
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
    sample, chosen = moving("plummer"), some(N, FEW)
    first = sums(tree_gpu, sample, 0.6, order, 0.01, chosen)
    turned = sums(tree_gpu, sample, 0.6, order, 0.01, np.ascontiguousarray(chosen[::-1]))
    for a, b in zip(first[:3], turned[:3], strict=True):
        assert np.array_equal(a, b[::-1])
    assert first[3] == turned[3]


@pytest.mark.parametrize("order", [5, 0])
def test_a_target_among_others_at_its_place_is_not_its_own_neighbour(tree_gpu, order):
    """Particles of one key are told apart by their numbers."""
    mass, pos, vel = moving("plummer")
    pos[100:N:40] = pos[100]  # 73 of them
    mass *= np.random.default_rng(2).uniform(0.5, 2.0, N)
    chosen = np.arange(100, N, 40, dtype=np.int32)
    acc, pot, _, _ = sums(tree_gpu, (mass, pos, vel), 1e-3, order, 0.01, chosen)
    exact = reference.direct_sum(mass, pos, vel, eps2=1e-4)
    assert np.allclose(pot, exact.pot[chosen], rtol=1e-6)
    assert relative(acc, exact.acc[chosen]).max() < 1e-4


def test_places_that_are_no_particles(tree_gpu):
    sample = moving("plummer")
    at = np.random.default_rng(4).normal(size=(FEW, 3))
    exact = reference.direct_sum(*sample[:2], target_pos=at, eps2=1e-4)
    acc, pot, _, counts = sums(tree_gpu, sample, 0.5, 5, 0.01, targets=at)
    assert np.median(relative(acc, exact.acc)) < 1e-4
    assert np.allclose(pot, exact.pot, rtol=1e-3)
    assert counts.locals > 0


@pytest.mark.parametrize("count", [1, 7, 31, 33, N // 8])
def test_any_number_of_them(tree_gpu, count):
    sample, chosen = moving("plummer"), some(N, count)
    exact = reference.direct_sum(*sample, eps2=1e-4)
    acc, pot, jerk, _ = sums(tree_gpu, sample, 1e-3, 5, 0.01, chosen)
    assert relative(acc, exact.acc[chosen]).max() < 3e-5
    assert np.allclose(pot, exact.pot[chosen], rtol=1e-5)
    assert relative(jerk, exact.jerk[chosen]).max() < 1e-3


def test_lists_that_are_too_long_lead_to_parts(tree_gpu, monkeypatch):
    sample, chosen = moving("clustered"), some(N, FEW)
    exact = reference.direct_sum(*sample, eps2=1e-4).acc[chosen]
    monkeypatch.setattr("grape6py.cuda.tree.settings.LONGEST", (0.2, 0.2, 0.1))
    tree_gpu.capacities.clear()
    tree_gpu.launched.clear()
    acc, *_ = sums(tree_gpu, sample, 0.5, 5, 0.01, chosen)
    assert {"tree_near_eights", "tree_near_singles"} < set(tree_gpu.launched)
    assert np.median(relative(acc, exact)) < 1e-3


def test_after_a_want_of_memory_lists_are_as_short_as_at_first(tree_gpu, monkeypatch):
    sample, chosen = moving("plummer"), some(N, FEW)
    first = sums(tree_gpu, sample, 0.6, 5, 0.01, chosen)
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
            sums(tree_gpu, sample, 0.6, 5, 0.01, chosen)
    assert not tree_gpu.capacities
    again = sums(tree_gpu, sample, 0.6, 5, 0.01, chosen)
    assert np.array_equal(first[0], again[0])


@pytest.mark.parametrize("distance", [1e1, 1e3, 1e5, 1e7])
def test_targets_far_away_feel_the_whole(tree_gpu, distance, monkeypatch):
    """In groups that are as wide as they are far: one expansion is all there is of the force."""
    sample = moving("plummer")
    at = np.random.default_rng(8).normal(2, 1, (FEW, 3)) * distance
    tree_gpu.capacities.clear()
    acc, _, _, counts = sums(tree_gpu, sample, 0.5, 5, 0.01, targets=at)
    (capacities,) = tree_gpu.capacities.values()
    shortened(monkeypatch, tree_gpu, [3000, 0, 3000], [1, 1, 1], capacities.longest)
    again = sums(tree_gpu, sample, 0.5, 5, 0.01, targets=at)
    assert np.array_equal(acc, again[0])
    assert counts == again[3]
    exact = reference.direct_sum(*sample[:2], target_pos=at, eps2=1e-4).acc
    with Tree(sample[1], sample[0]) as tree:
        usual = relative(tree.forces(at, eps=0.01, theta=0.5, order=5).acc, exact)
    for share in 0.5, 1.0:
        assert np.quantile(relative(acc, exact), share) < 2 * np.quantile(usual, share) + 2e-6

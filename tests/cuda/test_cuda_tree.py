"""The tree's kernels on the stand-in for a GPU: lists that grow or are too long, and what is
launched. Their forces are those of tests/tree."""

import numpy as np
import pytest

from fake_gpu import WARPS_AND_BLOCKS, shortened
from grape6py import models, reference
from grape6py._lib.tree_setting import Setting, Targets
from grape6py.cuda.tree import octree as fake_gpu_tree
from grape6py.cuda.tree import settings
from particles import relative
from samples import bodies

EPS = 0.01
ORDERS = pytest.mark.parametrize("order", [0, 5], ids=["bh", "fmm"])


def all_sums(tree_gpu, given, theta=0.6, order=5, eps=EPS, targets=None, vel=None, self_index=None):
    """Acc, pot, jerk (None without velocities) and counts, by the kernels."""
    mass, pos, *own = map(np.ascontiguousarray, given)
    made = fake_gpu_tree.Octree(tree_gpu, pos, mass, *own)
    return made.forces(Setting(theta, order, eps * eps), Targets(targets, vel, self_index))


def sums(tree_gpu, pos, mass, *args, **more):
    """Acc, pot and counts of bodies without velocities."""
    acc, pot, _, counts = all_sums(tree_gpu, (mass, pos), *args, **more)
    return acc, pot, counts


@WARPS_AND_BLOCKS
def test_neither_how_long_lists_are_at_first_nor_how_many_changes_a_digit(tree_gpu, monkeypatch):
    mass, pos = bodies("clustered", 2000, 9)[:2]
    usual, right = settings.Capacities.of(Setting(0.6)).longest, sums(tree_gpu, pos, mass)
    for name, few in ("LEAST_LISTS", 16), ("SLOT_LISTS", 16), ("LIST_BYTES", 0):
        monkeypatch.setattr(fake_gpu_tree, name, few)
    for longest in usual, [120, 60, 60]:  # with the latter many are summed in parts
        found = []
        for slots in 10**6, 3:
            monkeypatch.setattr(fake_gpu_tree, "LEAST_SLOTS", slots)
            shortened(monkeypatch, tree_gpu, [8, 0, 8], [4, 4, 4], longest)
            tree_gpu.launched.clear()
            found += [sums(tree_gpu, pos, mass), sums(tree_gpu, pos, mass)]  # of longer lists
            assert tree_gpu.launched.count("tree_groups_of_kind") > 1
        for acc, pot, counts in found:
            same = right if longest is usual else found[0]
            assert np.array_equal(acc, same[0])
            assert np.array_equal(pot, same[1])
            assert counts == same[2]


def test_lists_that_another_thread_lengthens_are_not_taken_for_long_ones(tree_gpu, monkeypatch):
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


def test_no_close_pair_is_forgotten_in_full_lists(tree_gpu, monkeypatch):
    monkeypatch.setattr(fake_gpu_tree, "AGAIN_CAPACITY", 8)
    mass, pos = bodies("plummer", 400, 19)[:2]
    pos[200:] = pos[:200]
    pos[200:, 1] += 5e-12
    acc, _, _ = sums(tree_gpu, pos, mass, theta=1e-3, eps=0.0)
    apart = pos[200:, 1] - pos[:200, 1]
    near = apart > 0  # where doubles tell them apart
    assert near.sum() > 100
    assert np.allclose(acc[:200, 1][near], (mass[200:] / apart**2)[near], rtol=1e-3)


@pytest.mark.parametrize("tree_gpu", [0, pytest.param(8192, marks=pytest.mark.full)],
                         ids=["warps", "blocks"], indirect=True)  # fmt: skip
def test_single_targets_are_summed_and_counted_once(tree_gpu, monkeypatch):
    """Of few of the targets, of many, and of all, some of which are found at once and others later;
    whatever space there is."""
    mass, pos = bodies("plummer", 1000, 9)[:2]
    for groups, lengths in (8, [[64, 64, 8], [480, 480, 60]]), (3000, [[8, 8, 8]] * 2):
        found = []
        for longest in lengths:
            shortened(monkeypatch, tree_gpu, [groups, 0, groups], [4, 4, 4], longest)
            found.append(sums(tree_gpu, pos, mass, theta=0.3))
            if groups == 3000:
                few = {"AGAIN_CAPACITY": 1, "LEAST_SLOTS": 100, "SLOT_LISTS": 0, "LIST_BYTES": 0}
                for name, value in few.items():
                    monkeypatch.setattr(fake_gpu_tree, name, value)
        (first, _, once), (again, _, counts) = found
        assert np.array_equal(first, again)
        assert counts == once


@ORDERS
def test_groups_whose_lists_are_long_are_taken_in_parts(tree_gpu, order, monkeypatch):
    cluster = models.plummer(1500, seed=3)
    eps = EPS / 100  # expansions of points: softened ones have no such lists
    right = reference.direct_sum(*cluster, eps2=eps * eps)
    whole = all_sums(tree_gpu, cluster, 0.3, order, eps)
    shortened(monkeypatch, tree_gpu, [8, 0, 8], [4, 4, 4], [150] * 3)
    tree_gpu.launched.clear()
    parts = all_sums(tree_gpu, cluster, 0.3, order, eps)
    if order:
        assert tree_gpu.launched.count("tree_traverse_level2") > 1
        assert tree_gpu.launched.count("tree_near_singles") > 1
    assert relative(parts[0], whole[0]).max() < 1e-2
    usual, found = (relative(jerk, right.jerk) for jerk in (whole[2], parts[2]))
    assert 5 * np.median(usual) < np.median(found) < 1e-3
    assert np.quantile(found, 0.99) < 6 * np.quantile(usual, 0.99)


# ---- sums on few of the particles: groups are walked by themselves ------------------------------
N, FEW = 2000, 200


def on_some(tree_gpu, sample, theta, order, eps, chosen):
    _, pos, vel = (np.ascontiguousarray(array[chosen]) for array in sample)
    return all_sums(tree_gpu, sample, theta, order, eps, pos, vel, chosen)


def some(n, count, seed=1):
    return np.random.default_rng(seed).permutation(n)[:count].astype(np.int32)


@ORDERS
def test_bits_are_those_of_the_targets_in_any_order(tree_gpu, order):
    """But of several in one smallest cell, which keep the order in which they are given."""
    sample, chosen = bodies("plummer", N), some(N, FEW)
    *first, counts = on_some(tree_gpu, sample, 0.6, order, 0.01, chosen)
    *turned, same = on_some(tree_gpu, sample, 0.6, order, 0.01, np.ascontiguousarray(chosen[::-1]))
    assert all(np.array_equal(a, b[::-1]) for a, b in zip(first, turned, strict=True))
    assert counts == same

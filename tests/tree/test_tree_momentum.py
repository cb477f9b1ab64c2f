"""Forces of a tree on all its particles that add up to zero."""

import numpy as np
import pytest

import capi
from grape6py import Tree
from grape6py.errors import ArgumentError
from particles import relative
from samples import SHAPES

N = 3000


def lengths(vectors):
    return np.linalg.norm(vectors, axis=1)


def net(mass, vectors):
    return np.linalg.norm(mass @ vectors) / (np.abs(mass) @ lengths(vectors))


def bodies(shape):
    mass, pos = SHAPES[shape](N, seed=9)
    random = np.random.default_rng(9)
    return mass * random.uniform(0.1, 2, len(mass)), pos, random.normal(size=pos.shape)


@pytest.mark.parametrize("method", ["fmm", "bh"])
@pytest.mark.parametrize("shape", list(SHAPES))
def test_their_sum_is_zero_and_no_force_changes_by_more_than_need_be(shape, method):
    mass, pos, vel = bodies(shape)
    with Tree(pos, mass, vel) as tree:
        usual = tree.forces(eps=0.01, method=method)
        closed = tree.forces(eps=0.01, method=method, momentum=True)
    assert net(mass, closed.acc) < 1e-14
    assert net(mass, closed.jerk) < 1e-14
    change, most = lengths(closed.acc - usual.acc), net(mass, usual.acc) * lengths(usual.acc)
    assert change == pytest.approx(most, rel=1e-6, abs=1e-15 * lengths(usual.acc).max())
    assert np.array_equal(closed.pot, usual.pot)


@pytest.mark.parametrize("threads", [1, 3])
def test_the_bits_do_not_depend_on_threads(threads):
    mass, pos, vel = bodies("plummer")
    found = [Tree(pos, mass, vel, threads=n).forces(momentum=True) for n in (2, threads)]
    assert np.array_equal(found[0].acc, found[1].acc)
    assert np.array_equal(found[0].jerk, found[1].jerk)


@pytest.mark.parametrize("size", [1e-70, 1e70])
@pytest.mark.parametrize("weight", [1e-150, 1e150])
def test_any_units_and_masses_of_both_signs(size, weight):
    mass, pos, _ = bodies("plummer")
    mass *= np.where(np.arange(N) % 3, 1, -1)
    acc = Tree(pos * size, mass * weight).forces(theta=0.5, momentum=True).acc
    unit = weight / size / size
    assert net(mass, acc / unit) < 1e-15
    assert (lengths(acc / unit) > 0).all()


@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_bodies(n):
    acc = Tree(np.eye(3)[:n], np.ones(n)).forces(momentum=True).acc
    assert acc.shape == (n, 3)
    assert np.abs(acc.sum(axis=0)).max() < 1e-15


def test_massless_bodies_keep_their_forces():
    mass, pos, _ = bodies("plummer")
    mass[::2] = 0
    usual, closed = (Tree(pos, mass).forces(theta=0.5, momentum=m).acc for m in (False, True))
    assert relative(closed, usual).max() < 1e-3
    nothing = Tree(pos, 0 * mass).forces(momentum=True)
    assert not nothing.acc.any()


def test_other_targets_are_refused():
    mass, pos, _ = bodies("plummer")
    with pytest.raises(ArgumentError, match="give no targets"):
        Tree(pos, mass).forces(pos, momentum=True)
    tree = capi.call("g6x_tree_open", N, pos, None, mass)
    out = capi.Force.blank(N)
    method = capi.CONSTANTS["G6X_TREE_MOMENTUM"]
    args = [0.0, method, 5, 0.5, None, 0.0, out.acc, None, out.pot]
    assert capi.call("g6x_tree_forces", tree, N, pos, None, None, *args) == -11
    assert np.isnan(out.acc).all()
    assert "G6X_TREE_MOMENTUM" in capi.text("g6x_last_error", -7)[1]
    capi.call("g6x_clear_error", -7)
    assert capi.call("g6x_tree_forces", tree, N, None, None, None, *args) == 0
    assert net(mass, out.acc) < 1e-15
    assert capi.call("g6x_tree_close", tree) == 0

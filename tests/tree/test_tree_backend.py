"""Forces of the backend cpu-tree: their errors, exact neighbours, equal bits, and when it sums
directly. The oracle is the direct sum of the backend cpu in mode double."""

import ctypes

import numpy as np
import pytest

import capi
from capi import CONSTANTS, call
from octrees import EPS2, filled, force_of, new_id, opened, sample, set_double, tree_of
from particles import relative

pytestmark = pytest.mark.backends("cpu cuda-tree")
ROWS = slice(0, 1500)  # as many targets as a tree is built for


@pytest.fixture
def n(on_backend):
    """More than the 4096 that are summed directly; for tests of a device any number gets a tree."""
    return 5000 if on_backend == "cpu" else 1500


def test_errors_fall_with_theta_and_with_the_order(tree, oracle, board, n):
    source, rows = filled("plummer", tree, oracle, board, n=n), ROWS
    expected = force_of(oracle, source, rows, eps2=EPS2)

    def median(theta, method=0, order=5):
        set_double(tree, "G6X_THETA", theta)
        tree.set_int("G6X_TREE_METHOD", method), tree.set_int("G6X_TREE_ORDER", order)
        return np.median(relative(force_of(tree, source, rows, eps2=EPS2).acc, expected.acc))

    assert median(0.5, order=5) < median(0.5, order=2) / 8
    for method in 0, 1:
        medians = [median(theta, method) for theta in (1.0, 0.6, 1e-3)]
        assert (np.diff(medians) < 0).all()
        assert medians[1] < 2e-3
        assert medians[-1] < 1e-6
    set_double(tree, "G6X_THETA", 0.0)
    found = force_of(tree, source, rows, eps2=EPS2)
    assert found.bits() == force_of(board, source, rows, eps2=EPS2).bits()


@pytest.mark.backends("cpu")
def test_few_particles_few_pairs_and_few_targets_are_summed_directly(tree, board):
    """And a tree is built once more targets have asked."""
    few = sample("plummer", 4096)
    tree.put_cloud(few), board.put_cloud(few)
    assert force_of(tree, few).bits() == force_of(board, few).bits()
    source = filled("plummer", tree, board, n=20000)
    for first in range(0, 4000, 200):
        rows = slice(first, first + 200)
        assert force_of(tree, source, rows).bits() == force_of(board, source, rows).bits()
    calls = [slice(k, k + 256) for k in range(0, 2048, 256)]
    direct = [force_of(tree, source, c).bits() == force_of(board, source, c).bits() for c in calls]
    assert direct == [True] * 4 + [False] * 4
    assert tree.put(17, 17, 1.0, (0, 0, 0)) == board.put(17, 17, 1.0, (0, 0, 0)) == 0
    assert force_of(tree, source, calls[0]).bits() == force_of(board, source, calls[0]).bits()


def test_each_target_has_its_own_softening_of_any_size(tree, oracle, n):
    """firsthalf0: as if each had been computed with its own."""
    source = filled("plummer", tree, oracle, n=n)
    eps2 = np.array([0.0, 1e-60, 1e-30, 0.01, 1.0, 1e8])[np.arange(n) % 6]
    args = n, source.x, source.v, source.index, eps2
    assert tree.first(*args, name="g6calc_firsthalf0", more=[0]) == 0
    out = tree.last(*args, name="g6calc_lasthalf0", more=[0])
    assert out.code == 0
    for e in np.unique(eps2):
        rows = eps2 == e
        one = force_of(oracle, source, rows, eps2=e)
        assert np.median(relative(out.acc[rows], one.acc)) < 5e-4
        assert relative(out.pot[rows], one.pot).max() < 1e-2


def test_verify_does_not_take_the_error_of_a_tree_for_a_fault(tree, n):
    source = filled("clustered", tree, n=n)
    set_double(tree, "G6X_VERIFY", 0.1)
    set_double(tree, "G6X_THETA", 1.0)
    tree.set_int("G6X_TREE_ORDER", 2)
    for method in (0, 1):
        tree.set_int("G6X_TREE_METHOD", method)
        assert force_of(tree, source, ROWS, eps2=EPS2).code == 0


def test_partial_sums_are_the_force_and_can_be_merged(tree, oracle, on_backend, n):
    """Two clusters with half of the particles each."""
    half, ni = 1024 * (n // 1000 + 1), min(n, 3000)
    source, rows = filled("plummer", oracle, n=2 * half), slice(0, ni)
    expected = force_of(oracle, source, rows, eps2=EPS2)
    other, words, found = opened(tree_of(on_backend)), [], capi.Force.blank(ni)
    for session, own in ((tree, slice(0, half)), (other, slice(half, None))):
        for key in ("LENGTH", "MASS", "VELOCITY"):
            session.set_int(f"G6X_SCALE_{key}", 0)
        part = source.take(own)
        session.put_cloud(part)
        args = len(part), source.x[rows], source.v[rows], source.index[rows], EPS2
        assert session.first(*args) == 0
        words.append(session.partial(ni))
        last = session.last(*args)
        call("g6x_from_partial", ni, words[-1], found.acc, found.jerk, found.pot)
        assert found.bits() == last.bits()
    other.close()
    assert call("g6x_add_partial", ni, *words) == 0
    assert call("g6x_from_partial", ni, words[0], found.acc, found.jerk, found.pot) == 0
    assert np.median(relative(found.acc, expected.acc)) < 3e-4


@pytest.mark.backends("cpu")
def test_the_backends_names():
    for name in ("TREE", "CPU_TREE"):
        session = opened(name, isa="base")
        assert capi.text("g6x_backend", session.cluster) == (0, "cpu-tree base")
        value = ctypes.c_double()
        call("g6x_get_double", session.cluster, CONSTANTS["G6X_THETA"], ctypes.byref(value))
        assert value.value == 0.5
        session.close()
    cluster = new_id()
    assert call("g6x_open", cluster, 6) == call("g6x_open", cluster, -1) == -11


@pytest.mark.backends("auto")
def test_a_tree_is_on_the_device_where_there_is_one():
    session = opened("TREE")
    assert capi.text("g6x_backend", session.cluster)[1] == "cuda-tree stand-in for a GPU"
    session.close()


def test_row16_blocks_of_any_size(tree, oracle, n):
    source, rows = filled("plummer", tree, oracle, n=n), slice(0, 600)
    expected = force_of(oracle, source, rows, eps2=EPS2)
    for block in (1, 48):
        found = force_of(tree, source, rows, eps2=EPS2, block=block)
        assert found.code == 0
        assert np.median(relative(found.acc, expected.acc)) < 1e-3
        assert (found.nearest == expected.nearest).all()

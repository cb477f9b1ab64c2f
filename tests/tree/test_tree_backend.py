"""Forces of the backend cpu-tree: their errors, exact neighbours, equal bits, and when it sums
directly. The oracle is the direct sum of the backend cpu in mode double."""

import ctypes

import numpy as np
import pytest

import capi
from capi import CONSTANTS, call
from octrees import EPS2, N, filled, force_of, new_id, opened, sample, set_double, tree_of
from particles import cloud, relative

pytestmark = pytest.mark.backends("cpu cuda-tree")


SAMPLES = ["plummer", "lattice", "clustered", "flat", "offset", "unequal", "blob"]


@pytest.mark.parametrize("name", SAMPLES)
def test_errors_of_the_preset(tree, oracle, name):
    """Of the terms' size: in a lattice the force itself all but vanishes."""
    source = filled(name, tree, oracle)
    found, expected = force_of(tree, source, eps2=EPS2), force_of(oracle, source, eps2=EPS2)
    assert found.code == expected.code == 0
    typical = {"acc": (1e-3, 1e-2), "jerk": (1e-2, 1e-1), "pot": (2e-4, 2e-3)}
    for field, (median, high) in typical.items():
        value = getattr(expected, field)
        error = np.abs(getattr(found, field) - value).reshape(N, -1).max(1)
        size = np.linalg.norm(value.reshape(N, -1), axis=1)
        error /= np.maximum(size, np.median(size))
        assert np.median(error) <= median, (field, np.median(error))
        assert np.quantile(error, 0.99) <= high, (field, np.quantile(error, 0.99))


@pytest.mark.parametrize("method", [0, 1], ids=["fmm", "bh"])
def test_errors_fall_with_theta(tree, oracle, method):
    source = filled("plummer", tree, oracle)
    expected = force_of(oracle, source, eps2=EPS2)
    tree.set_int("G6X_TREE_METHOD", method)
    medians = []
    for theta in (1.0, 0.7, 0.4, 1e-3):
        set_double(tree, "G6X_THETA", theta)
        medians.append(np.median(relative(force_of(tree, source, eps2=EPS2).acc, expected.acc)))
    assert (np.diff(medians) < 0).all()
    assert medians[1] < 2e-3
    assert medians[-1] < 1e-6


def test_errors_fall_with_the_order(tree, oracle):
    source = filled("plummer", tree, oracle, n=10000)
    rows = np.random.default_rng(1).permutation(10000)[:2000]
    expected = force_of(oracle, source, rows, eps2=EPS2)
    medians = []
    for order in (2, 3, 4, 5):
        tree.set_int("G6X_TREE_ORDER", order)
        found = force_of(tree, source, rows, eps2=EPS2)
        medians.append(np.median(relative(found.acc, expected.acc)))
    assert (np.diff(medians) < 0).all()
    assert medians[-1] < medians[0] / 8


def test_theta_zero_is_the_direct_sum(tree, board):
    source = filled("plummer", tree, board)
    set_double(tree, "G6X_THETA", 0.0)
    assert force_of(tree, source, eps2=EPS2).bits() == force_of(board, source, eps2=EPS2).bits()


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


@pytest.mark.backends("cpu")
def test_bits_are_those_of_any_run_and_of_any_number_of_threads(tree):
    source = cloud(N, seed=3, moving=True)
    tree.put_cloud(source)
    tree.set_ti(0.3)
    bits, nearest = set(), set()
    for threads in (1, 2, 3, 7, 1):
        tree.set_int("G6X_THREADS", threads)
        tree.put(0, 0, source.mass[0], source.x[0])  # else the tree would be kept
        found = force_of(tree, source, eps2=EPS2)
        bits.add(found.bits())
        nearest.add(found.nearest.tobytes())
    assert len(bits) == len(nearest) == 1


@pytest.mark.parametrize("eps2", [0.0, 0.01])
@pytest.mark.parametrize("name", ["plummer", "lattice", "clustered", "offset"])
def test_neighbours_and_nearest_are_those_of_the_direct_sum(tree, board, name, eps2):
    source = sample(name)
    rng = np.random.default_rng(9)
    source.x[:] = rng.permutation(source.x)  # equally near ones are told by their addresses
    source.index[:] = rng.permutation(10**6)[:N] - 500_000
    tree.put_cloud(source), board.put_cloud(source)
    targets = source.take(rng.permutation(N)[:1500])
    h2 = eps2 + rng.uniform(
        0, {"offset": 0.4, "lattice": 9, "clustered": 1e-3}.get(name, 0.1), 1500
    )
    h2[:5] = np.inf, np.nan, -1.0, eps2, 0.0
    if name == "lattice":
        h2[5:500] = eps2 + 1.0  # the edge belongs to the sphere
    args = N, targets.x, targets.v, targets.index, eps2, h2
    assert (tree.force(*args).nearest == board.force(*args).nearest).all()
    assert all(tree.neighbours(i) == board.neighbours(i) for i in range(1500))


# ---- whom the tree does not serve ---------------------------------------------------------


def test_an_index_excludes_one_or_several_wherever_they_are(tree, board, oracle):
    """Targets with the index of a distant particle, of several, of nobody, of themselves."""
    source = sample("plummer")
    source.index[:] = np.random.default_rng(3).permutation(2**20)[:N] * 2001 - 2**30
    source.index[[5, 600, 3000]] = -1
    source.index[1000:1010] = 2**31 - 1
    for session in (tree, board, oracle):
        session.put_cloud(source)
    index = source.index[::-1].copy()
    index[:1000] = 12345
    args = N, source.x, source.v, index, EPS2
    found, direct, exact = tree.force(*args), board.force(*args), oracle.force(*args)
    error = relative(found.acc, exact.acc)
    assert np.median(error) < 3e-4
    assert error.max() < 0.1
    assert (found.nearest == direct.nearest).all()
    several = np.isin(index, [-1, 2**31 - 1])
    assert several.sum() == 13
    assert (found.acc[several] == direct.acc[several]).all()
    assert (found.jerk[several] == direct.jerk[several]).all()


def test_a_close_pair_that_shares_an_index_does_not_pull(tree, oracle):
    """A binary's star with the index of its centre of mass (3.5)."""
    source = filled("plummer", tree, oracle)
    x = source.x.copy()
    x[:, 0] += 1e-7
    args = N, x, source.v, source.index, 0.0
    assert np.median(relative(tree.force(*args).acc, oracle.force(*args).acc)) < 3e-4


@pytest.mark.parametrize("distance", [1e3, 1e7, 1e12, 1e30])
def test_targets_far_away_feel_the_whole(tree, oracle, distance):
    source = filled("plummer", tree, oracle)
    x = source.x.copy()
    x[::100] *= distance
    args = N, x, source.v, source.index, 0.0
    found, expected = tree.force(*args), oracle.force(*args)
    assert found.code == 0
    assert relative(found.acc[::100], expected.acc[::100]).max() < 1e-3
    assert np.median(relative(found.acc, expected.acc)) < 3e-4
    near = np.arange(N) % 100 > 0
    assert (found.nearest == expected.nearest)[near].all()


@pytest.mark.parametrize("eps2", [1e-60, 1e-30, 1.0, 1e8])
def test_softening_of_any_size(tree, oracle, eps2):
    source = filled("plummer", tree, oracle)
    found, expected = force_of(tree, source, eps2=eps2), force_of(oracle, source, eps2=eps2)
    assert found.code == 0
    assert np.median(relative(found.acc, expected.acc)) < 3e-4
    assert relative(found.pot, expected.pot).max() < 1e-2


def test_each_target_has_its_own_softening(tree):
    """firsthalf0: as if each had been computed with its own."""
    source = filled("plummer", tree)
    eps2 = np.array([0.0, 1e-4, 0.01, 1.0])[np.arange(N) % 4]
    zero3, zero, out = np.zeros((N, 3)), np.zeros(N), capi.Force.blank(N)
    assert call("g6calc_firsthalf0", tree.cluster, N, N, source.index, source.x, source.v, zero3,
                zero3, zero, eps2, zero, 0) == 0  # fmt: skip
    assert call("g6calc_lasthalf0", tree.cluster, N, N, source.index, source.x, source.v, eps2,
                zero, out.acc, out.jerk, out.pot, 0) == 0  # fmt: skip
    for e in np.unique(eps2):
        rows = eps2 == e
        one = force_of(tree, source, eps2=e)
        assert np.median(relative(out.acc[rows], one.acc[rows])) < 5e-4


def test_an_outlier_does_not_raise_the_errors_of_others(tree, oracle):
    source, errors = sample("plummer"), []
    for where in source.x[77].copy(), (1e12, -1e12, 1e12):
        source.x[77] = where
        tree.put_cloud(source), oracle.put_cloud(source)
        found, expected = force_of(tree, source), force_of(oracle, source)
        errors.append([relative(a, b) for a, b in ((found.acc, expected.acc),
                                                   (found.jerk, expected.jerk))])  # fmt: skip
    for plain, far in zip(*errors, strict=True):
        assert np.median(far) < 1.5 * np.median(plain)
        assert np.percentile(far, 99) < 1.5 * np.percentile(plain, 99)
        assert far[77] < 1e-6


def test_all_particles_at_one_place(tree, board):
    source = sample("plummer")
    source.x[:] = 1.0, 2.0, 3.0
    tree.put_cloud(source), board.put_cloud(source)
    rows = slice(0, 1030)
    found = force_of(tree, source, rows)
    assert found.code == 0
    assert found.bits() == force_of(board, source, rows).bits()


def test_row09_pairs_at_one_place_are_left_out_and_counted(tree, oracle):
    source = sample("plummer")
    source.x[1::50] = source.x[::50]
    tree.put_cloud(source), oracle.put_cloud(source)
    assert capi.text("g6x_last_warning", tree.cluster)[0] == 0
    found, expected = force_of(tree, source), force_of(oracle, source)
    assert found.code == 0
    assert np.median(relative(found.acc, expected.acc)) < 3e-4
    assert relative(found.pot, expected.pot).max() < 1e-2
    warnings, text = capi.text("g6x_last_warning", tree.cluster)
    assert warnings == 1
    assert text.startswith(f"{N // 25} pairs")
    assert (found.nearest == expected.nearest).all()


@pytest.mark.parametrize("scale", [(100, 40, -30), (-100, -40, 30), (-33, 90, 7)])
def test_row08_units_of_any_size_give_the_same_error(tree, scale):
    """And the same mantissas, since the tree's units are powers of two."""
    source = sample("plummer")
    a, b, c = scale
    tree.put_cloud(source)
    plain = force_of(tree, source, eps2=2.0**-20)
    scaled = source.scaled(a, b, c)
    tree.put_cloud(scaled)
    found = force_of(tree, scaled, eps2=2.0 ** (2 * a - 20))
    assert found.code == 0
    assert np.abs(np.ldexp(found.acc, 2 * a - b) / plain.acc - 1).max() < 1e-9
    assert np.median(relative(np.ldexp(found.jerk, 3 * a - b - c), plain.jerk)) < 1e-6


def test_without_a_jerk_none_is_computed(tree):
    source = filled("plummer", tree)
    full = force_of(tree, source)
    tree.set_int("G6X_JERK", 0)
    found = force_of(tree, source)
    assert found.code == 0
    assert np.isnan(found.jerk).all()
    assert np.median(relative(found.acc, full.acc)) < 1e-6
    tree.put(0, 0, source.mass[0], source.x[0], source.v[0])
    force_of(tree, source)  # a tree without velocities
    tree.set_int("G6X_JERK", 1)
    again = force_of(tree, source)
    assert np.median(relative(again.jerk, full.jerk)) < 1e-6


def test_verify_does_not_take_the_error_of_a_tree_for_a_fault(tree):
    source = filled("clustered", tree)
    set_double(tree, "G6X_VERIFY", 0.1)
    set_double(tree, "G6X_THETA", 1.0)
    tree.set_int("G6X_TREE_ORDER", 2)
    for method in (0, 1):
        tree.set_int("G6X_TREE_METHOD", method)
        assert force_of(tree, source, eps2=EPS2).code == 0


def test_partial_sums_are_the_force_and_can_be_merged(tree, oracle, on_backend):
    """Two clusters with half of the particles each."""
    source = filled("plummer", oracle, n=12288)
    rows = np.arange(3000)
    expected = force_of(oracle, source, rows, eps2=EPS2)
    other, words = opened(tree_of(on_backend)), []
    for session, half in ((tree, slice(0, 6144)), (other, slice(6144, None))):
        for key in ("LENGTH", "MASS", "VELOCITY"):
            session.set_int(f"G6X_SCALE_{key}", 0)
        part = source.take(half)
        session.put_cloud(part)
        args = len(part), source.x[rows], source.v[rows], source.index[rows], EPS2
        assert session.first(*args[:4], EPS2) == 0
        words.append(np.zeros((3000, CONSTANTS["G6X_PARTIAL_WORDS"]), np.int64))
        assert call("g6x_get_partial", session.cluster, 3000, words[-1]) == 0
        alone, last = capi.Force.blank(3000), session.last(*args)
        call("g6x_from_partial", 3000, words[-1], alone.acc, alone.jerk, alone.pot)
        assert alone.bits() == last.bits()
    other.close()
    assert call("g6x_add_partial", 3000, *words) == 0
    found = capi.Force.blank(3000)
    assert call("g6x_from_partial", 3000, words[0], found.acc, found.jerk, found.pot) == 0
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

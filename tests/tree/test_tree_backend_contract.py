"""The contract holds for the backend cpu-tree: sequences of calls, addresses, faults.

Of sets that get a tree, here; the tests of the contract itself run on a tree of any size, too.
"""

import numpy as np
import pytest

import capi
from octrees import EPS2, N, force_of, opened, sample
from particles import assert_nan, cloud, direct, relative

ROWS = slice(0, 1100)  # more than are summed directly


def assert_close(found, expected):
    """An error of the tree's, and none of a wrong particle, time or address."""
    assert found.code == 0
    assert np.median(relative(found.acc, expected[0])) < 1e-3
    assert np.median(relative(found.jerk, expected[1])) < 1e-2
    assert relative(found.pot, expected[2]).max() < 1e-2


def expected_of(source, rows=ROWS, time=0.0):
    x, v = source.x[rows], source.v[rows]
    return direct(x[:150], v[:150], source.index[rows][:150], source, time, EPS2)


def first_rows(force):
    return capi.Force(force.acc[:150], force.jerk[:150], force.pot[:150], None, force.code)


@pytest.fixture
def moving():
    source = cloud(4500, seed=21, moving=True)
    source.x *= 10
    return source


def check(session, source, time):
    found = force_of(session, source, ROWS, eps2=EPS2)
    assert_close(first_rows(found), expected_of(source, time=time))
    return found


# ---- 2.11 -----------------------------------------------------------------------------------


def test_2_11_b_the_time_may_be_set_before_the_particles(tree, moving):
    tree.set_ti(0.5)
    tree.put_cloud(moving)
    check(tree, moving, 0.5)


def test_2_11_d_particles_written_after_the_time_was_set_are_predicted(tree, moving):
    tree.put_cloud(moving)
    tree.set_ti(0.25)
    check(tree, moving, 0.25)
    moving.x[:100] = -moving.x[:100]
    assert tree.put_cloud(moving.take(range(100)), range(100)) == 0
    check(tree, moving, 0.25)


def test_2_11_another_time_moves_the_particles_and_the_same_one_does_not(tree, moving):
    tree.put_cloud(moving)
    found = []
    for time in (0.25, 0.75, 0.25):
        tree.set_ti(time)
        found.append(check(tree, moving, time).bits())
    assert found[0] == found[2] != found[1]


def test_2_11_f_firsthalf_without_lasthalf_is_forgotten(tree):
    source = sample("plummer")
    tree.put_cloud(source)
    expected = force_of(tree, source, eps2=EPS2).bits()
    assert tree.first(N, -source.x, source.v, source.index, 1.0) == 0
    assert force_of(tree, source, eps2=EPS2).bits() == expected


def test_2_11_writes_between_the_halves_change_nothing(tree, board):
    source = sample("plummer")
    tree.put_cloud(source), board.put_cloud(source)
    before = force_of(tree, source, eps2=EPS2)
    args = N, source.x, source.v, source.index, EPS2
    assert tree.first(*args, 0.1) == 0
    expected = board.force(*args, h2=0.1)
    nobody = sample("lattice")
    nobody.mass[:] = 0
    assert tree.put_cloud(nobody) == 0
    tree.set_ti(3.0)
    after = tree.last(*args)
    assert after.bits() == before.bits()
    assert (after.nearest == expected.nearest).all()
    for i in (0, 5, N - 1):
        assert tree.neighbours(i) == board.neighbours(i)


def test_2_11_lasthalf2_after_lasthalf_adds_the_neighbours(tree, board):
    source = sample("plummer")
    tree.put_cloud(source), board.put_cloud(source)
    args = N, source.x, source.v, source.index, EPS2
    assert tree.first(*args) == 0
    plain = tree.last(*args, nearest=False)
    both = tree.last(*args)
    assert plain.bits() == both.bits()
    assert (both.nearest == board.force(*args).nearest).all()


def test_row19_a_second_firsthalf_replaces_the_first(tree):
    source = sample("plummer")
    tree.put_cloud(source)
    expected = force_of(tree, source, ROWS, eps2=EPS2)
    tree.first(5000, source.x[:7], source.v[:7], source.index[:7])
    assert force_of(tree, source, ROWS, eps2=EPS2).bits() == expected.bits()


# ---- addresses ------------------------------------------------------------------------------


def test_slots_are_rewritten_and_nj_goes_up_and_down(tree):
    rng = np.random.default_rng(5)
    source = sample("plummer", 7000)
    tree.put_cloud(source)
    for _ in range(12):
        rows = rng.permutation(7000)[: rng.integers(1, 2000)]
        source.x[rows] = rng.standard_normal((len(rows), 3))
        source.mass[rows] *= rng.choice([0, 1, 20])
        source.index[rows] = rng.integers(-(2**31), 2**31, len(rows))
        assert tree.put_cloud(source.take(rows), rows) == 0
        nj = int(rng.choice([7000, 6999, 4500, 4097, 20, 5121]))
        present = source.take(range(nj))
        rows = np.arange(1100) % nj
        found = tree.force(nj, source.x[rows], source.v[rows], source.index[rows], EPS2)
        assert_close(first_rows(found), expected_of(present, rows))


def test_row14_row15_unset_slots_are_nobody(tree, board):
    """Every third address, and nj far above the last."""
    source = sample("plummer")
    for session in (tree, board):
        session.put_cloud(source, np.arange(N) * 3 + 1)
    args = 40000, source.x, source.v, source.index, EPS2
    found, expected = tree.force(*args, h2=0.1), board.force(*args, h2=0.1)
    assert_close(found, (expected.acc, expected.jerk, expected.pot))
    assert (found.nearest == expected.nearest).all()
    assert all(tree.neighbours(i) == board.neighbours(i) for i in range(0, N, 40))


@pytest.mark.parametrize("block", [1, 48, 1000, 2000])
def test_row16_blocks_of_any_size(tree, oracle, block):
    source = sample("plummer")
    tree.put_cloud(source), oracle.put_cloud(source)
    rows = slice(0, 2500)
    found = force_of(tree, source, rows, eps2=EPS2, block=block)
    expected = force_of(oracle, source, rows, eps2=EPS2)
    assert_close(found, (expected.acc, expected.jerk, expected.pot))
    assert (found.nearest == expected.nearest).all()


# ---- faults ---------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["x", "v"])
def test_row07_a_bad_i_particle_spoils_its_own_row_only(tree, oracle, field):
    source = sample("plummer")
    tree.put_cloud(source), oracle.put_cloud(source)
    expected = force_of(oracle, source, eps2=EPS2)
    bad = source.take(range(N))
    getattr(bad, field)[1234, 1] = np.inf
    found = force_of(tree, bad, eps2=EPS2)
    assert found.code == -7
    assert_nan(found, 1234)
    others = np.arange(N) != 1234
    assert np.median(relative(found.acc[others], expected.acc[others])) < 1e-3
    assert (found.nearest == expected.nearest)[others].all()


def test_a_prediction_that_overflows_is_told_as_by_the_direct_sum(tree, board):
    source = sample("plummer")
    for session in (tree, board):
        session.put_cloud(source)
        session.put(9, 9, 1.0, (0, 0, 0), v=(1e300, 0, 0), tj=0.0)
        session.set_ti(1e100)
    found, expected = force_of(tree, source, ROWS), force_of(board, source, ROWS)
    assert found.code == expected.code
    assert np.isnan(found.acc).all() == np.isnan(expected.acc).all()


def test_a_closed_cluster_opens_empty(tree):
    source = sample("plummer")
    tree.put_cloud(source)
    force_of(tree, source)
    for _ in range(3):
        again = opened("CPU_TREE")
        assert not force_of(again, source).acc.any()
        again.put_cloud(source)
        assert force_of(again, source).acc.any()
        assert again.close() == 0

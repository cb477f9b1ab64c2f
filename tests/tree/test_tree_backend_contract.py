"""The contract holds for the backend cpu-tree: sequences of calls, addresses, faults.

Of sets that get a tree, here; the tests of the contract itself run on a tree of any size, too.
"""

import numpy as np
import pytest

import capi
from octrees import EPS2, N, filled, force_of, sample
from particles import assert_nan, direct, relative

ROWS = slice(0, 1100)  # more than are summed directly


def assert_close(found, expected):
    """An error of the tree's, and none of a wrong particle, time or address."""
    assert found.code == 0
    assert np.median(relative(found.acc, expected[0])) < 1e-3
    assert np.median(relative(found.jerk, expected[1])) < 1e-2
    assert relative(found.pot, expected[2]).max() < 1e-2


def check_first_rows(found, source, rows):
    x, v, index = (a[rows][:150] for a in (source.x, source.v, source.index))
    first = capi.Force(found.acc[:150], found.jerk[:150], found.pot[:150], None, found.code)
    assert_close(first, direct(x, v, index, source, 0.0, EPS2))


# ---- 2.11 -----------------------------------------------------------------------------------


def test_2_11_writes_between_the_halves_change_nothing(tree, board):
    source = filled("plummer", tree, board)
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
    source = filled("plummer", tree, board)
    args = N, source.x, source.v, source.index, EPS2
    assert tree.first(*args) == 0
    plain = tree.last(*args, nearest=False)
    both = tree.last(*args)
    assert plain.bits() == both.bits()
    assert (both.nearest == board.force(*args).nearest).all()


def test_2_11_f_row19_firsthalf_without_lasthalf_is_forgotten(tree):
    source = filled("plummer", tree)
    expected = force_of(tree, source, eps2=EPS2).bits()
    for rows in (slice(None), slice(7)):
        assert tree.first(N, -source.x[rows], source.v[rows], source.index[rows], 1.0) == 0
        assert force_of(tree, source, eps2=EPS2).bits() == expected


# ---- addresses ------------------------------------------------------------------------------


def test_slots_are_rewritten_and_nj_goes_up_and_down(tree):
    rng = np.random.default_rng(5)
    source = filled("plummer", tree, n=7000)
    for nj in (7000, 4500, 20, 6999, 4097, 5121):
        rows = rng.permutation(7000)[: rng.integers(1, 2000)]
        source.x[rows] = rng.standard_normal((len(rows), 3))
        source.mass[rows] *= rng.choice([0, 1, 20])
        source.index[rows] = rng.integers(-(2**31), 2**31, len(rows))
        assert tree.put_cloud(source.take(rows), rows) == 0
        rows = np.arange(1100) % nj
        found = tree.force(nj, source.x[rows], source.v[rows], source.index[rows], EPS2)
        check_first_rows(found, source.take(range(nj)), rows)


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
    source = filled("plummer", tree, oracle)
    rows = slice(0, 2500)
    found = force_of(tree, source, rows, eps2=EPS2, block=block)
    expected = force_of(oracle, source, rows, eps2=EPS2)
    assert_close(found, (expected.acc, expected.jerk, expected.pot))
    assert (found.nearest == expected.nearest).all()


# ---- faults ---------------------------------------------------------------------------------


def test_row07_a_bad_i_particle_spoils_its_own_row_only(tree, oracle):
    source = filled("plummer", tree, oracle)
    expected = force_of(oracle, source, eps2=EPS2)
    bad, wrong = source.take(range(N)), [1234, 2345]
    bad.x[1234, 1] = bad.v[2345, 1] = np.inf
    found = force_of(tree, bad, eps2=EPS2)
    assert found.code == -7
    assert_nan(found, wrong)
    others = np.delete(np.arange(N), wrong)
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

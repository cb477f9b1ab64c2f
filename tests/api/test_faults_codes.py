"""Misuse of a session in this process: the code is minus the row, the outputs are NaN.

In any order, on the CPU: test_fuzz.py. Null pointers: test_contract_pointers.py."""

import itertools
import re

import numpy as np
import pytest

import capi
from particles import assert_force, assert_nan, cloud, direct

pytestmark = pytest.mark.backends("cpu cuda:grape cpu-tree:grape gpu")

ORIGIN = np.zeros((1, 3))
INT_MAX = 2147483647
SOURCE = cloud(50, seed=41)
X, V, INDEX = SOURCE.x[:6].copy(), SOURCE.v[:6].copy(), SOURCE.index[:6].copy()
EXPECTED = direct(X, V, INDEX, SOURCE)


@pytest.fixture
def filled(plain):
    """In one mode and instruction set: what is refused is so before any of these matters."""
    plain.put_cloud(SOURCE)
    return plain


@pytest.mark.parametrize(("field", "bad"), [
    *((field, np.nan) for field in "mass x v a2 j6 k18 tj".split()), ("x", np.inf), ("tj", -np.inf)
])  # fmt: skip
def test_row06_a_j_particle_with_nan_spoils_forces_until_rewritten(filled, field, bad):
    values = {"mass": 1.0, "x": (1, 1, 1), field: bad if field in ("mass", "tj") else (0, bad, 0)}
    assert filled.put(17, 170, **values) == -6
    found = filled.force(50, X, V, INDEX)
    code, message = filled.error()
    assert found.code == code == -6
    assert_nan(found)
    assert {"17", "170"} <= set(re.findall(r"\d+", message))
    below = filled.force(17, X, V, INDEX)
    assert_force(below, direct(X, V, INDEX, SOURCE.take(range(17))), 1e-4)
    assert filled.put(17, 17, SOURCE.mass[17], SOURCE.x[17], SOURCE.v[17]) == 0
    assert_force(filled.force(50, X, V, INDEX), EXPECTED, 1e-4)


@pytest.mark.backends("cpu cuda:grape gpu")
def test_row07_an_i_particle_with_nan_spoils_its_own_row_only(session):
    session.put_cloud(SOURCE)
    good, others = session.force(50, X, V, INDEX), [0, 1, 3, 4, 5]
    for field, bad in itertools.product((0, 1), (np.nan, np.inf, -np.inf)):
        i = X.copy(), V.copy()
        i[field][2, 1] = bad
        found = session.force(50, *i, INDEX, h2=np.inf)
        assert found.code == session.error()[0] == -7
        assert session.neighbours(2)[:2] == (-7, 0)
        assert session.neighbours(3)[:2] == (0, 49)
        assert_nan(found, 2)
        assert (found.acc[others] == good.acc[others]).all()
        assert (found.pot[others] == good.pot[others]).all()
        assert (found.nearest[others] == good.nearest[others]).all()
        assert found.nearest[2] >= 0


def test_row11_an_impossible_softening_or_time_fails_the_call(filled):
    bad = [np.nan, np.inf, -np.inf]
    for eps2, ti in [*((each, 0.0) for each in (-1.0, *bad)), *((0.0, each) for each in bad)]:
        filled.set_ti(ti)
        found = filled.force(50, X, V, INDEX, eps2=eps2)
        assert found.code == filled.error()[0] == -11
        assert_nan(found)
        assert filled.set_ti(0.0) == 0
        assert filled.force(50, X, V, INDEX).code == 0
    args = 50, X, V, INDEX, np.array([0.1, 0.1, -0.1, 0.1, 0.1, 0.1])  # of one particle
    assert filled.first(*args, name="g6calc_firsthalf0", more=[0]) == -11
    out = filled.last(*args, name="g6calc_lasthalf0", more=[0])
    assert out.code == -11
    assert_nan(out)


def test_row13_a_negative_address_is_refused(filled):
    """The others of a bulk write are stored (row 29)."""
    before = filled.force(50, X, V, INDEX)
    for address in (-1, -2147483648):
        assert filled.put(address, 1, 1.0, (1, 0, 0)) == filled.error()[0] == -13
        assert str(address) in filled.error()[1]
        assert filled.put_cloud(cloud(3), [address, 60, 61]) == -13
        assert filled.force(50, X, V, INDEX).bits() == before.bits()
        assert filled.force(62, ORIGIN, h2=np.inf).code == 0
        assert filled.neighbours(0)[1] == 52
    assert filled.put_cloud(SOURCE.take(range(3)), [70, INT_MAX, 71]) in (-27, -29)
    assert (filled.predicted(72)[0][70:] == SOURCE.x[[0, 2]]).all()


def test_row18_lasthalf_without_firsthalf(filled):
    assert capi.call("g6_read_neighbour_list", filled.cluster) == -18
    assert filled.neighbours(0)[:2] == (-18, 0)
    assert filled.neighbour_lists(3, 5)[:2] == (-18, [0] * 4)
    out = filled.last(50, X, V, INDEX)
    assert out.code == filled.error()[0] == -18
    assert_nan(out)


@pytest.mark.parametrize(("nj", "ni"), [(50, 4), (49, 6), (51, 6), (0, 6), (50, 10)],
                         ids=lambda n: f"row20-{n}")  # fmt: skip
def test_lasthalf_with_other_counts_gives_nan(filled, nj, ni):
    """In the rows that there are in both halves; those beyond are left alone."""
    filled.first(50, X, V, INDEX)
    found = filled.last(nj, *(np.resize(a, (ni, *a.shape[1:])) for a in (X, V, INDEX)))
    assert found.code == filled.error()[0] == -20
    assert_nan(found, slice(6))
    assert (found.acc[6:] == capi.UNTOUCHED).all()
    assert (found.pot[6:] == capi.UNTOUCHED).all()
    assert filled.last(50, X, V, INDEX).code == 0


def test_row18_nearest_neighbours_are_not_made_up_after_a_write(filled):
    filled.first(50, X, V, INDEX)
    expected = filled.last(50, X, V, INDEX, nearest=False)
    filled.put(3, 3, 9.0, (9, 9, 9))
    again = filled.last(50, X, V, INDEX, nearest=False)
    assert again.code == 0
    assert again.bits() == expected.bits()
    found = filled.last(50, X, V, INDEX)
    assert found.code == -18
    assert_nan(found)
    assert (found.nearest == -1).all()


@pytest.mark.backends("cpu cuda:grape gpu")
@pytest.mark.parametrize("block", [None, 1], ids=["together", "one-by-one"])
def test_row08_a_force_that_fits_no_double_is_nan_and_named(session, block):
    for address, x in enumerate((1e-40, 1.0)):
        session.put(address, address, 1e250, (x, 0, 0))
    far = np.full((16, 3), 1e30)
    found = session.force(2, np.vstack([ORIGIN, far]), block=block)
    assert found.code == -8
    assert session.error()[0] == -8
    assert np.isnan(found.acc[0]).all()
    assert np.isfinite(found.acc[1:]).all()
    assert found.pot[0] == pytest.approx(-1e290, rel=1e-6)

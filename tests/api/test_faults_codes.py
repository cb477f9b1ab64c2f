"""Misuse of a session in this process: the code is minus the row, the outputs are NaN.

In any order, on the CPU: test_fuzz.py. Null pointers: test_contract_pointers.py."""

import itertools
import re

import numpy as np
import pytest

import capi
from particles import assert_force, assert_nan, cloud, direct

pytestmark = pytest.mark.backends("cpu cuda:grape cpu-tree:grape gpu")
SOURCE = cloud(50, seed=41)
X, V, INDEX = SOURCE.x[:6].copy(), SOURCE.v[:6].copy(), SOURCE.index[:6].copy()


@pytest.fixture
def filled(plain):
    """In one mode and instruction set: what is refused is so before any of these matters."""
    plain.put_cloud(SOURCE)
    return plain


def test_row06_a_j_particle_with_nan_spoils_forces_until_rewritten(filled):
    bad = dict.fromkeys("mass x v a2 j6 k18 tj".split(), np.nan) | {"x": np.inf}
    for field, value in bad.items():
        wrong = {field: value if field in ("mass", "tj") else (0, value, 0)}
        assert filled.put(17, 170, **{"mass": 1.0, "x": (1, 1, 1)} | wrong) == -6
        found = filled.force(50, X, V, INDEX)
        code, message = filled.error()
        assert found.code == code == -6
        assert_nan(found)
        assert {"17", "170"} <= set(re.findall(r"\d+", message))
        below = filled.force(17, X, V, INDEX)
        assert_force(below, direct(X, V, INDEX, SOURCE.take(range(17))), 1e-4)
        assert filled.put(17, 17, SOURCE.mass[17], SOURCE.x[17], SOURCE.v[17]) == 0
        assert_force(filled.force(50, X, V, INDEX), direct(X, V, INDEX, SOURCE), 1e-4)


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


def test_row18_lasthalf_without_firsthalf(filled):
    assert capi.call("g6_read_neighbour_list", filled.cluster) == -18
    assert filled.neighbours(0)[:2] == (-18, 0)
    assert filled.neighbour_lists(3, 5)[:2] == (-18, [0] * 4)
    out = filled.last(50, X, V, INDEX)
    assert out.code == filled.error()[0] == -18
    assert_nan(out)


def test_row20_lasthalf_with_other_counts_gives_nan(filled):
    """In the rows that there are in both halves; those beyond are left alone."""
    for nj, ni in (50, 4), (49, 6), (51, 6), (0, 6), (50, 10):
        filled.first(50, X, V, INDEX)
        found = filled.last(nj, *(np.resize(a, (ni, *a.shape[1:])) for a in (X, V, INDEX)))
        assert found.code == filled.error()[0] == -20
        assert_nan(found, slice(6))
        assert (found.acc[6:] == capi.UNTOUCHED).all()
        assert (found.pot[6:] == capi.UNTOUCHED).all()
        assert filled.last(50, X, V, INDEX).code == 0


@pytest.mark.backends("cpu cuda:grape gpu")
@pytest.mark.parametrize("block", [None, 1], ids=["together", "one-by-one"])
def test_row08_a_force_that_fits_no_double_is_nan_and_named(session, block):
    for address, x in enumerate((1e-40, 1.0)):
        session.put(address, address, 1e250, (x, 0, 0))
    far = np.full((16, 3), 1e30)
    found = session.force(2, np.vstack([np.zeros((1, 3)), far]), block=block)
    assert found.code == -8
    assert session.error()[0] == -8
    assert np.isnan(found.acc[0]).all()
    assert np.isfinite(found.acc[1:]).all()
    assert found.pot[0] == pytest.approx(-1e290, rel=1e-6)

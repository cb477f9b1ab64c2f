"""Promises that random call sequences (test_fuzz.py) found broken once, each in few calls."""

import time

import numpy as np
import pytest

import capi
from capi import call
from particles import cloud

pytestmark = pytest.mark.backends("cpu cuda cpu-tree:grape cuda-tree:grape gpu")

INT_MAX = 2147483647
SOURCE = cloud(40, seed=77)
X, V, INDEX = SOURCE.x[:5].copy(), SOURCE.v[:5].copy(), SOURCE.index[:5].copy()


@pytest.fixture
def filled(plain):
    plain.put_cloud(SOURCE)
    return plain


def last2p(session, distance):
    return session.last(40, X, V, INDEX, name="g6calc_lasthalf2p", more=[distance])


def test_distances_are_those_of_the_first_half_whatever_is_written_meanwhile(filled):
    before, after = np.zeros(5, np.float32), np.zeros(5, np.float32)
    filled.first(40, X, V, INDEX)
    expected = last2p(filled, before)
    filled.first(40, X, V, INDEX)
    filled.put(3, 3, 100.0, X[0])
    found = last2p(filled, after)
    assert (expected.code, found.code) == (0, 0)
    assert (before == after).all()
    assert found.bits() == expected.bits()


def test_row40_an_option_set_between_the_halves_is_no_wrong_force(filled):
    for a in range(40):
        filled.put(a, a, SOURCE.mass[a], SOURCE.x[a], SOURCE.v[a], k18=(1, 2, 3))
    filled.set_ti(0.5)
    filled.set_double("G6X_VERIFY", 1.0)
    filled.first(40, X, V, INDEX)
    filled.set_int("G6X_SNAP", 0)
    assert filled.last(40, X, V, INDEX).code == 0


def test_row12_an_infinite_h2_reaches_those_beyond_all_units(filled):
    filled.put(40, 1000, 1.0, (1e300, 0, 0))
    filled.put(41, 1001, 1.0, (-1e300, 1e290, 0))
    at = np.array([[1.7e308, 1e300, 0], [0, 0, 0]])
    filled.first(42, at, np.zeros((2, 3)), np.array([-5, -6], np.int32), h2=np.inf)
    everybody = sorted([*SOURCE.index.tolist(), 1000, 1001])
    for pipe in (0, 1):
        assert filled.neighbours(pipe) == (0, 42, everybody)


def test_row08_a_vector_that_does_not_fit_is_nan_as_a_whole(plain):
    for address in (0, 1024):  # two sums that fit, not so their own
        plain.put(address, address, 1.7e308, (1, 0.5, 0))
    out = plain.force(1025, np.zeros((1, 3)))
    assert out.code == -8
    assert np.isnan(out.acc).all()


def test_a_massless_particle_may_be_the_only_neighbour_however_far(session):
    session.set_int("G6X_SCALE_LENGTH", 1)
    for far in (6e12, -6e12, 1e11):
        session.put(15, 11, 0.0, (far, 0, 0))
        session.first(16, X, V, np.full(5, 3, np.int32))
        assert (session.last(16, X, V, INDEX).nearest == 11).all()


@pytest.mark.backends("cpu cuda gpu")
def test_a_row_too_large_for_any_sum_is_no_partial_sum(filled):
    filled.first(40, X, V, INDEX)
    words, out = filled.partial(5), capi.Force.blank(5)
    for limb in (2**62, -(2**62), 2**63 - 1, -(2**63)):
        spoilt = words.copy()
        spoilt[3, 10] = limb
        assert call("g6x_add_partial", 5, words, spoilt) == -11
        assert call("g6x_add_partial", 5, spoilt, spoilt) == -11
        assert call("g6x_from_partial", 5, spoilt, out.acc, out.jerk, out.pot) == -11
        assert np.isnan(out.acc).all()


def test_calls_without_arrays_take_no_time_for_them_and_may_be_the_first(plain):
    nobody = np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0, np.int32)
    assert plain.first(0, *nobody) == 0
    assert plain.last(0, *nobody).code == 0
    start = time.monotonic()
    code = call("g6calc_lasthalf2", plain.cluster, 0, INT_MAX, *[None] * 3, 0.0, *[None] * 5)
    assert code < 0
    assert time.monotonic() - start < 0.5

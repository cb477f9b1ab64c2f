"""Misuse of the calls for many walks: the code is minus the row, and no number is a stale one.

Null pointers, softenings, tags in any order, closed clusters: test_fuzz.py. Traps:
test_faults_host.py."""

import numpy as np
import pytest

import capi
from particles import assert_nan
from walking import Flight, Found, by_numbers, random_walks

pytestmark = pytest.mark.backends("cpu cuda gpu")


@pytest.fixture
def job():
    return random_walks(sizes=(40, 0, 70, 5))


def assert_all_nan(plain, found, code):
    assert found.code == code == plain.error()[0]
    assert_nan(found)


def test_row11_row13_what_cannot_be(plain, job):
    entry, right = job.j_start[2] + 5, job.chosen.copy()
    for number in (-1, 4000, 2**31 - 1, -(2**31)):
        job.chosen[entry] = number
        assert_all_nan(plain, by_numbers(plain, job), -13)
        assert "walk 2" in plain.error()[1]
    job.chosen = right
    kept, job.j_start[1] = job.j_start[1], job.j_start[2] + 1
    assert_all_nan(plain, by_numbers(plain, job), -11)
    assert "walk 1" in plain.error()[1]
    job.j_start[1], job.i_start[3] = kept, 2
    found = by_numbers(plain, job)
    assert np.isnan(found.pot[:40]).all()  # up to the walk from which on rows are anybody's guess
    assert (found.pot[40:] == capi.UNTOUCHED).all()
    found, start = Found.blank(5), np.array([-1, 5], np.longlong)
    args = [start, job.x, start, None, 0, job.xj, job.mj, 0.0, found.acc, found.pot]
    assert capi.call("g6x_walks", plain.cluster, 1, *args) == -11
    assert capi.call("g6x_walks", plain.cluster, -1, *args) == -11


def test_row11_row18_row20_of_tags(plain, job):
    flights = [Flight(plain, k, job) for k in range(9)]
    assert [f.code for f in flights] == [0] * 8 + [-11]
    assert_all_nan(plain, flights[8].retrieve(), -18)
    fewer = flights[0].ni.copy()
    fewer[2] -= 1
    found = flights[0].retrieve(fewer)
    assert found.code == -20
    assert np.isnan(found.pot[:109]).all()


def test_row21_closing_forgets_what_is_in_flight(plain, job):
    flight = Flight(plain, 1, job)
    plain.close()
    assert capi.call("g6_open", plain.cluster) == 0
    assert_all_nan(plain, flight.retrieve(), -18)

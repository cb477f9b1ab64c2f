"""Misuse of the calls for many walks: the code is minus the row, and no number is a stale one.

In any order, on the CPU: test_fuzz.py."""

import numpy as np
import pytest

import capi
from particles import assert_nan
from walking import FORMS, Flight, Found, by_numbers, pointers, random_walks

pytestmark = pytest.mark.backends("cpu cuda gpu")


@pytest.fixture
def job():
    return random_walks(sizes=(40, 0, 70, 5))


def assert_all_nan(plain, found, code):
    assert found.code == code == plain.error()[0]
    assert_nan(found)


def test_row11_row13_what_cannot_be(plain, job):
    for form in FORMS:
        for job.eps2 in (-1.0, np.nan, np.inf):
            assert_all_nan(plain, form(plain, job), -11)
    job.eps2 = 0.0
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
    assert found.code == -11
    assert np.isnan(found.pot[:40]).all()  # up to the walk from which on rows are anybody's guess
    assert (found.pot[40:] == capi.UNTOUCHED).all()
    start = np.array([-1, 5], np.longlong)
    found = Found.blank(5)
    args = [start, job.x, start, None, 0, job.xj, job.mj, 0.0, found.acc, found.pot]
    assert capi.call("g6x_walks", plain.cluster, 1, *args) == -11
    assert capi.call("g6x_walks", plain.cluster, -1, *args) == -11
    start[0] = 0
    args[3:5] = job.chosen, -1
    assert capi.call("g6x_walks", plain.cluster, 1, *args) == -11
    assert np.isnan(found.pot).all()


def test_row32_a_host_that_traps_keeps_its_traps():
    """In a process of its own, with traps on invalid operations, division by zero, overflow."""
    capi.run_python("""
from walking import *
job = random_walks(sizes=(40, 0, 700, 5), eps2=1e-4)
bad, far, close = job.take(range(4)), job.take(range(4)), job.scaled(-560, 0)
bad.x[50, 1] = np.nan
far.xj = np.vstack([far.xj[:-1], [[0, np.inf, 0]]])
far.chosen[0] = len(far.xj) - 1
close.eps2 = 0.0
jobs = job, bad, far, close, *(replace(job, eps2=eps2) for eps2 in (-1.0, np.nan, np.inf))
libm, traps = ctypes.CDLL("libm.so.6"), 1 | 4 | 8
session = Session(1, threads=2)
for mode in range(3):
    session.set_int("G6X_PRECISION", mode)
    for form in FORMS:
        codes = []
        for given in jobs:
            libm.feenableexcept(traps)
            codes.append(form(session, given).code)
            assert libm.fegetexcept() == traps
            libm.fedisableexcept(traps)
        assert codes == [0, -7, -6, -8, -11, -11, -11], codes
""", GRAPE6_LOG="none")  # fmt: skip


def test_row26_null_pointers(plain, job):
    for missing in range(9):  # the last: none
        found = Found.blank(len(job.x))
        args = [job.i_start, job.x, job.j_start, job.chosen, job.xj, job.mj, found.acc, found.pot]
        i_start, x, j_start, chosen, xj, mj, *out = (
            None if k == missing else array for k, array in enumerate(args)
        )
        code = capi.call("g6x_walks", plain.cluster, 4, i_start, x, j_start, chosen, len(job.xj),
                         xj, mj, 0.0, *out)  # fmt: skip
        assert code == (0 if missing in (3, 8) else -26)
        assert missing in (0, 3, 7, 8) or np.isnan(found.pot).all()


def test_row11_row18_row20_of_tags(plain, job):
    flights = [Flight(plain, k, job) for k in range(9)]
    assert [f.code for f in flights] == [0] * 8 + [-11]
    assert_all_nan(plain, flights[8].retrieve(), -18)
    fewer = flights[0].ni.copy()
    fewer[2] -= 1
    found = flights[0].retrieve(fewer)
    assert found.code == -20
    assert np.isnan(found.pot[:109]).all()
    assert flights[0].retrieve().code == 0
    assert_all_nan(plain, flights[0].retrieve(), -18)  # once is enough
    again = Flight(plain, 8, job)
    assert again.code == again.retrieve().code == 0
    job.eps2 = -1.0
    failed = Flight(plain, 1, job)  # in place of what was in flight
    assert failed.code == -11
    assert_all_nan(plain, failed.retrieve(), -11)


def test_rows_11_and_26_of_a_dispatch(plain, job):
    three, negative = np.full(1, 3, np.int32), np.full(1, -3, np.int32)
    x, m = pointers([job.xj]), pointers([job.mj])

    def code(ni=three, xi=x, nj=three, xj=x, mj=m, nc=None, xc=None, mc=None, eps2=0.0):
        return capi.call("g6x_walks_dispatch", plain.cluster, 0, 1, ni, xi, nj, xj, mj, nc, xc, mc,
                         eps2)  # fmt: skip

    assert code() == 0
    assert code(ni=negative) == code(nj=negative) == code(nc=negative) == -11
    nothing = pointers([job.xj])
    nothing[0] = None
    assert code(ni=None) == code(xi=None) == code(xi=nothing) == code(nj=None) == -26
    assert code(xj=None) == code(mj=nothing) == code(nc=three, xc=x) == -26
    assert code(nc=three, xc=x, mc=m) == 0
    found = Found.blank(3)
    retrieve = "g6x_walks_retrieve", plain.cluster, 0, 1
    assert capi.call(*retrieve, three, None, pointers([found.pot])) == -26
    assert capi.call(*retrieve, negative, pointers([found.acc]), pointers([found.pot])) == -11
    assert capi.call(*retrieve, three, pointers([found.acc]), pointers([found.pot])) == 0


def test_row21_closing_forgets_what_is_in_flight(plain, job):
    flight = Flight(plain, 1, job)
    plain.close()
    for form in FORMS:
        found = form(plain, job)
        assert found.code == -21
        assert_nan(found)
    assert capi.call("g6_open", plain.cluster) == 0
    assert_all_nan(plain, flight.retrieve(), -18)

"""The neighbour lists of a whole force call (g6x_get_neighbour_lists): they are those that
g6_get_neighbour_list gives one by one, whatever radii, sizes and threads."""

import itertools

import numpy as np
import pytest

import capi
from particles import cloud, lists

pytestmark = pytest.mark.backends("cpu cuda cpu-tree cuda-tree gpu")

SPECIAL = [0.0, -0.0, -1.0, np.nan, np.inf, -np.inf, 1e300, 1e-300]
TOO_SHORT = 1


def one_by_one(session, ni):
    """Start and list as the call for all would give them."""
    found = [session.neighbours(pipe) for pipe in range(ni)]
    assert all(code == 0 for code, *_ in found)
    start = [0, *itertools.accumulate(length for _, length, _ in found)]
    return start, [index for *_, each in found for index in each]


def radii(rng, n):
    """Squares of some that hold few, many, all or nobody."""
    usual = rng.choice([0.01, 0.3, 4.0], n) * rng.random(n)
    return np.where(rng.random(n) < 0.2, rng.choice(SPECIAL, n), usual)


@pytest.mark.parametrize("n", [1, 15, 63, 65, 1023, 1024, 1025, 2100])
def test_all_lists_are_those_of_each(session, n):
    source, rng = cloud(n, seed=n), np.random.default_rng(n)
    source.index[:] = rng.permutation(10 * n)[:n] - n
    session.put_cloud(source)
    for ni, eps2 in ((1, 0.0), (min(n, 5), 0.01), (min(n, 70), 0.0)):
        h2 = radii(rng, ni)
        args = source.x[:ni], source.v[:ni], source.index[:ni]
        assert session.force(n, *args, eps2=eps2, h2=h2).code == 0
        code, *found = session.neighbour_lists(ni)
        assert code == 0
        assert tuple(found) == one_by_one(session, ni)


def test_all_lists_are_those_of_brute_force(exact):
    n = 1300
    source, rng = cloud(n, seed=5), np.random.default_rng(5)
    source.index[:] = rng.permutation(n)
    exact.put_cloud(source)
    s2 = ((source.x[rng.integers(0, n, n)] - source.x) ** 2).sum(-1)  # to some particle, or nearly
    for eps2 in (0.0, 0.25):
        h2 = np.where(rng.random(n) < 0.5, s2 * (1 + 1e-9), radii(rng, n))
        with np.errstate(invalid="ignore"):
            expected = lists(source.x, source.v, source.index, source, h2, eps2=eps2)
        exact.force(n, source.x, source.v, source.index, eps2=eps2, h2=h2)
        code, start, found = exact.neighbour_lists(n)
        assert code == 0
        assert [found[a:b] for a, b in itertools.pairwise(start)] == expected


@pytest.mark.parametrize("far", [0.0, 1e8, 1e25])
@pytest.mark.parametrize("mode", ["grape", "double"])
def test_places_that_need_their_low_halves(new_session, mode, isa, far):
    """Particles at a distance from the others where only a difference of the halves tells who is
    within the radius."""
    session = new_session(precision=mode, isa=isa)
    rng = np.random.default_rng(3)
    x = rng.standard_normal((1100, 3))
    x[1000:] = far + x[1000:] * max(far, 1.0) * 1e-6
    for address, place in enumerate(x):
        assert session.put(address, address, 1.0, place) == 0
    rows = np.arange(950, 1050)
    other = x[rng.integers(1000, 1100, 100)]
    h2 = ((x[rows] - other) ** 2).sum(-1) * rng.choice([0.99, 1.01], 100)
    with np.errstate(invalid="ignore"):
        r2 = ((x[rows][:, None] - x[None]) ** 2).sum(-1)
    session.force(1100, x[rows], index=rows, h2=h2)
    _, start, found = session.neighbour_lists(100)
    for k, row in enumerate(rows):
        mine = set(found[start[k] : start[k + 1]]) | {row}
        sure = set(np.flatnonzero(r2[k] < 0.995 * h2[k]).tolist())
        none = set(np.flatnonzero(r2[k] > 1.005 * h2[k]).tolist()) - {row}
        assert sure <= mine, row
        assert not none & mine, row


def test_slots_that_hold_nothing_are_in_no_list(session):
    for address in (3, 40, 1500):
        session.put(address, address, 0.0 if address == 40 else 1.0, (0, address, 0))
    session.force(2000, np.zeros((3, 3)), h2=[np.inf, 41.0**2, 1e300])
    assert session.neighbour_lists(3) == (0, [0, 3, 5, 8], [3, 40, 1500, 3, 40, 3, 40, 1500])


def test_lists_do_not_depend_on_threads_nor_on_the_call(new_session, mode):
    n, found = 3000, []
    source = cloud(n, seed=9)
    h2 = radii(np.random.default_rng(9), n)
    for threads in (1, 3):
        session = new_session(precision=mode, threads=threads)
        session.put_cloud(source)
        for block in (n, 700, 2):
            rows = slice(0, block)
            session.force(n, source.x[rows], source.v[rows], source.index[rows], h2=h2[rows])
            _, start, each = session.neighbour_lists(block)
            found.append((block, start[:3], each[: start[2]]))
    assert all(each[1:] == found[0][1:] for each in found)


def test_the_particle_itself_and_all_of_its_index(session):
    for address, index in enumerate([7, 5, 7, 9, 7]):
        session.put(address, index, 1.0, (0, address, 0))
    call = 5, np.zeros((3, 3)), None, [7, 5, 6]
    session.force(*call, h2=np.inf)
    assert session.neighbour_lists(3) == (0, [0, 2, 6, 11], [5, 9, 7, 7, 7, 9, 5, 7, 7, 7, 9])
    session.set_int("G6X_NEIGHBOUR_SELF", 1)
    assert session.neighbour_lists(3)[1] == [0, 5, 10, 15]  # as for the lists one by one
    assert session.neighbours(1) == (0, 5, [5, 7, 7, 7, 9])


def test_a_short_array_is_told_of_and_start_is_right(session):
    source = cloud(100)
    session.put_cloud(source)
    session.force(100, source.x[:20], source.v[:20], source.index[:20], h2=np.inf)
    whole = session.neighbour_lists(20)
    assert whole[:2] == (0, [99 * k for k in range(21)])
    for capacity in (0, 1, 98, 1979):
        code, start, _ = session.neighbour_lists(20, capacity)
        assert (code, start) == (TOO_SHORT, whole[1])
    assert session.neighbour_lists(20, 1980) == whole
    assert session.neighbour_lists(20, 2000)[:2] == whole[:2]
    start = np.zeros(21, np.int64)
    count = "g6x_get_neighbour_lists", session.cluster, 20, 0, start, None
    assert capi.call(*count) == TOO_SHORT
    assert start.tolist() == whole[1]


def test_lists_hold_what_was_written_later_out(session):
    source = cloud(200)
    session.put_cloud(source)
    args = source.x[:9], source.v[:9], source.index[:9]
    session.first(200, *args, h2=1.0)
    before = session.neighbour_lists(9)
    for address in range(0, 200, 3):
        session.put(address, 5000 + address, 1.0, (1e3, 0, 0), v=(1, 1, 1))
    session.set_ti(0.5)
    assert session.neighbour_lists(9) == before
    assert session.last(200, *args).code == 0
    assert session.neighbour_lists(9) == before
    session.force(200, *args, h2=1.0)
    assert session.neighbour_lists(9) != before


def test_codes_of_calls_that_have_no_lists(session):
    codes = {name: capi.CONSTANTS[f"G6X_E_{name}"] for name in ("NO_FIRSTHALF", "MISMATCH", "NULL")}
    assert session.neighbour_lists(3, 5)[:2] == (codes["NO_FIRSTHALF"], [0] * 4)
    session.put_cloud(cloud(10))
    session.force(10, np.zeros((3, 3)), h2=np.inf)
    assert session.neighbour_lists(2, 5)[:2] == (codes["MISMATCH"], [0] * 3)
    assert session.neighbour_lists(4, 5)[0] == codes["MISMATCH"]
    start = np.full(4, -777, np.int64)
    name = "g6x_get_neighbour_lists"
    assert capi.call(name, session.cluster, 3, 5, start, None) == codes["NULL"]
    assert start.tolist() == [0] * 4
    start[:] = -777
    for more in (100, 2**31 - 1):  # of a caller with an array for three
        assert capi.call(name, session.cluster, more, 0, start, None) == codes["MISMATCH"]
        assert start.tolist() == [0] * 4
    assert capi.call(name, session.cluster, 3, 0, None, None) == codes["NULL"]
    assert session.neighbour_lists(3)[0] == 0
    assert session.first(10, *np.zeros((2, 0, 3)), np.zeros(0, np.int32)) == 0
    assert session.neighbour_lists(0) == (0, [0], [])
    session.force(0, np.zeros((2, 3)), h2=np.inf)
    assert session.neighbour_lists(2) == (0, [0, 0, 0], [])


def test_the_list_of_an_i_particle_with_a_nan_is_empty(session):
    session.put_cloud(cloud(10))
    x = np.zeros((3, 3))
    x[1, 2] = np.nan
    session.force(10, x, index=[50, 51, 52], h2=np.inf)
    everybody = list(range(10))
    code = capi.CONSTANTS["G6X_E_I_NAN"]
    assert session.neighbour_lists(3) == (code, [0, 10, 10, 20], 2 * everybody)
    assert session.neighbours(1)[:2] == (code, 0)
    assert session.neighbours(2) == (0, 10, everybody)


@pytest.mark.backends("cpu cpu-tree")
def test_more_neighbours_than_are_found_at_a_time(new_session):
    """Lists of 2^24 indices and more come in several pieces."""
    n, ni = 9000, 2000
    session = new_session()
    source = cloud(n, seed=4)
    session.put_cloud(source)
    session.force(n, source.x[:ni], source.v[:ni], source.index[:ni], h2=np.inf)
    code, start, found = session.neighbour_lists(ni)
    assert code == 0
    assert start == [(n - 1) * k for k in range(ni + 1)]
    rows = np.array(found, np.int32).reshape(ni, n - 1)
    for row in (0, 1, 1863, 1864, 1865, ni - 1):
        assert np.array_equal(rows[row], np.delete(np.arange(n), row))
    for pipe in (1999, 3, 1900):
        assert session.neighbours(pipe) == (0, n - 1, rows[pipe].tolist())

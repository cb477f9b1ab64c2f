"""Neighbour lists, one by one and of a whole force call (g6x_get_neighbour_lists), and nearest
neighbours: radius, order, ties. Overflow, self, and what lists are of when: test_fuzz.py."""

import itertools

import numpy as np
import pytest

import capi
from particles import assert_zero, cloud, direct, lists

pytestmark = pytest.mark.backends("cpu cuda cpu-tree cuda-tree gpu")
SPECIAL = [0.0, -0.0, -1.0, np.nan, np.inf, -np.inf, 1e300, 1e-300]


def spread(session, indices, distances):
    for address, (index, distance) in enumerate(zip(indices, distances, strict=True)):
        assert session.put(address, index, 1.0, (0, distance, 0)) == 0


def one_by_one(session, ni):
    """Code, start and list as the call for all would give them."""
    found = [session.neighbours(pipe) for pipe in range(ni)]
    start = [0, *itertools.accumulate(length for _, length, _ in found)]
    return min(code for code, *_ in found), start, [index for *_, each in found for index in each]


def radii(rng, n):
    """Squares of some that hold few, many, all or nobody."""
    usual = rng.choice([0.01, 0.3, 4.0], n) * rng.random(n)
    return np.where(rng.random(n) < 0.2, rng.choice(SPECIAL, n), usual)


def test_3_38_2_6_lists_are_those_of_brute_force(session, mode):
    n, rng = 1300, np.random.default_rng(5)
    source = cloud(n, seed=5)
    source.index[:] = rng.permutation(10**6)[:n] - 500000
    session.put_cloud(source)
    rows = slice(500, 650)
    args = source.x[rows], source.v[rows], source.index[rows]
    s2 = ((source.x[rng.integers(0, n, 150)] - args[0]) ** 2).sum(-1)  # to some other, or nearly
    for eps2 in (0.0, 0.25):
        edge = 1e-9 if mode == "double" else 1e-3
        h2 = np.where(rng.random(150) < 0.5, s2 * (1 + edge) + eps2, radii(rng, 150))
        with np.errstate(invalid="ignore"):
            expected = lists(*args, source, h2, eps2=eps2)
        found = session.force(n, *args, eps2=eps2, h2=h2)
        assert found.nearest.tolist() == direct(*args, source)[3].tolist()
        assert capi.call("g6_read_neighbour_list", session.cluster) == 0
        start = [0, *itertools.accumulate(map(len, expected))]
        whole = 0, start, list(itertools.chain(*expected))
        assert session.neighbour_lists(150) == one_by_one(session, 150) == whole


def test_row24_all_lists_are_those_of_each(new_session, isa):
    for n in (1, 15, 63, 65, 1023, 1025, 6000):
        session = new_session(isa=isa)
        source, rng = cloud(n, seed=n), np.random.default_rng(n)
        source.index[:] = rng.permutation(10 * n)[:n] - n
        session.put_cloud(source)
        for ni, eps2 in ((1, 0.0), (min(n, 70), 0.01)):
            args = source.x[:ni], source.v[:ni], source.index[:ni]
            h2 = radii(rng, ni)
            h2[-1] = np.inf
            assert session.force(n, *args, eps2=eps2, h2=h2).code == 0
            found = session.neighbour_lists(ni)
            assert found[1][-1] - found[1][-2] == n - 1
            assert found == one_by_one(session, ni), n
        session.set_int("G6X_THREADS", 1)
        assert session.force(n, *args, eps2=eps2, h2=h2).code == 0
        assert session.neighbour_lists(ni) == found


@pytest.mark.backends("cpu cuda cpu-tree:grape gpu")
@pytest.mark.parametrize("far", [0.0, 1e8, 1e25])
@pytest.mark.parametrize("mode", ["grape", "double"])
def test_places_that_need_their_low_halves(new_session, mode, isa, far):
    """Particles at a distance from the others where only a difference of the halves tells who is
    within the radius."""
    session = new_session(precision=mode, isa=isa)
    rng = np.random.default_rng(3)
    x = rng.standard_normal((1100, 3))
    x[1000:] = far + x[1000:] * max(far, 1.0) * 1e-6
    places = cloud(1100)
    places.x[:] = x
    assert session.put_cloud(places) == 0
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


@pytest.mark.full
@pytest.mark.backends("cpu cpu-tree")
def test_more_neighbours_than_are_found_at_a_time(plain):
    """Lists of 2^24 indices and more come in several pieces."""
    n, ni = 9000, 1900
    source = cloud(n, seed=4)
    plain.put_cloud(source)
    plain.force(n, source.x[:ni], source.v[:ni], source.index[:ni], h2=np.inf)
    start, rows = np.zeros(ni + 1, np.int64), np.zeros((ni, n - 1), np.int32)
    call = "g6x_get_neighbour_lists", plain.cluster, ni, rows.size, start, rows
    assert capi.call(*call) == 0
    assert (start == (n - 1) * np.arange(ni + 1)).all()
    for row in (0, 1863, 1864, 1865, ni - 1):
        right = np.delete(np.arange(n), row)
        assert np.array_equal(rows[row], right)
        assert plain.neighbours(row) == (0, n - 1, right.tolist())


def test_2_7_ties_go_to_the_lowest_address(new_session, isa):
    session = new_session(isa=isa)
    angles = [(1, 0, 0), (0, -1, 0), (0, 0, 1), (-1, 0, 0)]
    for address in range(1500):
        session.put(address, 10000 - address, 1.0, angles[address % 4])
    for n in (2, 17, 1500):
        found = session.force(n, np.zeros((3, 3)), index=[-1, 10000, 9999])
        assert found.nearest.tolist() == [10000, 9999, 10000]


def test_3_10_without_one_of_another_index_the_own_index_comes_back(new_session, isa):
    session = new_session(isa=isa)
    spread(session, [77] * 1030, np.arange(1030) + 1.0)
    for n in (1, 2, 17, 1030, 1033):  # slots never set among the last
        found = session.force(n, np.zeros((3, 3)), index=[77, 5, 77])
        assert found.nearest.tolist() == [77, 77, 77]
        assert not found.acc[[0, 2]].any()
        assert found.acc[1, 1] > 0
        crowd = session.force(n, np.ones((20, 3)), index=[77] * 20)
        assert (crowd.nearest == 77).all()
        assert_zero(crowd)
    assert session.force(0, np.zeros((1, 3)), index=[5]).nearest[0] == 5


def test_2_7_distances_do_not_depend_on_how_many_are_asked_for_at_once(plain):
    """Thousands are found by several threads, on a GPU while the sums go on."""
    n, ni = 300, 3000
    source = cloud(n, seed=11)
    plain.put_cloud(source)
    x, v = np.random.default_rng(12).standard_normal((2, ni, 3))
    x[7] = source.x[5]
    index = np.full(ni, -1, np.int32)

    def distances(rows):
        found = np.full(rows.stop - rows.start, -777, np.float32)
        args = n, x[rows], v[rows], index[rows]
        assert plain.first(*args) == 0
        force = plain.last(*args, name="g6calc_lasthalf2p", more=[found])
        assert force.code == 0
        return force.nearest, found

    nearest, whole = distances(slice(0, ni))
    true = np.sqrt(((x[:, None] - source.x) ** 2).sum(-1))
    assert nearest.tolist() == true.argmin(1).tolist()
    assert np.allclose(whole, true.min(1), rtol=1e-7, atol=0)
    assert whole[7] == 0
    for first in (0, ni - 300):
        rows = slice(first, first + 300)
        assert distances(rows)[1].tobytes() == whole[rows].tobytes()

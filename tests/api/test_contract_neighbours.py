"""Neighbour lists and nearest neighbours: radius, order, overflow, ties, self."""

import numpy as np
import pytest

import capi
from particles import assert_zero, cloud, direct, lists

pytestmark = pytest.mark.backends("cpu cuda cpu-tree cuda-tree gpu")

ORIGIN = np.zeros((1, 3))


def spread(session, indices, distances):
    for address, (index, distance) in enumerate(zip(indices, distances, strict=True)):
        assert session.put(address, index, 1.0, (0, distance, 0)) == 0


def test_3_38_2_6_lists_are_those_of_brute_force(session):
    source = cloud(500, seed=3)
    source.index[:] = np.random.default_rng(1).permutation(10**6)[:500] - 500000
    session.put_cloud(source)
    h2 = np.random.default_rng(2).uniform(0, 2, 500)
    expected = lists(source.x, source.v, source.index, source, h2, eps2=0.01)
    session.force(500, source.x, source.v, source.index, eps2=0.01, h2=h2)
    assert capi.call("g6_read_neighbour_list", session.cluster) == 0
    assert [session.neighbours(i) for i in range(500)] == [(0, len(e), e) for e in expected]


def test_row12_3_22_radii_that_hold_nobody_or_everybody(session):
    """Each on its own, and in one block."""
    nobody, everybody = [0.0, -1.0, -np.inf, np.nan, -0.0], [np.inf, 1.7e308, 1e80]
    spread(session, [5, 3, 4], [1.0, 1e30, 1e-30])
    for h2 in *([each] for each in nobody + everybody), nobody + everybody:
        found = session.force(3, np.zeros((len(h2), 3)), index=[4] * len(h2), h2=h2)
        assert found.code == 0
        assert np.isfinite(found.acc).all()
        for pipe, each in enumerate(h2):
            whole = [3, 5] if each in everybody else []
            assert session.neighbours(pipe) == (0, len(whole), whole), each


def test_2_6_the_test_is_softened_and_includes_the_edge(exact):
    spread(exact, [1, 2, 3], [3.0, 2.0, 4.0])
    exact.force(3, np.zeros((3, 3)), eps2=16.0, h2=[25.0, np.nextafter(25.0, 0), 16.0])
    assert [exact.neighbours(i)[2] for i in range(3)] == [[1, 2], [2], []]


def test_2_6_h2_equal_to_eps2_gives_empty_lists(session):
    source = cloud(100)
    session.put_cloud(source)
    session.force(100, source.x, source.v, source.index, eps2=1e-4, h2=1e-4)
    assert {session.neighbours(i)[1] for i in range(100)} == {0}


def test_row24_3_21_overflow_gives_the_lowest_indices_and_the_true_length(session):
    spread(session, [9, -4, 2147483647, 0, 7], [1.0, 2.0, 3.0, 4.0, 5.0])
    session.force(5, ORIGIN, h2=np.inf)
    assert capi.call("g6_read_neighbour_list", session.cluster) == 0
    whole = [-4, 0, 7, 9, 2147483647]
    for limit in (0, 1, 4, 5, 6, 100):
        assert session.neighbours(0, limit) == (int(limit < 5), 5, whole[:limit])


def test_row24_lists_of_any_length_fit(session):
    n = 20000
    source = cloud(n)
    source.index[:] = np.random.default_rng(5).permutation(n)
    session.put_cloud(source)
    found = session.force(n, source.x[:3], source.v[:3], source.index[:3], h2=np.inf)
    assert found.code == 0
    assert capi.call("g6_read_neighbour_list", session.cluster) == 0
    for pipe in (2, 0, 1, 2):
        code, length, found = session.neighbours(pipe)
        assert (code, length) == (0, n - 1)
        assert found == sorted(set(range(n)) - {int(source.index[pipe])})


@pytest.mark.parametrize("read", ["g6_read_neighbour_list", "g6_read_neighbour_list_old"])
@pytest.mark.parametrize("nearest", [True, False], ids=["3.23-lasthalf2", "3.23-lasthalf"])
def test_lists_follow_either_lasthalf(session, read, nearest):
    spread(session, [1, 2], [1.0, 2.0])
    session.force(2, ORIGIN, h2=2.0, nearest=nearest)
    assert capi.call(read, session.cluster) == 0
    assert session.neighbours(0) == (0, 1, [1])


def test_2_6_lists_stay_readable_until_the_next_firsthalf(session):
    spread(session, [1, 2], [1.0, 2.0])
    session.force(2, np.zeros((3, 3)), h2=[2.0, 9.0, 0.5])
    session.put(0, 55, 1.0, (0, 9, 0), v=(1, 1, 1))
    session.set_ti(3.0)
    for _ in range(2):
        assert [session.neighbours(i)[2] for i in (2, 1, 0)] == [[], [1, 2], [1]]
    session.force(2, ORIGIN, h2=1e6)
    assert session.neighbours(0)[2] == [2, 55]


def test_3_24_unused_pipes_neither_overflow_nor_show(session):
    source = cloud(300)
    session.put_cloud(source)
    session.force(300, source.x[:48], source.v[:48], source.index[:48], h2=np.inf)
    session.force(300, source.x[:1], source.v[:1], source.index[:1], h2=0.01)
    assert capi.call("g6_read_neighbour_list", session.cluster) == 0
    assert session.neighbours(0)[0] == 0
    assert session.neighbours(1)[:2] == (-25, 0)


def test_3_2_the_particle_itself_is_listed_only_on_request(session):
    spread(session, [1, 2], [0.0, 2.0])
    session.force(2, ORIGIN, index=[1], h2=9.0)
    assert session.neighbours(0)[2] == [2]
    session.set_int("G6X_NEIGHBOUR_SELF", 1)
    found = session.force(2, ORIGIN, index=[1], h2=9.0)
    assert session.neighbours(0)[2] == [1, 2]
    assert found.nearest[0] == 2
    assert found.acc[0, 1] == pytest.approx(0.25)


def test_2_7_nearest_neighbours_are_those_of_brute_force(session):
    source = cloud(2100, seed=7)
    source.index[:] = np.random.default_rng(1).permutation(10**6)[:2100]
    session.put_cloud(source)
    rows = slice(900, 1200)
    args = source.x[rows], source.v[rows], source.index[rows]
    for eps2 in (0.0, 0.25):
        found = session.force(2100, *args, eps2=eps2)
        assert found.nearest.tolist() == direct(*args, source)[3].tolist()


@pytest.mark.parametrize("n", [2, 17, 1500])
def test_2_7_ties_go_to_the_lowest_address(session, n):
    angles = [(1, 0, 0), (0, -1, 0), (0, 0, 1), (-1, 0, 0)]
    for address in range(n):
        session.put(address, 10000 - address, 1.0, angles[address % 4])
    found = session.force(n, np.zeros((3, 3)), index=[-1, 10000, 9999])
    assert found.nearest.tolist() == [10000, 9999, 10000]


def test_3_10_without_a_neighbour_the_own_index_comes_back(session):
    spread(session, [123], [1.0])
    assert session.force(1, ORIGIN, index=[123]).nearest[0] == 123
    assert session.force(0, ORIGIN, index=[5]).nearest[0] == 5
    for block in (None, 1):
        crowd = session.force(1, np.ones((20, 3)), index=[123] * 20, block=block)
        assert (crowd.nearest == 123).all()
        assert_zero(crowd)
    unset = session.force(4, ORIGIN, index=[123])
    assert unset.nearest[0] == 123
    assert unset.code == 0


@pytest.mark.parametrize("n", [2, 3, 17, 1030])
def test_3_10_nobody_else_means_nobody_of_another_index(session, n):
    spread(session, [77] * n, np.arange(n) + 1.0)
    found = session.force(n, np.zeros((3, 3)), index=[77, 5, 77])
    assert found.nearest.tolist() == [77, 77, 77]
    assert not found.acc[[0, 2]].any()
    assert found.acc[1, 1] > 0


def test_2_7_a_distinct_particle_at_the_same_place_is_the_nearest(session):
    spread(session, [4, 5, 6], [1.0, 0.0, 0.5])
    assert session.force(3, ORIGIN, index=[4]).nearest[0] == 5


def test_2_7_a_large_softening_does_not_blur_who_is_nearest(session):
    for separation in (1e-2, 1e-4, 1e-6):
        spread(session, [10, 11, 12], [2 * separation, separation, 1.0])
        for eps2 in (0.0, 1e-4, 1.0, 100.0):
            assert session.force(3, ORIGIN, eps2=eps2).nearest[0] == 11, (separation, eps2)


def test_2_7_distances_do_not_depend_on_how_many_are_asked_for_at_once(plain):
    """Thousands are found by several threads, on a GPU while the sums go on."""
    n, ni = 300, 5000
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
    for first in (0, 2300, ni - 300):
        rows = slice(first, first + 300)
        assert distances(rows)[1].tobytes() == whole[rows].tobytes()

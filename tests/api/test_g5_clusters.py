"""GRAPE-5's clusters: the MC forms, threads, and what is beside them."""

import numpy as np
import pytest

import capi
from grape5 import Board, assert_force, direct, multi, stars, value
from test_faults_host import in_threads

M, XJ = stars(300)
XI = stars(64, seed=2)[1]


def test_a_softening_of_all_is_of_those_to_come_too_and_a_first_use_opens():
    """Closed with the last that was opened. Plain calls among those of clusters: test_g5_random."""
    capi.run_python("""
from grape5 import *
m, x = stars(50)
def plain():
    a, p = blank(50)
    return value("g5_calculate_force_on_x", x, a, p, 50), a, p
value("g5_open")
first, other = Board(0), Board(3)
for board in (first, other): board.load(m, x)
value("g5_set_eps_to_all", 0.2)
late = Board(4)
late("set_xmj", 0, 50, x, m), late("set_n", 50)
for found in (plain(), first.calculate(x), other.calculate(x), late.calculate(x)):
    assert_force(found, direct(x, m, x, 0.2))
for k in (0, 3, 4): multi("g5_close", k)
value("g5_close")
closed = CONSTANTS["G6X_E_NOT_OPEN"]
assert multi("g5_set_n", 7, 50) == closed
value("g5_open")
for k in (7, 8):
    assert multi("g5_set_xmj", k, 0, 50, x, m) == 0
    assert multi("g5_set_n", k, 50) == 0
    assert multi("g5_set_eps_to_all", k, 0.1) == 0
    a, p = blank(50)
    assert_force((multi("g5_calculate_force_on_x", k, x, a, p, 50), a, p), direct(x, m, x, 0.1))
value("g5_close")
assert multi("g5_run", 7) == closed
assert capi_text(7)[1] == "no cluster is open; call g5_open first"
value("g5_open"); multi("g5_open", 9); multi("g5_close", 9)
assert multi("g5_run", 9) == closed
assert capi_text(9)[1] == "GRAPE-5 cluster 9 was closed; call g5_open again"
""", GRAPE6_LOG="none")  # fmt: skip


def test_clusters_in_turn_as_vtc_uses_them(boards):
    """Opened without being initialized, twice, and again after they were closed."""
    boards()  # stays open
    for _ in range(2):
        assert (value("g5_open_noinit"), value("g5_open")) == (0, 0)
        assert value("g5_set_range", -4.0, 4.0, M[0]) == 0
        for name, *args in ("mj", M), ("xj", XJ):
            assert value(f"g5_set_{name}", 0, 300, *args) == 0
        value("g5_set_n", 300), value("g5_set_eps_to_all", 0.1)
        count = value("g5_get_number_of_pipelines_per_board")
        first, end = value("g5_get_firstcluster"), value("g5_get_number_of_boards")
        a, p = np.zeros((64, 3)), np.zeros(64)
        for k, start in enumerate(range(0, 64, count)):  # to one board after the other
            rows = slice(start, min(start + count, 64))
            cluster, ni = first + k % end, rows.stop - rows.start
            assert multi("g5_set_xi", cluster, ni, XI[rows]) == multi("g5_run", cluster) == 0
            assert multi("g5_get_force", cluster, ni, a[rows], p[rows]) == 0
        assert_force((0, a, p), direct(XI, M, XJ, 0.1))
        assert value("g5_close") == 0
    assert (value("g5_open_noinit"), value("g5_close")) == (0, 0)


def test_clusters_of_grape_6_with_the_same_number_are_others(new_session):
    six = new_session()
    board = Board(six.cluster)
    board.load(M, XJ)
    six.put(0, 7, 3.0, (1, 0, 0))
    found = six.force(1, [[0, 0, 0]], index=[1])
    assert found.code == 0
    assert found.acc[0] == pytest.approx([3, 0, 0])
    assert_force(board.calculate(XI), direct(XI, M, XJ))
    assert board("close") == 0
    assert six.force(1, [[0, 0, 0]], index=[1]).pot[0] == pytest.approx(-3)


def test_threads_may_each_have_a_cluster_or_share_one(boards):
    own, shared = [boards() for _ in range(4)], boards()
    shared.load(M, XJ)

    def work(k):
        part = slice(50 * k, 300)
        for _ in range(5):
            own[k].load(M[part], XJ[part])
            assert_force(own[k].calculate(XI), direct(XI, M[part], XJ[part]))
            assert_force(shared.calculate(XI), direct(XI, M, XJ))

    in_threads(4, work)


def test_memory_is_given_back_at_close_and_a_line_names_the_cluster():
    """In a process of its own, whose heap nothing else makes larger."""
    done = capi.run_python("""
from grape5 import *
m, x = stars(300)
sizes = []
for k in range(40):
    board = Board(60)
    board("set_xmj", 0, 300, x, m)
    board("set_eps", 64, np.ones(64))
    board("set_n", 300)
    assert board.calculate(x[:48])[0] == 0
    board("close")
    with open("/proc/self/statm") as statm:
        sizes.append(int(statm.read().split()[0]))
assert sizes[-1] == sizes[10], sizes
""", GRAPE6_LOG="info")  # fmt: skip
    assert "GRAPE-5 cluster 60: 1 force calls, 1 of them full with 48" in done.stderr

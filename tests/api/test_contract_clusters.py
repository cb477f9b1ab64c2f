"""Cluster ids: independent memories, any integer, opened and closed in any pattern."""

import numpy as np
import pytest

import capi
from particles import assert_force, cloud, direct

pytestmark = pytest.mark.backends("cpu cpu-tree cuda-tree")

ORIGIN = np.zeros((1, 3))
IDS = [32652, -1, 2147483647, -2147483648, 0, 48]


@pytest.mark.backends("cpu")
def test_2_12_clusters_have_their_own_memory_time_and_results(new_session):
    first, second = new_session(precision="double"), new_session(precision="double")
    a, b = cloud(50, seed=1, moving=True), cloud(70, seed=2, moving=True)
    first.put_cloud(a)
    second.put_cloud(b)
    first.set_ti(0.5)
    second.set_ti(0.25)
    x, v, index = np.ones((2, 3)), np.zeros((2, 3)), np.array([3, -1], np.int32)
    assert first.first(50, x, v, index, h2=1.0) == 0
    assert second.first(70, x, v, index, h2=2.0) == 0
    assert_force(first.last(50, x, v, index), direct(x, v, index, a, time=0.5), 1e-11)
    assert_force(second.last(70, x, v, index), direct(x, v, index, b, time=0.25), 1e-11)
    assert second.force(70, x, v, index, h2=0.0).code == 0
    assert first.neighbours(1)[1] > 0
    assert second.neighbours(1)[1] == 0


@pytest.mark.parametrize("cluster", IDS, ids=lambda c: f"row23-3.14-id{c}")
def test_an_id_never_opened_works_while_any_is_open(plain, cluster):
    other = object.__new__(capi.Session)
    other.cluster = cluster
    assert other.put(0, 1, 1.0, (2, 0, 0)) == 0
    found = other.force(1, ORIGIN)
    assert found.code == 0
    assert found.acc[0, 0] == pytest.approx(0.25)
    assert plain.force(1, ORIGIN).acc[0, 0] == 0
    assert other.close() == 0


def test_row21_an_id_opened_after_its_first_use_stays_with_its_particles():
    script = """
call("g6_open", 1)
s = object.__new__(Session); s.cluster = 2
assert s.put(0, 1, 1.0, (2, 0, 0)) == 0
assert call("g6_open", 2) == 0 == call("g6_close", 1)
assert abs(s.force(1, [[0, 0, 0]]).acc[0, 0] - 0.25) < 1e-7
assert s.close() == 0 and s.set_ti(0.0) == -21
"""
    assert capi.run_python(script).stdout == ""


def test_row23_3_14_a_null_pointer_opens():
    script = """
import ctypes
f = library().g6_open_
f.argtypes, f.restype = [ctypes.c_void_p], ctypes.c_int
assert f(None) == 0
s = object.__new__(Session); s.cluster = 0
assert s.put(0, 1, 1.0, (2, 0, 0)) == 0
assert abs(s.force(1, [[0, 0, 0]]).acc[0, 0] - 0.25) < 1e-7
"""
    assert capi.run_python(script).stderr == ""


def test_row23_3_14_open_with_one_id_and_work_with_another():
    script = """
call("g6_open", 32652)
s = object.__new__(Session); s.cluster = 3
assert s.put(0, 1, 1.0, (2, 0, 0)) == 0 and s.set_ti(0.0) == 0
assert abs(s.force(1, [[0, 0, 0]]).acc[0, 0] - 0.25) < 1e-7
assert call("g6_close", 3) == 0 and call("g6_close", 32652) == 0
"""
    assert capi.run_python(script).stderr == ""


def test_row22_opening_and_closing_twice_is_fine(plain):
    plain.put(0, 1, 1.0, (2, 0, 0))
    assert capi.call("g6_open", plain.cluster) == 0
    assert [plain.close() for _ in range(3)] == [0, 0, 0]
    assert capi.call("g6_close", 987654) == 0
    assert [capi.call("g6_open", plain.cluster) for _ in range(2)] == [0, 0]
    plain.put(0, 1, 1.0, (2, 0, 0))
    assert plain.force(1, ORIGIN).acc[0, 0] == pytest.approx(0.25)


def test_row21_closing_one_id_leaves_the_others(new_session):
    kept, closed = new_session(), new_session()
    kept.put(0, 1, 1.0, (2, 0, 0))
    closed.close()
    assert kept.force(1, ORIGIN).acc[0, 0] == pytest.approx(0.25)
    assert closed.put(0, 1, 1.0, (2, 0, 0)) == -21
    new_session()
    assert closed.put(0, 1, 1.0, (3, 0, 0)) == 0
    assert closed.force(1, ORIGIN).acc[0, 0] == pytest.approx(1 / 9)
    assert closed.close() == 0


def test_2_13_a_closed_memory_is_not_seen_by_the_next_owner_of_the_id(plain):
    plain.put(0, 1, 1.0, (2, 0, 0))
    plain.set_ti(9.0)
    plain.close()
    capi.call("g6_open", plain.cluster)
    plain.put(1, 2, 1.0, (3, 0, 0))
    found = plain.force(2, ORIGIN)
    assert found.code == 0
    assert found.acc[0, 0] in (
        pytest.approx(1 / 9),
        pytest.approx(1 / 9 + 1 / 4),
    )


def test_row22_3_25_opening_and_closing_leaves_memory_and_descriptors_as_they_were():
    script = """
import os
def state():
    status = open("/proc/self/status").read().split("VmRSS:")[1].split()[0]
    return int(status), len(os.listdir("/proc/self/fd"))
source = cloud(200)
def once(k):
    call("g6_open", k % 3); s = object.__new__(Session); s.cluster = k % 3
    s.put_cloud(source); s.force(200, source.x[:4], index=[0, 1, 2, 3], h2=1.0); s.close()
def work(times):
    for k in range(times): once(k)
    for k in range(30 * times): call("g6_open", 1000 + k); call("g6_close", 1000 + k)
slow = "GRAPE6_TEST_CARD" in os.environ  # the fake device
work(50 if slow else 200)  # so much that Python has collected its garbage
before = state()
work(50 if slow else 3000)
after = state()
assert after[0] - before[0] < 2000 and after[1] == before[1], (before, after)
"""
    assert capi.run_python(script).stderr == ""


def test_2_9_kiras_recovery_sequence(plain):
    source, cluster = cloud(30), plain.cluster
    plain.put_cloud(source)
    for name in ("g6_reset", "g6_reset_fofpga", "g6_close", "g6_open"):
        assert capi.call(name, cluster) == 0
    assert capi.call("g6_set_tunit", 51) == 0
    assert capi.call("g6_set_xunit", 51) == 0
    assert plain.set_ti(0.0) == 0
    assert plain.put_cloud(source) == 0
    found = plain.force(30, source.x, source.v, source.index)
    assert_force(found, direct(source.x, source.v, source.index, source), 1e-3)


@pytest.mark.backends("cpu")
def test_2_12_forces_of_several_clusters_add_up(new_session):
    source, parts = cloud(90, seed=4), [new_session(precision="double") for _ in range(3)]
    total = np.zeros((90, 3))
    for k, part in enumerate(parts):
        part.put_cloud(source.take(range(k, 90, 3)))
        total += part.force(30, source.x, source.v, source.index).acc
    expected = direct(source.x, source.v, source.index, source)[0].astype(float)
    assert total == pytest.approx(expected, rel=1e-10, abs=1e-10)

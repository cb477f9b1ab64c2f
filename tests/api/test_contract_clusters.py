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
    other = capi.Session.unopened(cluster)
    assert other.put(0, 1, 1.0, (2, 0, 0)) == 0
    found = other.force(1, ORIGIN)
    assert found.code == 0
    assert found.acc[0, 0] == pytest.approx(0.25)
    assert plain.force(1, ORIGIN).acc[0, 0] == 0
    assert other.close() == 0


def test_row21_row23_3_14_3_33_odd_openings():
    """With one id, to work with another; after the first use; by NULL; special, by 2 arguments."""
    done = capi.run_python("""
def use(cluster):
    s = Session.unopened(cluster)
    assert s.put(0, 1, 1.0, (2, 0, 0)) == 0 == s.set_ti(0.0)
    return s
def check(s, *others):
    assert abs(s.force(1, [[0, 0, 0]]).acc[0, 0] - 0.25) < 1e-7
    assert [call("g6_close", k) for k in (s.cluster, *others)] == [0] * (1 + len(others))
    assert s.set_ti(0.0) == -21
call("g6_open", 32652)
check(use(3), 32652)
call("g6_open", 1)
s = use(2)
assert call("g6_open", 2) == 0 == call("g6_close", 1)
check(s)
assert by_pointer("g6_open_", None) == 0
check(use(0))
device = np.zeros(1, np.int32)
for types, more in ([], []), ([ctypes.c_int], [1]):
    prototype = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, *types)
    assert prototype(("g6_open_special", library()))(1, device.ctypes.data, *more) == 0
    check(use(0))
for name, *more in ("g6_open_special",), ("g6_open_special2", 16):
    for opened in call(name, 1, device, *more), by_pointer(name + "_", 1, device, *more):
        assert opened == 0
    check(use(0))
""", GRAPE6_LOG="none")  # fmt: skip
    assert done.stdout == ""


def test_row22_2_13_opening_and_closing_twice_is_fine_and_closing_forgets_particles_and_time(plain):
    plain.put(0, 1, 1.0, (2, 0, 0))
    plain.set_ti(9.0)
    assert capi.call("g6_open", plain.cluster) == 0
    assert [plain.close() for _ in range(3)] == [0, 0, 0]
    assert capi.call("g6_close", 987654) == 0
    assert [capi.call("g6_open", plain.cluster) for _ in range(2)] == [0, 0]
    plain.put(1, 2, 1.0, (3, 0, 0), v=(1, 0, 0))
    found = plain.force(2, ORIGIN)
    assert found.code == 0
    assert found.acc[0, 0] == pytest.approx(1 / 9)


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


@pytest.mark.backends("cuda-tree")
def test_row22_3_25_opening_and_closing_leaves_memory_and_descriptors_as_they_were():
    """On a device. Without one: test_resources.py."""
    done = capi.run_python("""
source = cloud(200)
def state():
    status = open("/proc/self/status").read().split("VmRSS:")[1].split()[0]
    return int(status), len(os.listdir("/proc/self/fd"))
def work():
    for k in range(50):
        s = Session(k % 3)
        s.put_cloud(source); s.force(200, source.x[:4], index=[0, 1, 2, 3], h2=1.0); s.close()
    for k in range(1500): call("g6_open", 1000 + k); call("g6_close", 1000 + k)
    return state()
before, after = work(), work()
assert after[0] - before[0] < 2000 and after[1] == before[1], (before, after)
""")
    assert done.stderr == ""


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

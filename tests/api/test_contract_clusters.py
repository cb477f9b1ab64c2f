"""Cluster ids: any integer, opened and closed in any pattern.

That each has a memory, a time and results of its own: test_fuzz.py."""

import numpy as np
import pytest

import capi

pytestmark = pytest.mark.backends("cpu cuda-tree")
ORIGIN = np.zeros((1, 3))


def test_row23_3_14_an_id_never_opened_works_while_any_is_open(plain):
    for cluster in (32652, -2147483648, 48):
        other = capi.Session.unopened(cluster)
        assert other.put(0, 1, 1.0, (2, 0, 0)) == 0
        found = other.force(1, ORIGIN)
        assert found.code == 0
        assert found.acc[0, 0] == pytest.approx(0.25)
        assert plain.force(1, ORIGIN).acc[0, 0] == 0
        assert other.close() == 0


@pytest.mark.backends("cpu")
def test_3_33_special_openings_of_two_arguments_are_of_cluster_0():
    """Others, by any id, by NULL, after the first use and of one that is open: test_fuzz.py."""
    done = capi.run_python("""
device = np.zeros(1, np.int32)
prototype = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p)
assert prototype(("g6_open_special", library()))(1, device.ctypes.data) == 0
s = Session.unopened(0)
assert s.put(0, 1, 1.0, (2, 0, 0)) == 0 == s.set_ti(0.0)
assert abs(s.force(1, [[0, 0, 0]]).acc[0, 0] - 0.25) < 1e-7
assert s.close() == 0 and s.set_ti(0.0) == -21
""", GRAPE6_LOG="none")  # fmt: skip
    assert done.stdout == ""


def test_row21_row22_2_13_closing_forgets_that_id_alone_and_twice_is_fine(new_session):
    kept, closed = new_session(), new_session()
    kept.put(0, 1, 1.0, (2, 0, 0))
    closed.put(0, 1, 1.0, (2, 0, 0))
    closed.set_ti(9.0)
    assert capi.call("g6_open", closed.cluster) == 0  # is open
    assert [closed.close() for _ in range(3)] == [0, 0, 0]
    assert capi.call("g6_close", 987654) == 0
    assert kept.force(1, ORIGIN).acc[0, 0] == pytest.approx(0.25)
    assert closed.put(0, 1, 1.0, (2, 0, 0)) == -21
    new_session()
    assert closed.put(1, 2, 1.0, (3, 0, 0), v=(1, 0, 0)) == 0
    found = closed.force(2, ORIGIN)
    assert found.code == 0
    assert found.acc[0, 0] == pytest.approx(1 / 9)
    assert closed.close() == 0

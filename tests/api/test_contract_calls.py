"""The low-level calls, and openings of two arguments.

Arrays of the two halves, which may overlap, the order of calls, ids of clusters: test_fuzz.py."""

import numpy as np
import pytest

import capi
from particles import cloud

pytestmark = pytest.mark.backends("cpu cuda gpu")
SOURCE = cloud(64, seed=11)
X, V, INDEX = SOURCE.x[:20].copy(), SOURCE.v[:20].copy(), SOURCE.index[:20].copy()


def test_1_3_low_level_calls_give_the_force_of_firsthalf(plain):
    """Pipes that were set before keep their particles when more come."""
    plain.put_cloud(SOURCE)
    expected, cluster = plain.force(64, X, V, INDEX, eps2=0.01), plain.cluster
    assert capi.call("g6_set_njp", cluster, 64) == 0
    for pipe, i in (3, 3), (1, 1), (4, 4), (0, 0), (2, 2), (700, 3):
        args = cluster, pipe, int(INDEX[i]), X[i], V[i], 0.01, 0.5
        assert capi.call("g6_set_i_particle", *args) == 0
    for nip in (5, 701, 2000):
        assert capi.call("g6_set_nip", cluster, nip) == 0
        out, flag = capi.Force.blank(nip), np.full(nip, -777, np.int32)
        args = cluster, out.acc, out.jerk, out.pot, out.nearest, flag
        assert capi.call("g6_get_force_etc", *args) == 0
        for name in ("acc", "jerk", "pot", "nearest"):
            right = getattr(expected, name)
            assert (getattr(out, name)[:5] == right[:5]).all()
            assert nip == 5 or (getattr(out, name)[700] == right[3]).all()
        assert not flag.any()


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

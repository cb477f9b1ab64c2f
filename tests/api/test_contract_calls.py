"""The two halves of a force call: arrays, overlaps, and what is ignored.

That nothing beyond ni entries is read or written, the order of calls, and what is of a cluster id:
test_fuzz.py."""

import numpy as np
import pytest

import capi
from particles import cloud, direct

pytestmark = pytest.mark.backends("cpu cuda gpu")
SOURCE = cloud(64, seed=11)
X, V, INDEX = SOURCE.x[:20].copy(), SOURCE.v[:20].copy(), SOURCE.index[:20].copy()
EXPECTED = direct(X, V, INDEX, SOURCE, eps2=1e-4)
NAMES = ("acc", "jerk", "pot")


def halves(session, shared, **given):
    """Both halves on the caller's own arrays; "acc=x": what is written to acc is that of x."""
    a = {name: np.zeros((20, 3)) for name in "aold jold acc jerk".split()}
    a |= {name: np.zeros(20) for name in "pold h2 pot".split()}
    a |= {"index": INDEX.copy(), "x": X.copy(), "v": V.copy(), "nn": np.zeros(20, np.int32)}
    a |= {name: np.array(array) for name, array in given.items()}
    for one, other in (pair.split("=") for pair in shared.split()):
        a[one] = a[other]
    before = {name: array.copy() for name, array in a.items()}
    head = session.cluster, 64, 20, a["index"], a["x"], a["v"]
    old, out = ([a[name] for name in names] for names in (("aold", "jold", "pold"), NAMES))
    assert capi.call("g6calc_firsthalf", *head, *old, 1e-4, a["h2"]) == 0
    assert capi.call("g6calc_lasthalf2", *head, 1e-4, a["h2"], *out, a["nn"]) == 0
    return a, before


@pytest.mark.parametrize(("shared", "garbage"), [
    ("acc=aold jerk=jold pot=pold", np.nan), ("acc=x jerk=v pot=h2 nn=index", np.inf),
    ("acc=v jerk=x", 1e-320), ("aold=v jold=v pold=h2", -1e308),
], ids=["3.6-3.9-old-forces", "3.6-row38-on-top", "row38-crosswise", "3.8-3.32"])  # fmt: skip
def test_arrays_may_be_shared_old_forces_are_ignored_and_inputs_kept(in_double, shared, garbage):
    in_double.put_cloud(SOURCE)
    old = {"aold": np.full((20, 3), garbage), "jold": np.full((20, 3), garbage)}
    a, before = halves(in_double, shared, pold=old["aold"][:, 0], h2=np.full(20, 0.5), **old)
    for name, expected in zip(NAMES, EXPECTED, strict=False):
        assert np.allclose(a[name], expected.astype(float), rtol=1e-11, atol=1e-12), name
    assert (a["nn"] == EXPECTED[3]).all()
    written = [a[name] for name in (*NAMES, "nn")]
    for name in "index x v aold jold pold h2".split():
        if not any(a[name] is array for array in written):
            assert a[name].tobytes() == before[name].tobytes(), name


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
        for name in (*NAMES, "nearest"):
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

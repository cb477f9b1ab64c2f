"""The two halves of a force call: arrays, overlaps, order, and what is ignored."""

import numpy as np
import pytest

import capi
from particles import assert_force, cloud, direct

pytestmark = pytest.mark.backends("cpu cuda gpu")

SOURCE = cloud(64, seed=11)
X, V, INDEX = SOURCE.x[:20].copy(), SOURCE.v[:20].copy(), SOURCE.index[:20].copy()
EXPECTED = direct(X, V, INDEX, SOURCE, eps2=1e-4)


@pytest.fixture
def filled(exact):
    exact.put_cloud(SOURCE)
    return exact


def halves(session, shared="", **given):
    """Both halves on the caller's own arrays; "acc=x": what is written to acc is that of x."""
    zero3, zero = np.zeros((20, 3)), np.zeros(20)
    a = {
        "index": INDEX,
        "x": X,
        "v": V,
        "aold": zero3,
        "jold": zero3,
        "pold": zero,
        "h2": zero,
        "acc": zero3,
        "jerk": zero3,
        "pot": zero,
        "nn": np.zeros(20, np.int32),
        **given,
    }
    a = {name: array.copy() for name, array in a.items()}
    for one, other in (pair.split("=") for pair in shared.split()):
        a[one] = a[other]
    before = {name: array.copy() for name, array in a.items()}
    head = session.cluster, 64, 20, a["index"], a["x"], a["v"]
    old, out = ([a[name] for name in names.split()] for names in ("aold jold pold", "acc jerk pot"))
    assert capi.call("g6calc_firsthalf", *head, *old, 1e-4, a["h2"]) == 0
    assert capi.call("g6calc_lasthalf2", *head, 1e-4, a["h2"], *out, a["nn"]) == 0
    return a, before


def assert_results(a, names="acc jerk pot"):
    for name, expected in zip("acc jerk pot".split(), EXPECTED, strict=False):
        if name in names.split():
            assert np.allclose(a[name], expected.astype(float), rtol=1e-11, atol=1e-12), name
    assert (a["nn"] == EXPECTED[3]).all()


@pytest.mark.parametrize("garbage", [np.nan, np.inf, 1e-320, -1e308], ids=lambda g: f"3.9-{g}")
def test_old_forces_are_ignored(filled, garbage):
    old = np.full((20, 3), garbage)
    assert_results(halves(filled, aold=old, jold=old, pold=old[:, 0])[0])


@pytest.mark.parametrize("shared", [
    "acc=aold jerk=jold pot=pold", "acc=x jerk=v pot=h2 nn=index", "acc=v jerk=x",
], ids=["3.6-old-forces", "3.6-row38-on-top", "row38-crosswise"])  # fmt: skip
def test_outputs_may_be_the_arrays_of_inputs(filled, shared):
    assert_results(halves(filled, shared, h2=np.full(20, 0.5))[0])


def test_3_7_row38_acc_and_jerk_may_be_one_array(filled):
    a, _ = halves(filled, "acc=jerk")
    assert_results(a, "pot")
    rows = zip(a["acc"], *EXPECTED[:2], strict=True)
    assert all(np.allclose(found, acc.astype(float)) or np.allclose(found, jerk.astype(float))
               for found, acc, jerk in rows)  # fmt: skip


@pytest.mark.parametrize("shared", ["", "aold=v jold=v pold=h2"], ids=["3.32", "3.8-3.32"])
def test_inputs_are_not_modified_though_one_zero_array_may_serve_for_all(filled, shared):
    given = {"v": 0 * V} if shared else {"aold": V + 3.5, "h2": np.full(20, 0.7)}
    a, before = halves(filled, shared, **given)
    assert_results(a, "acc")
    for name in "index x v aold jold pold h2".split():
        assert (a[name] == before[name]).all(), name


def test_3_8_nothing_beyond_ni_entries_is_read_or_written():
    capi.run_python("""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype, page = ctypes.c_void_p, 4096
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
def guarded(values):
    values = np.ascontiguousarray(values)
    start = libc.mmap(None, 2 * page, 3, 0x22, -1, 0)
    assert libc.mprotect(start + page, page, 0) == 0
    raw = (ctypes.c_char * values.nbytes).from_address(start + page - values.nbytes)
    array = np.frombuffer(raw, values.dtype).reshape(values.shape)
    array[...] = values
    return array
source = cloud(33); s = Session(0)
for ni in (1, 5, 16, 17, 33):
    part = source.take(range(ni))
    for name in part.__annotations__:
        setattr(part, name, guarded(getattr(part, name)))
    assert s.put_cloud(part, guarded(np.arange(ni, dtype=np.int32))) == 0
    g3, g1 = guarded(np.zeros((ni, 3))), guarded(np.zeros(ni))
    h2, out3, out1 = guarded(np.ones(ni)), guarded(np.zeros((ni, 3))), guarded(np.zeros(ni))
    jerk, nn = guarded(np.zeros((ni, 3))), guarded(np.zeros(ni, np.int32))
    head = [0, ni, ni, part.index, part.x, part.v]
    assert call("g6calc_firsthalf", *head, g3, g3, g1, 0.01, h2) == 0
    assert call("g6calc_lasthalf2", *head, 0.01, h2, out3, jerk, out1, nn) == 0
    n, code = ctypes.c_int(), 0
    found = guarded(np.zeros(2, np.int32))
    assert call("g6_get_neighbour_list", 0, ni - 1, 2, ctypes.byref(n), found) in (0, 1)
""")


def test_row16_blocks_of_any_size_are_accepted(filled):
    for ni in (1, 16, 17, 49, 1000):
        rng = np.random.default_rng(ni)
        x, v, index = rng.standard_normal((ni, 3)), rng.standard_normal((ni, 3)), np.arange(ni)
        found = filled.force(64, x, v, index)
        assert_force(found, direct(x, v, index, SOURCE), 1e-10)
        assert found.bits() == filled.force(64, x, v, index, block=48).bits()


def test_row19_3_13_a_firsthalf_without_lasthalf_is_forgotten(filled):
    filled.first(10, X[:7], V[:7], INDEX[:7], h2=np.inf)
    filled.put(3, 3, 0.5, (1, 2, 3), v=(1, 1, 1))
    filled.set_ti(0.5)
    filled.put(3, 3, SOURCE.mass[3], SOURCE.x[3], SOURCE.v[3])
    filled.set_ti(0.0)
    filled.first(10, X[:7], V[:7], INDEX[:7], h2=np.inf)
    filled.first(64, X, V, INDEX, eps2=1e-4)
    assert_force(filled.last(64, X, V, INDEX), EXPECTED, 1e-12)


def test_2_11_changes_after_firsthalf_do_not_reach_its_result(filled):
    x, v, index = X.copy(), V.copy(), INDEX.copy()
    filled.first(64, x, v, index, eps2=1e-4, h2=np.full(20, 0.5))
    for address in range(64):
        filled.put(address, address + 500, 1e9, (0.1, 0, 0), v=(1e3, 0, 0))
    filled.set_ti(1.0)
    x[:], v[:], index[:] = np.nan, np.nan, 1
    found = filled.last(64, x, v, index, eps2=-1.0)  # nor is any input read again
    assert_force(found, EXPECTED, 1e-12)
    assert (found.nearest == EXPECTED[3]).all()
    fresh = filled.force(1, [[0.1, 1, 0]])
    assert fresh.acc[0, 0] == pytest.approx(1e9 * 1e3 / (1e6 + 1) ** 1.5, rel=1e-9)

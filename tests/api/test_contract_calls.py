"""The two halves of a force call: arrays, overlaps, order, and what is ignored."""

import numpy as np
import pytest

import capi
from particles import assert_force, assert_same, cloud, direct

pytestmark = pytest.mark.backends("cpu cuda gpu")

SOURCE = cloud(64, seed=11)
X, V, INDEX = SOURCE.x[:20].copy(), SOURCE.v[:20].copy(), SOURCE.index[:20].copy()
EXPECTED = direct(X, V, INDEX, SOURCE, eps2=1e-4)


@pytest.fixture
def filled(exact):
    exact.put_cloud(SOURCE)
    return exact


def halves(session, x, v, acc, jerk, pot, index=INDEX, old=None, h2=None, nn=None):
    """firsthalf and lasthalf2 on the caller's own arrays; both codes."""
    ni, nj = len(x), len(SOURCE)
    old = old or (np.zeros((ni, 3)), np.zeros((ni, 3)), np.zeros(ni))
    h2 = np.zeros(ni) if h2 is None else h2
    nn = np.zeros(ni, np.int32) if nn is None else nn
    first = capi.call("g6calc_firsthalf", session.cluster, nj, ni, index, x, v, *old, 1e-4, h2)
    return first, capi.call("g6calc_lasthalf2", session.cluster, nj, ni, index, x, v, 1e-4, h2,
                            acc, jerk, pot, nn)  # fmt: skip


def same(found, expected):
    return np.allclose(found, expected.astype(float), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("garbage", [0.0, np.nan, np.inf, 1e-320, -1e308],
                         ids=lambda g: f"3.9-{g}")  # fmt: skip
def test_old_forces_are_ignored(filled, garbage):
    old = np.full((20, 3), garbage), np.full((20, 3), garbage), np.full(20, garbage)
    acc, jerk, pot = np.zeros((20, 3)), np.zeros((20, 3)), np.zeros(20)
    assert halves(filled, X, V, acc, jerk, pot, old=old) == (0, 0)
    assert same(acc, EXPECTED[0])
    assert same(jerk, EXPECTED[1])
    assert same(pot, EXPECTED[2])


def test_3_6_outputs_may_be_the_arrays_of_the_old_forces(filled):
    acc, jerk, pot = np.ones((20, 3)), np.ones((20, 3)), np.ones(20)
    assert halves(filled, X, V, acc, jerk, pot, old=(acc, jerk, pot)) == (0, 0)
    assert same(acc, EXPECTED[0])
    assert same(jerk, EXPECTED[1])
    assert same(pot, EXPECTED[2])


def test_3_6_row38_outputs_may_lie_on_top_of_the_inputs(filled):
    x, v, h2 = X.copy(), V.copy(), np.full(20, 0.5)
    index = INDEX.copy()
    assert halves(filled, x, v, acc=x, jerk=v, pot=h2, index=index, h2=h2, nn=index) == (0, 0)
    assert same(x, EXPECTED[0])
    assert same(v, EXPECTED[1])
    assert same(h2, EXPECTED[2])
    assert (index == EXPECTED[3]).all()


def test_row38_outputs_may_lie_on_each_others_inputs_crosswise(filled):
    x, v = X.copy(), V.copy()
    pot = np.zeros(20)
    assert halves(filled, x, v, acc=v, jerk=x, pot=pot) == (0, 0)
    assert same(v, EXPECTED[0])
    assert same(x, EXPECTED[1])
    assert same(pot, EXPECTED[2])


def test_3_7_row38_acc_and_jerk_may_be_one_array(filled):
    both, pot, nn = np.zeros((20, 3)), np.zeros(20), np.zeros(20, np.int32)
    assert halves(filled, X, V, both, both, pot, nn=nn) == (0, 0)
    assert same(pot, EXPECTED[2])
    assert (nn == EXPECTED[3]).all()
    assert all(same(b, a) or same(b, j) for b, a, j in zip(both, *EXPECTED[:2], strict=True))


def test_3_8_one_zero_array_may_serve_for_all(filled):
    zero3, zero = np.zeros((20, 3)), np.zeros(20)
    acc, jerk, pot = np.zeros((20, 3)), np.zeros((20, 3)), np.zeros(20)
    assert halves(filled, X, zero3, acc, jerk, pot, old=(zero3, zero3, zero), h2=zero) == (0, 0)
    assert same(acc, EXPECTED[0])
    assert not zero3.any()
    assert not zero.any()


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


@pytest.mark.parametrize("ni", [1, 15, 16, 17, 48, 49, 1000], ids=lambda n: f"row16-ni{n}")
def test_blocks_of_any_size_are_accepted(filled, ni):
    rng = np.random.default_rng(ni)
    x, v, index = rng.standard_normal((ni, 3)), rng.standard_normal((ni, 3)), np.arange(ni)
    found = filled.force(64, x, v, index)
    assert_force(found, direct(x, v, index, SOURCE), 1e-10)
    assert found.bits() == filled.force(64, x, v, index, block=48).bits()


def test_row19_a_second_firsthalf_replaces_the_first(filled):
    filled.first(10, X[:7], V[:7], INDEX[:7], h2=np.inf)
    filled.first(64, X, V, INDEX, eps2=1e-4)
    assert_force(filled.last(64, X, V, INDEX), EXPECTED, 1e-12)


def test_3_13_firsthalf_without_lasthalf_is_forgotten(filled):
    filled.first(64, X, V, INDEX)
    filled.put(3, 3, 0.5, (1, 2, 3), v=(1, 1, 1))
    filled.set_ti(0.5)
    filled.put(3, 3, SOURCE.mass[3], SOURCE.x[3], SOURCE.v[3])
    filled.set_ti(0.0)
    assert_force(filled.force(64, X, V, INDEX, eps2=1e-4), EXPECTED, 1e-12)


def test_2_11_changes_after_firsthalf_do_not_reach_its_result(filled):
    x, v, index = X.copy(), V.copy(), INDEX.copy()
    filled.first(64, x, v, index, eps2=1e-4, h2=np.full(20, 0.5))
    for address in range(64):
        filled.put(address, address + 500, 1e9, (0.1, 0, 0), v=(1e3, 0, 0))
    filled.set_ti(1.0)
    x[:], v[:], index[:] = np.nan, np.nan, 1
    found = filled.last(64, x, v, index)
    assert_force(found, EXPECTED, 1e-12)
    assert (found.nearest == EXPECTED[3]).all()
    fresh = filled.force(1, [[0.1, 1, 0]])
    assert fresh.acc[0, 0] == pytest.approx(1e9 * 1e3 / (1e6 + 1) ** 1.5, rel=1e-9)


def test_lasthalf_does_not_read_its_inputs_again(filled):
    filled.first(64, X, V, INDEX, eps2=1e-4)
    bad = np.full((20, 3), np.nan)
    found = filled.last(64, bad, bad, np.full(20, 3, np.int32), eps2=-1.0)
    assert_force(found, EXPECTED, 1e-12)


def test_3_32_inputs_are_not_modified(filled):
    arrays = [X.copy(), V.copy(), INDEX.copy(), np.full(20, 0.7), np.full((20, 3), 3.5)]
    kept = [a.copy() for a in arrays]
    x, v, index, h2, old = arrays
    out = np.zeros((20, 3)), np.zeros((20, 3)), np.zeros(20)
    halves(filled, x, v, *out, index=index, h2=h2, old=(old, old, h2))
    assert all((a == k).all() for a, k in zip(arrays, kept, strict=True))


@pytest.mark.parametrize("suffix", ["_", "__"])
def test_pointer_forms_give_the_same_bits(filled, suffix):
    expected = filled.force(64, X, V, INDEX, eps2=1e-4, h2=0.5)
    head, out = [filled.cluster, 64, 20, INDEX, X, V], capi.Force.blank(20)
    old, h2 = [np.zeros((20, 3)), np.zeros((20, 3)), np.zeros(20)], np.full(20, 0.5)
    zero = np.zeros(3)
    assert capi.by_pointer(f"g6_set_ti{suffix}", filled.cluster, 0.0) == 0
    assert capi.by_pointer(f"g6_set_j_particle{suffix}", filled.cluster, 3, 3, 0.0, 0.1,
                           SOURCE.mass[3], zero, zero, zero, SOURCE.v[3],
                           SOURCE.x[3]) == 0  # fmt: skip
    assert capi.by_pointer(f"g6calc_firsthalf{suffix}", *head, *old, 1e-4, h2) == 0
    assert capi.by_pointer(f"g6calc_lasthalf2{suffix}", *head, 1e-4, h2, out.acc, out.jerk,
                           out.pot, out.nearest) == 0  # fmt: skip
    assert_same(out, expected)
    n, found = np.zeros(1, np.int32), np.zeros(64, np.int32)
    name = f"g6_get_neighbour_list{suffix}"
    assert capi.by_pointer(name, filled.cluster, 4, 64, n, found) == 0
    assert found[: n[0]].tolist() == filled.neighbours(4)[2]

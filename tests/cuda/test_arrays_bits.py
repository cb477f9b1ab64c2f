"""Arrays of a CUDA device: the bits of the same call with NumPy's, of whatever kind they are, and
the current stream. See arrays_on_gpu.py.
"""

import ctypes
import itertools

import numpy as np
import pytest

import capi
import fake_arrays
import fake_device
from arrays_on_gpu import MASS, MOTION, POS, SIZES, VEL, N, assert_same, compare, fill, force, put
from fake_device import driver
from grape6py import errors

pytestmark = [
    pytest.mark.filterwarnings("ignore:.* pairs of different particles at one place"),
    pytest.mark.backends("cuda"),
]


# ---- equal bits ------------------------------------------------------------------------


@pytest.mark.backends("cuda gpu")
@pytest.mark.parametrize("mode", list(capi.MODES))
@pytest.mark.parametrize("eps", [0.0, 1e-2])
def test_bits_are_those_of_numpys_arrays(cupy, pair, mode, eps):
    device, host = pair(precision=mode)
    fill(cupy, device, host, **MOTION)
    compare(cupy, device, host, eps=eps, nn=True, time=0.03)
    for rows in map(np.arange, SIZES):
        compare(cupy, device, host, rows, eps=eps, time=0.03)
        compare(cupy, device, host, rows, eps=eps, nn=True)


@pytest.mark.parametrize("mode", list(capi.MODES))
def test_without_jerk(cupy, pair, mode):
    device, host = pair(precision=mode, jerk=False)
    fill(cupy, device, host)
    for rows in (None, np.arange(30), np.arange(700)):
        assert compare(cupy, device, host, rows, eps=1e-3, nn=True).jerk is None


def test_nearest_neighbours_after_calls_without_them(cupy, pair):
    device, host = pair()
    fill(cupy, device, host)
    device.forces(POS)
    compare(cupy, device, host, np.arange(900), nn=True)
    device.forces(cupy.asarray(POS))
    compare(cupy, device, host, np.arange(900), nn=True)


def test_without_snap(cupy, pair):
    device, host = pair(snap=False)
    fill(cupy, device, host, snap=MOTION["snap"])
    compare(cupy, device, host, time=0.1, nn=True)


def test_a_snap_that_comes_later(cupy, pair):
    device, host = pair()
    fill(cupy, device, host)
    compare(cupy, device, host, np.arange(50))
    rows = np.arange(100, 300)
    put(cupy, device, host, MASS[rows], POS[rows], snap=MOTION["snap"][rows], address=rows)
    compare(cupy, device, host, time=0.1, nn=True)


@pytest.mark.parametrize("mode", list(capi.MODES))
def test_neighbour_lists(cupy, pair, mode):
    device, host = pair(precision=mode)
    fill(cupy, device, host)
    radii = np.linspace(0, 0.4, 80)
    expected = compare(cupy, device, host, np.arange(80), h=radii, nn=True)
    assert len(expected.neighbours[79]) > 3
    force(cupy, device, host, POS[:80], h=radii)
    compare(cupy, device, host, h=0.05)


@pytest.mark.parametrize("unit", [1e-30, 1e18])
@pytest.mark.parametrize("mode", list(capi.MODES))
def test_any_units(cupy, pair, mode, unit):
    device, host = pair(precision=mode)
    fill(cupy, device, host, pos=POS * unit, mass=MASS / unit, vel=VEL * unit**0.5)
    compare(cupy, device, host, nn=True)
    compare(cupy, device, host, np.arange(60), nn=True)


@pytest.mark.backends("cuda gpu")
@pytest.mark.parametrize("mode", list(capi.MODES))
def test_what_the_gpu_leaves_to_the_host(cupy, pair, mode):
    pos = POS.copy()
    pos[1::2] = pos[::2] + 1e-13  # closer than the low halves tell
    pos[77] *= 1e60  # beyond single precision
    device, host = pair(precision=mode)
    fill(cupy, device, host, pos=pos)
    index = np.arange(N, dtype=np.int32)
    for rows in (slice(0, 20), slice(0, 300)):
        for nn, times in itertools.product((False, True), range(2)):
            expected = force(cupy, device, host, pos[rows], VEL[rows], index[rows], nn=nn)
            assert times or np.abs(expected.acc).max() > 1e10
    force(cupy, device, host, pos, VEL, index)
    compare(cupy, device, host, nn=True, h=0.02)


def test_pairs_at_one_place_are_warned_of(cupy, pair):
    device, host = pair()
    pos = POS.copy()
    pos[4] = pos[9]
    fill(cupy, device, host, pos=pos)
    with pytest.warns(errors.Grape6Warning, match="2 pairs"):
        expected = host.forces(nn=True)
    with pytest.warns(errors.Grape6Warning, match="2 pairs"):
        assert_same(device.forces(nn=True), expected)


def test_row40_verified_rows(cupy, pair, monkeypatch):
    memory, allocate = [], fake_device.Device.allocate

    def allocated(self, pinned, size):
        address = allocate(self, pinned, size)
        memory.append(self._memory[address])
        return address

    device, host = pair(verify=1.0)
    monkeypatch.setattr(fake_device.Device, "allocate", allocated)
    fill(cupy, device, host)
    slots = next(m for m in memory if m.size >= 15 * 8 * N)  # word by word: csrc/shared/cuda_args.h
    compare(cupy, device, host, np.arange(40), nn=True)
    device.set_particles(cupy.asarray(MASS), cupy.asarray(POS))
    words = slots.view(np.float64).reshape(15, -1)
    assert np.array_equal(words[3, :N], MASS)
    words[3, :N] *= 1.5
    with pytest.raises(errors.BackendError, match="GRAPE6_VERIFY"):
        device.forces()


def test_distances_over_many_orders_of_magnitude(cupy, pair):
    device, host = pair(precision="double")
    pos = np.array([[0.0, 0, 0], [1, 2, 3], [1e30, 0, 0], [1e250, 0, 1], [1e-30, 0, 0]])
    fill(cupy, device, host, mass=np.ones(5), pos=pos, vel=np.zeros((5, 3)))
    targets = np.concatenate([pos * 1.25, pos - 1e-7, POS * 1e3])
    for eps in (0.0, 1.0):
        force(cupy, device, host, targets, nn=True, eps=eps)


# ---- kinds of arrays -------------------------------------------------------------------


@pytest.mark.backends("cuda gpu")
@pytest.mark.parametrize("how", ["interface", "dlpack"])
def test_other_libraries_arrays(cupy, pair, how):
    device, host = pair()
    host.set_particles(MASS, POS, VEL)
    foreign = (fake_arrays.Foreign(cupy.asarray(a), how) for a in (MASS, POS, VEL))
    device.set_particles(*foreign)
    targets = fake_arrays.Foreign(cupy.asarray(POS[:50]), how)
    assert_same(device.forces(targets, nn=True), host.forces(POS[:50], nn=True))


@pytest.mark.parametrize("current", [0, 4321])
@pytest.mark.parametrize("how", ["dlpack", "both", "interface"])
def test_other_libraries_arrays_that_are_still_being_written(cupy, pair, how, current):
    device, host = pair()
    cupy.stream = current
    driver().fake_gpu_stream(ctypes.c_void_p(4321), None, 0)
    host.set_particles(MASS, POS, VEL)
    device.set_particles(*(fake_arrays.Late(cupy, a, how) for a in (MASS, POS, VEL)))
    targets, index = (fake_arrays.Late(cupy, a, how) for a in (POS[:50], np.arange(50)))
    found = device.forces(targets, index=index, nn=True)
    assert_same(found, host.forces(POS[:50], index=np.arange(50), nn=True))


@pytest.mark.backends("cuda gpu")
def test_strided_arrays_and_other_kinds_of_numbers(cupy, pair):
    device, host = pair()
    mass, pos, vel, wide = map(
        cupy.asarray, (MASS, POS, VEL, np.random.default_rng(3).standard_normal((N, 8)))
    )
    kinds = [
        (mass.astype(np.float32), wide[:, 1:4], vel.astype(np.float32)[::-1]),
        (cupy.ones(N, np.int16), cupy.asfortranarray(pos), wide[::1, ::3]),
        (cupy.repeat(mass, 2)[::2], pos[::-1], cupy.repeat(vel, 2, axis=0)[::2]),
    ]
    for given in kinds:
        host.set_particles(*(a.get() for a in given))
        device.set_particles(*given)
        compare(cupy, device, host)
        for index in (cupy.arange(80)[::2], cupy.arange(40, dtype=np.uint8)):
            args = given[1][:80:2], given[2][:80:2], index
            found = device.forces(*args, nn=True)
            assert_same(found, host.forces(*(a.get() for a in args), nn=True))


def test_a_device_wins_over_the_host(cupy, pair):
    device, host = pair()
    host.set_particles(1 / N, POS, VEL, time=0.25)
    device.set_particles(1 / N, POS, cupy.asarray(VEL), time=0.25)
    assert_same(device.forces(nn=True), host.forces(nn=True))
    for given in ({"pos": POS[:9], "index": cupy.asarray(np.arange(9))},
                  {"pos": cupy.asarray(POS[:9]), "vel": VEL[:9].tolist(), "index": range(9)},
                  {"pos": POS[:9], "vel": cupy.asarray(VEL[:9])},
                  {"pos": POS[:9], "h": cupy.asarray(np.full(9, 0.2))}):  # fmt: skip
        same = {k: v.memory if isinstance(v, fake_arrays.Array) else v for k, v in given.items()}
        assert_same(device.forces(**given), host.forces(**same))


def test_results_live_where_the_targets_or_else_the_particles_do(cupy, pair):
    device, _ = pair()
    device.set_particles(cupy.asarray(MASS), POS)
    assert isinstance(device.forces(POS[:5]).acc, np.ndarray)
    assert isinstance(device.forces(cupy.asarray(POS[:5])).acc, fake_arrays.Array)
    assert isinstance(device.forces().acc, fake_arrays.Array)
    device.set_particles(MASS[:5], POS[:5], address=np.arange(5))
    assert isinstance(device.forces().acc, np.ndarray)


def test_no_array_goes_to_the_host(cupy, pair):
    device, _ = pair()
    device.set_particles(cupy.asarray(MASS), cupy.asarray(POS), cupy.asarray(VEL))
    device.forces(nn=True)
    device.forces(cupy.asarray(POS), nn=True)
    assert cupy.copies == 0


# ---- the current stream ----------------------------------------------------------------


def test_what_the_current_stream_has_to_do_comes_first(cupy, pair):
    device, host = pair()
    host.set_particles(MASS, POS, VEL)
    cupy.stream = 4321
    late = [(cupy.asarray(a), a) for a in (MASS, POS, VEL, POS[:70])]
    for array, _ in late:
        array.memory[:] = np.nan

    @ctypes.CFUNCTYPE(None)
    def work():
        for array, values in late:
            array.memory[:] = values

    driver().fake_gpu_stream(ctypes.c_void_p(4321), work, 0)
    device.set_particles(*(array for array, _ in late[:3]))
    late[3][0].memory[:] = np.nan
    assert_same(device.forces(late[3][0], nn=True), host.forces(POS[:70], nn=True))


def test_a_stream_of_another_device_is_refused(cupy, pair):
    device, host = pair()
    fill(cupy, device, host)
    cupy.stream = 4321
    driver().fake_gpu_stream(ctypes.c_void_p(4321), None, 400)
    for call in (lambda: device.forces(cupy.asarray(POS)), device.forces,
                 lambda: device.set_particles(cupy.asarray(MASS), cupy.asarray(POS))):  # fmt: skip
        with pytest.raises(errors.ArgumentError, match="the stream is none of the session's"):
            call()
    cupy.stream = 0
    compare(cupy, device, host)

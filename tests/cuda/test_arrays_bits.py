"""Arrays of a CUDA device: the bits of the same call with NumPy's, of whatever kind they are, the
errors of that call, and the current stream. See arrays_on_gpu.py."""

import ctypes
import itertools

import numpy as np
import pytest

import arrays_on_gpu
import backends
import capi
import fake_arrays
import fake_device
from arrays_on_gpu import MASS, MOTION, POS, VEL, N, assert_same, compare, fill, force
from fake_device import driver
from grape6py import errors

pytestmark = [pytest.mark.filterwarnings("ignore:.* pairs of different particles at one place"),
              pytest.mark.backends("cuda")]  # fmt: skip
on_both = pytest.mark.backends("cuda gpu")


# ---- equal bits ------------------------------------------------------------------------
KINDS = [lambda cupy, a: cupy.asarray(a),
         lambda cupy, a: cupy.repeat(cupy.asarray(a), 2, axis=0)[::2],
         lambda cupy, a: cupy.asfortranarray(cupy.asarray(a)),
         lambda cupy, a: fake_arrays.Foreign(cupy.asarray(a), "interface"),
         lambda cupy, a: fake_arrays.Foreign(cupy.asarray(a), "dlpack"),
         lambda cupy, a: a,  # NumPy's, beside those of a device
         lambda cupy, a: a.tolist()]  # fmt: skip


def of_any_kind(cupy, rng, given):
    """For the host and for the device: of any type, and but for pos wherever they lie."""
    host, device = {}, {}
    for name, array in given.items():
        if isinstance(array, np.ndarray) and array.dtype == float and rng.random() < 0.2:
            array = array.astype(np.float32)
        host[name] = array
        kind = rng.integers(5 if name == "pos" else 7) if np.ndim(array) and len(array) else 0
        device[name] = KINDS[kind](cupy, array) if isinstance(array, np.ndarray) else array
    return host, device


@on_both
@pytest.mark.parametrize(("mode", "seed"), [*zip(capi.MODES, (0, 1, 0), strict=True), ("grape", 1)])
def test_bits_are_those_of_numpys_arrays(cupy, pair, mode, seed):
    """Whatever is written and asked for: sets that grow and shrink, some twice, nobody."""
    rng = np.random.default_rng([seed, *mode.encode()])
    device, host = pair(precision=mode, jerk=seed != 1, snap=seed != 1)
    for step in range(7):
        n = int(rng.choice([0, 3, 90, 1024, 1025, N])) if step else N
        rows = rng.permutation(N)[:n]
        given = {"mass": MASS[rows] * (step + 1), "pos": POS[rows] + 0.01 * step, "vel": VEL[rows]}
        given |= {k: v[rows] for k, v in MOTION.items() if rng.random() < 0.5}
        given["time"] = given.get("time", 0) + (step > 4)
        if step and rng.random() < 0.7:
            given["address"] = rng.integers(0, N + 500, n)
        if rng.random() < 0.5:
            given["index"] = given.get("address", np.arange(n)) + 10000
        ours, theirs = of_any_kind(cupy, rng, given)
        host.set_particles(**ours)
        device.set_particles(**theirs)
        for k in (None if step % 3 == 0 else 7, step % 2, *rng.choice(arrays_on_gpu.SIZES, 2)):
            call = {"eps": float(rng.choice([0, 1e-2])), "nn": bool(rng.integers(2))}
            if k is not None:
                index = rng.permutation(np.arange(k, dtype=np.int32))
                call |= {"pos": POS[:k] + 0.01 * (step % 2), "vel": VEL[:k], "index": index}
            if rng.random() < 0.3:
                call["h"] = rng.uniform(0, 0.2, k) if k else 0.05
            if rng.random() < 0.5:
                call["time"] = 2.0 + step / 8
            ours, theirs = of_any_kind(cupy, rng, call)
            assert_same(device.forces(**theirs), host.forces(**ours))
    assert np.array_equal(device.index, host.index)
    for ours, theirs in zip(device._board.predicted(N), host._board.predicted(N), strict=True):
        assert np.array_equal(ours, theirs)  # the host has a copy, for calls on the CPU and faults


@on_both
@pytest.mark.parametrize("mode", list(capi.MODES))
def test_what_the_gpu_leaves_to_the_host(cupy, pair, mode):
    n = N if backends.has_gpu else 400
    pos, vel = POS[:n].copy(), VEL[:n]
    pos[1::2] = pos[::2] + 1e-13  # closer than the low halves tell
    pos[77] *= 1e60  # beyond single precision
    device, host = pair(precision=mode)
    fill(cupy, device, host, mass=MASS[:n], pos=pos, vel=vel)
    index = np.arange(n, dtype=np.int32)
    for rows in (slice(0, 20), slice(0, 300)):
        for nn, times in itertools.product((False, True), range(2)):
            expected = force(cupy, device, host, pos[rows], vel[rows], index[rows], nn=nn)
            assert times or np.abs(expected.acc).max() > 1e10
    force(cupy, device, host, pos, vel, index)
    compare(cupy, device, host, nn=True, h=0.02)


def test_pairs_at_one_place_are_warned_of(cupy, pair):
    device, host = pair()
    fill(cupy, device, host, pos=np.where(np.arange(N)[:, None] == 4, POS[9], POS))
    with pytest.warns(errors.Grape6Warning, match="2 pairs"):
        expected = host.forces(nn=True)
    with pytest.warns(errors.Grape6Warning, match="2 pairs"):
        assert_same(device.forces(nn=True), expected)


def test_of_two_rows_for_one_address_the_last_counts(cupy, pair, monkeypatch):
    monkeypatch.setenv("GRAPE6_TEST_FAKE_GPU_ORDER", "1")  # backwards
    device, host = pair()
    fill(cupy, device, host)
    compare(cupy, device, host, np.arange(50))
    address = np.r_[7:207, 7:107, 300:400, 3]
    new = np.full(len(address), 1 / N), np.random.default_rng(6).standard_normal((len(address), 3))
    arrays_on_gpu.put(cupy, device, host, *new, address=address)
    compare(cupy, device, host, np.arange(50))


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


# ---- where arrays are ------------------------------------------------------------------
def test_results_live_where_the_targets_or_else_the_particles_do(cupy, pair):
    device, _ = pair()
    device.set_particles(cupy.asarray(MASS), POS)
    assert isinstance(device.forces(POS[:5]).acc, np.ndarray)
    assert isinstance(device.forces(cupy.asarray(POS[:5])).acc, fake_arrays.Array)
    assert isinstance(device.forces().acc, fake_arrays.Array)
    assert cupy.copies == 0
    device.set_particles(MASS[:5], POS[:5], address=np.arange(5))
    assert isinstance(device.forces().acc, np.ndarray)


@on_both
def test_arrays_of_another_device_are_refused(cupy, pair):
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("there is one device")
    device, _ = pair()
    own = device._board.option("DEVICE")
    with cupy.cuda.Device(1 - own):  # the current device need not be the session's
        with cupy.cuda.Device(own):
            mass, pos = cupy.asarray(MASS), cupy.asarray(POS)
        other = cupy.asarray(POS)
        words = f"pos lies on CUDA device {1 - own}, but the session computes on device {own}"
        with pytest.raises(errors.ArgumentError, match=words):
            device.set_particles(mass, other)
        assert device.n == 0
        device.set_particles(MASS, pos)
        with pytest.raises(errors.ArgumentError, match=words):
            device.forces(other)
        assert device.forces(nn=True).acc.device.id == own


# ---- the current stream ----------------------------------------------------------------
@pytest.mark.parametrize(("how", "current"), [("dlpack", 0), ("both", 4321), ("interface", 0)])
def test_other_libraries_arrays_that_are_still_being_written(cupy, pair, how, current):
    device, host = pair()
    cupy.stream = current
    driver().fake_gpu_stream(ctypes.c_void_p(4321), None, 0)
    host.set_particles(MASS, POS, VEL)
    device.set_particles(*(fake_arrays.Late(cupy, a, how) for a in (MASS, POS, VEL)))
    targets, index = (fake_arrays.Late(cupy, a, how) for a in (POS[:50], np.arange(50)))
    found = device.forces(targets, index=index, nn=True)
    assert_same(found, host.forces(POS[:50], index=np.arange(50), nn=True))


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


# ---- wrong arguments -------------------------------------------------------------------
def spoilt(array, k, value=np.nan):
    """A copy with another number in the k-th place."""
    array = array.copy()
    array.reshape(-1)[k] = value
    return array


PARTICLES = [
    {"pos": POS[:, :2]}, {"mass": MASS[:-1]}, {"pos": POS.astype(complex)},
    {"pos": spoilt(POS, 3 * 9 + 1)}, {"vel": spoilt(VEL, 3 * N - 1, np.inf)},
    {"snap": spoilt(MOTION["snap"], 5, -np.inf)}, {"mass": spoilt(MASS, N - 1)},
    {"time": spoilt(MOTION["time"], 8), "index": np.arange(N) + 7}, {"index": np.arange(N) * 0.5},
    {"index": np.arange(N) + 2**40}, {"address": np.arange(N) - 3}, {"address": np.arange(N - 1)},
]  # fmt: skip
TARGETS = [
    {"pos": POS[0]}, {"pos": spoilt(POS, 3 * 70 + 1)}, {"vel": VEL}, {"pos": POS, "vel": VEL[:-1]},
    {"pos": POS, "vel": spoilt(VEL, 9, np.inf)}, {"pos": POS, "index": np.arange(N - 1)},
    {"pos": POS, "h": np.ones(N + 1)},
]  # fmt: skip
CALLS = [*(("set_particles", {"mass": MASS * 3, "pos": -POS} | given) for given in PARTICLES),
         ("set_particles", {"mass": MASS[:900], "pos": spoilt(POS[:900], 28)}),  # a smaller set
         *(("forces", given) for given in TARGETS)]  # fmt: skip


@on_both
@pytest.mark.parametrize(("call", "given"), CALLS)
def test_errors_are_those_for_numpys_arrays(cupy, pair, call, given):
    device, host = pair()
    fill(cupy, device, host)
    with pytest.raises(errors.Grape6Error) as expected:
        getattr(host, call)(**given)
    with pytest.raises(type(expected.value)) as found:
        getattr(device, call)(**arrays_on_gpu.on_device(cupy, given))
    assert str(found.value) == str(expected.value)
    compare(cupy, device, host, nn=True)

"""Arrays of a CUDA device as particles: updates, the host's copy, and what is refused. See
arrays_on_gpu.py.
"""

import numpy as np
import pytest

import capi
from arrays_on_gpu import MASS, MOTION, POS, SIZES, VEL, N, compare, fill, force, on_device, put
from grape6py import errors

pytestmark = [
    pytest.mark.filterwarnings("ignore:.* pairs of different particles at one place"),
    pytest.mark.backends("cuda"),
]


# ---- writing ---------------------------------------------------------------------------


@pytest.mark.backends("cuda gpu")
@pytest.mark.parametrize("mode", list(capi.MODES))
def test_updates_by_address_from_anywhere(cupy, pair, mode):
    device, host = pair(precision=mode)
    fill(cupy, device, host)
    rng = np.random.default_rng(5)
    for step in range(12):
        n = int(rng.integers(1, 400))
        address = rng.permutation(N)[:n] if step % 3 else rng.integers(0, N, n)  # some twice
        index = address + 10000 if step % 2 else None
        arrays = MASS[:n] * step, rng.standard_normal((n, 3)), rng.standard_normal((n, 3))
        on_host = step % 4 == 3
        put(np if on_host else cupy, device, host, *arrays, time=step, index=index, address=address)
        if step % 5:
            compare(cupy, device, host, np.arange(step * 9), nn=True, eps=1e-3)
    assert np.array_equal(device.index, host.index)
    compare(cupy, device, host, np.arange(200), nn=True)


@pytest.mark.backends("cuda gpu")
def test_an_update_at_the_same_time_counts(cupy, pair):
    device, host = pair()
    fill(cupy, device, host)
    for n in (1, 70, 300, SIZES[-1]):
        compare(cupy, device, host, np.arange(50))
        put(cupy, device, host, MASS[:n] * 1.1, POS[:n], address=np.arange(n))
    compare(cupy, device, host, np.arange(50))


def test_of_two_rows_for_one_address_the_last_counts(cupy, pair, monkeypatch):
    monkeypatch.setenv("GRAPE6_TEST_FAKE_GPU_ORDER", "1")  # backwards
    device, host = pair()
    fill(cupy, device, host)
    compare(cupy, device, host, np.arange(50))
    address = np.r_[7:207, 7:107, 300:400, 3]
    new = np.full(len(address), 1 / N), np.random.default_rng(6).standard_normal((len(address), 3))
    put(cupy, device, host, *new, address=address)
    compare(cupy, device, host, np.arange(50))


def test_the_memory_grows_and_shrinks(cupy, pair):
    device, host = pair()
    for n in (3, 1024, 1025, 1500, 40, 1200):
        put(cupy, device, host, MASS[:n], POS[:n], VEL[:n])
        compare(cupy, device, host, np.arange(20), nn=True)
    put(cupy, device, host, MASS[:2], POS[:2], address=np.array([5000, 9000]))
    assert device.n == 1202
    put(cupy, device, host, MASS[:1], POS[:1], address=[5000])
    for rows in (None, np.arange(90)):
        compare(cupy, device, host, rows, nn=True)


def test_the_host_has_a_copy(cupy, pair):
    """Which is what a call with NumPy's arrays on the CPU, or after a fault, goes by."""
    device, host = pair()
    fill(cupy, device, host, **MOTION)
    for session in (device, host):
        session._board.set_time(0.5)
    for ours, theirs in zip(device._board.predicted(N), host._board.predicted(N), strict=True):
        assert np.array_equal(ours, theirs)


def test_prediction_on_the_host():
    """Then the GPU's slots hold predicted particles: what comes from a device is sent again."""
    capi.run_python(
        """
import sys
import arrays_on_gpu as on_gpu, fake_arrays
from grape6py import Grape6
cupy = sys.modules["cupy"] = fake_arrays.Module()
with Grape6() as device, Grape6() as host:
    assert device.backend.startswith("cuda ")
    on_gpu.fill(cupy, device, host, snap=on_gpu.SNAP, time=on_gpu.TIME)
    for step in range(3):
        on_gpu.compare(cupy, device, host, time=0.1 + step, nn=True)
        rows = np.arange(step, 300)
        new = on_gpu.MASS[rows], on_gpu.POS[rows] + 1
        on_gpu.put(cupy, device, host, *new, time=step, address=rows)
        on_gpu.compare(cupy, device, host, rows, time=0.1 + step, nn=True)
""",
        GRAPE6_PREDICT="host",
    )


def test_nobody(cupy, pair):
    device, host = pair()
    no_mass, nothing = np.zeros(0), np.zeros((0, 3))
    force(cupy, device, host, POS[:50], nn=True, h=1.0)
    put(cupy, device, host, no_mass, nothing)
    force(cupy, device, host, nn=True, h=1.0)
    fill(cupy, device, host)
    force(cupy, device, host, nothing, nn=True, h=1.0)
    device.set_particles(cupy.asarray(no_mass), nothing, address=cupy.asarray(np.zeros(0, int)))
    compare(cupy, device, host)


# ---- wrong arguments -------------------------------------------------------------------

BAD = {
    "shape": {"pos": POS[:, :2]},
    "length": {"mass": MASS[:-1]},
    "kind": {"pos": POS.astype(complex)},
    "pos": {"pos": np.where(np.arange(3 * N).reshape(N, 3) == 3 * 9 + 1, np.nan, POS)},
    "vel": {"vel": np.where(np.arange(3 * N).reshape(N, 3) >= 3 * (N - 40), np.inf, VEL)},
    "snap": {"snap": np.where(np.arange(3 * N).reshape(N, 3) == 5, -np.inf, MOTION["snap"])},
    "mass": {"mass": np.where(np.arange(N) == N - 1, np.nan, MASS)},
    "time": {
        "time": np.where(np.arange(N) == 8, np.nan, MOTION["time"]),
        "index": np.arange(N) + 7,
    },
    "index": {"index": np.arange(N) * 0.5},
    "large": {"index": np.arange(N) + 2**40},
    "address": {"address": np.arange(N) - 3},
    "none": {"address": np.arange(N - 1)},
}


@pytest.mark.backends("cuda gpu")
@pytest.mark.parametrize("name", BAD)
def test_errors_of_set_particles_are_those_for_numpys(cupy, pair, name):
    device, host = pair()
    fill(cupy, device, host)
    given = {"mass": MASS * 3, "pos": -POS, **BAD[name]}
    with pytest.raises(errors.Grape6Error) as expected:
        host.set_particles(**given)
    with pytest.raises(type(expected.value)) as found:
        device.set_particles(**on_device(cupy, given))
    assert str(found.value) == str(expected.value)
    compare(cupy, device, host, nn=True)
    shrunk = {k: cupy.asarray(v[: N - 500]) for k, v in given.items()}
    if name == "pos":  # a smaller set would empty the session first
        with pytest.raises(errors.NotFiniteError, match=r"pos\[9\] \(the particle of index 9\)"):
            device.set_particles(**shrunk)
        compare(cupy, device, host, nn=True)


TARGETS = {
    "shape": {"pos": POS[0]},
    "pos": {"pos": np.where(np.arange(3 * N).reshape(N, 3) == 3 * 70 + 1, np.nan, POS)},
    "vel": {"pos": POS, "vel": np.where(np.arange(3 * N).reshape(N, 3) == 9, np.inf, VEL)},
    "velocity": {"pos": POS, "vel": VEL[:-1]},
    "index": {"pos": POS, "index": np.arange(N - 1)},
    "radii": {"pos": POS, "h": np.ones(N + 1)},
    "alone": {"vel": VEL},
}


@pytest.mark.backends("cuda gpu")
@pytest.mark.parametrize("name", TARGETS)
def test_errors_of_forces_are_those_for_numpys(cupy, pair, name):
    device, host = pair()
    fill(cupy, device, host)
    with pytest.raises(errors.ArgumentError) as expected:
        host.forces(**TARGETS[name])
    with pytest.raises(type(expected.value)) as found:
        device.forces(**on_device(cupy, TARGETS[name]))
    assert str(found.value) == str(expected.value)
    compare(cupy, device, host, np.arange(40))


@pytest.mark.backends("cuda gpu")
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


def test_a_closed_session(cupy, pair):
    device, _ = pair()
    device.close()
    with pytest.raises(errors.NotOpenError):
        device.set_particles(cupy.asarray(MASS), cupy.asarray(POS))
    with pytest.raises(errors.NotOpenError):
        device.forces(cupy.asarray(POS))

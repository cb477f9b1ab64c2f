"""CuPy's own arrays in the calls of Grape6, on a true card: pytest -m gpu. Skipped where there is
none. The rules are tested on a stand-in (arrays_on_card.py); here are streams and true memory.
"""

import sys
import time

import numpy as np
import pytest

from grape6py import Grape6, Hermite, errors, plummer
from grape6py.integrators.hermite_device import DeviceBlocks
from grape6py.integrators.hermite_steps import HostBlocks

cupy = pytest.importorskip("cupy")
pytestmark = pytest.mark.gpu

N = 5000
MASS, POS, VEL = plummer(N, seed=21)
NAMES = ("acc", "jerk", "pot", "nearest", "distance")
SLOW = r"""
extern "C" __global__ void late(double *to, const double *from, int n, long long cycles)
{
    const long long start = clock64();
    while (clock64() - start < cycles) continue;
    for (int k = threadIdx.x; k < n; k += blockDim.x) to[k] = from[k];
}
"""


@pytest.fixture
def pair():
    """Makes two sessions: one for a device's arrays, one for NumPy's."""
    made = []

    def make(**options):
        made.extend([Grape6(backend="cuda", **options), Grape6(backend="cuda", **options)])
        return made[-2:]

    yield make
    for session in made:
        session.close()


class OnlyDLPack:
    """An array of a library that has DLPack and nothing else."""

    def __init__(self, array):
        self._array = array

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()

    def __dlpack__(self, **how):
        return self._array.__dlpack__(**how)


class OnlyInterface:
    """An array of a library that has __cuda_array_interface__ and nothing else."""

    def __init__(self, array):
        self._array = array
        self.__cuda_array_interface__ = array.__cuda_array_interface__


def assert_same(found, expected):
    for name in NAMES:
        ours, theirs = getattr(found, name), getattr(expected, name)
        if theirs is None:
            assert ours is None
            continue
        assert isinstance(ours, cupy.ndarray), name
        assert ours.dtype == theirs.dtype
        assert ours.get().tobytes() == theirs.tobytes(), name
    for ours, theirs in zip(found.neighbours or [], expected.neighbours or [], strict=True):
        assert np.array_equal(ours.get(), theirs)


@pytest.mark.parametrize("mode", ["grape", "double", "single"])
@pytest.mark.parametrize("eps", [0.0, 1e-3])
def test_bits_are_those_of_numpys_arrays(pair, mode, eps):
    device, host = pair(precision=mode)
    rng = np.random.default_rng(1)
    given = {"acc": rng.standard_normal((N, 3)), "jerk": rng.standard_normal((N, 3)),
             "snap": rng.standard_normal((N, 3)), "time": rng.random(N) / 64}  # fmt: skip
    host.set_particles(MASS, POS, VEL, **given)
    put = {name: cupy.asarray(value) for name, value in given.items()}
    device.set_particles(*map(cupy.asarray, (MASS, POS, VEL)), **put)
    assert_same(device.forces(eps=eps, nn=True, time=0.03),
                host.forces(eps=eps, nn=True, time=0.03))  # fmt: skip
    for ni in (1, 9, 70, 300, 3000):
        targets = POS[:ni] + 0.01, VEL[:ni], np.arange(ni, dtype=np.int32)
        on_card = [cupy.asarray(t) for t in targets]
        for nn in (False, True):
            assert_same(device.forces(*on_card, eps=eps, nn=nn, time=0.04),
                        host.forces(*targets, eps=eps, nn=nn, time=0.04))  # fmt: skip
    assert_same(device.forces(*on_card, h=0.05), host.forces(*targets, h=0.05))


@pytest.mark.parametrize("mode", ["grape", "double", "single"])
def test_close_pairs_and_updates(pair, mode):
    device, host = pair(precision=mode)
    pos = POS.copy()
    pos[1::2] = pos[::2] + 1e-13
    host.set_particles(MASS, pos, VEL)
    device.set_particles(*map(cupy.asarray, (MASS, pos, VEL)))
    assert_same(device.forces(nn=True, h=0.01), host.forces(nn=True, h=0.01))
    rng = np.random.default_rng(2)
    for n in (1, 40, 70, 3000):
        address = rng.permutation(N)[:n]
        new = MASS[:n], rng.standard_normal((n, 3)), rng.standard_normal((n, 3))
        host.set_particles(*new, address=address)
        device.set_particles(*map(cupy.asarray, new), address=cupy.asarray(address))
        assert_same(device.forces(nn=True), host.forces(nn=True))


@pytest.mark.parametrize("kind", [OnlyDLPack, OnlyInterface])
def test_other_libraries_arrays(pair, kind):
    device, host = pair()
    host.set_particles(MASS, POS, VEL)
    device.set_particles(*(kind(cupy.asarray(a)) for a in (MASS, POS, VEL)))
    found = device.forces(kind(cupy.asarray(POS[:50])), nn=True)
    assert_same(found, host.forces(POS[:50], nn=True))


def test_strides_and_other_kinds_of_numbers(pair):
    device, host = pair()
    wide = cupy.asarray(np.random.default_rng(3).standard_normal((N, 8)))
    arrays = cupy.asarray(MASS, cupy.float32), wide[:, 1:4], cupy.asfortranarray(wide[::-1, ::3])
    device.set_particles(*arrays)
    host.set_particles(*(a.get() for a in arrays))
    assert_same(device.forces(nn=True), host.forces(nn=True))
    some = wide[::7, 2:5], wide[::7, 4:7], cupy.arange(N)[::7]
    assert_same(device.forces(*some), host.forces(*(a.get() for a in some)))


@pytest.mark.parametrize("non_blocking", [False, True])
def test_the_current_stream_comes_first(pair, non_blocking):
    """Particles and targets that a slow kernel is still writing when they are handed in."""
    device, host = pair()
    host.set_particles(MASS, POS, VEL)
    expected = host.forces(POS[:3000], VEL[:3000], np.arange(3000), nn=True)
    kernel = cupy.RawKernel(SLOW, "late")
    truth = [cupy.asarray(a) for a in (MASS, POS, VEL)]
    index = cupy.arange(3000, dtype=cupy.int32)
    stream = cupy.cuda.Stream(non_blocking=non_blocking)
    cupy.cuda.Device().synchronize()

    def late():
        made = [cupy.full_like(a, cupy.nan) for a in truth]
        for to, source in zip(made, truth, strict=True):
            kernel((1,), (256,), (to, source, np.int32(source.size), np.int64(200_000_000)))
        return made

    with stream:
        late()
        stream.synchronize()
        start = time.perf_counter()
        made = late()
        assert time.perf_counter() - start < 0.1  # the kernels are still at work
        device.set_particles(*made)
        _, pos, vel = late()
        found = device.forces(pos[:3000], vel[:3000], index, nn=True)
        doubled = (found.acc * 2).get()
    assert_same(found, expected)
    assert np.array_equal(doubled, expected.acc * 2)


def test_errors_are_those_for_numpys(pair):
    device, host = pair()
    host.set_particles(MASS, POS)
    device.set_particles(cupy.asarray(MASS), cupy.asarray(POS))
    pos, mass = POS.copy(), MASS.copy()
    pos[77, 1], mass[9] = np.nan, np.inf
    wrong = [((MASS, pos), {}), ((mass, POS), {"index": np.arange(N) + 3}), ((MASS, POS[:, 0]), {}),
             ((MASS, POS), {"address": np.arange(N) - 1}), ((MASS[:-1], POS), {})]  # fmt: skip
    for arguments, more in wrong:
        with pytest.raises(errors.Grape6Error) as expected:
            host.set_particles(*arguments, **more)
        with pytest.raises(type(expected.value)) as found:
            device.set_particles(*map(cupy.asarray, arguments),
                                 **{k: cupy.asarray(v) for k, v in more.items()})  # fmt: skip
        assert str(found.value) == str(expected.value)
    with pytest.raises(errors.NotFiniteError, match=r"pos\[77\] is not finite: \[.*nan"):
        device.forces(cupy.asarray(pos))
    assert_same(device.forces(nn=True), host.forces(nn=True))


def test_a_session_on_the_cpu_takes_them_too():
    with Grape6(backend="cpu") as through, Grape6(backend="cpu") as host:
        through.set_particles(*map(cupy.asarray, (MASS, POS, VEL)))
        host.set_particles(MASS, POS, VEL)
        assert_same(through.forces(cupy.asarray(POS[:9]), nn=True, h=0.1),
                    host.forces(POS[:9], nn=True, h=0.1))  # fmt: skip
        assert_same(through.forces(), host.forces())


def test_arrays_of_another_device_are_refused(pair):
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("there is one device")
    device, _ = pair()
    own = device._board.option("DEVICE")
    with cupy.cuda.Device(1 - own):
        other = cupy.asarray(POS)
    with pytest.raises(errors.ArgumentError, match=f"pos lies on CUDA device {1 - own}, but"):
        device.set_particles(MASS, other)
    with cupy.cuda.Device(1 - own):  # the current device need not be the session's
        with cupy.cuda.Device(own):
            mine = cupy.asarray(POS)
        device.set_particles(MASS, mine)
        assert device.forces(nn=True).acc.device.id == own


def test_memory_does_not_leak(pair):
    device, _ = pair()
    with cupy.cuda.Device(device._board.option("DEVICE")):  # there may be several
        arrays = [cupy.asarray(a) for a in (MASS, POS, VEL)]
    pool = cupy.get_default_memory_pool()
    used = []
    for _ in range(20):
        device.set_particles(*arrays)
        device.forces(arrays[1], arrays[2], nn=True)
        used.append(pool.used_bytes())
    assert used[-1] == used[5]


@pytest.mark.parametrize("mode", ["grape", "double"])
def test_an_integration_on_the_device_has_the_bits_of_one_on_the_host(monkeypatch, mode):
    """Of the scheme, that is: forces are the card's in both."""
    device = Hermite(*plummer(3000, 1), eps=0.01, precision=mode, backend="cuda")
    assert isinstance(device._blocks, DeviceBlocks)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "cupy", None)
        host = Hermite(*plummer(3000, 1), eps=0.01, precision=mode, backend="cuda")
    assert isinstance(host._blocks, HostBlocks)
    for end in (0.01, 0.1):
        for cluster in (device, host):
            cluster.evolve(end)
        for name, values in host.state().items():
            assert np.array_equal(device.state()[name], values), name
        assert np.array_equal(device.pos, host.pos)
    assert (device.steps, device.blocks) == (host.steps, host.blocks)

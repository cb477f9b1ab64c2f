"""Arrays of a CUDA device in calls on the CPU, and of other libraries: what is still being written
is waited for. CuPy is that of fake_arrays.py. With PyTorch, on a true device: test_gpu_torch.py."""

import re
import sys

import numpy as np
import pytest

import capi
import fake_arrays
from arrays_on_gpu import assert_same
from grape6py import Grape6, Hermite, Tree, errors, plummer

MASS, POS, VEL = plummer(60, seed=1)


@pytest.mark.parametrize(("how", "stream", "current"), [("both", None, 4321), ("interface", 77, 0)])
def test_calls_on_the_cpu_wait_too(cupy, how, stream, current):
    cupy.stream = current

    def late(*arrays):
        return [fake_arrays.Late(cupy, a, how, stream) for a in arrays]

    index = np.arange(60)
    with Grape6(backend="cpu") as grape, Grape6(backend="cpu") as host:
        grape.set_particles(*late(MASS, POS, VEL), index=late(index)[0])
        host.set_particles(MASS, POS, VEL)
        assert np.array_equal(grape.forces().acc.memory, host.forces().acc)
    with Tree(POS, MASS) as tree:
        pos, own = late(POS, index)
        expected = tree.forces(POS, self_index=index).acc
        assert np.array_equal(tree.forces(pos, self_index=own).acc.memory, expected)
    given = late(MASS, POS, VEL)
    clusters = [Hermite(*bodies, eps=0.1, backend="cpu") for bodies in (given, (MASS, POS, VEL))]
    for cluster in clusters:
        cluster.evolve(0.25)
    assert np.array_equal(clusters[0].pos, clusters[1].pos)


def test_hermite_takes_cupys_and_some_of_each(cupy):
    one = Hermite(MASS, cupy.on(1, POS), cupy.on(0, VEL), eps=0.1, backend="cpu")
    assert np.array_equal(one.pos, POS)
    assert np.array_equal(one.vel, VEL)
    with pytest.raises(errors.ArgumentError, match=r"pos has shape \(60,\), not \(60, 3\)"):
        Hermite(MASS, cupy.on(0, MASS), VEL)
    with pytest.raises(errors.NotFiniteError, match=r"vel\[7\] is not finite"):
        Hermite(MASS, POS, cupy.on(0, np.where(np.arange(60)[:, None] == 7, np.nan, VEL)))
    bad = np.where(np.arange(60)[:, None] == 7, np.inf, POS)
    with Grape6(backend="cpu") as grape:
        with pytest.raises(errors.NotFiniteError, match=r"pos\[7\] \(the particle of index 7\)"):
            grape.set_particles(MASS, cupy.on(0, bad))
        assert grape.n == 0


class NeedsGradient:
    """A tensor of PyTorch that requires gradients, on a device or on the host."""

    def __init__(self, device):
        self._device = device

    def _refused(self, *_, **__):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")

    __array__, __cuda_array_interface__ = _refused, property(_refused)

    def __dlpack_device__(self):
        return self._device, 0

    def __dlpack__(self, **_):
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")


@pytest.mark.parametrize("device", [2, 1], ids=["device", "host"])
def test_a_tensor_that_requires_gradients_is_refused_with_its_own_words(cupy, device):
    tensor = NeedsGradient(device)
    for call in (Grape6(backend="cpu").set_particles, lambda *given: Hermite(*given, VEL)):
        with pytest.raises(errors.ArgumentError, match=r"pos .*requires? grad"):
            call(MASS, tensor)


# ---- on the CPU ------------------------------------------------------------------------
@pytest.mark.backends("cpu gpu")
def test_on_the_cpu_they_are_copied_there_and_back(cupy):
    last = cupy.cuda.runtime.getDeviceCount() - 1
    with cupy.cuda.Device(last):
        *bodies, few, index = map(cupy.asarray, (MASS, POS, VEL, POS[:9], [3] * 9))
    with Grape6(backend="cpu") as grape, Grape6(backend="cpu") as host:
        grape.set_particles(*bodies, index=np.arange(60) + 5)
        host.set_particles(MASS, POS, VEL, index=np.arange(60) + 5)
        for given, same in (
            ({}, {}), ({"pos": few}, {"pos": POS[:9]}),
            ({"pos": POS[:9], "index": index}, {"pos": POS[:9], "index": [3] * 9}),
        ):  # fmt: skip
            found = grape.forces(**given, eps=0.1, nn=True, h=0.5)
            assert_same(found, host.forces(**same, eps=0.1, nn=True, h=0.5))
            assert all(array.device.id == last for array in found[:5])
        assert isinstance(grape.forces(POS).acc, np.ndarray)
        grape.set_particles(MASS, POS)
        assert isinstance(grape.forces().acc, np.ndarray)


def test_the_library_refuses_them_on_the_cpu(plain):
    none = [None] * 11
    calls = {"g6x_set_j_particles_device": [0, *none[:10]],
             "g6x_get_predicted_j_particles_device": [0, *none[:3]],
             "g6x_forces_device": [0, 0, None, None, None, 0.0, *none[:7]]}  # fmt: skip
    for name, arguments in calls.items():
        assert capi.call(name, plain.cluster, *arguments) == capi.CONSTANTS["G6X_E_NO_DEVICE"]
        assert re.match(f"{name}: .* on the CPU", plain.error()[1])
    assert plain.get_int("G6X_DEVICE") == -1
    assert plain.set_int("G6X_DEVICE", 0, check=False) == capi.CONSTANTS["G6X_E_ARGUMENT"]


# ---- without CuPy ----------------------------------------------------------------------
def test_row04_without_cupy_a_devices_array_is_refused_with_what_lacks(monkeypatch):
    array = fake_arrays.Foreign(fake_arrays.Module().on(0, POS), "dlpack")
    monkeypatch.setitem(sys.modules, "cupy", None)
    words = "pos lies on a CUDA device, and CuPy"
    with Grape6(backend="cpu") as grape, pytest.raises(errors.BackendError, match=words):
        grape.set_particles(MASS, array)

"""Arrays of other libraries on a CUDA device: what is still being written is waited for.

CuPy is that of fake_arrays.py. With PyTorch, on a true device: test_gpu_torch.py.
"""

import numpy as np
import pytest

import fake_arrays
from grape6py import Grape6, Hermite, Tree, errors, plummer
from grape6py._arrays.foreign import take

MASS, POS, VEL = plummer(60, seed=1)
# The interfaces of an array, the stream that it names, what is waited for, CuPy's current stream.
LATE = [
    ("dlpack", None, [], 0),
    ("dlpack", None, [], 4321),
    ("both", None, [], 0),  # PyTorch's
    ("both", None, [], 4321),
    ("both", 77, [], 0),
    ("interface", 77, [("stream", 77)], 0),  # Numba's
    ("interface", 1, [("stream", 1)], 4321),
    ("interface", None, [("device", 0)], 0),
]


@pytest.mark.parametrize(("how", "stream", "waits", "current"), LATE)
def test_what_is_still_being_written_is_waited_for(cupy, how, stream, waits, current):
    cupy.stream = current
    array = take(cupy, "pos", fake_arrays.Late(cupy, POS, how, stream))
    assert np.array_equal(array.memory, POS)
    assert cupy.waits == waits


def test_cupys_own_arrays_are_those_of_its_current_stream(cupy):
    array = cupy.on(0, POS)
    assert take(cupy, "pos", array) is array
    assert cupy.waits == []


@pytest.mark.parametrize(("how", "stream", "waits", "current"), LATE)
def test_calls_on_the_cpu_wait_too(cupy, how, stream, waits, current):
    cupy.stream = current
    mass, pos, vel = (fake_arrays.Late(cupy, a, how, stream) for a in (MASS, POS, VEL))
    index = fake_arrays.Late(cupy, np.arange(60), how, stream)
    with Grape6(backend="cpu") as grape, Grape6(backend="cpu") as host:
        grape.set_particles(mass, pos, vel, index=index)
        host.set_particles(MASS, POS, VEL)
        assert np.array_equal(grape.forces().acc.memory, host.forces().acc)
    with Tree(POS, MASS) as tree:
        expected = tree.forces(POS, self_index=range(60)).acc
        late = fake_arrays.Late(cupy, POS, how, stream)
        assert np.array_equal(tree.forces(late, self_index=index).acc.memory, expected)


@pytest.mark.parametrize(("how", "stream", "waits", "current"), LATE)
def test_hermite_takes_them(cupy, how, stream, waits, current):
    cupy.stream = current
    given = [fake_arrays.Late(cupy, a, how, stream) for a in (MASS, POS, VEL)]
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


class NeedsGradient:
    """A tensor of PyTorch that requires gradients, on a device or on the host."""

    def __init__(self, device):
        self._device = device

    @property
    def __cuda_array_interface__(self):
        raise RuntimeError("Can't get __cuda_array_interface__ on Variable that requires grad.")

    def __dlpack_device__(self):
        return self._device, 0

    def __dlpack__(self, **_):
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")

    def __array__(self, *_, **__):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")


@pytest.mark.parametrize("device", [2, 1], ids=["device", "host"])
def test_a_tensor_that_requires_gradients_is_refused_with_its_own_words(cupy, device):
    tensor = NeedsGradient(device)
    with Grape6(backend="cpu") as grape:
        with pytest.raises(errors.ArgumentError, match=r"pos .*requires? grad"):
            grape.set_particles(MASS, tensor)
        with pytest.raises(errors.ArgumentError, match=r"pos .*requires? grad"):
            Hermite(MASS, tensor, VEL)

"""Which of several true GPUs Python's sessions compute on: pytest -m gpu. The rules are tested on a
stand-in (test_cuda_devices.py)."""

import numpy as np
import pytest

from grape6py import Grape6, Hermite, Leapfrog, Tree, errors, plummer

cupy = pytest.importorskip("cupy")
pytestmark = pytest.mark.gpu
N = 3000
MASS, POS, VEL = plummer(N, seed=3)


def number(session):
    return session._board.option("DEVICE")


@pytest.fixture
def count():
    found = cupy.cuda.runtime.getDeviceCount()
    if found < 2:
        pytest.skip("there is one GPU")
    return found


def on(device):
    with cupy.cuda.Device(device):
        return [cupy.asarray(array) for array in (MASS, POS, VEL)]


def test_without_arrays_of_a_device_it_is_the_first(count):
    boards = [Grape6(backend="cuda") for _ in range(2 * count)]
    assert {number(board) for board in boards} == {0}
    assert number(Hermite(MASS, POS, VEL, eps=0.1, dt_max=0.125, backend="cuda")._forces) == 0


def test_the_device_of_the_arrays_is_the_sessions_with_equal_bits(count):
    found, moved = set(), set()
    for device in range(count):
        with Grape6(backend="cuda") as board:
            board.set_particles(*on(device))
            assert number(board) == device
            found.add(cupy.asnumpy(board.forces().acc).tobytes())
            with pytest.raises(errors.ArgumentError, match=f"device {device}:"):
                board.forces(on((device + 1) % count)[1])
        hermite = Hermite(*on(device), eps=0.1, dt_max=0.125, backend="cuda")
        assert number(hermite._forces) == device
        hermite.evolve(0.125)
        moved.add(np.asarray(hermite.pos).tobytes())
        galaxy = Leapfrog(*on(device), eps=0.1, dt=0.125, backend="cuda")
        galaxy.evolve(0.25)
        assert galaxy.pos.device.id == device
        with Tree(on(device)[1], on(device)[0]) as tree:
            assert tree.forces(eps=0.1).acc.device.id == device
    assert len(found) == len(moved) == 1

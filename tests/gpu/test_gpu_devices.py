"""Several true graphics cards in one session: pytest -m gpu. On stand-ins: test_cuda_devices.py."""

import pytest

import capi

pytestmark = pytest.mark.gpu


@pytest.fixture
def devices(graphics_card):
    """GRAPE6_DEVICES for two and more cards."""
    import cupy

    count = cupy.cuda.runtime.getDeviceCount()
    if count < 2:
        pytest.skip("there is one graphics card")
    return [",".join(map(str, range(n))) for n in range(2, count + 1)] + ["all"]


SCRIPT = """
import hashlib
from grape6py import Grape6, plummer
MASS, POS, VEL = plummer(100_000, seed=5)
hashed = hashlib.sha256()
with Grape6(backend="cuda", precision={mode!r}) as grape:
    grape.set_particles(MASS, POS, VEL, acc=-POS)
    for rows in (np.arange(100_000), np.arange(5000, 8000), np.arange(100)):
        found = grape.forces(POS[rows], VEL[rows], rows, nn=True, time=0.01)
        for array in found[:5]:
            hashed.update(array.tobytes())
    assert grape.backend.endswith("of them") == {several}
print(hashed.hexdigest())
"""


def test_bits_do_not_depend_on_the_number_of_devices(devices, mode):
    def bits(named):
        script = SCRIPT.format(mode=mode, several=named != "0")
        return capi.run_python(script, timeout=300, GRAPE6_DEVICES=named).stdout

    assert {bits(named) for named in devices} == {bits("0")}

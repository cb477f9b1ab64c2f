"""The C calls for arrays of a CUDA device, and faults in them. See arrays_on_gpu.py."""

import numpy as np
import pytest

import capi
from arrays_on_gpu import MASS, POS, VEL, N, compare, fill, put
from fake_device import fail
from grape6py import Grape6, errors
from test_cuda_faults import no_memory

pytestmark = [pytest.mark.filterwarnings("ignore:.* pairs of different particles at one place"),
              pytest.mark.backends("cuda")]  # fmt: skip


# ---- the C calls -----------------------------------------------------------------------
def force(session, ni, h2=None, **changed):
    """g6x_forces_device on the first ni particles: its code and outputs."""
    out = capi.Force.blank(ni)
    distance = np.full(ni, capi.UNTOUCHED, np.float32)
    index = np.arange(ni, dtype=np.int32)
    given = {"nj": N, "ni": ni, "index": index, "x": POS[:ni].copy(), "v": VEL[:ni].copy(),
             "eps2": 1e-4, "h2": h2, "acc": out.acc, "jerk": out.jerk, "pot": out.pot,
             "nearest": out.nearest, "distance": distance, "stream": None} | changed  # fmt: skip
    return capi.call("g6x_forces_device", session.cluster, *given.values()), out


def write(session, n=N, **changed):
    """g6x_set_j_particles_device: its code."""
    names = "address index t mass snap jerk acc vel pos stream".split()
    given = dict.fromkeys(names) | {"mass": MASS, "vel": VEL, "pos": POS} | changed
    return capi.call("g6x_set_j_particles_device", session.cluster, n, *given.values())


@pytest.fixture
def filled(new_session):
    session = new_session()
    assert write(session) == 0
    assert session.get_int("G6X_DEVICE") == 0
    return session


def test_with_radii_the_call_is_as_any_other(filled, new_session):
    other = new_session()
    assert capi.call("g6x_set_j_particles", other.cluster, N, *[None] * 4, MASS, *[None] * 3, VEL,
                     POS) == 0  # fmt: skip
    args = N, POS[:70], VEL[:70], np.arange(70, dtype=np.int32)
    expected = other.force(*args, eps2=1e-4, h2=0.01)
    code, found = force(filled, 70, np.full(70, 0.01))
    assert code == 0
    assert found.bits() == expected.bits()
    assert [filled.neighbours(i) for i in range(70)] == [other.neighbours(i) for i in range(70)]
    again = filled.last(*args, eps2=1e-4)
    assert (again.code, again.bits()) == (0, expected.bits())
    assert np.array_equal(filled.partial(70), other.partial(70))
    assert force(filled, 70)[0] == 0
    assert filled.neighbours(0)[0] == capi.CONSTANTS["G6X_E_NO_FIRSTHALF"]
    assert filled.last(*args, eps2=1e-4).code == capi.CONSTANTS["G6X_E_NO_FIRSTHALF"]


@pytest.mark.parametrize("far", [False, True], ids=["there", "far"])
def test_a_first_half_under_way_is_not_disturbed(filled, far):
    """Nor what can be read after it, also where the GPU's memory has to grow."""
    close = POS[np.arange(N) // 2 * 2].copy()
    close[1::2] += 1e-13  # left to the host
    assert write(filled, pos=close) == 0
    args = N, close[:70], VEL[:70], np.arange(70, dtype=np.int32)
    expected = filled.force(*args, eps2=0.0, h2=0.01)
    lists = [filled.neighbours(i) for i in range(70)]
    assert filled.first(*args, eps2=0.0, h2=0.01) == 0
    address = np.arange(N, dtype=np.int32) + 70000 * far
    assert write(filled, address=address, mass=2 * MASS, pos=-POS) == 0
    assert filled.last(*args, eps2=0.0).bits() == expected.bits()
    assert [filled.neighbours(i) for i in range(70)] == lists
    again = filled.force(70000 + N if far else N, *args[1:], eps2=0.0)
    assert (again.code, again.bits() == expected.bits()) == (0, False)


@pytest.mark.parametrize("address", [3, 9], ids=["same-slot", "another"])
def test_what_waits_for_a_prediction_and_what_comes_from_the_device_both_arrive(filled, address):
    """A call with nj = 0 predicts nobody: a few particles stay on their way."""
    rows = slice(address, address + 1)
    one = {"address": np.array([address], np.int32), "mass": MASS[rows], "vel": VEL[rows],
           "pos": POS[rows]}  # fmt: skip
    assert filled.put(3, 3, 0.5, POS[9]) == 0
    assert force(filled, 40)[0] == 0
    assert write(filled, 1, **one) == 0
    expected = force(filled, 40)[1].bits()
    assert filled.put(3, 3, 0.25, POS[9]) == 0
    assert force(filled, 40)[0] == 0
    assert filled.put(3, 3, 0.5, POS[9]) == 0
    assert force(filled, 40, nj=0)[0] == 0
    assert write(filled, 1, **one) == 0
    assert force(filled, 40)[1].bits() == expected


@pytest.mark.parametrize(("changed", "code"), [
    ({"nj": -1}, "ARGUMENT"), ({"eps2": -1.0}, "ARGUMENT"), ({"eps2": np.nan}, "ARGUMENT"),
    ({"x": None}, "NULL"), ({"index": None}, "NULL"), ({"acc": None}, "NULL"),
], ids=str)  # fmt: skip
def test_a_call_that_fails_gives_nan(filled, changed, code):
    found, out = force(filled, 40, **changed)
    assert found == capi.CONSTANTS[f"G6X_E_{code}"]
    assert np.isnan(out.pot).all()
    assert np.isnan(out.jerk).all()
    assert "acc" in changed or np.isnan(out.acc).all()
    assert (out.nearest == -1).all()
    assert force(filled, 40)[0] == 0


def test_a_bad_row_spoils_itself_only(filled):
    x = POS[:40].copy()
    x[7, 2] = np.nan
    good = force(filled, 40)[1]
    code, out = force(filled, 40, x=x, h2=np.full(40, 0.1))
    assert code == capi.CONSTANTS["G6X_E_I_NAN"]
    assert "i particle 7 (index 7)" in filled.error()[1]
    for name in ("acc", "jerk", "pot", "nearest"):
        ours, theirs = getattr(out, name), getattr(good, name)
        assert np.array_equal(np.delete(ours, 7, axis=0), np.delete(theirs, 7, axis=0))
    assert np.isnan([*out.acc[7], out.pot[7]]).all()
    assert out.nearest[7] == 7
    assert filled.neighbours(7)[0] == capi.CONSTANTS["G6X_E_I_NAN"]
    assert filled.neighbours(8)[0] == 0


def test_bad_j_particles_are_told_and_none_is_written(filled):
    before = force(filled, 50)[1].bits()
    rows = {"address": np.array([4, 5, 6], np.int32), "index": np.array([1, 2, 3], np.int32)}
    mass = np.array([1, np.inf, 1])
    assert write(filled, 3, **rows, mass=mass, vel=None) == -6
    assert "at address 5 (index 2)" in filled.error()[1]
    rows["address"][2] = -9
    assert write(filled, 3, **rows, vel=None) == -13
    assert "address -9 is negative" in filled.error()[1]
    for n, missing, code in ((-1, {}, -11), (3, {"mass": None}, -26), (3, {"pos": None}, -26)):
        assert write(filled, n, vel=None, **missing) == code
    assert force(filled, 50)[1].bits() == before


def test_predicted_particles(filled):
    ours, theirs = np.full((2, N + 9, 3), 7.0), np.zeros((2, N + 9, 3))
    filled.set_ti(0.5)
    name = "g6x_get_predicted_j_particles_device"
    assert capi.call(name, filled.cluster, N + 9, *ours, None) == 0
    assert capi.call("g6_get_predicted_j_particles", filled.cluster, N + 9, *theirs) == 0
    assert np.array_equal(ours, theirs)
    assert capi.call(name, filled.cluster, -1, *ours, None) == -11
    assert capi.call(name, filled.cluster, 5, None, ours[1], None) == -26
    filled.set_ti(np.nan)
    assert capi.call(name, filled.cluster, 5, *ours, None) == -11


# ---- faults ----------------------------------------------------------------------------
def test_row01_no_memory(cupy, pair):
    device, host = pair()
    empty = pair()[0]
    fill(cupy, device, host)
    compare(cupy, device, host, np.arange(40))
    with no_memory():
        with pytest.raises(errors.OutOfMemoryError):
            device.forces(cupy.asarray(np.repeat(POS, 4, axis=0)))
        with pytest.raises(errors.OutOfMemoryError):
            empty.set_particles(cupy.asarray(MASS), cupy.asarray(POS))
    assert empty.n == 0
    empty.set_particles(*map(cupy.asarray, (MASS, POS, VEL)))
    for each in (device, empty):
        compare(cupy, each, host, np.arange(40), nn=True)


@pytest.mark.backends("cuda auto")
@pytest.mark.parametrize("n", [1, 4, 13])
def test_row02_a_gpu_that_fails(cupy, on_backend, n):
    """With auto the session goes on with the CPU."""
    with Grape6() as device, Grape6(backend="cpu") as host:
        fill(cupy, device, host)
        fail(n, for_ever=False)
        with pytest.raises(errors.BackendError, match="is not used any more"):  # noqa: PT012
            for _ in range(9):
                if on_backend == "cuda":
                    device.set_particles(cupy.asarray(MASS), cupy.asarray(POS))
                device.forces(nn=True, h=0.1)
        fail(0)
        if on_backend == "cuda":
            with pytest.raises(errors.BackendError):
                device.forces(cupy.asarray(POS[:9]))
            return
        assert device.backend == host.backend
        assert device._board.option("DEVICE") == -1
        compare(cupy, device, host, nn=True)
        compare(cupy, device, host, np.arange(50), h=0.1)
        put(cupy, device, host, MASS[:5], POS[:5], address=np.arange(5))
        compare(cupy, device, host)

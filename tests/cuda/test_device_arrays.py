"""Arrays of a CUDA device in the calls of Grape6, with sessions on the CPU; test_arrays_*.py have
them on the device."""

import re
import subprocess
import sys

import numpy as np
import pytest

import capi
import fake_arrays
from grape6py import Grape6, errors, plummer

MASS, POS, VEL = plummer(60, seed=1)


@pytest.mark.backends("cpu gpu")
def test_on_the_cpu_they_are_copied_there_and_back(cupy):
    last = cupy.cuda.runtime.getDeviceCount() - 1
    with cupy.cuda.Device(last):
        *bodies, few, index = map(cupy.asarray, (MASS, POS, VEL, POS[:9], [3] * 9))
    with Grape6(backend="cpu") as grape, Grape6(backend="cpu") as host:
        grape.set_particles(*bodies, index=np.arange(60) + 5)
        host.set_particles(MASS, POS, VEL, index=np.arange(60) + 5)
        calls = [
            ({}, {}),
            ({"pos": few}, {"pos": POS[:9]}),
            ({"pos": POS[:9], "index": index}, {"pos": POS[:9], "index": [3] * 9}),
        ]
        for given, same in calls:
            found = grape.forces(**given, eps=0.1, nn=True, h=0.5)
            expected = host.forces(**same, eps=0.1, nn=True, h=0.5)
            for name in ("acc", "jerk", "pot", "nearest", "distance"):
                array = getattr(found, name)
                assert array.device.id == last
                assert np.array_equal(array.get(), getattr(expected, name))
                assert array.dtype == getattr(expected, name).dtype
            for ours, theirs in zip(found.neighbours, expected.neighbours, strict=True):
                assert np.array_equal(ours.get(), theirs)
        assert isinstance(grape.forces(POS).acc, np.ndarray)
        grape.set_particles(MASS, POS)
        assert isinstance(grape.forces().acc, np.ndarray)


def test_on_the_cpu_they_are_checked_as_numpys(cupy):
    with Grape6(backend="cpu") as grape:
        with pytest.raises(errors.ArgumentError, match=r"pos has shape \(60,\), not \(n, 3\)"):
            grape.set_particles(MASS, cupy.on(0, MASS))
        bad = POS.copy()
        bad[7, 1] = np.inf
        with pytest.raises(errors.NotFiniteError, match=r"pos\[7\] \(the particle of index 7\)"):
            grape.set_particles(MASS, cupy.on(0, bad))
        assert grape.n == 0


def test_the_library_refuses_them_on_the_cpu(plain):
    none = [None] * 11
    calls = {
        "g6x_set_j_particles_device": [0, *none[:10]],
        "g6x_get_predicted_j_particles_device": [0, *none[:3]],
        "g6x_forces_device": [0, 0, None, None, None, 0.0, *none[:7]],
    }
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


def test_numpys_arrays_do_not_import_cupy():
    script = """
import sys
import numpy as np
from grape6py import Grape6, plummer
with Grape6(backend="cpu") as grape:
    grape.set_particles(*plummer(50, seed=1), address=np.arange(50))
    grape.forces(h=1.0)
    grape.forces([[0, 0, 0]], index=[1], h=np.ones(1))
assert "cupy" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True,
                          text=True, cwd=capi.ROOT, env=capi.clean_environment({}))  # fmt: skip
    assert done.returncode == 0, done.stderr

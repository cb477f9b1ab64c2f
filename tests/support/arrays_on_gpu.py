"""What the tests of a CUDA device's arrays (test_arrays_*.py) share: particles for a pair of
sessions, one for a device's arrays and one for NumPy's, and comparisons of the two. What is
promised: the bits of the same call with NumPy's arrays, and the same errors."""

import numpy as np

import backends
from grape6py import plummer
from grape6py._lib.device_place import is_on_device

N = 5000 if backends.has_gpu else 1500
SIZES = (1, 9, 70, 300, 3000) if backends.has_gpu else (7, 90, 900)  # of blocks
MASS, POS, VEL = plummer(N, seed=11)
RNG = np.random.default_rng(12)
MOTION = {name: RNG.standard_normal((N, 3)) for name in ("acc", "jerk", "snap")}
MOTION["time"] = RNG.random(N) / 64


def assert_same(found, expected):
    """All results are a device's arrays with these bits."""
    for name in ("acc", "jerk", "pot", "nearest", "distance"):
        ours, theirs = getattr(found, name), getattr(expected, name)
        if theirs is None:
            assert ours is None
            continue
        assert is_on_device(ours), name
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        assert ours.tobytes() == theirs.tobytes(), name
    assert (found.neighbours is None) == (expected.neighbours is None)
    for ours, theirs in zip(found.neighbours or [], expected.neighbours or [], strict=True):
        assert ours.dtype == np.int32
        assert np.array_equal(ours.get(), theirs)


def on_device(cupy, given):
    """The same by name, NumPy's arrays among them on the device."""
    return {k: cupy.asarray(v) if isinstance(v, np.ndarray) else v for k, v in given.items()}


def put(cupy, device, host, *arrays, **more):
    """The same particles in both."""
    host.set_particles(*arrays, **more)
    device.set_particles(*map(cupy.asarray, arrays), **on_device(cupy, more))


def fill(cupy, device, host, **more):
    """All particles."""
    put(cupy, device, host, **{"mass": MASS, "pos": POS, "vel": VEL, **more})


def force(cupy, device, host, *targets, **call):
    """One force call in both."""
    expected = host.forces(*targets, **call)
    assert_same(device.forces(*map(cupy.asarray, targets), **on_device(cupy, call)), expected)
    return expected


def compare(cupy, device, host, rows=None, **call):
    """One force call in both: on the particles themselves, or near some of them."""
    if rows is not None:
        call |= {"pos": POS[rows] + 0.01, "vel": VEL[rows], "index": np.asarray(rows, np.int32)}
    return force(cupy, device, host, **call)

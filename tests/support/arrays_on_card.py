"""What the tests of a CUDA device's arrays (test_arrays_*.py) share: pairs of sessions, one for a
device's arrays and one for NumPy's, and comparisons of the two. What is promised: the bits of the
same call with NumPy's arrays, and the same errors.
"""

import numpy as np
import pytest

import fake_arrays
from grape6py import Grape6, plummer

N = 1500
MASS, POS, VEL = plummer(N, seed=11)
RNG = np.random.default_rng(12)
ACC, JERK, SNAP = (RNG.standard_normal((N, 3)) for _ in range(3))
TIME = RNG.random(N) / 64
NAMES = ("acc", "jerk", "pot", "nearest", "distance")


@pytest.fixture
def pair():
    """Makes two sessions: one for a device's arrays, one for NumPy's."""
    made = []

    def make(**options):
        made.extend([Grape6(**options), Grape6(**options)])
        return made[-2:]

    yield make
    for session in made:
        session.close()


def assert_same(found, expected):
    """All results are a device's arrays with these bits."""
    for name in NAMES:
        ours, theirs = getattr(found, name), getattr(expected, name)
        if theirs is None:
            assert ours is None
            continue
        assert isinstance(ours, fake_arrays.Array), name
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        assert ours.memory.tobytes() == theirs.tobytes(), name
    assert (found.neighbours is None) == (expected.neighbours is None)
    for ours, theirs in zip(found.neighbours or [], expected.neighbours or [], strict=True):
        assert ours.dtype == np.int32
        assert np.array_equal(ours.memory, theirs)


def fill(cupy, device, host, **more):
    """The same particles in both."""
    given = {"mass": MASS, "pos": POS, "vel": VEL, **more}
    host.set_particles(**given)
    device.set_particles(
        **{name: cupy.on(0, v) if isinstance(v, np.ndarray) else v for name, v in given.items()}
    )


def compare(cupy, device, host, rows=None, **call):
    """One force call in both: on the particles themselves, or on some targets."""
    targets = {}
    if rows is not None:
        targets = {"pos": POS[rows] + 0.01, "vel": VEL[rows], "index": np.asarray(rows, np.int32)}
    expected = host.forces(**targets, **call)
    found = device.forces(**{k: cupy.on(0, v) for k, v in targets.items()}, **call)
    assert_same(found, expected)
    return expected

"""Mode auto: each row has the bits of mode grape or of mode double, as its own j particle says."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grape6py import Grape6, models
from grape6py._lib.library import ffi, lib
from grape6py.errors import Grape6Error

pytestmark = pytest.mark.backends("cpu cuda")


def board(precision, body, **given_options):
    grape = Grape6(precision=precision, threads=2, **given_options)
    grape.set_particles(**body)
    return grape


def particles(rng, n, spread, unit=1.0):
    """Bodies with derivatives, some without, whose time scales differ by orders of magnitude, some
    at their own time, one a million times as heavy; all numbers but times and masses in a unit."""
    s = models.plummer(n, seed=int(rng.integers(1 << 30))) if n > 1 else None
    pos, vel = (s.pos, s.vel) if s is not None else (np.zeros((n, 3)), np.ones((n, 3)))
    acc, jerk = rng.normal(size=(2, n, 3))
    jerk *= 10.0 ** rng.uniform(-spread, spread, size=(n, 1))
    none = rng.random(n) < 0.2
    acc[none] = jerk[none] = 0
    time = -(2.0 ** rng.integers(-14, -4, n)) * (rng.random(n) < 0.9)
    vel = vel - np.average(vel, axis=0) if n > 1 else vel
    mass = np.full(n, 1 / max(n, 1))
    mass[:1] *= 1e6
    vectors = {"pos": pos, "vel": vel, "acc": acc, "jerk": jerk}
    return {"mass": mass, "time": time} | {name: unit * a for name, a in vectors.items()}


@settings(max_examples=10, deadline=None)
@given(
    st.integers(0, 2**31),
    st.sampled_from([1, 2, 3, 63, 64, 300, 1500]),
    st.sampled_from([0.0, 1e-2, 1.0]),
    st.sampled_from([1.0, 1e-30, 1e30]),
    st.sampled_from(["own", "absent", "several"]),
)
def test_each_row_is_that_of_grape_or_of_double(seed, n, eps, unit, labels):
    """However calls are cut; rows without a slot of their own are as in mode grape."""
    rng = np.random.default_rng(seed)
    body, eps = particles(rng, n, 3, unit), eps * unit
    index = rng.permutation(n).astype(np.int32)
    if labels == "several":
        body["index"] = index = np.zeros(n, np.int32)
    boards = {mode: board(mode, body) for mode in ("auto", "grape", "double")}
    with boards["auto"], boards["grape"], boards["double"]:
        targets = index + n * (labels == "absent")
        pos, vel = unit * rng.normal(size=(2, n, 3))
        call = {"eps": eps, "time": 0.0, "nn": True, "h": unit / 2}
        found = {m: b.forces(pos, vel, index=targets, **call) for m, b in boards.items()}
        some = slice(n // 3, n // 3 + 1 + seed % 60)
        cut = boards["auto"].forces(pos[some], vel[some], index=targets[some], **call)
        # The rule, in extended precision: dt against |a| / |j| and sqrt(|v| / |j|) / 3.
        step, dt, drift = 0.01 if n <= 1024 else 0.005, -body["time"], boards["auto"].scale.drift
        a, j, v = (np.sqrt((np.asarray(x, np.longdouble) ** 2).sum(axis=1))
                   for x in (body["acc"], body["jerk"], body["vel"] - np.array(drift)))  # fmt: skip
        fine = (dt * j <= step * a) | (9 * dt**2 * j <= step**2 * v)
        fine = (fine & ((a > 0) | (j > 0)))[index]
        fine &= labels == "own" or (labels == "several" and n == 1)
        for name in ("acc", "jerk", "pot"):
            auto, grape, double = (getattr(found[m], name) for m in ("auto", "grape", "double"))
            right = np.where(fine.reshape(-1, *[1] * (auto.ndim - 1)), double, grape)
            np.testing.assert_array_equal(auto, right)
            np.testing.assert_array_equal(getattr(cut, name), auto[some])
        np.testing.assert_array_equal(found["auto"].nearest, found["double"].nearest)
        for one, other in zip(found["auto"].neighbours, found["double"].neighbours, strict=True):
            np.testing.assert_array_equal(one, other)


def bytes_of(array):
    return ffi.cast("unsigned char *", array.ctypes.data)


def test_rows_that_were_given_are_summed_so_once_and_are_counted():
    """Whatever their slots say; the next call follows the slots again."""
    rng = np.random.default_rng(7)
    body = particles(rng, 60, 3)
    pos, vel = rng.normal(size=(2, 60, 3))
    index = np.arange(60, dtype=np.int32)
    with board("auto", body) as auto, board("grape", body) as grape, board("double", body) as exact:
        call = {"pos": pos, "vel": vel, "index": index, "eps": 0.01, "time": 0.0}
        ruled = auto.forces(**call)
        by_slots = np.zeros(60, np.uint8)
        cluster, labels = auto._board.cluster, ffi.cast("int *", index.ctypes.data)
        assert lib.g6x_get_fine_rows(cluster, 60, 60, labels, bytes_of(by_slots)) == 0
        right = np.where(by_slots[:, None], exact.forces(**call).acc, grape.forces(**call).acc)
        np.testing.assert_array_equal(ruled.acc, right)
        chosen = (1 - by_slots).astype(np.uint8)
        assert lib.g6x_set_fine_rows(cluster, 60, bytes_of(chosen)) == 0
        right = np.where(chosen[:, None], exact.forces(**call).acc, grape.forces(**call).acc)
        np.testing.assert_array_equal(auto.forces(**call).acc, right)
        np.testing.assert_array_equal(auto.forces(**call).acc, ruled.acc)
        counts = ffi.new("long long[3]")
        assert lib.g6x_counts(cluster, counts) == 0
        assert list(counts) == [3, 180, 60 + int(by_slots.sum())]


def test_wrong_arguments_are_refused():
    """And rows that were given for another number of targets."""
    with board("auto", particles(np.random.default_rng(8), 5, 1)) as auto:
        c, b, none = auto._board.cluster, ffi.new("unsigned char[4]"), ffi.NULL
        for code in (
            lib.g6x_set_fine_rows(c, -1, b),
            lib.g6x_set_fine_rows(c, 1, none),
            lib.g6x_get_fine_rows(c, -1, 1, ffi.new("int[1]"), b),
            lib.g6x_get_fine_rows(c, 1, 1, none, b),
            lib.g6x_counts(c, none),
        ):
            assert code < 0
        assert np.isfinite(auto.forces(eps=0.01).acc).all()
        assert lib.g6x_set_fine_rows(c, 4, b) == 0
        with pytest.raises(Grape6Error, match="after g6x_set_fine_rows with 4"):
            auto.forces(eps=0.01)
        assert np.isfinite(auto.forces(eps=0.01).acc).all()

"""Mode auto: each row has the bits of mode grape or of mode double, as its own j particle says."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grape6py import Grape6, models


def is_fine(step, dt, acc, jerk, vel):
    """The rule, in extended precision: dt against |a| / |j| and sqrt(|v| / |j|) / 3."""
    a, j, v = (np.sqrt((np.asarray(x, np.longdouble) ** 2).sum(axis=1)) for x in (acc, jerk, vel))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (dt * j <= step * a) | (9 * dt**2 * j <= step**2 * v)
    return np.where((a > 0) | (j > 0), found, False)


def board(precision, body, **given_options):
    grape = Grape6(backend="cpu", precision=precision, threads=2, **given_options)
    grape.set_particles(**body)
    return grape


def particles(rng, n, spread):
    """Bodies with derivatives, some without, whose time scales differ by orders of magnitude."""
    s = models.plummer(n, seed=int(rng.integers(1 << 30))) if n > 1 else None
    pos, vel = (s.pos, s.vel) if s is not None else (np.zeros((n, 3)), np.ones((n, 3)))
    acc, jerk = rng.normal(size=(2, n, 3))
    jerk *= 10.0 ** rng.uniform(-spread, spread, size=(n, 1))
    none = rng.random(n) < 0.2
    acc[none] = jerk[none] = 0
    time = -(2.0 ** rng.integers(-14, -4, n))
    vel = vel - np.average(vel, axis=0) if n > 1 else vel
    mass = np.full(n, 1 / max(n, 1))
    return {"mass": mass, "pos": pos, "vel": vel, "acc": acc, "jerk": jerk, "time": time}


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 2**31),
    st.sampled_from([1, 2, 3, 63, 64, 300, 1500]),
    st.sampled_from([0.0, 1e-2, 1.0]),
)
def test_each_row_is_that_of_grape_or_of_double(seed, n, eps):
    rng = np.random.default_rng(seed)
    body = particles(rng, n, 3)
    boards = {mode: board(mode, body) for mode in ("auto", "grape", "double")}
    with boards["auto"], boards["grape"], boards["double"]:
        index = rng.permutation(n).astype(np.int32)
        pos, vel = rng.normal(size=(2, n, 3))
        found = {m: b.forces(pos, vel, index=index, eps=eps, time=0.0, nn=True, h=0.5)
                 for m, b in boards.items()}  # fmt: skip
        drift = np.array(boards["auto"].scale.drift)
        fine = is_fine(0.01 if n <= 1024 else 0.005, -body["time"], body["acc"], body["jerk"],
                       body["vel"] - drift)[index]  # fmt: skip
        for name in ("acc", "jerk", "pot"):
            auto, grape, double = (getattr(found[m], name) for m in ("auto", "grape", "double"))
            right = np.where(fine.reshape(-1, *[1] * (auto.ndim - 1)), double, grape)
            np.testing.assert_array_equal(auto, right)
        np.testing.assert_array_equal(found["auto"].nearest, found["double"].nearest)
        for one, other in zip(found["auto"].neighbours, found["double"].neighbours, strict=True):
            np.testing.assert_array_equal(one, other)


def test_rows_do_not_depend_on_the_cutting():
    rng = np.random.default_rng(5)
    body = particles(rng, 700, 3)
    pos, vel = rng.normal(size=(2, 700, 3))
    index = np.arange(700, dtype=np.int32)
    with board("auto", body) as grape:
        whole = grape.forces(pos, vel, index=index, eps=0.01, time=0.0)
        for size in (1, 7, 48, 699):
            for first in range(0, 700, size * 13):
                rows = slice(first, min(first + size, 700))
                some = grape.forces(pos[rows], vel[rows], index=index[rows], eps=0.01, time=0.0)
                np.testing.assert_array_equal(some.acc, whole.acc[rows])
                np.testing.assert_array_equal(some.jerk, whole.jerk[rows])


@pytest.mark.parametrize("lacks", ["derivatives", "a slot", "one slot of two"])
def test_rows_without_own_derivatives_are_as_in_mode_grape(lacks):
    rng = np.random.default_rng(6)
    body = particles(rng, 50, 0)
    index = np.arange(50, dtype=np.int32)
    if lacks == "derivatives":
        body["acc"] = body["jerk"] = np.zeros((50, 3))
    elif lacks == "a slot":
        index += 50
    else:
        body["index"] = np.zeros(50, np.int32)
        index[:] = 0
    pos, vel = rng.normal(size=(2, 50, 3))
    with board("auto", body) as auto, board("grape", body) as grape:
        a, b = (g.forces(pos, vel, index=index, eps=0.01, time=0.0) for g in (auto, grape))
        np.testing.assert_array_equal(a.acc, b.acc)
        np.testing.assert_array_equal(a.jerk, b.jerk)

"""Prediction of the j particles: the formula and its exactness. When it is done: test_fuzz.py."""

import numpy as np
import pytest

from particles import cloud

pytestmark = pytest.mark.backends("cpu cuda gpu")
MOVING = cloud(37, seed=5, moving=True)


def test_2_1_predictor_follows_the_formula_to_the_snap(plain):
    plain.put_cloud(MOVING)
    for ti in (0.0, 2.0**-30, 0.25, 1.25, -0.125):
        plain.set_ti(ti)
        x, v = plain.predicted(len(MOVING))
        expected_x, expected_v = MOVING.at(ti)
        dt = abs(ti - MOVING.t)[:, None]
        terms = [abs(d) for d in (MOVING.x, MOVING.v, MOVING.a2, MOVING.j6, MOVING.k18)]
        size = sum(term * dt**k for k, term in enumerate(terms))
        assert (abs(x - expected_x) <= 4 * 2.0**-53 * size).all()
        size = sum((k + 1) * term * dt**k for k, term in enumerate(terms[1:]))
        assert (abs(v - expected_v) <= 4 * 2.0**-53 * size).all()


def test_2_1_3_26_time_differences_are_exact_and_zero_gives_back_x(plain):
    plain.put(0, 3, 1.0, (0, 0, 0), v=(1, 0, 0), tj=1000.0)
    plain.set_ti(1000.0 + 2.0**-32)
    assert plain.predicted(1)[0][0, 0] == 2.0**-32
    x = np.random.default_rng(3).standard_normal(3) * 1e-9
    plain.put(0, 3, 1.0, x, v=(1e30,) * 3, a2=(1e40,) * 3, j6=(-1e40,) * 3, k18=(1e50,) * 3)
    plain.put(1, 4, 1.0, x, v=(1e30,) * 3, tj=0.5)
    for time in (0.0, 0.5):
        plain.set_ti(time)
        assert (plain.predicted(2)[0][int(2 * time)] == x).all()

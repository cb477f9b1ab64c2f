"""Prediction of the j particles: the formula, its exactness, and when it is done."""

import numpy as np
import pytest

from particles import assert_force, cloud, direct

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


def test_2_1_forces_use_predicted_positions_and_velocities(in_double):
    in_double.put_cloud(MOVING)
    in_double.set_ti(0.375)
    x, v = (a.astype(float) for a in MOVING.at(0.375))
    found = in_double.force(len(MOVING), x, v, MOVING.index)
    assert_force(found, direct(x, v, MOVING.index, MOVING, time=0.375), 3e-13)


@pytest.mark.backends("cpu cuda cpu-tree:grape cuda-tree:grape gpu")
def test_2_2_3_12_ti_is_zero_at_first_and_holds_for_particles_before_and_after_set_ti(plain):
    def expect(place):  # of the j particle, by its force on the origin
        acc = plain.force(1, [[0, 0, 0]]).acc[0, 0]
        assert 1 / np.sqrt(acc) == pytest.approx(place, rel=1e-6)

    plain.put(0, 3, 1.0, (1, 0, 0), v=(2, 0, 0))
    expect(1)
    plain.set_ti(0.5)
    for _ in range(2):
        expect(2)
    plain.put(0, 3, 1.0, (2, 0, 0), v=(4, 0, 0), k18=(16, 0, 0), tj=0.25)
    expect(3 + 0.75 * 16 * 0.25**4)
    plain.set_int("G6X_SNAP", 0)
    expect(3)
    plain.set_ti(0.25)
    expect(2)

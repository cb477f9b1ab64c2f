"""Prediction of the j particles: the formula, its exactness, and when it is done."""

import numpy as np
import pytest

from particles import assert_force, cloud, direct

pytestmark = pytest.mark.backends("cpu cuda gpu")
EVERYWHERE = pytest.mark.backends("cpu cuda cpu-tree:grape cuda-tree:grape gpu")

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


@pytest.mark.parametrize(
    ("term", "x", "v"),
    [
        ("v", [0.5, -1, 2], [1, -2, 4]),
        ("a2", [0.25, -0.5, 1], [1, -2, 4]),
        ("j6", [0.125, -0.25, 0.5], [0.75, -1.5, 3]),
        ("k18", [0.046875, -0.09375, 0.1875], [0.375, -0.75, 1.5]),
    ],
)
def test_2_1_each_derivative_has_its_coefficient(plain, term, x, v):
    """That of the snap can be switched off."""
    assert plain.put(0, 3, 1.0, (0, 0, 0), **{"v": (0, 0, 0), term: (1, -2, 4)}, tj=0.25) == 0
    plain.set_ti(0.75)
    assert [found[0].tolist() for found in plain.predicted(1)] == [x, v]
    plain.set_int("G6X_SNAP", 0)
    without = [[0] * 3] * 2 if term == "k18" else [x, v]
    assert [found[0].tolist() for found in plain.predicted(1)] == without


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


@EVERYWHERE
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


@EVERYWHERE
def test_3_28_repeated_calls_at_one_time_give_the_same_bits(plain):
    plain.put_cloud(MOVING)
    found = {0.5: set(), 0.25: set()}
    for time in (0.5, 0.5, 0.25, 0.5):
        plain.set_ti(time)
        found[time].add(plain.force(37, MOVING.x, MOVING.v, MOVING.index).bits())
    assert len(found[0.5]) == 1 == len(found[0.25])
    assert found[0.5] != found[0.25]


def test_3_28_growing_nj_at_one_time_predicts_the_new_ones(in_double):
    in_double.put_cloud(MOVING)
    in_double.set_ti(0.5)
    x, v = np.zeros((1, 3)), np.zeros((1, 3))
    for nj in (5, 37, 1, 20):
        found = in_double.force(nj, x, v, [-1])
        assert_force(found, direct(x, v, [-1], MOVING.take(range(nj)), time=0.5), 1e-12)


def test_2_11_random_sequences_of_writes_and_times_follow_the_last_state(in_double):
    rng = np.random.default_rng(8)
    state, ti, nj = cloud(60, seed=9, moving=True), 0.0, 60
    in_double.put_cloud(state)
    x, v = rng.standard_normal((3, 3)), rng.standard_normal((3, 3))
    for _ in range(40):
        match rng.integers(4):
            case 0:
                ti = rng.integers(0, 1024) / 1024
                in_double.set_ti(ti)
            case 1:
                fresh, rows = cloud(7, int(rng.integers(999)), True), rng.permutation(60)[:7]
                fresh.index[:] = rng.integers(0, 60, 7)
                for name in fresh.__annotations__:
                    getattr(state, name)[rows] = getattr(fresh, name)
                in_double.put_cloud(fresh, rows)
            case 2:
                nj = int(rng.integers(2, 61))
            case 3:
                in_double.first(nj, x, v, np.full(3, 5, np.int32))
        index = rng.integers(-1, 60, 3)
        found = in_double.force(nj, x, v, index)
        expected = direct(x, v, index, state.take(range(nj)), time=ti)
        assert found.code == 0
        error = abs(found.acc - expected[0]).max() / abs(expected[0]).max()
        assert error < 1e-12
        assert (found.nearest == expected[3]).all()

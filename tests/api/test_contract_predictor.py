"""Prediction of the j particles: the formula, its exactness, and when it is done."""

import numpy as np
import pytest

from particles import assert_force, cloud, direct

pytestmark = pytest.mark.backends("cpu cuda gpu")

MOVING = cloud(37, seed=5, moving=True)


@pytest.mark.parametrize("ti", [0.0, 2.0**-30, 0.0625, 0.25, 1.25, -0.125])
def test_2_1_predictor_follows_the_formula_to_the_snap(plain, ti):
    plain.put_cloud(MOVING)
    plain.set_ti(ti)
    x, v = plain.predicted(len(MOVING))
    expected_x, expected_v = MOVING.at(ti)
    dt = abs(ti - MOVING.t)[:, None]
    size = sum(abs(d) * dt**k for k, d in enumerate((MOVING.x, MOVING.v, MOVING.a2, MOVING.j6)))
    assert (abs(x - expected_x) <= 4 * 2.0**-53 * (size + abs(MOVING.k18) * dt**4)).all()
    size = sum(
        (k + 1) * abs(d) * dt**k for k, d in enumerate((MOVING.v, MOVING.a2, MOVING.j6, MOVING.k18))
    )
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
    assert plain.put(0, 3, 1.0, (0, 0, 0), **{"v": (0, 0, 0), term: (1, -2, 4)}, tj=0.25) == 0
    plain.set_ti(0.75)
    found_x, found_v = plain.predicted(1)
    assert found_x[0].tolist() == x
    assert found_v[0].tolist() == v


def test_2_1_time_difference_is_exact(plain):
    plain.put(0, 3, 1.0, (0, 0, 0), v=(1, 0, 0), tj=1000.0)
    plain.set_ti(1000.0 + 2.0**-32)
    assert plain.predicted(1)[0][0, 0] == 2.0**-32


def test_3_26_dt_zero_returns_x_exactly(plain):
    rng = np.random.default_rng(3)
    x = rng.standard_normal(3) * 1e-9
    plain.put(0, 3, 1.0, x, v=(1e30,) * 3, a2=(1e40,) * 3, j6=(-1e40,) * 3, k18=(1e50,) * 3)
    plain.put(1, 4, 1.0, x, v=(1e30,) * 3, tj=0.5)
    plain.set_ti(0.0)
    assert (plain.predicted(1)[0][0] == x).all()
    plain.set_ti(0.5)
    assert (plain.predicted(2)[0][1] == x).all()


def test_2_1_snap_can_be_switched_off(plain):
    plain.put(0, 3, 1.0, (0, 0, 0), j6=(8, 0, 0), k18=(16, 0, 0))
    plain.set_ti(0.5)
    plain.set_int("G6X_SNAP", 0)
    x, v = plain.predicted(1)
    assert x[0, 0] == 1
    assert v[0, 0] == 6
    plain.set_int("G6X_SNAP", 1)
    x, v = plain.predicted(1)
    assert x[0, 0] == 1.75
    assert v[0, 0] == 12


def test_2_1_forces_use_predicted_positions_and_velocities(exact):
    exact.put_cloud(MOVING)
    exact.set_ti(0.375)
    x, v = (a.astype(float) for a in MOVING.at(0.375))
    found = exact.force(len(MOVING), x, v, MOVING.index)
    assert_force(found, direct(x, v, MOVING.index, MOVING, time=0.375), 3e-13)


def test_2_2_dtj_is_ignored(plain):
    plain.set_ti(0.5)
    for dtj in (0.0, -1.0, 1e300, 5e-324, 0.3, np.nan):
        assert plain.put(0, 3, 1.0, (1, 0, 0), v=(2, 0, 0), tj=0.25, dtj=dtj) == 0
        assert plain.predicted(1)[0][0, 0] == 1.5


@pytest.mark.backends("cpu cuda cpu-tree:grape cuda-tree:grape gpu")
def test_2_2_3_12_ti_is_zero_at_first_and_holds_for_particles_before_and_after_set_ti(session):
    def expect(place):  # of the j particle, by its force on the origin
        acc = session.force(1, [[0, 0, 0]]).acc[0, 0]
        assert 1 / np.sqrt(acc) == pytest.approx(place, rel=1e-6)

    session.put(0, 3, 1.0, (1, 0, 0), v=(2, 0, 0))
    expect(1)
    session.set_ti(0.5)
    for _ in range(2):
        expect(2)
    session.put(0, 3, 1.0, (2, 0, 0), v=(4, 0, 0), k18=(16, 0, 0), tj=0.25)
    expect(3 + 0.75 * 16 * 0.25**4)
    session.set_int("G6X_SNAP", 0)
    expect(3)
    session.set_ti(0.25)
    expect(2)


@pytest.mark.backends("cpu cuda cpu-tree:grape cuda-tree:grape gpu")
def test_3_28_repeated_calls_at_one_time_give_the_same_bits(session):
    session.put_cloud(MOVING)
    session.set_ti(0.5)
    calls = [session.force(37, MOVING.x, MOVING.v, MOVING.index).bits() for _ in range(3)]
    session.set_ti(0.25)
    session.force(37, MOVING.x, MOVING.v, MOVING.index)
    session.set_ti(0.5)
    calls.append(session.force(37, MOVING.x, MOVING.v, MOVING.index).bits())
    assert len(set(calls)) == 1


def test_3_28_growing_nj_at_one_time_predicts_the_new_ones(exact):
    exact.put_cloud(MOVING)
    exact.set_ti(0.5)
    x, v = np.zeros((1, 3)), np.zeros((1, 3))
    for nj in (5, 37, 1, 20):
        found = exact.force(nj, x, v, [-1])
        assert_force(found, direct(x, v, [-1], MOVING.take(range(nj)), time=0.5), 1e-12)


def test_2_11_random_sequences_of_writes_and_times_follow_the_last_state(exact):
    rng = np.random.default_rng(8)
    state, ti, nj = cloud(60, seed=9, moving=True), 0.0, 60
    exact.put_cloud(state)
    x, v = rng.standard_normal((3, 3)), rng.standard_normal((3, 3))
    for _ in range(60):
        match rng.integers(4):
            case 0:
                ti = rng.integers(0, 1024) / 1024
                exact.set_ti(ti)
            case 1:
                fresh, rows = cloud(7, int(rng.integers(999)), True), rng.permutation(60)[:7]
                fresh.index[:] = rng.integers(0, 60, 7)
                for name in fresh.__annotations__:
                    getattr(state, name)[rows] = getattr(fresh, name)
                exact.put_cloud(fresh, rows)
            case 2:
                nj = int(rng.integers(2, 61))
            case 3:
                exact.first(nj, x, v, np.full(3, 5, np.int32))
        index = rng.integers(-1, 60, 3)
        found = exact.force(nj, x, v, index)
        expected = direct(x, v, index, state.take(range(nj)), time=ti)
        assert found.code == 0
        error = abs(found.acc - expected[0]).max() / abs(expected[0]).max()
        assert error < 1e-12
        assert (found.nearest == expected[3]).all()

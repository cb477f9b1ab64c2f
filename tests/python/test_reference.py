"""The oracle itself: against hand-computed bodies, exact fractions and the Plummer model."""

import decimal
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grape6py import reference
from grape6py.models import plummer, two_body
from grape6py.reference import direct_sum

BOTH = pytest.mark.parametrize("extended", [False, True], ids=["double", "extended"])
SEEDS = st.integers(0, 2**32)


def blob(n, seed):
    """Masses, positions and velocities of n bodies in a normal blob."""
    random = np.random.default_rng(seed)
    return random.uniform(0.5, 2, n), random.normal(size=(n, 3)), random.normal(size=(n, 3))


@BOTH
def test_two_bodies_have_the_force_computed_by_hand(extended):
    # r = (2, 0, 0), v = (1, 1, 0) from body 0: v / 8 - 3 * 2 * r / 32 = (-1/4, 1/8, 0)
    sums = direct_sum(
        [3, 5], [[1, 0, 0], [3, 0, 0]], [[0, 0, 0], [1, 1, 0]], nearest=True, extended=extended
    )
    assert np.array_equal(sums.acc, [[1.25, 0, 0], [-0.75, 0, 0]])
    assert np.array_equal(sums.jerk, [[-1.25, 0.625, 0], [0.75, -0.375, 0]])
    assert np.array_equal(sums.pot, [-2.5, -1.5])
    assert np.array_equal(sums.nearest, [1, 0])
    assert np.array_equal(sums.distance, [2, 2])
    assert sums.acc.dtype == (np.longdouble if extended else np.float64)


@BOTH
def test_softening_enters_force_jerk_and_potential(extended):
    # r = (3, 0, 0), eps = 4, so s = 5; v = (1, 0, 2): v / 125 - 3 * 3 * r / 3125
    sums = direct_sum(
        [0, 10], [[0, 0, 0], [3, 0, 0]], [[0, 0, 0], [1, 0, 2]], eps2=16, extended=extended
    )
    assert np.allclose(np.float64(sums.acc[0]), [0.24, 0, 0], rtol=1e-15)
    assert np.allclose(np.float64(sums.jerk[0]), [-0.0064, 0, 0.16], rtol=1e-13)
    assert np.allclose(np.float64(sums.pot[0]), -2, rtol=1e-15)


def test_three_bodies_on_a_right_triangle():
    sums = direct_sum([9, 16, 125], [[3, 0, 0], [0, 4, 0], [0, 0, 0]], nearest=True)
    assert np.allclose(sums.acc[2], [1, 1, 0], rtol=1e-15)
    assert np.allclose(sums.pot, [-16 / 5 - 125 / 3, -9 / 5 - 125 / 4, -3 - 4], rtol=1e-15)
    assert np.array_equal(sums.nearest, [2, 2, 0])


def test_extended_precision_has_more_digits_than_double():
    if np.finfo(np.longdouble).nmant <= np.finfo(np.float64).nmant:
        pytest.skip("long double is double on this platform")
    pot = direct_sum([1, 1], [[0, 0, 0], [1, 1, 0]], extended=True).pot[0]
    with decimal.localcontext(prec=40):
        true = -1 / decimal.Decimal(2).sqrt()
        found = decimal.Decimal(float(pot)) + decimal.Decimal(float(pot - np.float64(pot)))
        assert abs(found - true) < decimal.Decimal("1.1e-19")


def test_a_pair_of_equal_index_is_left_out_at_any_distance():
    mass, pos = [1, 10, 100], [[0, 0, 0], [1, 0, 0], [0, 2, 0]]
    sums = direct_sum(mass, pos, index=[7, 7, 8], nearest=True, h2=100)
    assert np.array_equal(sums.acc[0], [0, 25, 0])
    assert sums.pot[0] == -50
    assert sums.nearest[0] == 8
    assert [list(found) for found in sums.neighbours] == [[8], [8], [7, 7]]


def test_a_pair_at_one_place_adds_nothing_but_is_a_neighbour():
    sums = direct_sum([1, 2], [[1, 1, 1]] * 2, np.eye(3)[:2], index=[4, 3], nearest=True, h2=0.0)
    assert not sums.acc.any()
    assert not sums.jerk.any()
    assert not sums.pot.any()
    assert np.array_equal(sums.nearest, [3, 4])
    assert np.array_equal(sums.distance, [0, 0])
    assert [list(found) for found in sums.neighbours] == [[3], [4]]


def test_with_softening_a_pair_at_one_place_has_a_potential():
    assert np.array_equal(direct_sum([1, 2], [[1, 1, 1]] * 2, eps2=4).pot, [-1, -0.5])


def test_foreign_targets_feel_everybody():
    pos = np.eye(3)
    sums = direct_sum([1, 1, 1], pos, target_pos=pos, eps2=1)
    assert np.allclose(sums.pot, -1 - 2 / math.sqrt(3))
    own = direct_sum([1, 1, 1], pos, target_pos=pos, target_index=[0, 1, 2], eps2=1)
    assert np.allclose(own.pot, -2 / math.sqrt(3))


@pytest.mark.parametrize("columns", [1, 1024], ids=["across tiles", "in a tile"])
def test_nearest_neighbour_ties_go_to_the_lowest_address(columns, monkeypatch):
    monkeypatch.setattr(reference, "_COLUMNS", columns)
    ring = [[1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0]]
    sums = direct_sum(np.ones(4), ring, index=[9, 8, 7, 6], target_pos=[[0, 0, 0]], nearest=True)
    assert sums.nearest[0] == 9


def test_nearest_neighbour_of_a_lone_body_is_itself():
    sums = direct_sum([1], [[1, 2, 3]], index=[42], nearest=True)
    assert sums.nearest[0] == 42
    assert sums.distance[0] == 0


def test_the_nearest_neighbour_ignores_the_softening():
    pos = [[0, 0, 0], [1e-9, 0, 0], [5e-10, 0, 0]]
    assert direct_sum(np.ones(3), pos, eps2=1, nearest=True).nearest[0] == 2


@pytest.mark.parametrize(
    ("h2", "eps2", "expected"),
    [
        (4.0, 0.0, [3, 5]),
        (np.nextafter(4.0, 0), 0.0, [5]),
        (4.0, 3.0, [5]),
        (0.0, 0.0, []),
        (-1.0, 0.0, []),
        (np.nan, 0.0, []),
        (np.inf, 0.0, [1, 3, 5]),
    ],
)
def test_lists_hold_softened_distances_up_to_h_in_ascending_order(h2, eps2, expected):
    pos = [[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3]]
    found = direct_sum(np.ones(4), pos, index=[4, 5, 3, 1], rows=[0], h2=h2, eps2=eps2)
    assert list(found.neighbours[0]) == expected


def test_lists_hold_the_body_itself_only_if_asked():
    found = direct_sum(np.ones(2), np.eye(3)[:2], h2=[4, 0.25], include_self=True)
    assert [list(one) for one in found.neighbours] == [[0, 1], [1]]


@settings(max_examples=20, deadline=None)
@given(seed=SEEDS, n=st.integers(1, 40))
def test_the_order_of_the_sources_does_not_matter(seed, n):
    mass, pos, vel = blob(n, seed)
    order = np.random.default_rng(seed).permutation(n)
    one = direct_sum(mass, pos, vel, nearest=True, h2=1, extended=True)
    two = direct_sum(
        mass[order], pos[order], vel[order], index=order, nearest=True, h2=1, extended=True
    )
    for name in ("acc", "jerk", "pot"):
        assert np.allclose(getattr(one, name)[order], getattr(two, name), rtol=1e-15, atol=1e-15)
    assert np.array_equal(one.nearest[order], two.nearest)
    assert all(
        np.array_equal(one.neighbours[old], new)
        for old, new in zip(order, two.neighbours, strict=True)
    )


@settings(max_examples=20, deadline=None)
@given(seed=SEEDS, shift=st.integers(-50, 50))
def test_moving_everything_changes_nothing(seed, shift):
    mass, pos, vel = blob(12, seed)
    pos = np.round(pos * 2**20) / 2**20  # exact in the sum
    one, two = (direct_sum(mass, p, v) for p, v in ((pos, vel), (pos + shift, vel)))
    assert np.array_equal(one.acc, two.acc)
    assert np.array_equal(one.pot, two.pot)


@settings(max_examples=20, deadline=None)
@given(seed=SEEDS, a=st.integers(-60, 60), b=st.integers(-60, 60), c=st.integers(-60, 60))
def test_units_scale_as_physics_says(seed, a, b, c):
    mass, pos, vel = blob(6, seed)
    one = direct_sum(mass, pos, vel)
    two = direct_sum(np.ldexp(mass, b), np.ldexp(pos, a), np.ldexp(vel, c))
    assert np.array_equal(two.acc, np.ldexp(one.acc, b - 2 * a))
    assert np.array_equal(two.jerk, np.ldexp(one.jerk, b - 3 * a + c))
    assert np.array_equal(two.pot, np.ldexp(one.pot, b - a))


@settings(max_examples=20, deadline=None)
@given(seed=SEEDS)
def test_total_momentum_is_kept(seed):
    mass, pos, vel = blob(15, seed)
    sums = direct_sum(mass, pos, vel, eps2=0.01)
    for each in (sums.acc, sums.jerk):
        assert np.abs(mass @ each).max() < 1e-12 * np.abs(mass[:, None] * each).sum()


@settings(max_examples=20, deadline=None)
@given(seed=SEEDS)
def test_jerk_is_the_time_derivative_of_acc(seed):
    mass, pos, vel = blob(10, seed)
    now, dt = direct_sum(mass, pos, vel, eps2=0.25, extended=True), np.longdouble(2) ** -16
    after, before = (
        direct_sum(mass, pos + t * vel, eps2=0.25, extended=True).acc for t in (dt, -dt)
    )
    assert np.allclose(np.float64((after - before) / (2 * dt)), np.float64(now.jerk), atol=1e-6)


@settings(max_examples=20, deadline=None)
@given(seed=SEEDS)
def test_acc_is_minus_the_gradient_of_the_potential(seed):
    mass, pos, _ = blob(10, seed)
    at, step = np.array([[0.3, -0.2, 0.1]], np.longdouble), np.longdouble(2) ** -16
    acc = direct_sum(mass, pos, target_pos=at, eps2=0.25, extended=True).acc[0]
    for k in range(3):
        move = step * np.eye(3)[k]
        up, down = (
            direct_sum(mass, pos, target_pos=at + side * move, eps2=0.25, extended=True).pot[0]
            for side in (1, -1)
        )
        assert abs((down - up) / (2 * step) - acc[k]) < 1e-6


def test_tiles_rows_and_threads_do_not_change_the_result(monkeypatch):
    mass, pos, vel = blob(100, 3)
    whole = direct_sum(mass, pos, vel, nearest=True, h2=0.5, threads=1)
    three = direct_sum(mass, pos, vel, nearest=True, h2=0.5, threads=3)
    some = direct_sum(mass, pos, vel, rows=[5, 99, 5], nearest=True, h2=0.5)
    monkeypatch.setattr(reference, "_COLUMNS", 7)
    monkeypatch.setattr(reference, "_ROWS", 3)
    tiled = direct_sum(mass, pos, vel, nearest=True, h2=0.5)
    for name in ("acc", "jerk", "pot", "nearest", "distance"):
        value = getattr(whole, name)
        assert np.array_equal(value, getattr(three, name))
        assert np.allclose(value[[5, 99, 5]], getattr(some, name), rtol=1e-13)
        assert np.allclose(value, getattr(tiled, name), rtol=1e-12)
    for row in range(100):
        assert np.array_equal(whole.neighbours[row], tiled.neighbours[row])


def test_a_plummer_sphere_has_the_potential_and_force_of_its_formula():
    model, scale = plummer(20000, seed=1), 3 * math.pi / 16
    for radius in (0.1, 0.5, 1.0, 3.0):
        at = radius * np.vstack([np.eye(3), -np.eye(3)])
        sums = direct_sum(model.mass, model.pos, target_pos=at)
        pot = -1 / math.hypot(radius, scale)
        assert sums.pot.mean() == pytest.approx(pot, rel=0.01)
        inward = -(sums.acc * at).sum(axis=1).mean() / radius
        assert inward == pytest.approx(-radius * pot**3, rel=0.03)


def test_the_predictor_is_the_taylor_series_of_the_scaled_derivatives():
    x, v, a2, j6, k18 = (np.full((1, 3), value) for value in (1.0, 2.0, 4.0, 8.0, 16.0))
    pos, vel = reference.predict(0.5, x, v, a2, j6, k18)
    assert np.array_equal(pos, np.full((1, 3), 1 + 1 + 1 + 1 + 0.75))
    assert np.array_equal(vel, np.full((1, 3), 2 + 4 + 6 + 6.0))
    acc, jerk, snap, t = 0.3, -0.7, 1.1, 0.25
    pos, _ = reference.predict(t, 0 * x, 0 * x, acc / 2 * (x**0), jerk / 6 * x**0, snap / 18 * x**0)
    assert np.allclose(pos, acc * t**2 / 2 + jerk * t**3 / 6 + snap * t**4 / 24, rtol=1e-15)


def test_the_predictor_returns_the_position_itself_at_its_own_time():
    _, pos, vel = blob(5, 1)
    now = reference.predict(np.zeros(5), pos, vel, vel, vel, vel)
    assert np.array_equal(now[0], pos)
    assert np.array_equal(now[1], vel)


@pytest.mark.parametrize("eccentricity", [0, 0.5, 0.9])
def test_energy_of_a_kepler_orbit(eccentricity):
    model = two_body(eccentricity, mass_ratio=0.25, semi_major_axis=2)
    energy = reference.energy(*model)
    assert energy.total == pytest.approx(-0.8 * 0.2 / 4, rel=1e-14)
    assert energy.total == energy.kinetic + energy.potential


@pytest.mark.parametrize(
    "wrong",
    [
        {"mass": [1, 2]},
        {"vel": [[0, 0, 0]]},
        {"pos": [[1, 2]] * 3},
        {"rows": [0], "target_pos": [[0, 0, 0]]},
        {"target_pos": [0, 0, 0]},
    ],
    ids=["mass", "vel", "pos", "both", "target"],
)
def test_shapes_that_do_not_fit_are_refused(wrong):
    right = {"mass": [1, 1, 1], "pos": np.eye(3)}
    with pytest.raises(ValueError):  # noqa: PT011
        direct_sum(**(right | wrong))

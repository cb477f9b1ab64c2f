"""g6x_few_body_evolve: orbits of any eccentricity, three and more bodies, perturbers, errors."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from few_bodies import PYTHAGOREAN, FewBodies, elements, energy, pair, runge_kutta
from grape6py import plummer
from grape6py._lib.library import ffi, lib, text

ECCENTRICITIES = 0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.999999


def pythagorean(**numbers):
    pos = [(1, 3, 0), (-2, -1, 0), (1, -1, 0)]
    return FewBodies((3, 4, 5), pos, np.zeros((3, 3)), **numbers)


def kepler(e, a, gm, dt):
    """Relative place in the plane of the orbit, dt after apocentre, or pericentre if unbound."""
    e, mean = np.longdouble(e), np.longdouble(dt) * np.sqrt(np.longdouble(gm) / abs(a) ** 3)
    if a > 0:
        mean = np.fmod(mean, 2 * np.longdouble(math.pi)) + np.pi
        big = mean + 0.85 * e * np.sign(np.sin(mean))  # Danby: from there it converges
        for _ in range(200):
            big -= (big - e * np.sin(big) - mean) / (1 - e * np.cos(big))
        return a * np.array([e - np.cos(big), -np.sqrt(1 - e * e) * np.sin(big)])
    big = np.arcsinh(mean / e)
    for _ in range(200):
        big -= (e * np.sinh(big) - big - mean) / (e * np.cosh(big) - 1)
    return -a * np.array([e - np.cosh(big), np.sqrt(e * e - 1) * np.sinh(big)]) * [1, 1]


@pytest.mark.parametrize("e", ECCENTRICITIES)
def test_a_hundred_orbits_keep_their_energy_and_phase(e):
    m, x, v = pair(e)
    bodies = FewBodies(m, x, v)
    before = bodies.energy()
    assert bodies.evolve(200 * np.pi) == 0
    assert abs(bodies.energy() / before - 1) < 1e-14
    assert np.abs(bodies.x - x).max() < 1e-10 * (1 + e)
    assert bodies.b.closest == pytest.approx(1 - e, rel=1e-9)
    assert bodies.b.steps < 600 + 60 * len(str(e))


@given(e=st.floats(0, 0.99), turns=st.floats(0, 30), scale=st.integers(-30, 30))
@example(e=0.99, turns=4.5, scale=0)  # ends at pericentre
def test_a_pair_alone_moves_by_keplers_laws(e, turns, scale):
    a, gm = 4.0**scale, 3.0
    m, x, v = pair(e, (1.0, 2.0), a)
    dt = turns * 2 * np.pi * np.sqrt(a**3 / gm)
    by_kepler, by_steps = FewBodies(m, x, v, gamma=1e-6), FewBodies(m, x, v)
    assert by_kepler.evolve(dt) == by_steps.evolve(dt) == 0
    expected = kepler(e, a, gm, dt)
    for bodies, limit in (by_kepler, 1e-12), (by_steps, 1e-10):
        d = bodies.x[1] - bodies.x[0]
        assert np.abs(d[:2] - expected).max() < limit * a / (1 - e) ** 1.5
    assert by_kepler.b.pulls == 0


@pytest.mark.parametrize("e", [1.0001, 1.5, 30.0])
@pytest.mark.parametrize("gamma", [0.0, 1e-6])
def test_an_unbound_pair_passes(e, gamma):
    a, gm = -0.5, 1.0
    m, x, v = pair(e, (0.3, 0.7), a)
    there = FewBodies(m, x, v, gamma=gamma)
    there.evolve(7.0)
    d = there.x[1] - there.x[0]
    assert np.abs(d[:2] - kepler(e, a, gm, 7.0)).max() < 1e-11 * np.linalg.norm(d)
    back = FewBodies(m, there.x, -there.v, gamma=gamma)
    back.evolve(14.0)
    assert np.abs(back.x[1] - back.x[0] - d * [1, -1, 1]).max() < 1e-9 * np.linalg.norm(d)
    assert back.b.closest == pytest.approx(-a * (e - 1), rel=1e-7)
    assert back.b.closest_time == pytest.approx(7.0, rel=1e-7)


@pytest.mark.parametrize(("tolerance", "errors"), [
    (0.0, {10: 1e-10, 20: 1e-10, 30: 1e-9, 50: 1e-4}),
    (1e-15, {10: 1e-11, 20: 1e-11, 30: 1e-10, 50: 1e-6}),
])  # fmt: skip
def test_the_pythagorean_problem(tolerance, errors):
    bodies, now, closest, when = pythagorean(tolerance=tolerance), 0, math.inf, 0.0
    before = bodies.energy()
    for time, place in PYTHAGOREAN.items():
        assert bodies.evolve(time - now) == 0
        assert np.abs(bodies.x[0, :2] - place).max() < errors[time]
        assert abs(bodies.energy() / before - 1) < 1e-13
        if bodies.b.closest < closest:
            closest, when = bodies.b.closest, now + bodies.b.closest_time
            assert sorted(bodies.b.pair) in ([0, 1], [0, 2], [1, 2])
        now = time
    assert closest == pytest.approx(4.139e-4, rel=2e-4)
    assert when == pytest.approx(15.8299, abs=1e-4)


def test_places_do_not_depend_on_where_a_run_is_cut():
    whole, cut = pythagorean(), pythagorean()
    whole.evolve(12.0)
    for _ in range(48):
        cut.evolve(0.25)
    assert np.abs(whole.x - cut.x).max() < 1e-9


def test_head_on_falls_and_bodies_at_rest():
    fall = FewBodies((1, 1), [(-1, 0, 0), (1, 0, 0)], np.zeros((2, 3)))
    half = np.pi * np.sqrt(1.0 / 2)  # from rest to the meeting
    for turn in range(1, 6):
        assert fall.evolve(2 * half) == 0  # through each other and to rest on the other side
        assert abs(abs(fall.x[1, 0]) - 1) < 1e-6, turn
        assert abs(fall.energy() / -0.5 - 1) < 1e-12


def disturbed(mass_of_perturber):
    """A pair of e = 0.6 with a perturber that moves by all its derivatives."""
    m, x, v = pair(0.6, (0.4, 0.6))
    x, v = x + np.array([1, 2, 3]), v + np.array([0.1, 0, -0.1])
    outside = [(mass_of_perturber, 5, 4, 3, -0.3, 0.1, 0.2, 1e-2, -2e-2, 0, 1e-3, 1e-3, -2e-3)]
    return m, x, v, outside


def test_perturbers_act_on_bodies_and_on_the_centre_of_mass():
    m, x, v, outside = disturbed(2.0)
    expected = runge_kutta(m, x, v, 6.0, 6000, outside)
    bodies = FewBodies(m, x, v, outside, moved=1)
    assert bodies.evolve(6.0) == 0
    assert np.abs(bodies.x - expected[0]).max() < 1e-8
    assert np.abs(bodies.v - expected[1]).max() < 1e-8
    straight = FewBodies(m, x, v, outside)
    straight.evolve(6.0)
    assert np.abs(m @ straight.x - (m @ x + 6.0 * m @ v)).max() < 1e-13


@pytest.mark.parametrize(("mass", "is_kepler"), [(1e-6, True), (1.0, False)])
def test_a_little_perturbed_pair_moves_by_keplers_laws(mass, is_kepler):
    m, x, v, outside = disturbed(mass)
    bodies = FewBodies(m, x, v, outside, gamma=1e-6)
    assert bodies.evolve(6.0) == 0
    assert (bodies.b.pulls == 0) == is_kepler


def test_kicks_between_ellipses_do_what_a_small_tide_does():
    m, x, v, outside = disturbed(0.005)
    exact, kicked = FewBodies(m, x, v, outside), FewBodies(m, x, v, outside, gamma=1e-6)
    assert exact.evolve(12.0) == kicked.evolve(12.0) == 0
    assert kicked.b.pulls < exact.b.pulls / 4
    assert np.abs(kicked.x - exact.x).max() < 2e-5
    assert kicked.energy() == pytest.approx(exact.energy(), rel=1e-5)


@pytest.mark.parametrize("light", [0.0, 1e-9])
def test_masses_that_are_small_or_zero(light):
    """A star with planets, one without mass; their orbits nearly those of two bodies."""
    mass = [1.0, light, 0.0, light]
    pos, vel = np.zeros((2, 4, 3))
    for i, (r, e) in enumerate([(1.0, 0.3), (2.5, 0.9), (7.0, 0.0)], 1):
        pos[i, i % 2], vel[i, (i + 1) % 2] = r, np.sqrt((1 - e) / r)
    bodies = FewBodies(mass, pos, vel)
    assert bodies.evolve(100.0) == 0
    for i in 1, 2, 3:
        before = elements(1.0, pos[i], vel[i])
        after = elements(1.0, bodies.x[i] - bodies.x[0], bodies.v[i] - bodies.v[0])
        limit = 1e-9 if light == 0.0 else 1e-6
        assert after[0] == pytest.approx(before[0], rel=limit)
        assert np.abs(after[1] - before[1]).max() < limit


def test_sixty_four_bodies_with_a_softening():
    mass, pos, vel = plummer(64, seed=3)
    expected = runge_kutta(mass, pos, vel, 0.5, 300, eps2=0.01)
    bodies = FewBodies(mass, pos, vel, eps2=0.01)
    assert bodies.evolve(0.5) == 0
    assert np.abs(bodies.x - expected[0]).max() < 1e-8


def test_no_time_moves_nothing_and_softened_bodies_may_be_at_one_place():
    m, x, v = pair(0.3)
    still = FewBodies(m, x + 1 / 3, v)
    assert still.evolve(0.0) == 0
    assert np.array_equal(still.x, x + 1 / 3)
    together = FewBodies([1, 1, 1], np.ones((3, 3)), np.zeros((3, 3)), eps2=0.01)
    assert together.evolve(1.0) == 0
    assert np.abs(together.x - 1).max() < 1e-15


def hierarchy(ratio):
    """A pair of a = 1, e = 0.5 and a third body on an inclined orbit `ratio` times as wide."""
    m, x, v = pair(0.5)
    c, s = np.cos(0.6), np.sin(0.6)
    v = v @ [[1, 0, 0], [0, c, s], [0, -s, c]]
    (_, outer_x, outer_v) = pair(0.3, (1.0, 1.0), ratio)
    mass = [*m, 1.0]
    return mass, np.vstack([x + outer_x[0], outer_x[1]]), np.vstack([v + outer_v[0], outer_v[1]])


@pytest.mark.parametrize("calls", [1, 50])
def test_a_slowed_pair_keeps_its_elements_and_those_of_what_it_is_in(calls):
    mass, pos, vel = hierarchy(400.0)
    period = 2 * np.pi * np.sqrt(400.0**3 / 2)
    plain, slow = FewBodies(mass, pos, vel), FewBodies(mass, pos, vel, slow_down=1e-6)
    assert plain.evolve(period / 4) == 0
    assert not any(slow.evolve(period / 4 / calls) for _ in range(calls))
    assert slow.energy() == pytest.approx(plain.energy(), rel=1e-6)
    assert slow.b.steps < plain.b.steps / 5
    for gm, i, others in (1.0, 1, (0,)), (2.0, 2, (0, 1)):
        of = [elements(gm, *(q[i] - q[list(others)].mean(axis=0) for q in (b.x, b.v)))
              for b in (plain, slow)]  # fmt: skip
        assert of[1][0] == pytest.approx(of[0][0], rel=1e-6)
        assert np.abs(of[1][1] - of[0][1]).max() < (1e-3 if gm == 1.0 else 1e-5)


SCATTERINGS = 40


@pytest.mark.parametrize("bodies", [3, 4])
def test_scatterings_lose_no_body_and_no_energy(bodies):
    rng = np.random.default_rng(bodies)
    worst = 0.0
    for _ in range(SCATTERINGS):
        mass = 10.0 ** rng.uniform(-3, 3, bodies) * (rng.random(bodies) > 0.1)
        mass[0] = max(mass[0], 1e-3)
        parts = [pair(np.sqrt(rng.random()), (mass[0], mass[1] or 1e-9))]
        mass[1] = parts[0][0][1]
        if bodies == 4:
            mass[2:] = np.maximum(mass[2:], 1e-9)
            parts.append(pair(np.sqrt(rng.random()), mass[2:], rng.uniform(0.1, 3.0)))
        else:
            parts.append(([mass[2]], np.zeros((1, 3)), np.zeros((1, 3))))
        fast = np.sqrt(mass.sum()) * rng.uniform(0.1, 2.0)
        pos = np.vstack([parts[0][1], parts[1][1] + [20, rng.uniform(0, 2), rng.normal()]])
        vel = np.vstack([parts[0][2], parts[1][2] - [fast, 0, 0]])
        few = FewBodies(mass, pos, vel)
        before = energy(mass, pos, vel)
        assert few.evolve(60.0 / fast) == 0
        assert np.isfinite([few.x, few.v]).all()
        kinetic = 0.5 * mass @ (vel**2).sum(axis=1)
        worst = max(worst, abs(few.energy() - before) / max(abs(before), kinetic))
    assert worst < 1e-11


OUT_OF_RANGE = "perturbers, eps2, tolerance, gamma, slow_down or step is out of range"


@pytest.mark.parametrize(("change", "dt", "code", "said"), [
    *(({"n": n}, 1.0, "ARGUMENT", "n is not 2 to 64") for n in (1, 65)),
    *((null, 1.0, "NULL", "null pointer")
      for null in ({"mass": ffi.NULL}, {"perturbers": 2, "perturber": ffi.NULL})),
    *(({}, dt, "ARGUMENT", "dt is negative, NaN or Inf") for dt in (-1.0, math.nan)),
    *((wrong, 1.0, "ARGUMENT", OUT_OF_RANGE) for wrong in (
        {"tolerance": math.nan}, {"gamma": 1.0}, {"slow_down": -1.0}, {"perturbers": -1},
        {"step": math.inf})),
])  # fmt: skip
def test_what_is_refused(change, dt, code, said):
    bodies = FewBodies(*pair(0.5))
    for name, value in change.items():
        setattr(bodies.b, name, value)
    before = bodies.x.copy()
    assert bodies.evolve(dt) == getattr(lib, f"G6X_E_{code}")
    assert f"few bodies: {said}" in text(lib.g6x_last_error, -1)
    assert np.array_equal(bodies.x, before)


@pytest.mark.parametrize(("mass", "x", "v", "code", "said"), [
    ((1, -1), (0, 1), (0, 0), "ARGUMENT", "a mass is negative"),
    ((0, 0), (0, 1), (0, 0), "ARGUMENT", "no body has a mass"),
    ((1, math.nan), (0, 1), (0, 0), "ARGUMENT", "is NaN or Inf"),
    ((1, 1), (0, math.inf), (0, 0), "ARGUMENT", "is NaN or Inf"),
    ((1, 1), (1, 1), (0, 1), "RANGE", "two are at one place"),
    ((1, 1), (0, 1e-320), (0, 0), "RANGE", "two are at one place"),
    ((1e300, 1e300), (0, 1e-10), (0, 0), "RANGE", "leaves the range"),
])  # fmt: skip
def test_bodies_that_are_refused_stay_as_they_were(mass, x, v, code, said):
    bodies = FewBodies(mass, [(q, 0, 0) for q in x], [(0, q, 0) for q in v])
    before = bodies.x.copy(), bodies.v.copy()
    assert bodies.evolve(1.0) == getattr(lib, f"G6X_E_{code}")
    assert said in text(lib.g6x_last_error, -1)
    assert np.array_equal([bodies.x, bodies.v], before, equal_nan=True)
    assert lib.g6x_few_body_evolve(ffi.NULL, 1.0) == lib.G6X_E_NULL


@pytest.mark.parametrize("orbits", [0.9, 1.1, 7.6])
@pytest.mark.parametrize("gamma", [0, 1e-6])
def test_the_closest_approach_is_found_from_beyond_the_minor_axis(orbits, gamma):
    """Where the step ends at more than a semi-major axis."""
    few = FewBodies(*pair(0.9), gamma=gamma)
    assert few.evolve(orbits * 2 * np.pi) == 0
    assert few.b.closest == pytest.approx(0.1, rel=1e-6)

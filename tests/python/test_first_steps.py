"""The largest step by default, and first steps; steps that are not shortened by rounding."""

import numpy as np
import pytest

from grape6py import Hermite, fields, plummer, reference, two_body, with_binaries

LONE = [1.0], np.zeros((1, 3)), np.zeros((1, 3))


def energy(cluster):
    return float(reference.energy(*cluster.particles(), extended=True).total)


def largest(mass, pos, vel, **options):
    return Hermite(mass, pos, vel, **options).settings["dt_max"]


@pytest.mark.parametrize("eccentricity", [0, 0.5, 0.9999])
@pytest.mark.parametrize("apocentre", [True, False])
def test_the_phase_of_two_bodies_does_not_change_the_largest_step(eccentricity, apocentre):
    bodies = two_body(eccentricity, apocentre=apocentre)
    assert largest(*bodies) == 0.25
    satellite = [1.0, 0.0], bodies[1] - bodies[1][0], bodies[2] - bodies[2][0]
    assert largest(*satellite) == 0.25


def test_a_pericentre_start_costs_the_steps_of_an_apocentre_start():
    steps = []
    for apocentre in (True, False):
        cluster = Hermite(*two_body(0.99, apocentre=apocentre), subsystems=False)
        cluster.evolve(4 * np.pi)
        steps.append(cluster.steps)
    assert steps[1] == pytest.approx(steps[0], rel=0.1)


@pytest.mark.parametrize("axis", [1e-5, 1e-3])
def test_hard_binaries_do_not_shorten_the_largest_step(axis):
    sphere = plummer(200, seed=1)
    pairs = with_binaries(sphere, 0.5, 2, separation=axis, eccentricity=0)
    assert largest(*sphere) == largest(*pairs) == 0.125


@pytest.mark.parametrize("body", ["far", "heavy", "close"])
def test_one_body_does_not_decide(body):
    mass, pos, vel = (array.copy() for array in plummer(200, seed=1))
    if body == "far":
        pos[0] = 1e8
    elif body == "heavy":
        mass[0], pos[0], vel[0] = 1e-9, 0, 0
    else:
        pos[0] = pos[1] + 1e-12
    assert largest(mass, pos, vel) == 0.125


@pytest.mark.parametrize(("bodies", "options", "step"), [
    (LONE, {}, 0.125), (([0.0], *LONE[1:]), {}, 0.125),
    (([], np.zeros((0, 3)), np.zeros((0, 3))), {}, 0.125),
    (([0.0], [[4.0, 0, 0]], [[0, 0.5, 0]]), {"field": fields.point_mass(1)}, 1.0),
    (([0.0], [[4e4, 0, 0]], [[0, 0.005, 0]]), {"field": fields.point_mass(1)}, 2.0**20),
])  # fmt: skip
def test_without_two_masses_it_is_that_of_orbits_in_the_field(bodies, options, step):
    assert largest(*bodies, **options) == step


@pytest.mark.parametrize("shift", [0.0, 0.1])  # so that acc is zero, or zero to rounding
@pytest.mark.parametrize("massless", [0, 5])
def test_a_first_step_without_acceleration_is_shortened_by_eta(shift, massless):
    rng, errors = np.random.default_rng(1), []  # three bodies on a figure of eight, and others
    mass = [1.0] * 3 + [0.0] * massless
    pos = np.outer([1, -1, 0], [-0.97000436, 0.24308753, 0]) + shift
    vel = np.outer([1, 1, -2], [-0.466203685, -0.43236573, 0])
    pos = np.r_[pos, rng.uniform(-9, 9, (massless, 3))]
    vel = np.r_[vel, rng.normal(size=(massless, 3))]
    for eta in (2e-2, 2e-4):
        cluster = Hermite(mass, pos, vel, eta=eta, precision="double", subsystems=False)
        start, first = energy(cluster), cluster.step_sizes[2]
        assert first <= 0.25 * eta**0.5
        cluster.evolve(1 / 16)
        errors.append(abs(energy(cluster) / start - 1))
    assert errors[1] < 1e-3 * errors[0]


def test_a_body_on_which_nothing_acts_begins_with_the_largest_step():
    assert Hermite(*LONE).step_sizes == [0.125]
    ring = np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 0]], float)
    cluster = Hermite([1.0] * 5, ring, np.zeros((5, 3)))
    assert cluster.step_sizes[4] == cluster.settings["dt_max"]


def tight_pair(n):
    """A Plummer sphere of which one body is a pair of two, 0.01 apart."""
    mass, pos, vel = plummer(n, seed=2)
    _, where, how = two_body(0.5)
    mass = np.r_[mass[0] / 2, mass[0] / 2, mass[1:]]
    where, how = where * 0.01, how * np.sqrt(mass[0] * 2 / 0.01)
    return mass, np.vstack([where + pos[0], pos[1:]]), np.vstack([how + vel[0], vel[1:]])


def half_massless(n):
    mass, pos, vel = plummer(n, seed=5)
    return np.where(np.arange(n) < n // 2, 2 * mass, 0.0), pos, vel


# name: bodies, options, a time to evolve with eta = 1e-3; a smaller eta gets less.
CASES = {
    "ellipse": (two_body(0.5), {}, 3.0), "e = 0.99": (two_body(0.99), {}, 6.3),
    "planet": (([1.0, 1e-6], [[0, 0, 0], [1, 0.3, 0.2]], [[0, 0, 0], [0, 0.9, 0.1]]), {}, 3.0),
    "three": (plummer(3, seed=1), {}, 1.0), "64": (plummer(64, seed=1), {}, 1 / 8),
    "soft": (plummer(64, seed=1), {"eps": 0.1}, 1 / 8),
    "half without mass": (half_massless(64), {}, 1 / 8), "tight pair": (tight_pair(64), {}, 1 / 32),
    "field": (plummer(64, seed=1), {"field": fields.plummer(30.0, 3.0)}, 1 / 16),
    "strong field": (two_body(0.3), {"field": fields.logarithmic(1e4, 1e3)}, 1 / 8),
}  # fmt: skip


def evolved(case, eta, precision, most=None):
    model, options, time = CASES[case]
    time *= min(1.0, np.sqrt(eta / 1e-3))
    cluster = Hermite(*model, eta=eta, precision=precision, subsystems=False, **options)
    start = cluster.energy().total
    cluster.evolve(time, lambda s: s.stop() if most and s.steps > most else None)
    assert cluster.time == time, f"no end after {cluster.steps} steps"
    return cluster, abs(cluster.energy().total / start - 1)


@pytest.mark.parametrize(("case", "eta"), [
    (case, (1e-3, 1e-4)[k % 2]) for k, case in enumerate(CASES)
])  # fmt: skip
def test_small_eta_takes_the_steps_of_mode_double(case, eta):
    exact, error = evolved(case, eta, "double")
    for precision in "grape", "single":
        cluster, drift = evolved(case, eta, precision, 10 * exact.steps)
        assert 0.5 * exact.steps < cluster.steps < 1.35 * exact.steps, precision
        noise = 1e-5 if case == "e = 0.99" else 1e-6  # at a pericentre 200 times as fast
        assert drift < 2 * error + noise, precision


@pytest.mark.parametrize(("precision", "eccentricity"), [
    ("grape", 0.0), ("grape", 0.99), ("single", 0.99), ("double", 0.5),
])  # fmt: skip
def test_an_orbit_comes_back_however_small_eta_is(eccentricity, precision):
    mass, pos, vel = two_body(eccentricity)
    pair = Hermite(mass, pos, vel, eta=1e-4, precision=precision)
    pair.evolve(2 * np.pi)
    goal = 1e-6 if precision == "double" else 2e-5 / (1 - eccentricity)
    # Single rounds 1/r to 6e-8, and at a pericentre of 0.01 it is 200 times the energy.
    noise = 1e-6 if precision == "double" or eccentricity < 0.9 else 1e-5
    assert np.abs(pair.pos - pos).max() < goal
    assert np.abs(pair.energy().total / (-0.125) - 1) < noise


@pytest.mark.parametrize(("length", "eccentricity"), [
    (1e-24, 0.0), (1e-36, 0.9), (1e-36, 0.0), (1e30, 0.9),
])  # fmt: skip
def test_lengths_of_any_size_end(length, eccentricity):
    """Their steps are those of lengths near 1, though squares of derivatives would overflow."""
    (mass, pos, vel), steps = two_body(eccentricity), []
    for unit in 1.0, length:
        pair = Hermite(mass, pos * unit, vel / np.sqrt(unit), precision="double")
        start = pair.energy().total
        pair.evolve(unit**1.5, lambda s: s.stop() if s.blocks > 1000 else None)
        assert pair.time == unit**1.5
        assert abs(pair.energy().total / start - 1) < 1e-4
        steps.append(pair.steps)
    assert steps[1] == pytest.approx(steps[0], rel=0.5)

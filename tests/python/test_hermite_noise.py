"""``Hermite`` with small eta: errors of the forces shorten no step, in any mode."""

import numpy as np
import pytest

from grape6py import Hermite, fields, plummer, two_body


def tight_pair(n):
    """A Plummer sphere of which one body is a pair of two, 0.01 apart."""
    mass, pos, vel = plummer(n, seed=2)
    _, where, how = two_body(0.5)
    mass = np.r_[mass[0] / 2, mass[0] / 2, mass[1:]]
    where, how = where * 0.01, how * np.sqrt(mass[0] * 2 / 0.01)
    return mass, np.vstack([where + pos[0], pos[1:]]), np.vstack([how + vel[0], vel[1:]])


def with_centre(n):
    mass, pos, vel = plummer(n, seed=4)
    return np.r_[0.01, mass], np.vstack([[0, 0, 0], pos]), np.vstack([[0, 0, 0], 1.3 * vel])


def half_massless(n):
    mass, pos, vel = plummer(n, seed=5)
    return np.where(np.arange(n) < n // 2, 2 * mass, 0.0), pos, vel


def scaled(model, by):
    mass, pos, vel = model
    return mass, pos * by, vel / np.sqrt(by)


# name: bodies, options, a time to evolve with eta = 1e-3; a smaller eta gets less.
CASES = {
    "ellipse": (two_body(0.5), {}, 3.0),
    "e = 0.99": (two_body(0.99), {}, 6.3),
    "planet": (([1.0, 1e-6], [[0, 0, 0], [1, 0.3, 0.2]], [[0, 0, 0], [0, 0.9, 0.1]]), {}, 3.0),
    "three": (plummer(3, seed=1), {}, 1.0),
    "64": (plummer(64, seed=1), {}, 1 / 8),
    "512": (plummer(512, seed=1), {}, 1 / 64),
    "soft": (plummer(64, seed=1), {"eps": 0.1}, 1 / 8),
    "half without mass": (half_massless(64), {}, 1 / 8),
    "centre": (with_centre(64), {}, 1 / 8),
    "tight pair": (tight_pair(64), {}, 1 / 32),
    "field": (plummer(64, seed=1), {"field": fields.plummer(30.0, 3.0)}, 1 / 16),
    "strong field": (two_body(0.3), {"field": fields.logarithmic(1e4, 1e3)}, 1 / 8),
    "large": (scaled(plummer(64, seed=1), 3e11), {}, 3e11**1.5 / 8),
}


def evolved(case, eta, precision, most=None):
    model, options, time = CASES[case]
    time *= min(1.0, np.sqrt(eta / 1e-3))
    cluster = Hermite(*model, eta=eta, precision=precision, **options)
    start = cluster.energy().total
    cluster.evolve(time, lambda s: s.stop() if most and s.steps > most else None)
    assert cluster.time == time, f"no end after {cluster.steps} steps"
    return cluster, abs(cluster.energy().total / start - 1)


@pytest.mark.parametrize("eta", [1e-3, 1e-4])
@pytest.mark.parametrize("case", CASES)
def test_small_eta_takes_the_steps_of_mode_double(case, eta):
    exact, error = evolved(case, eta, "double")
    for precision in "grape", "single":
        cluster, drift = evolved(case, eta, precision, 10 * exact.steps)
        assert 0.5 * exact.steps < cluster.steps < 1.35 * exact.steps, precision
        noise = 1e-5 if case == "e = 0.99" else 1e-6  # at a pericentre 200 times as fast
        assert drift < 2 * error + noise, precision


@pytest.mark.parametrize("precision", ["grape", "single", "double"])
@pytest.mark.parametrize("eccentricity", [0.0, 0.5, 0.99])
def test_an_orbit_comes_back_however_small_eta_is(eccentricity, precision):
    mass, pos, vel = two_body(eccentricity)
    pair = Hermite(mass, pos, vel, eta=1e-4, precision=precision)
    pair.evolve(2 * np.pi)
    goal = 1e-6 if precision == "double" else 2e-5 / (1 - eccentricity)
    # Single rounds 1/r to 6e-8, and at a pericentre of 0.01 it is 200 times the energy.
    noise = 1e-6 if precision == "double" or eccentricity < 0.9 else 1e-5
    assert np.abs(pair.pos - pos).max() < goal
    assert np.abs(pair.energy().total / (-0.125) - 1) < noise


@pytest.mark.parametrize("length", [1e-24, 1e-28, 1e-36, 1e30])
@pytest.mark.parametrize("eccentricity", [0.0, 0.9])
def test_lengths_of_any_size_end(length, eccentricity):
    """Their steps are those of lengths near 1, though squares of derivatives would overflow."""
    steps = []
    for unit in 1.0, length:
        mass, pos, vel = scaled(two_body(eccentricity), unit)
        pair = Hermite(mass, pos, vel, precision="double")
        start = pair.energy().total
        pair.evolve(unit**1.5, lambda s: s.stop() if s.blocks > 1000 else None)
        assert pair.time == unit**1.5
        assert abs(pair.energy().total / start - 1) < 1e-4
        steps.append(pair.steps)
    assert steps[1] == pytest.approx(steps[0], rel=0.5)

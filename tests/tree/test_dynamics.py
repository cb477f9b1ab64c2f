"""``Leapfrog`` keeps the orbits of massless bodies and of those that they go around.

Their energy is 0 or that of the heavy bodies alone, so that no energy check sees a wrong force."""

import numpy as np
import pytest

from dominated import around
from grape6py import Leapfrog

SETTINGS = {"by default": {}, "theta": {"theta": 0.75}, "accuracy": {"accuracy": 1e-3}}


def massless(n, inner, outer, *heavy):
    """Masses, positions and velocities of heavy bodies (mass, x, vy), and of a disc around mass 1
    of bodies on nearly circular orbits, which are inclined by 0.02."""
    rng = np.random.default_rng(1)
    radius = rng.uniform(inner, outer, n)
    pos = around(radius, np.zeros(n), rng)
    speed = radius**-0.5
    vel = np.stack([-pos[:, 1], pos[:, 0], 0.02 * radius * rng.standard_normal(n)], axis=1)
    vel *= (speed / radius)[:, None]
    mass = np.array([row[0] for row in heavy])
    x, vy = ([[row[k] if axis == k - 1 else 0.0 for axis in range(3)] for row in heavy]
             for k in (1, 2))  # fmt: skip
    return np.r_[mass, np.zeros(n)], np.vstack([x, pos]), np.vstack([vy, vel])


def semi_major_axes(bodies):
    """Of orbits around the first body, whose mass is 1."""
    pos, vel = bodies.pos[1:] - bodies.pos[0], bodies.vel[1:] - bodies.vel[0]
    return 1 / (2 / np.linalg.norm(pos, axis=1) - (vel**2).sum(axis=1))


@pytest.mark.parametrize(("setting", "n", "orbits"), [
    ("by default", 300, 5), ("accuracy", 3000, 1), ("theta", 3000, 1),
])  # fmt: skip
def test_massless_bodies_keep_their_orbits_around_a_star(setting, n, orbits):
    """Direct sums change half of the semi-major axes by less than 3e-6, and none by 1e-4."""
    star = Leapfrog(*massless(n, 0.8, 1.2, (1.0, 0.0, 0.0)), dt=2 * np.pi / 100,
                    backend="cpu-tree", **SETTINGS[setting])  # fmt: skip
    before = semi_major_axes(star)
    star.evolve(2 * np.pi * orbits)
    change = np.abs(semi_major_axes(star) / before - 1)
    assert np.median(change) < 1e-4
    assert change.max() < 1e-3


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_circular_binary_in_a_massless_disc_keeps_its_separation(setting):
    """For three periods; direct sums keep it within 0.5 %, by the steps."""
    pair = (0.5, 0.5, 0.5), (0.5, -0.5, -0.5)
    binary = Leapfrog(*massless(1000, 2.0, 5.0, *pair), dt=2 * np.pi / 64,
                      backend="cpu-tree", **SETTINGS[setting])  # fmt: skip
    for end in np.pi / 2 * np.arange(1, 13):
        binary.evolve(end)
        assert abs(np.linalg.norm(binary.pos[0] - binary.pos[1]) - 1) < 0.01

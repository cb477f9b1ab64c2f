"""Primordial binaries: what they keep of their model, and how their orbits are distributed."""

import math

import numpy as np
import pytest

from distributions import follow
from grape6py import Particles, plummer, with_binaries

N, AXES = 4000, (1e-6, 1e-3)


def elements(mass, pos, vel):
    """Orbits of rows 2 k and 2 k + 1: axis, eccentricity, mean anomaly, angular momentum."""
    m, r, v = mass[0::2] + mass[1::2], pos[1::2] - pos[0::2], vel[1::2] - vel[0::2]
    distance = np.linalg.norm(r, axis=1)
    axis = 1 / (2 / distance - (v**2).sum(axis=1) / m)
    laplace = np.cross(v, np.cross(r, v)) / m[:, None] - r / distance[:, None]
    e = np.linalg.norm(laplace, axis=1)
    anomaly = np.arctan2((r * v).sum(axis=1) / np.sqrt(m * axis), 1 - distance / axis)
    return axis, e, anomaly - e * np.sin(anomaly), np.cross(r, v)


def made(n=N, fraction=1.0, **how):
    # At rest in the origin, where nothing is lost when members are subtracted.
    model = Particles(np.full(n, 1 / n), np.zeros((n, 3)), np.zeros((n, 3)))
    return with_binaries(model, fraction, 1, **{"separation": AXES} | how)


def uniform_in(values, low, high):
    return follow(values, lambda sorted_: (sorted_ - low) / (high - low))


def test_orbits_are_distributed_as_asked_for():
    model = made(mass_ratio=(0.2, 0.8))
    axis, e, mean, momentum = elements(*model)
    assert uniform_in(np.log(axis), *np.log(AXES))
    assert uniform_in(e**2, 0, 1)  # thermal
    assert uniform_in(mean, -math.pi, math.pi)
    assert uniform_in(model.mass[1::2] / model.mass[0::2], 0.2, 0.8)
    axes = momentum / np.linalg.norm(momentum, axis=1)[:, None]
    assert all(uniform_in(axes[:, k], -1, 1) for k in range(3))
    towards = model.pos[1::2] / np.linalg.norm(model.pos[1::2], axis=1)[:, None]
    assert all(uniform_in(towards[:, k], -1, 1) for k in range(3))


@pytest.mark.parametrize("eccentricity", [0, 0.3, 0.999])
def test_all_may_have_one_shape(eccentricity):
    axis, e, _, _ = elements(*made(200, eccentricity=eccentricity, separation=2))
    assert axis == pytest.approx(2, rel=1e-10)
    assert e == pytest.approx(eccentricity, abs=1e-10)


@pytest.mark.parametrize("fraction", [0, 0.25, 0.5, 1])
def test_pairs_keep_mass_place_and_motion_of_the_body_that_they_were(fraction):
    model, count = plummer(101, 2), round(fraction * 101)
    mass, pos, vel = with_binaries(model, fraction, 3, separation=(1e-4, 1e-2))
    assert len(mass) == 101 + count
    paired, single = slice(0, 2 * count), slice(2 * count, None)
    both = mass[paired].reshape(-1, 2).sum(axis=1)
    assert (mass[0 : 2 * count : 2] >= mass[1 : 2 * count : 2]).all()
    centres = [
        (mass[paired, None] * vectors[paired]).reshape(-1, 2, 3).sum(axis=1) / both[:, None]
        for vectors in (pos, vel)
    ]
    rows = [int(np.argmin(np.abs(model.pos - centre).sum(axis=1))) for centre in centres[0]]
    assert rows == sorted({*rows})
    assert np.array_equal(both, model.mass[rows])
    assert np.allclose(centres[0], model.pos[rows], rtol=1e-15, atol=1e-15)
    assert np.allclose(centres[1], model.vel[rows], rtol=0, atol=1e-14)
    rest = np.delete(np.arange(101), rows)
    assert np.array_equal(pos[single], model.pos[rest])
    assert np.array_equal(vel[single], model.vel[rest])


def test_massless_bodies_stay_single():
    mass = np.array([0, 1, 0, 2.0])
    model = with_binaries(Particles(mass, np.eye(4, 3), np.zeros((4, 3))), 0.5, 1, separation=AXES)
    assert (model.mass[:4] > 0).all()
    assert model.mass[4:].tolist() == [0, 0]

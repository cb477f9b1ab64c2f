"""The disk galaxy: its densities, its velocities against summed forces, its rest."""

import math
from itertools import pairwise

import numpy as np
import pytest

from distributions import follow
from grape6py import Leapfrog, Tree, diagnostics, galaxy
from grape6py.models import Component

DISK, BULGE, HALO, HOLE = Component


@pytest.fixture(scope="module")
def large():
    """Bodies and accelerations of a galaxy, those of the disk smooth enough; components."""
    particles, component = galaxy(60000, 10000, 60000, seed=1, black_hole=0.01)
    acc = Tree(particles.pos, particles.mass).forces(eps=0.02, accuracy=1e-3).acc
    return (*particles, acc), component


def part_of(model, kind):
    arrays, component = model
    return [array[component == kind] for array in arrays]


def rings(pos, edges=(1.0, 1.5, 2.0, 2.5, 3.0, 4.0)):
    """Masks of the bodies between cylinders."""
    radius = np.hypot(pos[:, 0], pos[:, 1])
    return [(low < radius) & (radius <= high) for low, high in pairwise(edges)]


def cylindrical(pos, vectors):
    """Components outwards, along the circle, and up."""
    x, y = pos[:, 0], pos[:, 1]
    radius = np.hypot(x, y)
    u, v, w = vectors.T
    return (x * u + y * v) / radius, (x * v - y * u) / radius, w


def test_components_have_their_numbers_masses_and_places():
    particles, component = galaxy(300, 200, 500, seed=2, black_hole=0.01)
    assert component.tolist() == [0] * 300 + [1] * 200 + [2] * 500 + [3]
    for kind, total in {DISK: 1, BULGE: 1 / 3, HALO: 5.8, HOLE: 0.01}.items():
        mass, pos, vel = part_of((particles, component), kind)
        assert math.fsum(mass) == pytest.approx(total)
        assert np.abs(mass @ pos).max() < 1e-12
        assert np.abs(mass @ vel).max() < 1e-12
    assert not particles.pos[-1].any()
    assert not particles.vel[-1].any()


def test_the_disk_is_exponential_and_ends(large):
    pos = part_of(large, DISK)[1]
    radius, whole = np.hypot(pos[:, 0], pos[:, 1]), 1 - 11 * math.exp(-10)
    assert follow(radius, lambda r: (1 - (1 + r) * np.exp(-r)) / whole)
    assert 8 < radius.max() < 10.1
    for ring in rings(pos):
        z = pos[ring, 2]
        assert z.std() == pytest.approx(0.2 * math.pi / math.sqrt(12), rel=0.03)
        assert (np.abs(z) < 0.2).mean() == pytest.approx(math.tanh(1), abs=0.02)


@pytest.mark.parametrize(("kind", "scale"), [(BULGE, 0.2), (HALO, 3.5)])
def test_bulge_and_halo_are_hernquist_s_spheres(large, kind, scale):
    radius = np.linalg.norm(part_of(large, kind)[1], axis=1) / scale
    # Half of what the centre of mass was moved by is beyond Kolmogorov's 1.63.
    assert follow(radius, lambda r: (r / (1 + r) * 11 / 10) ** 2, limit=3)
    assert 9 < radius.max() < 10.2


def test_the_disk_obeys_the_radial_jeans_equation(large):
    _, pos, vel, acc = part_of(large, DISK)
    for ring in rings(pos):
        radius = np.hypot(pos[ring, 0], pos[ring, 1])
        outward, along, _ = cylindrical(pos[ring], vel[ring])
        pull = -cylindrical(pos[ring], acc[ring])[0]
        circular2 = (radius * pull).mean()
        # The density and the radial dispersion's square both fall as exp(-R).
        drift2 = (outward**2 * (2 * radius - 1)).mean()
        assert (along**2).mean() + drift2 == pytest.approx(circular2, rel=0.03)
        assert 0.7 * circular2 < along.mean() ** 2 < circular2


def test_the_disk_obeys_the_vertical_virial_theorem(large):
    _, pos, vel, acc = part_of(large, DISK)
    for ring in rings(pos):
        pull = -(pos[ring, 2] * acc[ring, 2]).mean()
        assert (vel[ring, 2] ** 2).mean() == pytest.approx(pull, rel=0.06)


def test_the_disk_is_as_stable_as_toomre_asks(large):
    _, pos, vel, acc = part_of(large, DISK)
    edges = 2.2, 2.35, 2.5, 2.65
    masks = rings(pos, edges)
    radius = np.array([np.hypot(*pos[ring, :2].T).mean() for ring in masks])
    force = np.array([-cylindrical(pos[ring], acc[ring])[0].mean() for ring in masks])
    slope = np.polyfit(np.log(radius), np.log(force), 1)[0]
    kappa = math.sqrt(force[1] / radius[1] * (3 + slope))
    sigma = cylindrical(pos[masks[1]], vel[masks[1]])[0].std()
    density = math.exp(-radius[1]) / (2 * math.pi)
    assert sigma * kappa / (3.36 * density) == pytest.approx(1.5, rel=0.08)


@pytest.mark.parametrize("kind", [BULGE, HALO])
def test_spheres_obey_the_virial_theorem_and_are_bound(large, kind):
    mass, pos, vel, acc = part_of(large, kind)
    kinetic = (mass * (vel**2).sum(axis=1)).sum()
    virial = -(mass * (pos * acc).sum(axis=1)).sum()
    assert kinetic == pytest.approx(virial, rel=0.05)
    assert np.allclose((vel**2).mean(axis=0), (vel**2).mean(), rtol=0.05)
    assert np.abs(np.cross(pos, vel).mean(axis=0)).max() < 0.05


def half_mass_radii(pos, component):
    """Of disk, bulge and halo, about the bulge."""
    pos = pos - np.median(pos[component == BULGE], axis=0)
    return [
        np.median(np.linalg.norm(pos[component == kind], axis=1)) for kind in (DISK, BULGE, HALO)
    ]


@pytest.mark.full
def test_a_galaxy_stays_as_it_is():
    # With fewer bodies those of the halo heat the bulge, which is no fault of the model.
    (mass, pos, vel), component = galaxy(4000, 1500, 14000, seed=3)
    assert diagnostics.energy(mass, pos, vel).virial_ratio == pytest.approx(0.5, abs=0.02)
    before = half_mass_radii(pos, component)

    run = Leapfrog(mass, pos, vel, dt=1 / 16, eps=0.03, accuracy=1e-3)
    run.evolve(6.0)  # three times R / v of the disk's half, ten of the bulge's
    assert half_mass_radii(run.pos, component) == pytest.approx(before, rel=0.15)


@pytest.mark.parametrize("counts", [(50, 0, 0), (0, 50, 0), (0, 0, 50), (1, 1, 1), (0, 0, 1)])
@pytest.mark.parametrize("hole", [0, 0.1])
def test_any_component_may_be_missing(counts, hole):
    particles, component = galaxy(*counts, seed=1, black_hole=hole)
    assert len(component) == sum(counts) + (hole > 0)
    assert all(np.isfinite(array).all() for array in particles)
    expected = np.dot([c > 0 for c in counts], [1, 1 / 3, 5.8]) + hole
    assert math.fsum(particles.mass) == pytest.approx(expected)

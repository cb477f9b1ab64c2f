"""The disk galaxy: its densities, its velocities against summed forces, its rest."""

import math
from itertools import pairwise

import numpy as np
import pytest

from grape6py import Tree, diagnostics, galaxy
from grape6py.models import Component

DISK, BULGE, HALO, HOLE = Component


@pytest.fixture(scope="module")
def large():
    """Bodies, components, and accelerations of a galaxy, those of the disk smooth enough."""
    particles, component = galaxy(60000, 10000, 60000, seed=1, black_hole=0.01)
    with Tree(particles.pos, particles.mass) as tree:
        acc = tree.forces(eps=0.02, accuracy=1e-3).acc
    return particles, component, acc


def part_of(model, kind):
    particles, component = model[:2]
    return [array[component == kind] for array in particles]


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
    n = 60000
    pos = part_of(large, DISK)[1]
    radius = np.sort(np.hypot(pos[:, 0], pos[:, 1]))
    inside = (1 - (1 + radius) * np.exp(-radius)) / (1 - 11 * math.exp(-10))
    assert np.abs(inside - (np.arange(n) + 0.5) / n).max() < 1.63 / math.sqrt(n)  # Kolmogorov
    assert 8 < radius[-1] < 10.1
    for ring in rings(pos):
        z = pos[ring, 2]
        assert z.std() == pytest.approx(0.2 * math.pi / math.sqrt(12), rel=0.03)
        assert (np.abs(z) < 0.2).mean() == pytest.approx(math.tanh(1), abs=0.02)


@pytest.mark.parametrize(("kind", "scale"), [(BULGE, 0.2), (HALO, 3.5)])
def test_bulge_and_halo_are_hernquist_s_spheres(large, kind, scale):
    pos = part_of(large, kind)[1]
    n = len(pos)
    radius = np.sort(np.linalg.norm(pos, axis=1)) / scale
    inside = (radius / (1 + radius) * 11 / 10) ** 2
    # Half of what the centre of mass was moved by is beyond Kolmogorov's 1.63.
    assert np.abs(inside - (np.arange(n) + 0.5) / n).max() < 3 / math.sqrt(n)
    assert 9 < radius[-1] < 10.2


def test_the_disk_obeys_the_radial_jeans_equation(large):
    _, pos, vel = part_of(large, DISK)
    acc = large[2][large[1] == DISK]
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
    _, pos, vel = part_of(large, DISK)
    acc = large[2][large[1] == DISK]
    for ring in rings(pos):
        pull = -(pos[ring, 2] * acc[ring, 2]).mean()
        assert (vel[ring, 2] ** 2).mean() == pytest.approx(pull, rel=0.06)


def test_the_disk_is_as_stable_as_toomre_asks(large):
    _, pos, vel = part_of(large, DISK)
    acc = large[2][large[1] == DISK]
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
    mass, pos, vel = part_of(large, kind)
    acc = large[2][large[1] == kind]
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


def test_a_galaxy_stays_as_it_is():
    # With fewer bodies those of the halo heat the bulge, which is no fault of the model.
    (mass, pos, vel), component = galaxy(4000, 1500, 14000, seed=3)
    assert diagnostics.energy(mass, pos, vel).virial_ratio == pytest.approx(0.5, abs=0.02)
    before = half_mass_radii(pos, component)

    def acceleration():
        with Tree(pos, mass) as tree:
            return tree.forces(eps=0.03, accuracy=1e-3).acc

    dt, acc = 1 / 16, acceleration()
    for _ in range(6 * 16):  # three times R / v of the disk's half, ten of the bulge's
        vel = vel + dt / 2 * acc
        pos = pos + dt * vel
        acc = acceleration()
        vel = vel + dt / 2 * acc
    assert half_mass_radii(pos, component) == pytest.approx(before, rel=0.15)


def test_the_same_seed_gives_the_same_galaxy():
    one, two, other = (galaxy(20, 20, 20, seed=seed) for seed in (1, 1, 2))
    for array, again in zip(one.particles, two.particles, strict=True):
        assert np.array_equal(array, again)
    assert not np.array_equal(one.particles.pos, other.particles.pos)


@pytest.mark.parametrize("counts", [(50, 0, 0), (0, 50, 0), (0, 0, 50), (1, 1, 1), (0, 0, 1)])
@pytest.mark.parametrize("hole", [0, 0.1])
def test_any_component_may_be_missing(counts, hole):
    particles, component = galaxy(*counts, seed=1, black_hole=hole)
    assert len(component) == sum(counts) + (hole > 0)
    assert all(np.isfinite(array).all() for array in particles)
    expected = np.dot([c > 0 for c in counts], [1, 1 / 3, 5.8]) + hole
    assert math.fsum(particles.mass) == pytest.approx(expected)

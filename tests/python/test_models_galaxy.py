"""The disk galaxy: its densities, its velocities against summed forces, its rest; mergers:
the orbit of the two models, their scaling, and the one of two galaxies."""

import math
from itertools import pairwise

import numpy as np
import pytest

from distributions import follow, rests
from grape6py import Tree, diagnostics, galaxy, galaxy_merger, merger, plummer
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


def test_the_disk_obeys_the_radial_jeans_equation_and_the_vertical_virial_theorem(large):
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
        pull = -(pos[ring, 2] * acc[ring, 2]).mean()
        assert (vel[ring, 2] ** 2).mean() == pytest.approx(pull, rel=0.06)


def test_the_disk_is_as_stable_as_toomre_asks(large):
    _, pos, vel, acc = part_of(large, DISK)
    masks = rings(pos, (2.2, 2.35, 2.5, 2.65))
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


@pytest.mark.parametrize(("counts", "hole"), [
    ((50, 0, 0), 0), ((0, 50, 0), 0.1), ((0, 0, 50), 0), ((1, 1, 1), 0.1), ((0, 0, 1), 0),
])  # fmt: skip
def test_any_component_may_be_missing(counts, hole):
    particles, component = galaxy(*counts, seed=1, black_hole=hole)
    assert len(component) == sum(counts) + (hole > 0)
    assert all(np.isfinite(array).all() for array in particles)
    expected = np.dot([c > 0 for c in counts], [1, 1 / 3, 5.8]) + hole
    assert math.fsum(particles.mass) == pytest.approx(expected)


def ends(pair):
    """Mass, place and velocity of the centres of both models."""
    (mass, pos, vel), component = pair
    for which in (0, 1):
        own = component // 4 == which
        m = mass[own]
        yield m.sum(), m @ pos[own] / m.sum(), m @ vel[own] / m.sum()


def orbit(pair):
    """Total mass, separation, energy and angular momentum of the relative motion."""
    (m1, x1, v1), (m2, x2, v2) = ends(pair)
    r, v = x2 - x1, v2 - v1
    distance = np.linalg.norm(r)
    assert r @ v <= 1e-12  # they approach each other
    return m1 + m2, distance, v @ v / 2 - (m1 + m2) / distance, np.cross(r, v)


@pytest.mark.parametrize(("pericentre", "separation", "eccentricity"), [
    (0.5, 10, 1), (3, 3, 1), (1e-3, 100, 1), (2, 2.0, 0), (2, 2.0, 0.5), (2, 2.0, 3),
])  # fmt: skip
def test_the_orbit_is_the_one_asked_for(pericentre, separation, eccentricity):
    pair = merger(plummer(100, 1), plummer(50, 2), pericentre, separation,
                  eccentricity=eccentricity)  # fmt: skip
    total, distance, energy, moment = orbit(pair)
    assert (total, distance) == pytest.approx((2, separation))
    assert energy == pytest.approx(total * (eccentricity - 1) / 2 / pericentre, abs=1e-12)
    moment_2 = total * pericentre * (1 + eccentricity)
    assert moment == pytest.approx([0, 0, math.sqrt(moment_2)], abs=1e-9)


def test_the_pair_rests_in_the_origin_and_the_models_are_unchanged_within():
    one, two = plummer(40, 1), plummer(60, 2)
    (mass, pos, vel), component = pair = merger(one, two, 1, 5)
    assert rests(pair.particles, 1e-14)
    assert component.tolist() == [0] * 40 + [4] * 60
    for model, own in ((one, component == 0), (two, component == 4)):
        assert np.array_equal(mass[own], model.mass)
        assert np.allclose(pos[own] - pos[own].mean(axis=0), model.pos, atol=1e-13)
        assert np.allclose(vel[own] - vel[own].mean(axis=0), model.vel, atol=1e-13)


def test_a_scaled_model_has_its_mass_its_surface_density_and_its_virial_ratio():
    one, two = plummer(30, 1), plummer(200, 2)
    particles, component = merger(one, two, 1, 50, mass_ratio=0.25)
    mass, pos, vel = (array[component == 4] for array in particles)
    pos, vel = pos - pos.mean(axis=0), vel - vel.mean(axis=0)
    assert mass.sum() == pytest.approx(0.25)
    assert np.allclose(pos, two.pos / 2)
    before, after = diagnostics.energy(*two), diagnostics.energy(mass, pos, vel)
    assert after.virial_ratio == pytest.approx(before.virial_ratio)


def test_tilted_disks_turn_about_the_x_axis():
    disk = galaxy(2000, 0, 0, seed=1)
    particles, component = merger(disk, disk, 3, 30, tilt=(30, 90))
    _, pos, vel = particles
    for which, angle in enumerate((30, 90)):
        own = component == 4 * which
        r, v = pos[own] - pos[own].mean(axis=0), vel[own] - vel[own].mean(axis=0)
        spin = np.cross(r, v).mean(axis=0)
        expected = [0, -math.sin(math.radians(angle)), math.cos(math.radians(angle))]
        assert np.allclose(spin / np.linalg.norm(spin), expected, atol=0.03)
        radius = np.linalg.norm(disk.particles.pos, axis=1)
        assert np.linalg.norm(r, axis=1) == pytest.approx(radius)


@pytest.mark.slow
def test_the_merger_of_bonsai_has_its_bodies():
    (mass, pos, _), component = galaxy_merger(seed=1)
    assert len(mass) == len(pos) == 240_002
    assert np.bincount(component).tolist() == [15000, 5000, 100_000, 1] * 2
    of_kinds = np.bincount(component, mass)
    assert of_kinds[4 + HOLE] / of_kinds[HOLE] == pytest.approx(1 / 3)
    assert of_kinds[4:].sum() / of_kinds[:4].sum() == pytest.approx(1 / 3)


def test_galaxies_meet_on_a_parabola_and_differ():
    pair = galaxy_merger(500, 100, seed=2, pericentre=2.0, separation=25.0)
    total, distance, energy, moment = orbit(pair)
    assert distance == pytest.approx(25)
    assert energy == pytest.approx(0, abs=1e-12)
    assert moment[2] == pytest.approx(math.sqrt(4 * total))
    same = galaxy_merger(50, 10, seed=1, mass_ratio=1).particles.pos
    assert not np.allclose(same[:60] - same[60], same[61:121] - same[121])

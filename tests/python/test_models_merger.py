"""Mergers: the orbit of the two models, their scaling, and the one of two galaxies."""

import math

import numpy as np
import pytest

from grape6py import diagnostics, galaxy, galaxy_merger, merger, plummer
from grape6py.models import Component


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
    (mass, pos, vel), component = merger(one, two, 1, 5)
    assert np.abs(mass @ pos).max() < 1e-14
    assert np.abs(mass @ vel).max() < 1e-14
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
        assert np.linalg.norm(r, axis=1) == pytest.approx(
            np.linalg.norm(disk.particles.pos, axis=1)
        )


def test_the_merger_of_bonsai_has_its_bodies():
    (mass, pos, _), component = galaxy_merger(seed=1)
    assert len(mass) == len(pos) == 240_002
    kinds = {0: 15000, 1: 5000, 2: 100_000, 3: 1}
    for kind, count in kinds.items():
        for which in (0, 1):
            assert (component == kind + 4 * which).sum() == count
    holes = mass[component % 4 == Component.BLACK_HOLE]
    assert holes[1] / holes[0] == pytest.approx(1 / 3)
    first = component < 4
    assert mass[~first].sum() / mass[first].sum() == pytest.approx(1 / 3)


def test_galaxies_meet_on_a_parabola_and_differ():
    pair = galaxy_merger(500, 100, seed=2, pericentre=2.0, separation=25.0)
    total, distance, energy, moment = orbit(pair)
    assert distance == pytest.approx(25)
    assert energy == pytest.approx(0, abs=1e-12)
    assert moment[2] == pytest.approx(math.sqrt(4 * total))
    again, other = (galaxy_merger(500, 100, seed=seed, pericentre=2.0, separation=25.0)
                    for seed in (2, 3))  # fmt: skip
    assert np.array_equal(pair.particles.vel, again.particles.vel)
    assert not np.array_equal(pair.particles.vel, other.particles.vel)
    same = galaxy_merger(50, 10, seed=1, mass_ratio=1).particles.pos
    assert not np.allclose(same[:60] - same[60], same[61:121] - same[121])

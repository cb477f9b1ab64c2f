"""Spheres of any density: against closed forms, Jeans' equation, and themselves after a while."""

import itertools

import numpy as np
import pytest

from grape6py import Leapfrog, diagnostics, eff, hernquist
from grape6py.errors import ArgumentError
from grape6py.models import eff_profile, nfw, nfw_profile

PLUMMER = 3 * np.pi / 16


def test_eff_of_four_is_plummers_sphere():
    found = eff_profile(4)
    r2 = found.radius**2 + PLUMMER**2
    assert found.scale == pytest.approx(PLUMMER, rel=1e-5)
    assert np.allclose(found.inside, (found.radius**2 / r2) ** 1.5, rtol=0, atol=2e-6)
    assert np.allclose(found.depth, r2**-0.5, rtol=1e-5)
    ratio = (found.distribution / found.depth**3.5)[found.depth > 0.05]
    assert np.ptp(ratio) < 1e-2 * ratio.mean()


def test_hernquists_distribution_is_his():
    """Hernquist 1990, equation 17, by the speeds that are drawn."""
    quad = pytest.importorskip("scipy.integrate").quad
    bodies = hernquist(200_000, seed=1)
    # About the cusp, and not the centre of mass.
    pos = bodies.pos - diagnostics.density_centre(bodies.mass, bodies.pos)
    r, v = np.linalg.norm(pos, axis=1), np.linalg.norm(bodies.vel, axis=1)
    assert (r < 1).mean() == pytest.approx(9 / 16 / 0.99, rel=1e-2)
    q2 = (1 / (r + 1 / 3) - v * v / 2) / 3  # of energies, in units of the central depth
    histogram, edges = np.histogram(q2, bins=np.linspace(0.1, 0.8, 8))

    def per_energy(q2):
        q = np.sqrt(q2)
        f = 3 * np.arcsin(q) + q * np.sqrt(1 - q2) * (1 - 2 * q2) * (8 * q2**2 - 8 * q2 - 3)
        f = f / (1 - q2) ** 2.5
        phase = quad(lambda r: r * r * np.sqrt(2 * max(0, 1 / (1 + r) - q2)), 0, 1 / q2 - 1)[0]
        return f * phase

    expected = np.array([quad(per_energy, *pair)[0] for pair in itertools.pairwise(edges)])
    expected *= histogram.sum() / expected.sum()
    assert (np.abs(histogram - expected) < 5 * np.sqrt(expected)).all()


MODELS = {
    "hernquist": lambda n: hernquist(n, seed=2),
    "eff 3": lambda n: eff(n, 3, seed=2),
    "eff 2.2": lambda n: eff(n, 2.2, seed=2, truncation=30),
    "nfw 4": lambda n: nfw(n, 4, seed=2),
    "nfw 20": lambda n: nfw(n, 20, seed=2, decay=0.1),
}


@pytest.mark.parametrize("model", MODELS)
def test_shells_obey_jeans_equation(model):
    """The velocities of shells against the integral of density times pull, of the drawn bodies."""
    mass, pos, vel = MODELS[model](400_000)
    r = np.linalg.norm(pos, axis=1)
    order = np.argsort(r)
    inside = np.empty(len(r))
    inside[order] = np.cumsum(mass[order])
    for low, high in ((0.1, 0.12), (0.5, 0.55), (1.5, 1.6)):
        middle, shell = (low + high) / 2, (r > low) & (r < high)
        density = mass[shell].sum() / (4 / 3 * np.pi * (high**3 - low**3))
        pressure = (mass / r**2 * inside / (4 * np.pi * r**2))[r > middle].sum()
        found = (vel[shell] ** 2).sum(axis=1).mean() / 3
        assert found == pytest.approx(pressure / density, rel=0.05), middle


@pytest.mark.parametrize("model", MODELS)
def test_they_stay_as_they_are(model):
    sphere = MODELS[model](20_000)
    fractions = [0.1, 0.3, 0.5, 0.7]
    galaxy = Leapfrog(*sphere, eps=0.01, dt=1 / 64, theta=0.7)
    before = galaxy.lagrangian_radii(fractions, "density")
    assert galaxy.virial_ratio() == pytest.approx(0.5, rel=0.04)
    galaxy.evolve(2.0)
    assert np.allclose(galaxy.lagrangian_radii(fractions, "density"), before, rtol=0.05)


def test_rescaled_they_have_henons_energy():
    energy = diagnostics.energy(*eff(1000, 3, seed=1, rescale=True))
    assert energy.total == pytest.approx(-0.25, rel=1e-12)
    assert energy.virial_ratio == pytest.approx(0.5, rel=1e-12)


def test_scale_radii():
    r = np.linalg.norm(nfw(100_000, 10, seed=1).pos, axis=1) / nfw_profile(10).scale
    expected = (np.log(3) - 2 / 3) / (np.log(11) - 10 / 11)  # within 2 and 10
    assert (r < 2).sum() / (r < 10).sum() == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("wrong", [
    lambda: eff(10, 2.5), lambda: eff(10, 0.5, truncation=10), lambda: eff(10, 3, mass_fraction=0),
    lambda: nfw(10, 0), lambda: nfw(10, 5, decay=2), lambda: eff(10, 3, truncation=-1),
    lambda: hernquist(0),
])  # fmt: skip
def test_wrong_spheres_are_refused(wrong):
    with pytest.raises(ArgumentError):
        wrong()

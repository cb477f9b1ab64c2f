"""The uniform sphere: even in space, bound, as warm as asked for; a cold one collapses."""

import math

import numpy as np
import pytest

from grape6py import Hermite, diagnostics, uniform

RATIOS = (0, 0.1, 0.5, 0.9)


@pytest.mark.parametrize("ratio", RATIOS)
def test_bodies_fill_the_sphere_evenly(ratio):
    n = 20000
    model = uniform(n, 2, ratio)
    size = 2.4 * (1 - ratio)
    r = np.sort(np.linalg.norm(model.pos, axis=1)) / size
    assert np.abs(r**3 - (np.arange(n) + 0.5) / n).max() < 1.63 / math.sqrt(n)  # Kolmogorov, 1 %
    assert r[-1] == pytest.approx(1, abs=0.02)
    assert np.abs(model.pos.mean(axis=0)).max() < 1e-14
    assert np.allclose(np.cov(model.pos.T), np.eye(3) * size**2 / 5, atol=0.02 * size**2)


@pytest.mark.parametrize("ratio", RATIOS)
def test_energies_are_those_asked_for_and_nothing_escapes(ratio):
    model = uniform(6000, 3, ratio)
    pot = diagnostics.potential(model.mass, model.pos)
    energy = diagnostics.energy(*model, pot=pot)
    assert energy.virial_ratio == pytest.approx(ratio, rel=0.02)
    assert energy.total == pytest.approx(-0.25, rel=0.02 / (1 - ratio))
    assert ((model.vel**2).sum(axis=1) / 2 + pot < 0).all()


@pytest.mark.parametrize("ratio", RATIOS)
def test_rescaling_makes_the_energies_exact(ratio):
    energy = diagnostics.energy(*uniform(100, 4, ratio, rescale=True))
    assert energy.total == pytest.approx(-0.25, rel=1e-13)
    assert energy.virial_ratio == pytest.approx(ratio, rel=1e-13)


def test_a_cold_sphere_collapses_in_its_free_fall_time():
    cluster = Hermite(*uniform(500, 5, 0), eps=0.02)
    radii = []
    cluster.evolve(5.0, lambda c: radii.append(c.lagrangian_radii([0.5])[0]), every=0.125)
    time = math.pi / 2 * math.sqrt(2.4**3 / 2)
    assert 0.125 * int(np.argmin(radii)) == pytest.approx(time, rel=0.1)
    assert min(radii) < 0.25 * radii[0]

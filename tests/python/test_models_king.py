"""King's models."""

import math

import numpy as np
import pytest

from distributions import follow, radii
from grape6py import king
from grape6py.models import king_profile

DEPTHS = (1, 3, 5.5, 7, 9, 12)

# log10(r_t / r_c): King 1966, AJ 71, 64.
CONCENTRATION = {3: 0.672, 5: 1.029, 7: 1.528, 9: 2.120}


def density(depth):
    """Of the lowered Maxwellian, without its constant (King 1966)."""
    erf = np.vectorize(math.erf)(np.sqrt(depth))
    return np.exp(depth) * erf - np.sqrt(4 * depth / math.pi) * (1 + 2 * depth / 3)


@pytest.mark.parametrize("w0", CONCENTRATION)
def test_the_concentration_is_that_of_king_s_table(w0):
    profile = king_profile(w0)
    concentration = math.log10(profile.radius[-1] / profile.core_radius)
    assert concentration == pytest.approx(CONCENTRATION[w0], abs=2e-3)


@pytest.mark.parametrize("w0", DEPTHS)
def test_the_profile_solves_poisson_s_equation(w0):
    r, inside, depth, core_radius, sigma = king_profile(w0)
    assert depth[0] == pytest.approx(w0 * sigma**2, rel=1e-12)
    assert depth[-1] == 0
    assert inside[0] == 0
    assert inside[-1] == 1
    # Mass from density, and density from depth; by trapezoids, in other variables.
    law = 9 * sigma**2 / core_radius**2 / density(np.array([w0]))
    shells = law * r**2 * density(depth / sigma**2)
    mass = np.append(0, np.cumsum(np.diff(r) * (shells[1:] + shells[:-1]) / 2))
    assert np.allclose(mass, inside, rtol=1e-3, atol=1e-6)
    # Depth from mass: G M / r^2 is its slope.
    pull = np.append(0, inside[1:] / r[1:] ** 2)
    fall = np.append(0, np.cumsum(np.diff(r) * (pull[1:] + pull[:-1]) / 2))
    assert np.allclose(depth[0] - fall, depth, atol=1e-4 * depth[0])


@pytest.mark.parametrize("w0", DEPTHS)
def test_radii_and_speeds_are_those_of_the_lowered_maxwellian_in_the_profile(w0):
    """And end at the tidal radius."""
    profile = king_profile(w0)
    r = radii(king(20000, w0, seed=2))
    assert follow(r, lambda r: np.interp(r, profile.radius, profile.inside))
    # The centre of mass was moved.
    assert 0.6 * profile.radius[-1] < r.max() < profile.radius[-1] * 1.01
    model = king(40000, w0, seed=3)
    speed2 = (model.vel**2).sum(axis=1)
    depth = np.interp(radii(model), profile.radius, profile.depth)
    assert (speed2 <= 2 * depth + 0.02 * profile.depth[0]).all()
    share = np.linspace(0, 1, 2001)
    for part in np.array_split(np.argsort(depth), 8)[1:]:
        mean = depth[part].mean() / profile.sigma**2
        v2 = 2 * mean * share**2
        weight = v2 * np.expm1(mean - v2 / 2)
        expected = (weight * v2).sum() / weight.sum() * profile.sigma**2
        assert speed2[part].mean() == pytest.approx(expected, rel=0.05)

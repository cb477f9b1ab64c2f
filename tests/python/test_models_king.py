"""King's models, and those of limepy with several masses."""

import math
import sys
from types import ModuleType

import numpy as np
import pytest

import grape6py
from distributions import follow, radii, same_bodies
from grape6py import diagnostics, king, limepy
from grape6py.errors import MissingPackageError
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


@pytest.fixture
def package():
    pytest.importorskip("limepy")
    scipy = pytest.importorskip("scipy")
    if tuple(map(int, scipy.__version__.split(".")[:2])) >= (1, 17):
        pytest.skip("astro-limepy 1.3 needs SciPy before 1.17")
    return sys.modules["limepy"]


@pytest.mark.parametrize("found", [None, ModuleType("limepy")])
def test_without_astro_limepy_the_error_names_it(monkeypatch, found):
    monkeypatch.setitem(sys.modules, "limepy", found)
    with pytest.raises(MissingPackageError, match="pip install astro-limepy") as error:
        limepy(10, 5)
    assert isinstance(error.value, ImportError)


def test_a_package_that_fails_is_named(monkeypatch):
    def fails(*_, **__):
        raise TypeError("'float' object cannot be interpreted as an integer")

    false = ModuleType("limepy")
    false.limepy = false.sample = fails
    monkeypatch.setitem(sys.modules, "limepy", false)
    with pytest.raises(MissingPackageError, match=r"pip install 'scipy<1.17'"):
        limepy(10, 5)


@pytest.mark.parametrize(("g", "radius"), [(1, None), (2, None), (1, 5)])
def test_bodies_follow_the_profile_in_henon_units(package, g, radius):
    model = limepy(4000, 7, g, radius, seed=1)
    exact = package.limepy(7, g, G=1, M=1, rv=1, **({} if radius is None else {"ra": radius}))
    assert follow(radii(model), lambda r: np.interp(r, exact.r, exact.mc), limit=2)
    energy = diagnostics.energy(*model, backend="cpu")
    assert energy.total == pytest.approx(-0.25, rel=0.05)
    assert energy.virial_ratio == pytest.approx(0.5, abs=0.02)
    outward2 = ((model.pos * model.vel).sum(axis=1) / radii(model)) ** 2
    across2 = (model.vel**2).sum(axis=1) - outward2
    expected = 2 * exact.Kr / exact.Kt
    assert 2 * outward2.sum() / across2.sum() == pytest.approx(expected, rel=0.06)


def test_several_masses_are_segregated(package):
    model = limepy(3000, 7, masses=[0.3, 1, 5], mass_shares=[9, 3, 1], seed=2)
    masses, numbers = np.unique(model.mass, return_counts=True)
    assert len(model.mass) == 3000
    assert math.fsum(model.mass) == pytest.approx(1)
    assert masses / masses[0] == pytest.approx([1, 1 / 0.3, 5 / 0.3])
    assert masses * numbers == pytest.approx([9 / 13, 3 / 13, 1 / 13], abs=0.01)
    medians = [np.median(radii(model)[model.mass == mass]) for mass in masses]
    assert medians == sorted(medians, reverse=True)
    assert diagnostics.energy(*model, backend="cpu").virial_ratio == pytest.approx(0.5, abs=0.02)


def test_rescaling_is_exact_the_global_random_state_is_kept_and_stars_take_it(package):
    np.random.seed(5)
    expected = np.random.random(3)
    np.random.seed(5)
    one, two, other = (limepy(50, 6, seed=seed, rescale=True) for seed in (1, 1, 2))
    assert np.array_equal(np.random.random(3), expected)
    assert same_bodies(one, two)
    assert not same_bodies(one, other)
    model = grape6py.stars([3, 2, 1], lambda n, seed: limepy(n, 5, seed=seed), 1, 1)
    assert len(model.mass) == 3
    energy = diagnostics.energy(*one, backend="cpu")
    assert energy.kinetic == pytest.approx(0.25)
    assert energy.potential == pytest.approx(-0.5)


def test_a_model_that_does_not_end_is_refused_in_words(package):
    with pytest.raises(ValueError, match="finds no such model of phi0 = 5"):
        limepy(100, 5, anisotropy_radius=0.1)

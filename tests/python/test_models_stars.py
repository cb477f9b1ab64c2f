"""Stars of several masses: mass functions; the model stays what it is, with and without
segregation; fractals: their dimension, velocities that neighbours share."""

import math
from functools import partial

import numpy as np
import pytest

import grape6py as g6
from distributions import follow, radii, rests, same_bodies
from grape6py import fractal, king, kroupa, maschberger, plummer, salpeter, stars, uniform

SCALE = 3 * math.pi / 16  # of Plummer's sphere in Henon units
N = 10000


@pytest.fixture(scope="module", params=[0, 0.5, 1])
def sphere(request):
    mass = kroupa(N, 1, highest=20)
    return request.param, mass, stars(mass, plummer, 1, request.param)


def test_masses_keep_their_order_and_have_the_sum_one(sphere):
    _, mass, model = sphere
    assert np.allclose(model.mass, mass / mass.sum(), rtol=1e-13)
    assert math.fsum(model.mass) == pytest.approx(1, rel=1e-14)
    assert rests(model, 1e-15)
    assert len(np.unique(model.pos, axis=0)) == N
    with pytest.warns(g6.Grape6Warning, match=r"have 1 Msun in all; .*Units\('"):
        stars(mass[:9], units=g6.Units("Msun", "pc"))


def test_mass_density_energy_and_virial_ratio_stay_those_of_the_model(sphere):
    segregation, _, model = sphere
    r = radii(model)
    order = np.argsort(r)
    inside = np.cumsum(model.mass[order]) - model.mass[order] / 2
    expected = (1 + (SCALE / r[order]) ** 2) ** -1.5 / 0.999
    # Kolmogorov, 1 %, of as many equal masses as have this variance; 1 % more for the centre.
    of_equal_mass = 1 / (model.mass**2).sum()
    assert np.abs(inside - expected).max() < 1.63 / math.sqrt(of_equal_mass) + 0.01
    energy = g6.diagnostics.energy(*model, backend="cpu")
    # Without segregation as few equal masses as above would have such errors.
    error = 0.01 if segregation else 1.5 * math.sqrt((model.mass**2).sum())
    assert energy.virial_ratio == pytest.approx(0.5, abs=error)
    assert energy.total == pytest.approx(-0.25, rel=0.03 if segregation else 5 * error)


def test_heavy_stars_sit_as_deep_as_segregation_asks():
    mass = kroupa(N, 2)
    heavy, depth = mass > np.quantile(mass, 0.95), {}
    for segregation in (0, 0.3, 0.6, 1):
        model = stars(mass, plummer, 3, segregation)
        depth[segregation] = np.median(radii(model)[heavy]) / np.median(radii(model)[~heavy])
    assert depth[0] == pytest.approx(1, abs=0.1)
    assert sorted(depth.values(), reverse=True) == list(depth.values())
    assert depth[1] < 0.4


def test_partial_order_is_that_of_mcluster():
    n, segregation = 400, 0.7
    mass = np.linspace(2, 1, n)
    place = []
    for seed in range(200):
        model = stars(mass, plummer, seed, segregation)
        energy = (model.vel**2).sum(axis=1) / 2 - 1 / np.hypot(radii(model), SCALE)
        place.append(np.argsort(np.argsort(energy))[0])
    # The heaviest star takes place n (1 - X^(1 - S)), whose mean is n (1 - 1 / (2 - S)).
    error = np.std(place) / math.sqrt(len(place))
    assert np.mean(place) == pytest.approx(n * (1 - 1 / (2 - segregation)), abs=3 * error)


def test_without_segregation_they_are_the_model_s_bodies():
    model, plain = stars(np.ones(500), plummer, 5), plummer(500, 5)
    assert np.allclose(np.sort(model.pos, axis=0), np.sort(plain.pos, axis=0), atol=1e-14)
    assert np.allclose(np.sort(model.vel, axis=0), np.sort(plain.vel, axis=0), atol=1e-14)


@pytest.mark.parametrize("segregation", [0, 0.5, 1])
@pytest.mark.parametrize("mass", [[3.0], [1e-9, 1], [1, *[1e-6] * 50], [1] * 30])
def test_any_masses_above_zero_have_an_orbit_each(mass, segregation):
    model = stars(mass, partial(king, w0=5), 1, segregation)
    assert np.isfinite(model.pos).all()
    assert len(np.unique(model.pos, axis=0)) == len(mass)
    assert same_bodies(model, stars(mass, partial(king, w0=5), 1, segregation))


def test_a_cold_sphere_stays_cold():
    assert not stars(kroupa(100, 1), partial(uniform, virial_ratio=0), 1, 1).vel.any()


def pairs(model):
    i, j = np.triu_indices(len(model.mass), 1)
    return np.linalg.norm(model.pos[i] - model.pos[j], axis=1), i, j


@pytest.mark.parametrize("dimension", [1.6, 2, 2.5, 3])
def test_pairs_within_a_distance_grow_as_its_power(dimension):
    slopes = []
    for seed in range(5):
        distance, _, _ = pairs(fractal(1000, dimension, seed))
        size = 2 * np.sqrt((distance**2).mean() / 2)
        counts = [(distance < size * share).sum() for share in (1 / 4, 1 / 16)]
        slopes.append(math.log(counts[0] / counts[1]) / math.log(4))
    # The surface of the sphere takes some of the pairs away.
    assert np.mean(slopes) == pytest.approx(dimension, abs=0.3)
    assert np.mean(slopes) < dimension + 0.15


def test_a_homogeneous_sphere_has_dimension_three():
    assert follow(radii(fractal(2000, 3, 1)), lambda r: (r / r[-1]) ** 3, limit=3.57)


def test_sub_structure_moves_together():
    dispersion = []
    for model in (fractal(1000, 1.6, 3), fractal(1000, 3, 3), plummer(1000, 3)):
        near = g6.Tree(model.pos, model.mass).nearest(1).index[:, 0]
        apart = ((model.vel[near] - model.vel) ** 2).sum(axis=1).mean()
        dispersion.append(apart / (2 * (model.vel**2).sum(axis=1).mean()))  # 1: independent
    assert max(dispersion[:2]) < 0.4 < 0.8 < dispersion[2]


@pytest.mark.parametrize("dimension", [1, 1.6])
def test_any_seed_has_members(dimension):
    for seed in range(100):  # trees of which some die out
        assert len(fractal(5, dimension, seed).mass) == 5


COUNT = 20000


def of_kroupa(m):
    """Equation 2 of Kroupa 2001, with its own constants of continuity."""
    low, middle = (m / 0.08) ** -0.3, (m / 0.08) ** -1.3
    high = (0.5 / 0.08) ** -1.3 * (m / 0.5) ** -2.3
    return np.where(m < 0.08, low, np.where(m < 0.5, middle, high))


def of_maschberger(m):
    return (m / 0.2) ** -2.3 * (1 + (m / 0.2) ** -1.3) ** -1.4


def are_of(masses, function, lowest, highest):
    """Whether they follow a function that is integrated by trapezoids."""
    grid = np.geomspace(lowest, highest, 20001)
    heights = function(grid) * grid
    inside = np.append(0, np.cumsum(heights[1:] + heights[:-1]))
    return follow(masses, lambda m: np.interp(m, grid, inside / inside[-1]))


@pytest.mark.parametrize(("draw", "function", "lowest", "highest"), [
    (kroupa, of_kroupa, 0.08, 150), (kroupa, of_kroupa, 0.01, 150), (kroupa, of_kroupa, 0.02, 0.3),
    (kroupa, of_kroupa, 1, 2), (salpeter, lambda m: m**-2.35, 0.4, 10),
    (maschberger, of_maschberger, 0.01, 150), (maschberger, of_maschberger, 0.5, 5),
])  # fmt: skip
def test_masses_are_distributed_as_the_function(draw, function, lowest, highest):
    masses = draw(COUNT, 1, lowest, highest)
    assert masses.shape == (COUNT,)
    assert lowest <= masses.min() < lowest * 1.05
    assert masses.max() <= highest
    assert are_of(masses, function, lowest, highest)


@pytest.mark.parametrize("slope", [-1, 0, 1, 1 + 1e-9, 2, 3.5])
def test_a_power_law_may_have_any_slope(slope):
    assert are_of(salpeter(COUNT, 2, 0.5, 8, slope=slope), lambda m: m**-slope, 0.5, 8)


def test_masses_do_not_depend_on_the_radii_of_a_model_of_the_same_seed():
    values = kroupa(COUNT, 5), radii(plummer(COUNT, seed=5))
    ranks = [np.argsort(np.argsort(each)) for each in values]
    assert abs(np.corrcoef(ranks)[0, 1]) < 4 / math.sqrt(COUNT)

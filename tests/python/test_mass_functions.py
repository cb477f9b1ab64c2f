"""Mass functions: their shares and slopes by quadrature, their ranges, their seeds."""

import math

import numpy as np
import pytest

from grape6py import kroupa, maschberger, plummer, salpeter

N = 20000


def of_kroupa(m):
    """Equation 2 of Kroupa 2001, with its own constants of continuity."""
    low, middle = (m / 0.08) ** -0.3, (m / 0.08) ** -1.3
    high = (0.5 / 0.08) ** -1.3 * (m / 0.5) ** -2.3
    return np.where(m < 0.08, low, np.where(m < 0.5, middle, high))


def of_maschberger(m):
    return (m / 0.2) ** -2.3 * (1 + (m / 0.2) ** -1.3) ** -1.4


def worst(masses, function, lowest, highest):
    """Kolmogorov's distance to a function that is integrated by trapezoids."""
    grid = np.geomspace(lowest, highest, 20001)
    heights = function(grid) * grid
    inside = np.append(0, np.cumsum(heights[1:] + heights[:-1]))
    expected = np.interp(np.sort(masses), grid, inside / inside[-1])
    return np.abs(expected - (np.arange(len(masses)) + 0.5) / len(masses)).max()


@pytest.mark.parametrize(("draw", "function", "lowest", "highest"), [
    (kroupa, of_kroupa, 0.08, 150),
    (kroupa, of_kroupa, 0.01, 150),
    (kroupa, of_kroupa, 0.02, 0.3),
    (kroupa, of_kroupa, 1, 2),
    (salpeter, lambda m: m**-2.35, 0.4, 10),
    (maschberger, of_maschberger, 0.01, 150),
    (maschberger, of_maschberger, 0.5, 5),
])  # fmt: skip
def test_masses_are_distributed_as_the_function(draw, function, lowest, highest):
    masses = draw(N, 1, lowest, highest)
    assert masses.shape == (N,)
    assert lowest <= masses.min() < lowest * 1.05
    assert masses.max() <= highest
    assert worst(masses, function, lowest, highest) < 1.63 / math.sqrt(N)  # Kolmogorov, 1 %


@pytest.mark.parametrize("slope", [-1, 0, 1, 1 + 1e-9, 2, 3.5])
def test_a_power_law_may_have_any_slope(slope):
    masses = salpeter(N, 2, 0.5, 8, slope=slope)
    assert worst(masses, lambda m: m**-slope, 0.5, 8) < 1.63 / math.sqrt(N)


@pytest.mark.parametrize(("draw", "function"), [(kroupa, of_kroupa), (maschberger, of_maschberger)])
def test_the_mean_mass_is_that_of_the_function(draw, function):
    grid = np.geomspace(0.08, 10, 20001)
    mean = np.trapezoid(function(grid) * grid**2, np.log(grid)) / np.trapezoid(
        function(grid) * grid, np.log(grid)
    )
    masses = draw(10 * N, 3, 0.08, 10)
    assert masses.mean() == pytest.approx(mean, abs=4 * masses.std() / math.sqrt(10 * N))


@pytest.mark.parametrize("draw", [kroupa, salpeter, maschberger])
def test_the_same_seed_gives_the_same_masses(draw):
    assert np.array_equal(draw(10, 1), draw(10, 1))
    assert not np.array_equal(draw(10, 1), draw(10, 2))
    assert not np.array_equal(draw(10), draw(10))


def test_masses_do_not_depend_on_the_radii_of_a_model_of_the_same_seed():
    radius = np.linalg.norm(plummer(N, seed=5).pos, axis=1)
    ranks = [np.argsort(np.argsort(values)) for values in (kroupa(N, 5), radius)]
    assert abs(np.corrcoef(ranks)[0, 1]) < 4 / math.sqrt(N)


@pytest.mark.parametrize(("draw", "wrong", "words"), [
    (kroupa, {"n": 10.5}, "n = 10.5 is not an integer"),
    (kroupa, {"n": 0}, "n = 0: a model needs at least one body"),
    (kroupa, {"lowest": 0.001}, "lowest = 0.001 is below 0.01, where Kroupa"),
    (kroupa, {"lowest": 3, "highest": 2}, "lowest = 3.0 is not below highest = 2.0"),
    (salpeter, {"lowest": 0}, "lowest = 0.0 is not above zero"),
    (salpeter, {"highest": math.inf}, "highest = inf is not a finite number"),
    (salpeter, {"slope": math.nan}, "slope = nan is not a finite number"),
    (salpeter, {"slope": "steep"}, "slope = 'steep' is not a number"),
    (maschberger, {"alpha": 1}, "alpha = 1 is not above 1"),
    (maschberger, {"beta": 0.5}, "beta = 0.5 is not above 1"),
    (maschberger, {"mu": -1}, "mu = -1.0 is not above zero"),
])  # fmt: skip
def test_masses_that_cannot_be_are_refused_in_words(draw, wrong, words):
    with pytest.raises(ValueError, match=words):
        draw(**{"n": 10, "seed": 1} | wrong)

"""Mass functions: their shares and slopes by quadrature, their ranges."""

import math

import numpy as np
import pytest

from distributions import follow, radii
from grape6py import kroupa, maschberger, plummer, salpeter

N = 20000


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
    assert are_of(masses, function, lowest, highest)


@pytest.mark.parametrize("slope", [-1, 0, 1, 1 + 1e-9, 2, 3.5])
def test_a_power_law_may_have_any_slope(slope):
    masses = salpeter(N, 2, 0.5, 8, slope=slope)
    assert are_of(masses, lambda m: m**-slope, 0.5, 8)


def test_masses_do_not_depend_on_the_radii_of_a_model_of_the_same_seed():
    values = kroupa(N, 5), radii(plummer(N, seed=5))
    ranks = [np.argsort(np.argsort(each)) for each in values]
    assert abs(np.corrcoef(ranks)[0, 1]) < 4 / math.sqrt(N)

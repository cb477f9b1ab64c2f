"""King's spheres: lowered Maxwellians, which end at a tidal radius; in Henon units.

Within, lengths are in King's core radius, velocities in his sigma, and G = 1, so that mass
inside r is -r^2 dW/dr with W the depth of the potential below that of the edge. Sums that have
only positive terms stand for exp and erf: they lose no digits at the edge, and give the same
bits everywhere (sampling.py).
"""

import math
from typing import NamedTuple

import numpy as np

from grape6py._arrays import validate
from grape6py._arrays.kinds import Bools, Floats, Int64s, Seed
from grape6py.errors import ArgumentError
from grape6py.in_units import taken
from grape6py.models import sampling
from grape6py.models.sampling import Particles, check_size, directions, generator, sphere
from grape6py.units import Units

_FIRST_RADIUS = 1e-3  # in core radii; within it the density is constant
_STEP = 1 / 128  # of the integration, as a share of the radius


class KingProfile(NamedTuple):
    """A King model as a function of radius, in Henon units.

    Attributes
    ----------
    radius : ndarray, shape (k,)
        From 0 to the tidal radius.
    inside : ndarray, shape (k,)
        Mass within it, from 0 to 1.
    depth : ndarray, shape (k,)
        Half the square of the speed with which a body just reaches the tidal radius.
    core_radius : float
        King's r_c, 3 sigma / sqrt(4 pi G rho(0)).
    sigma : float
        His parameter of velocity: depth[0] is w0 sigma^2.
    """

    radius: Floats
    inside: Floats
    depth: Floats
    core_radius: float
    sigma: float


@taken()
def king(
    n: int, w0: float, seed: Seed = None, *, rescale: bool = False, units: Units | None = None
) -> Particles:
    """Draw a King model of n equal masses.

    It gives what :func:`plummer` does, and has the same errors for parameters out of range.

    Parameters
    ----------
    w0 : float
        Central depth of the potential in units of sigma^2, from 1 to 12.
    n, seed, rescale, units
        As in :func:`plummer`.

    Notes
    -----
    King 1966, AJ 71, 64; Binney & Tremaine 2008, section 4.3.3c.
    """
    n = check_size(n, rescale)
    profile = king_profile(w0)
    random = generator(seed)
    radius = sampling.interpolated(random.random(n), profile.inside, profile.radius)
    depth = sampling.interpolated(radius, profile.radius, profile.depth)
    speed = profile.sigma * _speeds(random, depth / (profile.sigma * profile.sigma))
    pos = directions(random, n) * radius[:, None]
    return sphere(pos, directions(random, n) * speed[:, None], rescale)


def king_profile(w0: float) -> KingProfile:
    """The sphere that :func:`king` draws from, by Poisson's equation."""
    w0 = validate.number("w0", w0)
    if not 1 <= w0 <= 12:
        raise ArgumentError(f"w0 = {w0} is not between 1 and 12")
    radius, mass, depth = np.array(_integrated(w0)).T
    total, edge = mass[-1], radius[-1]
    well = depth + total / edge
    binding = 0.5 * math.fsum(0.5 * (well[1:] + well[:-1]) * np.diff(mass))
    length = total * total / (2 * binding)  # the virial radius is the unit
    speed2 = total / length
    return KingProfile(
        radius / length, mass / total, depth / speed2, 1 / length, 1 / math.sqrt(speed2)
    )


def _integrated(w0: float) -> list[tuple[float, float, float]]:
    """Rows of radius, mass inside and depth, from the centre to the edge, by Runge and Kutta."""
    centre = _density(w0)

    def slopes(r: float, mass: float, depth: float) -> tuple[float, float]:
        return 9 * r * r * _density(depth) / centre, -mass / (r * r)

    r = _FIRST_RADIUS
    mass, depth = 3 * r * r * r, w0 - 1.5 * r * r
    rows = [(0.0, 0.0, w0)]
    while depth > 0:
        rows.append((r, mass, depth))
        h = r * _STEP
        m1, d1 = slopes(r, mass, depth)
        m2, d2 = slopes(r + h / 2, mass + h / 2 * m1, depth + h / 2 * d1)
        m3, d3 = slopes(r + h / 2, mass + h / 2 * m2, depth + h / 2 * d2)
        m4, d4 = slopes(r + h, mass + h * m3, depth + h * d3)
        r, mass = r + h, mass + h / 6 * (m1 + 2 * m2 + 2 * m3 + m4)
        depth += h / 6 * (d1 + 2 * d2 + 2 * d3 + d4)
    # So near the edge there is hardly mass any more, and the potential is that of a point.
    last, _, above = rows[-1]
    return [*rows, (1 / (1 / last - above / mass), mass, 0.0)]


def _density(depth: float) -> float:
    """Proportional to exp(W) erf(sqrt(W)) - sqrt(4 W / pi) (1 + 2 W / 3); 0 outside."""
    if depth <= 0:
        return 0.0
    total, term, k = 0.0, depth * depth * math.sqrt(depth), 2
    while term > 1e-17 * total:
        total += term
        term *= 2 * depth / (2 * k + 3)
        k += 1
    return total


def _speeds(random: np.random.Generator, depth: Floats) -> Floats:
    """Draw speeds distributed as v^2 (exp(W - v^2 / 2) - 1) below sqrt(2 W), by rejection."""
    # Bounds of x (exp(W (1 - x)) - 1) for 0 <= x <= 1: from exp's convexity, and of its maximum.
    above = _exp_minus_one(depth)
    bound = np.minimum(above / 4, (above + 1) / (math.e * np.maximum(depth, 1)))

    def draw(rows: Int64s) -> tuple[Floats, Bools]:
        share, height = random.random(len(rows)), random.random(len(rows))
        x = share * share
        return share, height * bound[rows] <= x * _exp_minus_one(depth[rows] * (1 - x))

    return np.sqrt(2 * depth) * sampling.fill_each(draw, len(depth))


def _exp_minus_one(x: Floats) -> Floats:
    """exp(x) - 1 for 0 <= x <= 12, by its series for x/16 and four doublings."""
    small = x / 16
    total = np.ones_like(small)
    for k in range(16, 1, -1):
        total = 1 + total * small / k
    total = total * small
    for _ in range(4):
        total = total * (total + 2)
    return total

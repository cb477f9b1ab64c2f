"""Initial models in Henon units (G = M = 1, E = -1/4): Plummer spheres and two bodies.

The same seed gives the same bits on every machine: only the generator's uniform numbers
and operations that IEEE 754 rounds correctly (+ - * / and the square root) are used, and
no sine, cosine or power, whose last bits differ between processors.
"""

import math
from typing import NamedTuple

import numpy as np

from grape6py import reference


class Particles(NamedTuple):
    """Masses, positions and velocities of n bodies.

    Attributes
    ----------
    mass : ndarray of float64, shape (n,)
    pos, vel : ndarray of float64, shape (n, 3)
    """

    mass: np.ndarray
    pos: np.ndarray
    vel: np.ndarray


def plummer(n, seed=None, mass_fraction=0.999, *, rescale=False):
    """Draw a Plummer sphere of n equal masses.

    Parameters
    ----------
    n : int
        Number of bodies, at least 1.
    seed : int or None
        Seed of ``numpy.random.PCG64``; None for a different model each time.
    mass_fraction : float
        No body lies outside the sphere that holds this fraction of the untruncated
        mass, between 0 and 1 - 1e-9; 0.999 ends at a radius of 22.8.
    rescale : bool
        Rescale positions and velocities so that E = -1/4 and kinetic = 1/4 hold to
        rounding; without, they hold as n grows, as in the paper. Costs a direct sum.

    Returns
    -------
    Particles
        Total mass 1, centre of mass at rest in the origin.

    Raises
    ------
    ValueError
        If n or mass_fraction is out of range, or n is 1 with `rescale`.

    Notes
    -----
    Aarseth, Henon & Wielen 1974, A&A 37, 183, appendix.
    """
    if n < 1:
        raise ValueError(f"n = {n}: a model needs at least one body")
    if not 0 < mass_fraction <= 1 - 1e-9:
        raise ValueError(f"mass_fraction = {mass_fraction} is not between 0 and 1 - 1e-9")
    if rescale and n < 2:
        raise ValueError("rescale needs at least two bodies, one has no energy")
    random = np.random.Generator(np.random.PCG64(seed))

    # Mass inside r is (1 + r^-2)^(-3/2) in the model's natural unit of length.
    inside = mass_fraction * (1 - random.random(n))
    root = _cube_root(inside)
    root *= root
    radius = np.sqrt(root / (1 - root))
    escape = np.sqrt(2 / np.sqrt(1 + radius * radius))
    speed = escape * _speed_fraction(random, n)

    unit = 3 * math.pi / 16  # of length, in Henon units; of velocity its inverse root
    mass = np.full(n, 1 / n)
    pos = _directions(random, n) * (unit * radius)[:, None]
    vel = _directions(random, n) * (speed / math.sqrt(unit))[:, None]
    particles = _centred(mass, pos, vel)
    return _rescaled(particles) if rescale else particles


def two_body(eccentricity=0.0, mass_ratio=1.0, semi_major_axis=1.0, *, apocentre=False):
    """Two bodies on a Kepler ellipse of total mass 1.

    The first body is the heavier one if mass_ratio < 1. The orbit lies in the x-y plane,
    is traversed counterclockwise in 2 pi a^(3/2), and has the energy -m1 m2 / (2 a).

    Parameters
    ----------
    eccentricity : float
        0 <= eccentricity < 1.
    mass_ratio : float
        Mass of the second body over that of the first, > 0.
    semi_major_axis : float
        Of the relative orbit, > 0.
    apocentre : bool
        Start at the largest distance, instead of the smallest.

    Returns
    -------
    Particles
        Centre of mass at rest in the origin, the second body on the positive x axis.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    Murray & Dermott, "Solar System Dynamics" (1999), equations 2.20 and 2.34.
    """
    if not 0 <= eccentricity < 1:
        raise ValueError(f"eccentricity = {eccentricity} is not in [0, 1)")
    if not 0 < mass_ratio < math.inf:
        raise ValueError(f"mass_ratio = {mass_ratio} is not a positive number")
    if not 0 < semi_major_axis < math.inf:
        raise ValueError(f"semi_major_axis = {semi_major_axis} is not a positive number")
    end = eccentricity if apocentre else -eccentricity
    separation = semi_major_axis * (1 + end)
    speed = math.sqrt((1 - end) / ((1 + end) * semi_major_axis))
    first, second = 1 / (1 + mass_ratio), mass_ratio / (1 + mass_ratio)
    share = np.array([-second, first])
    pos, vel = np.zeros((2, 3)), np.zeros((2, 3))
    pos[:, 0] = share * separation
    vel[:, 1] = share * speed
    return Particles(np.array([first, second]), pos, vel)


def _cube_root(x):
    """Cube root of x > 0 by Newton steps, to a unit in the last place or so."""
    fraction, exponent = np.frexp(x)
    third = -(-exponent // 3)
    fraction = np.ldexp(fraction, exponent - 3 * third)  # in [1/8, 1)
    y = 0.5 + 0.5 * fraction
    for _ in range(6):
        y -= (y * y * y - fraction) / (3 * y * y)
    return np.ldexp(y, third)


def _speed_fraction(random, n):
    """Draw n speeds over escape speed, distributed as q^2 (1 - q^2)^(7/2), by rejection."""

    def draw(count):
        q, height = random.random(count), 0.1 * random.random(count)
        rest = 1 - q * q
        return q[height < q * q * rest * rest * rest * np.sqrt(rest)]

    return _fill(draw, n)


def _directions(random, n):
    """Draw n unit vectors (Marsaglia 1972, Ann. Math. Stat. 43, 645)."""

    def draw(count):
        u = 2 * random.random((count, 2)) - 1
        s = u[:, 0] * u[:, 0] + u[:, 1] * u[:, 1]
        u, s = u[s < 1], s[s < 1]
        return np.column_stack([2 * u * np.sqrt(1 - s)[:, None], 1 - 2 * s])

    return _fill(draw, n)


def _fill(draw, n):
    """Call draw(count), which gives up to count values, until there are n."""
    parts, have = [], 0
    while have < n:
        parts.append(draw(n - have))
        have += len(parts[-1])
    return np.concatenate(parts)


def _centred(mass, pos, vel):
    total = math.fsum(mass)
    for vectors in (pos, vel):
        for k in range(3):  # fsum: rounded once, so equal bits everywhere
            vectors[:, k] -= math.fsum(mass * vectors[:, k]) / total
    return Particles(mass, pos, vel)


def _rescaled(particles):
    """Scale to kinetic energy 1/4 and potential energy -1/2."""
    mass, pos, vel = particles
    energy = reference.energy(mass, pos, vel)
    return Particles(mass, pos * (-2 * energy.potential), vel * math.sqrt(0.25 / energy.kinetic))

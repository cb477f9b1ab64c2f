"""Plummer's sphere and the uniform one, in Henon units (G = M = 1, E = -1/4)."""

import math

import numpy as np

from grape6py._arrays.kinds import Floats, Seed
from grape6py.errors import ArgumentError
from grape6py.in_units import taken
from grape6py.models import sampling
from grape6py.models.sampling import Particles, check_size, directions, generator, sphere
from grape6py.units import Units


@taken()
def plummer(
    n: int,
    seed: Seed = None,
    mass_fraction: float = 0.999,
    *,
    rescale: bool = False,
    units: Units | None = None,
) -> Particles:
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
    units : Units, optional
        What the model's units of mass and length are: bodies are then given as quantities.

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
    n = check_size(n, rescale)
    if not 0 < mass_fraction <= 1 - 1e-9:
        raise ArgumentError(f"mass_fraction = {mass_fraction} is not between 0 and 1 - 1e-9")
    random = generator(seed)

    # Mass inside r is (1 + r^-2)^(-3/2) in the model's natural unit of length.
    root = sampling.cube_root(mass_fraction * (1 - random.random(n)))
    root *= root
    radius = np.sqrt(root / (1 - root))
    escape = np.sqrt(2 / np.sqrt(1 + radius * radius))

    def shares(count: int) -> Floats:
        """Speeds over that of escape, distributed as q^2 (1 - q^2)^(7/2), by rejection."""
        q, height = random.random(count), 0.1 * random.random(count)
        rest = 1 - q * q
        return q[height < q * q * rest * rest * rest * np.sqrt(rest)]

    speed = escape * sampling.fill(shares, n)

    unit = 3 * math.pi / 16  # of length, in Henon units; of velocity its inverse root
    pos = directions(random, n) * (unit * radius)[:, None]
    return sphere(pos, directions(random, n) * (speed / math.sqrt(unit))[:, None], rescale)


@taken()
def uniform(
    n: int,
    seed: Seed = None,
    virial_ratio: float = 0.5,
    *,
    rescale: bool = False,
    units: Units | None = None,
) -> Particles:
    """Draw a uniform sphere of n equal masses, at rest or with random velocities.

    Positions fill a ball evenly, and so do velocities: no body escapes. Only the sphere as a
    whole is in equilibrium if the virial ratio is 1/2, not each of its shells. The errors are those
    of :func:`plummer` for parameters out of range.

    Parameters
    ----------
    n, seed, units
        As in :func:`plummer`.
    virial_ratio : float
        Kinetic energy over minus the potential one, 0 <= virial_ratio < 1: 1/2 in equilibrium,
        0 for a cold sphere, which collapses in pi/2 sqrt(R^3 / 2), 4.13 time units.
    rescale : bool
        Rescale positions and velocities so that both energies hold to rounding; without, they
        hold as n grows. Costs a direct sum.

    Returns
    -------
    Particles
        Total mass 1, centre of mass at rest in the origin, E = -1/4, radius
        R = 12/5 (1 - virial_ratio).

    Notes
    -----
    The potential energy is -3/5 M^2 / R (Binney & Tremaine 2008, section 2.2.2), and the largest
    speed is sqrt(virial_ratio) times that of escape from the surface.
    """
    n = check_size(n, rescale)
    if not 0 <= virial_ratio < 1:
        raise ArgumentError(f"virial_ratio = {virial_ratio} is not in [0, 1)")
    random = generator(seed)
    radius = 2.4 * (1 - virial_ratio)
    speed = math.sqrt(2 * virial_ratio / radius)
    pos, vel = (
        size * (directions(random, n) * sampling.cube_root(1 - random.random(n))[:, None])
        for size in (radius, speed)
    )
    return sphere(pos, vel, rescale, virial_ratio)

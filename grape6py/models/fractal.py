"""A fractal star cluster: sub-structure in positions and velocities, in Henon units."""

import numpy as np

from grape6py._arrays import validate
from grape6py._arrays.kinds import Floats, Seed
from grape6py.errors import ArgumentError
from grape6py.in_units import taken
from grape6py.models.sampling import Particles, check_size, generator, rescaled, sphere
from grape6py.units import Units

_CORNERS = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
_SPARE = 2  # the last generation has so many members in the sphere for each body that is taken
_SHIFT = 0.1  # most that a member is moved along each axis, in sides of its cube
_REACH = 1.1  # farthest that descendants are from a member, in sides: sqrt(3) (1/2 + _SHIFT)


@taken()
def fractal(
    n: int,
    dimension: float = 1.6,
    seed: Seed = None,
    virial_ratio: float = 0.5,
    *,
    units: Units | None = None,
) -> Particles:
    """Draw a fractal cluster of n equal masses.

    Parameters
    ----------
    n : int
        Number of bodies, at least 2.
    dimension : float
        Fractal dimension, from 1 to 3: 1.6 is much sub-structure, 3 a homogeneous sphere.
    virial_ratio : float
        Kinetic energy over minus the potential one, 0 <= virial_ratio < 1: 1/2 in equilibrium.
    seed, units
        As in :func:`plummer`.

    Returns
    -------
    Particles
        Total mass 1, centre of mass at rest in the origin; E = -1/4 and the virial ratio hold to
        rounding, by a direct sum.

    Raises
    ------
    ArgumentError
        (a ValueError) if a parameter is out of range.

    Notes
    -----
    Goodwin & Whitworth 2004 (A&A 413, 929), section 2. A cube is divided into 8; each of these
    has a member in its middle with the probability 2^(dimension - 3), is moved a little, and is
    divided in turn. Of the last generation, n in the sphere within the first cube are taken. A
    member inherits its parent's velocity, and adds a normally distributed one. That has the
    dispersion L^((dimension - 1) / 2) in cubes of the side L, as sqrt(G M / L) has with the mass
    in a cube: each group of siblings is near virial equilibrium, and they leave their parent's
    velocity as their mean.
    """
    n = check_size(n, False)
    if n < 2:
        raise ArgumentError("n = 1: a fractal needs two bodies, one has no energy")
    if not 1 <= validate.number("dimension", dimension) <= 3:
        raise ArgumentError(f"dimension = {dimension} is not between 1 and 3")
    if not 0 <= validate.number("virial_ratio", virial_ratio) < 1:
        raise ArgumentError(f"virial_ratio = {virial_ratio} is not in [0, 1)")
    random = generator(seed)
    members = None
    while members is None:
        members = _members(random, _SPARE * n, float(dimension))
    pos, vel = members
    taken = random.permutation(len(pos))[:n]
    return rescaled(sphere(pos[taken], vel[taken], False), virial_ratio)


def _members(
    random: np.random.Generator, enough: int, dimension: float
) -> tuple[Floats, Floats] | None:
    """Positions and velocities in the unit sphere; None if a generation had no members there."""
    pos, vel, side = np.zeros((1, 3)), np.zeros((1, 3)), 2.0
    chance = 2 ** (dimension - 3)
    while True:
        side /= 2
        parent, corner = np.nonzero(random.random((len(pos), 8)) < chance)
        if not len(parent):
            return None
        moved = _CORNERS[corner] + _SHIFT * (2 * random.random((len(parent), 3)) - 1)
        added = random.standard_normal((len(parent), 3))
        siblings = np.bincount(parent)[parent]
        for k in range(3):
            added[:, k] -= np.bincount(parent, added[:, k])[parent] / siblings
        pos = pos[parent] + side * moved
        vel = vel[parent] + side ** ((dimension - 1) / 2) * added
        placed = pos + side * (random.random(pos.shape) - 0.5)  # anywhere in the cube, at last
        inside = (placed**2).sum(axis=1) <= 1
        if np.count_nonzero(inside) >= enough:
            return placed[inside], vel[inside]
        near = (pos**2).sum(axis=1) <= (1 + _REACH * side) ** 2
        pos, vel = pos[near], vel[near]

"""What one asks of a star cluster: energy, momenta, virial ratio, centres, Lagrangian radii.

All in double precision with sums rounded once (``math.fsum``), in the caller's units with
G = 1. Arrays: mass (n,), pos and vel (n, 3). With `ranks` they are those of this rank, and what
is found is that of all ranks' particles, with the same bits on any number of them.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from grape6py._arrays import validate
from grape6py._arrays.kinds import Floats
from grape6py.errors import ArgumentError
from grape6py.forces.energies import Energy as Energy
from grape6py.forces.energies import energy as energy
from grape6py.forces.energies import potential as potential
from grape6py.forces.energies import summed_potential as summed_potential
from grape6py.ranks.one_rank import ONE
from grape6py.ranks.ranks import Ranks

FRACTIONS = (0.1, 0.5, 0.9)

_CUTS = 64  # of the bits of radii, at a time
_UNITS = 2.0**60  # of mass, in which shares of it are added without rounding


def momentum(mass: ArrayLike, vel: ArrayLike, *, ranks: Ranks = ONE) -> Floats:
    """Total momentum; shape (3,)."""
    vel = validate.any_floats("vel", vel, (None, 3))
    mass = validate.any_floats("mass", mass, (len(vel),))
    return np.array([ranks.total(mass * component) for component in vel.T])


def angular_momentum(
    mass: ArrayLike, pos: ArrayLike, vel: ArrayLike, *, ranks: Ranks = ONE
) -> Floats:
    """Total angular momentum about the origin, the sum of m r x v; shape (3,)."""
    pos = validate.any_floats("pos", pos, (None, 3))
    vel = validate.any_floats("vel", vel, (len(pos), 3))
    mass = validate.any_floats("mass", mass, (len(pos),))
    return momentum(mass, np.cross(pos, vel), ranks=ranks)


def centre_of_mass(mass: ArrayLike, pos: ArrayLike, *, ranks: Ranks = ONE) -> Floats:
    """Centre of mass; shape (3,). NaN without mass."""
    pos = validate.any_floats("pos", pos, (None, 3))
    mass = validate.any_floats("mass", mass, (len(pos),))
    all_of_it = ranks.total(mass)
    if not all_of_it:
        return np.full(3, math.nan)
    return momentum(mass, pos, ranks=ranks) / all_of_it


def density_centre(
    mass: ArrayLike, pos: ArrayLike, neighbours: int = 6, *, ranks: Ranks = ONE
) -> Floats:
    """Mean place of the particles, weighted with the density about each; shape (3,).

    Casertano & Hut 1985, ApJ 298, 80, section II: the density is that of the mass of the nearest
    particles but the last, in the sphere up to that one. The centre of mass if there are no more
    particles than `neighbours`.
    """
    from grape6py.forces.tree import Tree

    pos = validate.floats("pos", pos, (None, 3))
    mass = validate.floats("mass", mass, (len(pos),))
    if validate.integer("neighbours", neighbours) < 2:
        raise ArgumentError(f"neighbours = {neighbours} is not at least 2")
    with Tree(mass, pos, comm=ranks.comm) as tree:
        if len(tree) <= neighbours:
            return centre_of_mass(mass, pos, ranks=ranks)
        index, distance = tree.nearest(neighbours)
    near = index[:, :-1].reshape(-1).astype(np.int64)
    masses = ranks.looked_up(mass, near)
    with np.errstate(divide="ignore"):
        density = masses.reshape(len(pos), -1).sum(axis=1) / distance[:, -1] ** 3
    with ranks.agreement("density_centre()") as agreement:
        is_bad = agreement.maximum(not np.isfinite(density).all())
        is_there = agreement.maximum(density.any())
    weight = mass if is_bad.value or not is_there.value else density
    return centre_of_mass(weight, pos, ranks=ranks)


def lagrangian_radii(
    mass: ArrayLike,
    pos: ArrayLike,
    fractions: ArrayLike = FRACTIONS,
    centre: ArrayLike | None = None,
    *,
    ranks: Ranks = ONE,
) -> Floats:
    """Radii of the spheres that hold given fractions of the mass.

    Parameters
    ----------
    mass, pos : array_like
    fractions : sequence of float
        Each above 0 and at most 1.
    centre : array_like, shape (3,), optional
        Centre of the spheres; the centre of mass by default.

    Returns
    -------
    ndarray, shape (len(fractions),)
        The distance of the first particle with which the mass inside reaches the fraction
        (Spitzer & Hart 1971, ApJ 164, 399). NaN without particles or mass.

    Raises
    ------
    ArgumentError
        (a ValueError) for a fraction out of range.
    """
    fractions = validate.reals("fractions", fractions)
    if not ((fractions > 0) & (fractions <= 1)).all():
        raise ArgumentError(f"fractions = {fractions} are not all above 0 and at most 1")
    pos = validate.any_floats("pos", pos, (None, 3))
    mass = validate.any_floats("mass", mass, (len(pos),))
    size = ranks.total(np.abs(mass))
    if not size:
        return np.full(fractions.shape, math.nan)
    if centre is None:
        centre = centre_of_mass(mass, pos, ranks=ranks)
    else:
        centre = validate.any_floats("centre", centre, (3,))
    units = np.rint(mass / size * _UNITS).astype(np.int64)
    # The smallest radii within which there are these shares of the units are found by cutting the
    # bits of a radius, which are in its order, again and again.
    bits = np.sqrt(((pos - centre) ** 2).sum(axis=1)).view(np.int64)
    order = np.argsort(bits, kind="stable")
    bits, inside = bits[order], np.concatenate([[0], np.cumsum(units[order])])
    largest = ranks.largest(bits[-1:].max(initial=0, keepdims=True))[0]
    low, high = (np.full(fractions.size, end, np.int64) for end in (0, largest))
    # Masses are rounded: that must not push a fraction of 1 beyond the last particle.
    wanted = fractions.reshape(-1) * float(ranks.summed(inside[-1:])[0]) * (1 - 1e-14)
    while (low < high).any():
        step = (high - low) // _CUTS + 1
        ends = np.minimum(low - 1 + step * np.arange(1, _CUTS + 1)[:, None], high)
        is_enough = ranks.summed(inside[np.searchsorted(bits, ends, side="right")]) >= wanted
        high = np.take_along_axis(ends, is_enough.argmax(axis=0)[None], 0)[0]
        low = np.maximum(low, high - step + 1)
    return high.view(np.float64).reshape(fractions.shape)

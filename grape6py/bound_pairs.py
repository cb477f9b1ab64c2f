"""The search for binaries in a system of bodies.

In double precision, in the caller's units. Arrays: mass (n,), pos and vel (n, 3).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from grape6py._arrays import ids as numbers
from grape6py._arrays import validate
from grape6py._arrays.kinds import Floats, Int64s
from grape6py.errors import ArgumentError
from grape6py.forces.tree import Tree
from grape6py.in_units import taken


class Binaries(NamedTuple):
    """Binaries, the hardest first; k of them.

    Attributes
    ----------
    first, second : ndarray of int64, shape (k,)
        Ids of the members, the heavier one first.
    semi_major_axis, eccentricity : ndarray, shape (k,)
        Of the orbit that the two would have alone.
    hardness : ndarray, shape (k,)
        Binding energy over the mean kinetic energy; above 1 a binary is hard. Infinite if nothing
        else moves.
    """

    first: Int64s
    second: Int64s
    semi_major_axis: Floats
    eccentricity: Floats
    hardness: Floats


@taken(g_is_one=False)
def binaries(
    mass: ArrayLike,
    pos: ArrayLike,
    vel: ArrayLike,
    eps: float = 0.0,
    *,
    G: float = 1.0,
    ids: ArrayLike | None = None,
) -> Binaries:
    """Find the binaries: bound pairs of bodies that are nearest neighbours of each other.

    Parameters
    ----------
    mass, pos, vel : array_like
        Bodies without mass are left out.
    eps : float
        Softening length.
    G : float
        Constant of gravity in the units of the arrays; 4.30091e-3 for pc, km/s and solar masses.
    ids : array_like of int, shape (n,), optional
        What to name the bodies by; by default their rows, from 0.

    Raises
    ------
    ArgumentError, NotFiniteError
        (ValueErrors) for wrong shapes or values, or negative masses.

    Notes
    -----
    A pair of masses m1 and m2 at the distance r, with the relative velocity v, is bound if
    E = m1 m2 / (m1 + m2) v^2 / 2 - G m1 m2 / sqrt(r^2 + eps^2) is below zero. Then
    a = -G m1 m2 / (2 E), and e^2 = (1 - r / a)^2 + (r.v)^2 / (G (m1 + m2) a): with softening these
    are the elements of the orbit only where r is large against eps.

    The hardness is -E over the mean kinetic energy, (3/2) kT (Heggie 1975, MNRAS 173, 729). That
    is the mean over all bodies with mass, relative to their centre of mass, where each bound pair
    counts as one body of its total mass at its centre of mass.

    Members of hierarchies are found as their innermost pairs.
    """
    mass = validate.floats("mass", mass, (None,))
    n = len(mass)
    pos, vel = validate.floats("pos", pos, (n, 3)), validate.floats("vel", vel, (n, 3))
    eps = validate.number("eps", eps, negative=False)
    G = validate.positive("G", G)
    named = np.arange(n) if ids is None else numbers.shown(numbers.of("ids", ids, n))
    if (mass < 0).any():
        row = int(np.argmax(mass < 0))
        raise ArgumentError(f"mass[{row}] = {mass[row]} is negative")
    heavy = np.flatnonzero(mass)
    mass, pos, vel, named = mass[heavy], pos[heavy], vel[heavy], named[heavy]

    one, two = _mutual(mass, pos)
    apart, motion, both = pos[two] - pos[one], vel[two] - vel[one], mass[one] + mass[two]
    r2 = (apart**2).sum(axis=1)
    with np.errstate(divide="ignore"):  # at one place: infinitely bound
        energy = (motion**2).sum(axis=1) / 2 - G * both / np.sqrt(r2 + eps * eps)  # specific
    bound = (energy < 0) & np.isfinite(energy)
    one, two, apart, motion, both, r2, energy = (
        array[bound] for array in (one, two, apart, motion, both, r2, energy)
    )
    axis = -G * both / (2 * energy)
    e_sine2 = (apart * motion).sum(axis=1) ** 2 / (G * both * axis)
    eccentricity = np.sqrt((1 - np.sqrt(r2) / axis) ** 2 + e_sine2)
    binding = G * mass[one] * mass[two] / (2 * axis)
    mean = _mean_kinetic(mass, vel, one, two)
    with np.errstate(divide="ignore", over="ignore"):
        hardness = binding / mean
    order = np.lexsort((-binding, -hardness))
    found = named[one], named[two], axis, eccentricity, hardness
    return Binaries(*(array[order] for array in found))


def _mutual(mass: Floats, pos: Floats) -> tuple[Int64s, Int64s]:
    """Rows of the pairs of nearest neighbours, the heavier member first."""
    if len(mass) < 2:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    with Tree(mass, pos) as tree:
        nearest = tree.nearest(1).index[:, 0].astype(np.int64)
    row = np.arange(len(mass))
    one = row[(nearest[nearest] == row) & (row < nearest)]
    two = nearest[one]
    swap = mass[two] > mass[one]
    return np.where(swap, two, one), np.where(swap, one, two)


def _mean_kinetic(mass: Floats, vel: Floats, one: Int64s, two: Int64s) -> float:
    """Of bodies about their common centre of mass, where pairs count as one body."""
    if not len(mass):
        return 0.0
    weight, momentum = mass.copy(), mass[:, None] * vel
    weight[one] += mass[two]
    momentum[one] += momentum[two]
    left = np.delete(np.arange(len(mass)), two)
    weight, momentum = weight[left], momentum[left]
    total = math.fsum(weight)
    mean = np.array([math.fsum(component) / total for component in momentum.T])
    speed2 = ((momentum / weight[:, None] - mean) ** 2).sum(axis=1)
    return math.fsum(weight * speed2) / (2 * len(weight))

"""Sums over bodies: momenta, centre of mass, energies."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from grape6py._arrays.kinds import Floats, Untyped
from grape6py.diagnostics.bodies import chosen
from grape6py.errors import ArgumentError
from grape6py.forces.energies import energy
from grape6py.in_units import taken
from grape6py.ranks.one_rank import ONE
from grape6py.ranks.ranks import Ranks


def momentum(
    mass: ArrayLike, vel: ArrayLike, *, where: Untyped = None, ranks: Ranks = ONE
) -> Floats:
    """Total momentum; shape (3,)."""
    mass, vel = chosen(where, mass=mass, vel=vel)
    return np.array([ranks.total(mass * component) for component in vel.T])


@taken(g_is_one=False)
def angular_momentum(
    mass: ArrayLike, pos: ArrayLike, vel: ArrayLike, *, where: Untyped = None, ranks: Ranks = ONE
) -> Floats:
    """Total angular momentum about the origin, the sum of m r x v; shape (3,)."""
    mass, pos, vel = chosen(where, mass=mass, pos=pos, vel=vel)
    return momentum(mass, np.cross(pos, vel), ranks=ranks)


@taken(g_is_one=False)
def centre_of_mass(
    mass: ArrayLike, pos: ArrayLike, *, where: Untyped = None, ranks: Ranks = ONE
) -> Floats:
    """Centre of mass; shape (3,). NaN without mass."""
    mass, pos = chosen(where, mass=mass, pos=pos)
    all_of_it = ranks.total(mass)
    if not all_of_it:
        return np.full(3, math.nan)
    return momentum(mass, pos, ranks=ranks) / all_of_it


center_of_mass = centre_of_mass  # as others spell it


@taken(g_is_one=False)
def move_to_com(
    mass: ArrayLike, pos: ArrayLike, vel: ArrayLike, *, where: Untyped = None, ranks: Ranks = ONE
) -> tuple[Floats, Floats, Floats]:
    """Mass, pos and vel, shifted so that the centre of mass, of those that `where` says, rests in
    the origin; without mass as they are."""
    mass, pos, vel = chosen(None, mass=mass, pos=pos, vel=vel)
    centres = (centre_of_mass(mass, array, where=where, ranks=ranks) for array in (pos, vel))
    shifts = [np.where(np.isnan(centre), 0.0, centre) for centre in centres]
    return mass, pos - shifts[0], vel - shifts[1]


def kinetic_energy(
    mass: ArrayLike, vel: ArrayLike, *, where: Untyped = None, ranks: Ranks = ONE
) -> float:
    """Sum of m v^2 / 2."""
    mass, vel = chosen(where, mass=mass, vel=vel)
    return energy(mass, vel, vel, pot=np.zeros(len(mass)), ranks=ranks).kinetic


@taken(g_is_one=False)
def total_energy(
    mass: ArrayLike,
    pos: ArrayLike,
    vel: ArrayLike,
    eps: float = 0.0,
    *,
    G: float = 1.0,
    external: float = 0.0,
    where: Untyped = None,
) -> float:
    """Kinetic energy and potential one, the latter summed directly in mode double, and what all
    bodies have in a field from outside."""
    if external and where is not None:
        raise ArgumentError(
            "what some of the bodies have in the field is not known: leave out where"
        )
    mass, pos, vel = chosen(where, mass=mass, pos=pos, vel=vel)
    return energy(mass, pos, vel, eps, G=G, external=external).total


@taken(g_is_one=False)
def virial_ratio(
    mass: ArrayLike,
    pos: ArrayLike,
    vel: ArrayLike,
    eps: float = 0.0,
    *,
    G: float = 1.0,
    where: Untyped = None,
) -> float:
    """Kinetic energy over minus the potential one, 1/2 in equilibrium; NaN without mass."""
    mass, pos, vel = chosen(where, mass=mass, pos=pos, vel=vel)
    return energy(mass, pos, vel, eps, G=G).virial_ratio

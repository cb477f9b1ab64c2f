"""The times on which a cluster evolves."""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from grape6py._arrays import validate
from grape6py._arrays.kinds import Untyped
from grape6py.diagnostics.bodies import chosen
from grape6py.diagnostics.bound import tree_potential
from grape6py.diagnostics.radii import half_mass_radius
from grape6py.errors import ArgumentError
from grape6py.forces.energies import energy
from grape6py.in_units import taken
from grape6py.ranks.one_rank import ONE
from grape6py.ranks.ranks import Ranks

COULOMB = 0.11  # Lambda = COULOMB N


@taken(g_is_one=False)
def crossing_time(
    mass: ArrayLike,
    pos: ArrayLike,
    vel: ArrayLike,
    eps: float = 0.0,
    *,
    G: float = 1.0,
    where: Untyped = None,
    ranks: Ranks = ONE,
) -> float:
    """G M^(5/2) / (2 |E|)^(3/2) of a system with the energy E, about its centre of mass.

    2 sqrt(2) in Henon units (Heggie & Mathieu 1986, in The Use of Supercomputers in Stellar
    Dynamics, 233). The potential is a tree's.

    Raises
    ------
    ArgumentError
        (a ValueError) if the energy is not below zero, or the mass not above it.
    """
    mass, pos, vel = chosen(where, mass=mass, pos=pos, vel=vel)
    eps, G = validate.number("eps", eps, negative=False), validate.positive("G", G)
    whole = ranks.total(mass)
    motion = [ranks.total(mass * v) / (whole or 1.0) for v in vel.T]
    pot = G * tree_potential(mass, pos, eps, ranks)
    total = energy(mass, pos, vel - motion, pot=pot, ranks=ranks).total
    if not (total < 0 and whole > 0):
        raise ArgumentError(
            f"mass {whole:.4g}, energy about the centre of mass {total:.4g}: what is not bound has "
            "no crossing time; choose bound bodies with where="
        )
    return float(G * whole**2.5 / (-2 * total) ** 1.5)


@taken(g_is_one=False)
def relaxation_time(
    mass: ArrayLike,
    pos: ArrayLike,
    *,
    coulomb: float = COULOMB,
    centre: ArrayLike | str | None = "density",
    G: float = 1.0,
    where: Untyped = None,
    ranks: Ranks = ONE,
) -> float:
    """Relaxation time at the half-mass radius r.

    0.138 N^(1/2) r^(3/2) / (m^(1/2) G^(1/2) ln(c N)), with the mean mass m (Spitzer 1987, Dynamical
    Evolution of Globular Clusters, equation 2-63).

    Parameters
    ----------
    mass, pos : array_like
        Bodies without mass do not count.
    coulomb : float
        The factor c: 0.11 of equal masses (Giersz & Heggie 1994, MNRAS 268, 257), some 0.02 of a
        mass function (Giersz & Heggie 1996, MNRAS 279, 1037), 0.4 in Spitzer's book.
    centre : array_like, shape (3,), or "density" or "mass"
        As in :func:`half_mass_radius`.
    G : float
        Constant of gravity in the units of the arrays.

    Raises
    ------
    ArgumentError
        (a ValueError) if c N is not above 1, or for bodies without mass.
    """
    mass, pos = chosen(where, mass=mass, pos=pos)
    coulomb, G = validate.positive("coulomb", coulomb), validate.positive("G", G)
    whole, n = ranks.total(mass), ranks.total((mass != 0).astype(float))  # others do not act
    if not (coulomb * n > 1 and whole > 0):
        raise ArgumentError(
            f"{n:.0f} bodies of mass {whole:.4g} with coulomb = {coulomb}: a relaxation time needs "
            f"mass, and more than {1 / coulomb:.0f} bodies"
        )
    radius = half_mass_radius(mass, pos, centre, ranks=ranks)
    return float(0.138 * math.sqrt(n * radius**3 / (G * whole / n)) / math.log(coulomb * n))

"""Energy and potential of particles, summed directly in mode double; rounded once."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from grape6py._arrays import validate
from grape6py._arrays.kinds import Floats, Numbers, Untyped
from grape6py._lib import memory_space
from grape6py.forces.grape6 import Grape6
from grape6py.in_units import taken
from grape6py.ranks.one_rank import ONE, ranks_of
from grape6py.ranks.ranks import Ranks
from grape6py.ranks.share import Share


class Energy(NamedTuple):
    """Energy of a system.

    Attributes
    ----------
    kinetic, potential : float
        Sums of m v^2 / 2 and of m pot / 2, over all particles.
    external : float
        Sum of m pot over all particles, in a field from outside.
    """

    kinetic: float
    potential: float
    external: float = 0.0

    @property
    def total(self) -> float:
        """Their sum."""
        return self.kinetic + self.potential + self.external

    @property
    def virial_ratio(self) -> float:
        """Kinetic energy over minus the potential one: 1/2 in equilibrium; NaN without mass."""
        none = 0 * self.potential  # which is a quantity if this is one
        return float(self.kinetic / -self.potential) if self.potential != none else math.nan


def potential(
    mass: Numbers,
    pos: Numbers,
    eps: float = 0.0,
    *,
    G: float = 1.0,
    backend: str = "auto",
    threads: int | None = None,
    comm: Untyped = None,
) -> Floats:
    """Potential at each particle, summed in mode double; shape (n,).

    With `comm`, a communicator of mpi4py, all ranks give the same particles, and share the sums.

    Raises
    ------
    Grape6Error
        As :meth:`Grape6.set_particles` and :meth:`Grape6.forces` do.
    """
    ranks, options = ranks_of(comm), {"backend": backend, "threads": threads}
    G = validate.positive("G", G)
    if ranks.size == 1:
        return G * summed_potential(mass, pos, eps, comm=comm, **options)
    with ranks.agreement("potential()") as agreement:
        validate.order("potential(mass, pos)", mass, pos)
        place = memory_space.for_host({"mass": mass, "pos": pos})
        pos = place.floats("pos", pos, (None, 3))
        n = len(pos)
        mass = place.floats("mass", mass, (n,))
        agreement.same_contents("the particles", mass, pos)
    first, end = Share(n, ranks.size).of(ranks.rank)
    pot = summed_potential(mass[first:end], pos[first:end], eps, comm=comm, **options)
    return G * np.concatenate(ranks.gathered(pot))


def summed_potential(mass: Numbers, pos: Numbers, eps: float, **options: Untyped) -> Floats:
    """Potential at each particle; with `comm` at this rank's own ones, of those of all ranks."""
    with Grape6(precision="double", jerk=False, **options) as grape:
        grape.set_particles(mass, pos)
        return grape.forces(eps=eps).pot


@taken(g_is_one=False)
def energy(
    mass: ArrayLike,
    pos: ArrayLike,
    vel: ArrayLike,
    eps: float = 0.0,
    *,
    G: float = 1.0,
    pot: ArrayLike | None = None,
    external: float = 0.0,
    backend: str = "auto",
    threads: int | None = None,
    ranks: Ranks = ONE,
) -> Energy:
    """Energy of a system, its potential in mode double unless `pot` is given.

    Parameters
    ----------
    mass, pos, vel : array_like
    eps : float
        Softening length.
    G : float
        Constant of gravity in the units of the arrays.
    pot : array_like, shape (n,), optional
        Potential at each particle; with `ranks` it must be given.
    external : float
        What the particles have in a field from outside.

    Returns
    -------
    Energy
    """
    if pot is None:
        pot = potential(mass, pos, eps, G=G, backend=backend, threads=threads)
    vel = validate.any_floats("vel", vel, (None, 3))
    mass = validate.any_floats("mass", mass, (len(vel),))
    pot = validate.any_floats("pot", pot, (len(vel),))
    speed2 = (vel**2).sum(axis=1)
    return Energy(0.5 * ranks.total(mass * speed2), 0.5 * ranks.total(mass * pot), external)

"""Which bodies a cluster holds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from grape6py._arrays import validate
from grape6py._arrays.kinds import Bools, Floats, Untyped
from grape6py.diagnostics.bodies import chosen
from grape6py.diagnostics.sums import centre_of_mass
from grape6py.in_units import taken
from grape6py.ranks.one_rank import ONE
from grape6py.ranks.ranks import Ranks

ACCURACY = 1e-4  # of the tree's forces: potentials are better


class Bound(NamedTuple):
    """The bound bodies of a system.

    Attributes
    ----------
    mass : float
    number : int
    is_bound : ndarray of bool, shape (n,)
        Of each body that was asked about.
    """

    mass: float
    number: int
    is_bound: Bools


@taken(g_is_one=False)
def bound(
    mass: ArrayLike,
    pos: ArrayLike,
    vel: ArrayLike,
    eps: float = 0.0,
    *,
    G: float = 1.0,
    where: Untyped = None,
    ranks: Ranks = ONE,
) -> Bound:
    """The bodies whose energy in the potential of the bound ones is below zero.

    Parameters
    ----------
    mass, pos, vel, eps, G
        As in :func:`energy`.

    Notes
    -----
    From all bodies on, those are taken away, again and again, for which v^2/2 + phi is not below
    zero: v is relative to the centre of mass of those that are left, and phi is their potential, of
    a tree with errors below 1e-4. The members of a binary that the cluster holds are bound whatever
    their own orbits are: phi has their pull. A field from outside is not asked; what stays within
    the tidal radius is :meth:`Hermite.tidal_radius`'s.
    """
    mass, pos, vel = chosen(where, mass=mass, pos=pos, vel=vel)
    eps, G = validate.number("eps", eps, negative=False), validate.positive("G", G)
    is_bound, left = np.ones(len(mass), bool), -1.0
    while True:
        number = ranks.total(is_bound.astype(float))
        if number in (left, 0):
            break
        left = number
        motion = centre_of_mass(mass[is_bound], vel[is_bound], ranks=ranks)
        if np.isnan(motion).any():  # there is no mass
            is_bound[:] = False
            break
        phi = G * tree_potential(mass[is_bound], pos[is_bound], eps, ranks)
        is_bound[is_bound] = ((vel[is_bound] - motion) ** 2).sum(axis=1) / 2 + phi < 0
    return Bound(ranks.total(mass[is_bound]), int(ranks.total(is_bound.astype(float))), is_bound)


def tree_potential(mass: Floats, pos: Floats, eps: float, ranks: Ranks) -> Floats:
    """The potential of bodies at each of them, of a tree, with G = 1."""
    from grape6py.forces.tree import Tree

    with Tree(mass, pos, comm=ranks.comm) as tree:
        return tree.forces(eps=eps, accuracy=ACCURACY).pot

"""The density about each body, and what follows from it: the centre of a cluster and its core."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from grape6py._arrays import validate
from grape6py._arrays.kinds import Floats, Untyped
from grape6py.diagnostics.bodies import chosen
from grape6py.diagnostics.sums import centre_of_mass
from grape6py.in_units import taken
from grape6py.ranks.one_rank import ONE
from grape6py.ranks.ranks import Ranks

NEIGHBOURS = 6  # as Casertano and Hut advise


@taken(g_is_one=False)
def density_centre(
    mass: ArrayLike,
    pos: ArrayLike,
    neighbours: int = NEIGHBOURS,
    *,
    where: Untyped = None,
    ranks: Ranks = ONE,
) -> Floats:
    """Mean place of the particles, weighted with the density about each; shape (3,).

    Casertano & Hut 1985, ApJ 298, 80, section II: the density is that of the mass of the nearest
    particles but the last, in the sphere up to that one. The centre of mass if there are no more
    particles than `neighbours`.
    """
    mass, pos = chosen(where, mass=mass, pos=pos)
    return centre_of_mass(densities(mass, pos, neighbours, ranks), pos, ranks=ranks)


@taken(g_is_one=False)
def core_radius(
    mass: ArrayLike,
    pos: ArrayLike,
    neighbours: int = NEIGHBOURS,
    *,
    where: Untyped = None,
    ranks: Ranks = ONE,
) -> float:
    """Mean distance from the density centre, weighted with the density about each body.

    The density radius of Casertano & Hut 1985, ApJ 298, 80, which is near a King model's core
    radius. NaN without mass.
    """
    mass, pos = chosen(where, mass=mass, pos=pos)
    weight = densities(mass, pos, neighbours, ranks)
    distance = np.linalg.norm(pos - centre_of_mass(weight, pos, ranks=ranks), axis=1)
    whole = ranks.total(weight)
    return ranks.total(weight * distance) / whole if whole else float("nan")


def densities(mass: Floats, pos: Floats, neighbours: int, ranks: Ranks) -> Floats:
    """The density about each body, or its mass where densities say nothing: of too few bodies, of
    many at one place, or of massless ones alone."""
    from grape6py.forces.tree import Tree

    validate.integer("neighbours", neighbours, 2)
    validate.check_finite("mass", mass)
    with Tree(mass, pos, comm=ranks.comm) as tree:
        if len(tree) <= neighbours:
            return mass
        index, distance = tree.nearest(neighbours)
    masses = ranks.looked_up(mass, index[:, :-1].reshape(-1).astype(np.int64))
    with np.errstate(divide="ignore"):
        density: Floats = masses.reshape(len(pos), -1).sum(axis=1) / distance[:, -1] ** 3
    with ranks.agreement("the densities") as agreement:
        is_bad = agreement.maximum(not np.isfinite(density).all())
        is_there = agreement.maximum(bool(density.any()))
    return mass if is_bad.value or not is_there.value else density


def centre_of(
    centre: Untyped, mass: Floats, pos: Floats, vel: Floats, ranks: Ranks
) -> tuple[Floats, Floats]:
    """A place, and the mean velocity there: of "density", weighted with that; else of all mass."""
    weight = mass
    by_density = {"density": True, "mass": False}
    if isinstance(centre, str) and validate.choice("centre", centre, by_density):
        weight = densities(mass, pos, NEIGHBOURS, ranks)
    place = (
        centre_of_mass(weight, pos, ranks=ranks)
        if centre is None or isinstance(centre, str)
        else validate.any_floats("centre", centre, (3,))
    )
    return place, centre_of_mass(weight, vel, ranks=ranks)

"""How masses are distributed, and whether the heavy ones are in the middle."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from grape6py._arrays import validate
from grape6py._arrays.kinds import Floats, Int64s, Untyped
from grape6py.diagnostics.bodies import chosen, plane_of
from grape6py.errors import ArgumentError
from grape6py.in_units import taken
from grape6py.ranks.one_rank import ONE
from grape6py.ranks.ranks import Ranks


class MassFunction(NamedTuple):
    """How many bodies there are of each mass, in k bins.

    Attributes
    ----------
    edges : ndarray, shape (k + 1,)
    number : ndarray of int64, shape (k,)
        Of bodies; the first bin has its lower edge, all have the upper one.
    per_mass, error : ndarray, shape (k,)
        dN/dm, and sqrt(N)/dm.
    """

    edges: Floats
    number: Int64s
    per_mass: Floats
    error: Floats


class Segregation(NamedTuple):
    """How much closer together the heaviest bodies are than any of them.

    Attributes
    ----------
    ratio, error : float
        Lambda_MSR, above 1 where masses are segregated, and its error.
    """

    ratio: float
    error: float


def mass_function(
    mass: ArrayLike,
    bins: int = 20,
    *,
    masses: ArrayLike | None = None,
    where: Untyped = None,
    ranks: Ranks = ONE,
) -> MassFunction:
    """Number of bodies in bins of mass, equal ones of its logarithm, or between given `masses`.

    Raises
    ------
    ArgumentError
        (a ValueError) for masses that do not ascend; without them, if no mass is above zero.
    """
    (mass,) = chosen(where, mass=mass)
    if masses is None:
        bins = validate.integer("bins", bins, 1)
        heavy = np.log(mass[mass > 0])
        ends = np.array([-heavy.min(initial=np.inf), heavy.max(initial=-np.inf)])
        low, high = ranks.largest(ends) * (-1, 1)
        if low > high:
            raise ArgumentError("no body has a mass above zero: there is no mass function")
        edges = np.exp(np.linspace(low - 1e-12, high + 1e-12, bins + 1))
    else:
        edges = validate.floats("masses", masses, (None,))
        if len(edges) < 2 or not (np.diff(edges) > 0).all():
            raise ArgumentError(f"masses = {edges} are not two or more that ascend")
    at = np.searchsorted(edges, mass, side="left") - 1
    at[mass == edges[0]] = 0
    k = len(edges) - 1
    number = ranks.summed(np.bincount(at[(at >= 0) & (at < k)], minlength=k))
    width = np.diff(edges)
    return MassFunction(edges, number, number / width, np.sqrt(number) / width)


@taken(g_is_one=False)
def mass_segregation(
    mass: ArrayLike,
    pos: ArrayLike,
    number: int = 20,
    *,
    samples: int = 200,
    seed: int = 0,
    along: str | None = None,
    where: Untyped = None,
    ranks: Ranks = ONE,
) -> Segregation:
    """Lambda_MSR of the heaviest bodies (Allison and others 2009, MNRAS 395, 1449).

    The mean length of the minimum spanning tree of as many random bodies, over that of the
    heaviest; its error is the standard deviation of the former over the latter.

    Parameters
    ----------
    mass, pos : array_like
        Bodies without mass do not count.
    number : int
        Of the heaviest bodies; of equal masses the first ones.
    samples, seed : int
        How many random sets, and the seed that they are drawn with, by the bodies' order.
    along : "x", "y" or "z", optional
        A line of sight: lengths are those on the sky.

    Raises
    ------
    ArgumentError
        (a ValueError) if there are no `number` bodies, or fewer than two are asked for; if the
        heaviest all stand at one place.
    """
    mass, pos = chosen(where, mass=mass, pos=pos)
    mass, pos = chosen(np.flatnonzero(mass), mass=mass, pos=pos)
    count, samples = validate.integer("number", number), validate.integer("samples", samples, 2)
    first, n = ranks.numbered(len(mass))
    if not 2 <= count <= n:
        raise ArgumentError(f"number = {count} is not from 2 to the {n} bodies that there are")
    if along:
        pos = pos[:, plane_of(along)]
    own = np.argsort(-mass, kind="stable")[:count]
    heaviest = np.concatenate(ranks.gathered(np.column_stack([-mass[own], own + first])))
    rows = np.lexsort(heaviest.T[::-1])[:count]
    rng = np.random.default_rng(validate.integer("seed", seed))
    drawn = [rng.choice(n, count, replace=False) for _ in range(samples)]
    numbers = np.concatenate([heaviest[rows, 1].astype(np.int64), *drawn])
    length = _spanning_lengths(ranks.looked_up(pos, numbers).reshape(samples + 1, count, -1))
    if not length[0]:
        raise ArgumentError(f"the {count} heaviest bodies all stand at one place")
    others = length[1:] / length[0]
    return Segregation(float(others.mean()), float(others.std(ddof=1)))


def _spanning_lengths(places: Floats) -> Floats:
    """Lengths of the minimum spanning trees of sets of places, shape (sets, k, dimensions): Prim's
    method, for all sets at once."""
    sets, k, _ = places.shape
    every = np.arange(sets)
    distance, length = np.full((sets, k), np.inf), np.zeros(sets)
    is_in, last = np.zeros((sets, k), bool), np.zeros(sets, np.int64)
    for _ in range(k - 1):
        is_in[every, last] = True
        step = np.linalg.norm(places - places[every, last][:, None], axis=2)
        distance = np.where(is_in, np.inf, np.minimum(distance, step))
        last = distance.argmin(axis=1)
        length += distance[every, last]
    return length

"""Stars of different masses in a spherical model, with or without mass segregation."""

from __future__ import annotations

import math
import reprlib
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from grape6py._arrays import validate
from grape6py._arrays.kinds import Floats, Int64s, Seed
from grape6py.errors import ArgumentError, Grape6Warning
from grape6py.in_units import taken
from grape6py.models import sampling
from grape6py.models.sampling import Particles
from grape6py.models.spheres import plummer
from grape6py.units import Units

_MOST_EACH = 64  # orbits drawn for a star
_MOST = 1 << 24  # and for all, unless there are half as many stars


@taken()
def stars(
    mass: ArrayLike,
    model: Callable[..., Particles] = plummer,
    seed: Seed = None,
    segregation: float = 0.0,
    *,
    virial_ratio: float | None = None,
    units: Units | None = None,
) -> Particles:
    """Give the bodies of a spherical model these masses.

    Parameters
    ----------
    mass : array_like, shape (n,)
        Of the stars, in any unit, all above 0: as of :func:`kroupa`.
    model : callable
        model(n, seed=seed) draws n bodies of equal masses in Henon units: :func:`plummer`,
        ``functools.partial(king, w0=7)``, ... It is called with a larger n if `segregation` is
        above 0.
    seed : int or None
        Seed of ``numpy.random.PCG64``; None for a different model each time.
    segregation : float
        From 0, where masses and orbits are independent, to 1, where a heavier star has always
        less specific energy.
    virial_ratio : float, optional
        Rescale positions and velocities so that E = -1/4 and this virial ratio, 0 <= virial_ratio
        < 1, hold to rounding. By default they hold as n grows, but for the noise of a few heavy
        stars: 12 % of E with 2000 stars of :func:`kroupa` that are not segregated. Costs a direct
        sum.
    units : Units, optional
        What the model's units of mass and length are: bodies are then given as quantities. Total
        mass 1 is the unit of mass: of solar masses, give ``Units(f"{mass.sum()} Msun", ...)``.

    Returns
    -------
    Particles
        Star k has mass[k], over the sum of all. Total mass 1, centre of mass at rest in the
        origin. Without segregation these are the bodies of model(n, seed=seed) in another order,
        moved a little to the new centre of mass.

    Raises
    ------
    ArgumentError
        (a ValueError) for masses that are not above zero, a parameter out of range, or a model
        that does not give n equal masses.

    Notes
    -----
    Baumgardt, De Marchi & Kroupa 2008 (ApJ 685, 247), section 2: several orbits are drawn for
    each star and sorted by their specific energy in the spherical potential. A star takes one
    from the interval of the list that its mass is of the cumulated mass. So the mass density stays
    that of the model, and with it the equilibrium. Partial order is that of McLuster (Kuepper et
    al. 2011, MNRAS 417, 2300): star i, from the heaviest on, takes the free place number
    (n - i) (1 - X^(1 - segregation)) with X uniform in (0, 1).
    """
    mass = validate.floats("mass", mass, (None,))
    n = len(mass)
    if not n:
        raise ArgumentError("mass is empty: a model needs at least one star")
    if not (mass > 0).all():
        row = int(np.argmin(mass > 0))
        raise ArgumentError(f"mass[{row}] = {mass[row]} is not above zero")
    if not 0 <= validate.number("segregation", segregation) <= 1:
        raise ArgumentError(f"segregation = {segregation} is not between 0 and 1")
    if virial_ratio is not None:
        if not 0 <= validate.number("virial_ratio", virial_ratio) < 1:
            raise ArgumentError(f"virial_ratio = {virial_ratio} is not in [0, 1)")
        if n < 2:
            raise ArgumentError("virial_ratio needs at least two stars, one has no energy")
    whole = math.fsum(mass)
    share, sun = mass / whole, 1.0 if units is None else units.value("mass", "Msun")
    if units is not None and 1 not in (round(whole, 3), round(whole / sun, 3)):
        warnings.warn(
            f"masses of stars are shares of the unit of mass: these have {sun:.6g} Msun in all; "
            f"for masses in solar masses give Units('{whole:.17g} Msun', ...)",
            Grape6Warning,
            stacklevel=3,
        )
    random = sampling.generator(seed, "stars")
    if segregation == 0:
        orbits, rows = _drawn(model, n, seed), random.permutation(n)
    else:
        # So many that the lightest star has an interval of one orbit, if it is not too light.
        each = max(2, min(math.ceil(1 / max(n * share.min(), 1 / _MOST_EACH)), _MOST // n))
        orbits = _drawn(model, each * n, seed)
        order = np.argsort(_specific_energy(orbits), kind="stable")
        ranked = np.empty(n, np.int64)  # the stars from low to high energy
        ranked[_places(random, n, segregation)] = np.argsort(-share, kind="stable")
        rows = np.empty(n, np.int64)
        rows[ranked] = order[_within(random, share[ranked], each * n)]
    chosen = sampling.centred(share, orbits.pos[rows], orbits.vel[rows])
    return chosen if virial_ratio is None else sampling.rescaled(chosen, virial_ratio)


def _drawn(model: Callable[..., Particles], n: int, seed: Seed) -> Particles:
    """n orbits of the model, which are checked."""
    if not callable(model):
        raise ArgumentError(
            f"model = {reprlib.repr(model)} is no function: give plummer or partial(king, w0=6)"
        )
    drawn = model(n, seed=seed)
    if not isinstance(drawn, sampling.Particles):
        raise ArgumentError(
            f"model gives {type(drawn).__name__}, not Particles: give a function like plummer"
        )
    if len(drawn.mass) != n:
        raise ArgumentError(f"model(n={n}, seed=...) gives {len(drawn.mass)} bodies, not n")
    if np.ptp(drawn.mass) > 1e-9 * drawn.mass.max():
        raise ArgumentError("model has bodies of several masses: give one of equal masses")
    return drawn


def _specific_energy(orbits: Particles) -> Floats:
    """Of equal masses of total mass 1, in the potential of the shells that they are."""
    n = len(orbits.mass)
    radius = np.sqrt((orbits.pos**2).sum(axis=1))
    order = np.argsort(radius, kind="stable")
    r = radius[order]
    outside = np.append(np.cumsum(1 / r[:0:-1])[::-1], 0)
    pot = np.empty(n)
    pot[order] = -((np.arange(n) + 0.5) / r + outside) / n
    energy: Floats = pot + (orbits.vel**2).sum(axis=1) / 2
    return energy


def _places(random: np.random.Generator, n: int, segregation: float) -> Int64s:
    """Places of the stars, from the heaviest on, in the order of energies."""
    if segregation == 1:
        return np.arange(n)
    free = n - np.arange(n)
    skipped = (free * (1 - random.random(n) ** (1 - segregation))).astype(np.int64)
    # A Fenwick tree: entry k counts the free ones among the k & -k places that end at k.
    counts = [k & -k for k in range(n + 1)]
    places = []
    for left in np.minimum(skipped, free - 1).tolist():
        place, step = 0, 1 << n.bit_length()
        while step := step >> 1:
            if place + step <= n:
                if counts[place + step] <= left:
                    place += step
                    left -= counts[place]
                else:
                    counts[place + step] -= 1
        places.append(place)
    return np.array(places)


def _within(random: np.random.Generator, share: Floats, orbits: int) -> Int64s:
    """For each star a different one of the sorted orbits, within its part of the total mass."""
    start = np.append(0, np.cumsum(share)[:-1])
    chosen = ((start + share * random.random(len(share))) * orbits).astype(np.int64)
    star = np.arange(len(share))
    chosen = np.maximum.accumulate(chosen - star) + star  # two light stars may want the same
    return np.minimum(chosen, orbits - len(share) + star)

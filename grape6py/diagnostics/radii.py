"""Radii that hold shares of the mass."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from grape6py._arrays import validate
from grape6py._arrays.kinds import Floats, Untyped
from grape6py._arrays.modules import lengths
from grape6py.diagnostics.bodies import chosen
from grape6py.diagnostics.centres import centre_of
from grape6py.errors import ArgumentError
from grape6py.in_units import taken
from grape6py.ranks.one_rank import ONE
from grape6py.ranks.ranks import Ranks

FRACTIONS = (0.1, 0.5, 0.9)

_CUTS = 64  # of the bits of radii, at a time
_UNITS = 2.0**60  # of mass, in which shares of it are added without rounding


@taken(g_is_one=False)
def lagrangian_radii(
    mass: ArrayLike,
    pos: ArrayLike,
    fractions: ArrayLike = FRACTIONS,
    centre: ArrayLike | str | None = None,
    *,
    where: Untyped = None,
    ranks: Ranks = ONE,
) -> Floats:
    """Radii of the spheres that hold given fractions of the mass.

    Parameters
    ----------
    mass, pos : array_like
    fractions : sequence of float
        Each above 0 and at most 1.
    centre : array_like, shape (3,), or "density" or "mass", optional
        Centre of the spheres; the centre of mass by default. "density" is that of
        :func:`density_centre`, as papers on clusters take it.

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
    mass, pos = chosen(where, mass=mass, pos=pos)
    size = ranks.total(np.abs(mass))
    if not size:
        return np.full(fractions.shape, math.nan)
    middle, _ = centre_of(centre, mass, pos, pos, ranks)
    units = np.rint(mass / size * _UNITS).astype(np.int64)
    # The smallest radii within which there are these shares of the units are found by cutting the
    # bits of a radius, which are in its order, again and again.
    bits = lengths(pos - middle).view(np.int64)
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


@taken(g_is_one=False)
def half_mass_radius(
    mass: ArrayLike,
    pos: ArrayLike,
    centre: ArrayLike | str | None = "density",
    *,
    where: Untyped = None,
    ranks: Ranks = ONE,
) -> float:
    """Radius of the sphere about the density centre, or another one, that holds half of the mass:
    :func:`lagrangian_radii` of 1/2."""
    return float(lagrangian_radii(mass, pos, [0.5], centre, where=where, ranks=ranks)[0])

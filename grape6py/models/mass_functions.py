"""Masses of stars, drawn from initial mass functions by inversion of the cumulative function.

All in solar masses. The same seed gives the same masses, up to the last digits of powers. They do
not depend on the positions of a model that is drawn with the same seed.
"""

import math
from collections.abc import Sequence

import numpy as np

from grape6py._arrays import validate
from grape6py._arrays.kinds import Floats, Seed
from grape6py.errors import ArgumentError
from grape6py.models.sampling import check_size, generator

_KROUPA = ((0.01, 0.3), (0.08, 1.3), (0.5, 2.3))  # where a segment begins, and its slope


def kroupa(n: int, seed: Seed = None, lowest: float = 0.08, highest: float = 150.0) -> Floats:
    """Draw n masses from Kroupa's mass function.

    The number of stars goes as m^-1.3 from 0.08 to 0.5 and as m^-2.3 above; as m^-0.3 below 0.08,
    if `lowest` is smaller.

    Parameters
    ----------
    n : int
        Number of stars, at least 1.
    seed : int or None
        Seed of ``numpy.random.PCG64``; None for other masses each time.
    lowest, highest : float
        Range of the masses; `lowest` is at least 0.01 and below `highest`.

    Returns
    -------
    ndarray, shape (n,)
        Masses in solar masses, in random order.

    Raises
    ------
    ArgumentError
        (a ValueError) if a parameter is out of range.

    Notes
    -----
    Kroupa 2001, MNRAS 322, 231, equation 2.
    """
    n = check_size(n, False)
    lowest, highest = _range(lowest, highest)
    if lowest < _KROUPA[0][0]:
        raise ArgumentError(
            f"lowest = {lowest} is below {_KROUPA[0][0]}, where Kroupa's mass function begins"
        )
    starts, slopes = zip(*_KROUPA, strict=True)
    edges = [lowest, *(m for m in starts if lowest < m < highest), highest]
    of_segment = [slopes[int(np.searchsorted(starts, m, side="right")) - 1] for m in edges[:-1]]
    return _power_laws(generator(seed, "masses").random(n), edges, of_segment)


def salpeter(
    n: int, seed: Seed = None, lowest: float = 0.08, highest: float = 150.0, slope: float = 2.35
) -> Floats:
    """Draw n masses from a power law, by default Salpeter's.

    What it gives, and its errors, are as of :func:`kroupa`.

    Parameters
    ----------
    n, seed
        As in :func:`kroupa`.
    lowest, highest : float
        Range of the masses, 0 < lowest < highest.
    slope : float
        The number of stars goes as m^-slope.

    Notes
    -----
    Salpeter 1955, ApJ 121, 161; his stars have 0.4 to 10 solar masses.
    """
    n = check_size(n, False)
    edges = _range(lowest, highest)
    slope = validate.number("slope", slope)
    return _power_laws(generator(seed, "masses").random(n), edges, [slope])


def maschberger(
    n: int,
    seed: Seed = None,
    lowest: float = 0.01,
    highest: float = 150.0,
    alpha: float = 2.3,
    beta: float = 1.4,
    mu: float = 0.2,
) -> Floats:
    """Draw n masses from Maschberger's mass function L3, which has no breaks.

    The number of stars goes as (m / mu)^-alpha (1 + (m / mu)^(1 - alpha))^-beta. What the
    function gives, and its errors, are as of :func:`kroupa`.

    Parameters
    ----------
    n, seed, lowest, highest
        As in :func:`salpeter`.
    alpha, beta : float
        Slope of the high masses, and the parameter of the low ones; both above 1.
    mu : float
        Scale of the masses, above 0.

    Notes
    -----
    Maschberger 2013, MNRAS 429, 1725, section 3 and table 1.
    """
    n = check_size(n, False)
    ends = np.array(_range(lowest, highest))
    mu = validate.positive("mu", mu)
    for name, value in {"alpha": alpha, "beta": beta}.items():
        if validate.number(name, value) <= 1:
            raise ArgumentError(f"{name} = {value} is not above 1")
    # The logarithm of his auxiliary function G over 1 - beta, at both ends.
    first, last = np.log1p((ends / mu) ** (1 - alpha))
    u = generator(seed, "masses").random(n)
    # G(m) = G(lowest) + u (G(highest) - G(lowest)), divided by G(lowest).
    log_g = first + np.log1p(u * math.expm1((1 - beta) * (last - first))) / (1 - beta)
    mass: Floats = np.clip(mu * np.expm1(log_g) ** (1 / (1 - alpha)), *ends)
    return mass


def _range(lowest: float, highest: float) -> tuple[float, float]:
    lowest, highest = validate.positive("lowest", lowest), validate.positive("highest", highest)
    if lowest >= highest:
        raise ArgumentError(f"lowest = {lowest} is not below highest = {highest}")
    return lowest, highest


def _power_laws(u: Floats, edges: Sequence[float], slopes: Sequence[float]) -> Floats:
    """Masses at which a continuous, piecewise power law has the cumulative shares u."""
    start = np.array(edges[:-1])
    length = np.diff(np.log(edges))
    power = 1 - np.array(slopes)
    # Integral of m dN/dm over ln m in a segment, where that is 1 at its start; power may be 0.
    area = np.array(
        [x if abs(p) < 1e-12 else math.expm1(p * x) / p for p, x in zip(power, length, strict=True)]
    )
    height = np.append(1, np.exp(np.cumsum(power * length)[:-1]))  # m dN/dm at the starts
    total = np.append(0, np.cumsum(height * area))
    k = np.clip(np.searchsorted(total, u * total[-1], side="right") - 1, 0, len(start) - 1)
    within = np.clip((u * total[-1] - total[k]) / height[k], 0, area[k])
    p = power[k]
    flat = np.abs(p) < 1e-12
    log = np.where(flat, within, np.log1p(within * p) / np.where(flat, 1, p))
    mass: Floats = np.clip(start[k] * np.exp(log), edges[0], edges[-1])
    return mass

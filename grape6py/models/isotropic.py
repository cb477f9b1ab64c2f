"""Spheres with isotropic velocities of any density: EFF's, Hernquist's and NFW's; in Henon units.

Within, lengths are in the scale radius and G = 1; densities have any unit. Powers and exponentials
differ between processors in their last digits, and so may those of the bodies.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from grape6py._arrays import validate
from grape6py._arrays.kinds import Floats, Seed
from grape6py.errors import ArgumentError
from grape6py.in_units import taken
from grape6py.models.sampling import Particles, check_size, directions, generator, sphere
from grape6py.units import Units

# The density at radii, and the derivative of its logarithm by that of the radius.
Density = Callable[[Floats], tuple[Floats, Floats]]

_NODES = 2048  # of radius
_FIRST = 1e-6  # in scale radii
_SPEEDS = 257  # of the distribution of speeds at a place
_AT_ONCE = 4096  # bodies


class SphereProfile(NamedTuple):
    """A sphere as a function of radius, in Henon units.

    Attributes
    ----------
    radius : ndarray, shape (k,)
    inside : ndarray, shape (k,)
        Mass within it, up to 1.
    depth : ndarray, shape (k,)
        Half the square of the speed of escape.
    distribution : ndarray, shape (k,)
        Bodies at the specific energy -depth in phase space, in any unit.
    scale : float
        The scale radius.
    """

    radius: Floats
    inside: Floats
    depth: Floats
    distribution: Floats
    scale: float


@taken()
def eff(
    n: int,
    gamma: float,
    seed: Seed = None,
    mass_fraction: float = 0.999,
    *,
    truncation: float | None = None,
    rescale: bool = False,
    units: Units | None = None,
) -> Particles:
    """Draw a sphere of n equal masses as young clusters are: of Elson, Fall and Freeman.

    It gives what :func:`plummer` does, and has the same errors for parameters out of range.

    Parameters
    ----------
    gamma : float
        The surface density is (1 + R^2 / a^2)^(-gamma / 2): 4 is Plummer's sphere, young clusters
        have 2.2 to 3.2. Of a = 2 pc, with a of :func:`eff_profile`: ``units=Units(mass,
        f"{2 / eff_profile(gamma).scale} pc")``.
    truncation : float, optional
        Radius in terms of a beyond which the density fades, as that of :func:`nfw`, so that none of
        the mass is left out. Needed for gamma below 3, whose mass lies too far out.
    n, seed, mass_fraction, rescale, units
        As in :func:`plummer`. Only `rescale` gives a cut sphere E = -1/4.

    Notes
    -----
    Elson, Fall & Freeman 1987, ApJ 323, 54. Velocities by Eddington's formula (Binney & Tremaine
    2008, equation 4.46b), as of :func:`hernquist` and :func:`nfw`.
    """
    mass_fraction = mass_fraction if truncation is None else 1.0
    return _drawn(n, eff_profile(gamma, truncation), seed, mass_fraction, rescale)


@taken()
def hernquist(
    n: int,
    seed: Seed = None,
    mass_fraction: float = 0.99,
    *,
    rescale: bool = False,
    units: Units | None = None,
) -> Particles:
    """Draw Hernquist's sphere of n equal masses: density as 1 / (r (r + a)^3), with a = 1/3.

    Parameters
    ----------
    n, seed, mass_fraction, rescale, units
        As in :func:`plummer`; 0.99 ends at a radius of 66. Only `rescale` gives a cut sphere
        E = -1/4.

    Returns
    -------
    Particles
        Total mass 1, centre of mass at rest in the origin: the cusp is some 7 / sqrt(n) off that.

    Notes
    -----
    Hernquist 1990, ApJ 356, 359.
    """

    def density(r: Floats) -> tuple[Floats, Floats]:
        return 1 / (r * (1 + r) ** 3), -1 - 3 * r / (1 + r)

    return _drawn(n, _profile(density, 1e8), seed, mass_fraction, rescale)


@taken()
def nfw(
    n: int,
    concentration: float,
    seed: Seed = None,
    *,
    decay: float = 0.3,
    rescale: bool = False,
    units: Units | None = None,
) -> Particles:
    """Draw a halo of Navarro, Frenk and White of n equal masses, which fades beyond its radius.

    It gives what :func:`plummer` does, and has the same errors for parameters out of range.

    Parameters
    ----------
    concentration : float
        Above 0; the halo's radius over the scale radius, which :func:`nfw_profile` has.
    n, seed, rescale, units
        As in :func:`plummer`.
    decay : float
        Scale of the exponential by which the density falls beyond the halo's radius, in terms of
        that; from 0.05 to 1.

    Notes
    -----
    Navarro, Frenk & White 1996, ApJ 462, 563; the end of Springel & White 1999, MNRAS 307, 162.
    """
    return _drawn(n, nfw_profile(concentration, decay), seed, 1.0, rescale)


def eff_profile(gamma: float, truncation: float | None = None) -> SphereProfile:
    """The sphere that :func:`eff` draws from."""
    gamma = validate.number("gamma", gamma)
    if not (1 if truncation else 3) <= gamma <= 50:
        raise ArgumentError(
            f"gamma = {gamma} is not from 1 to 50; below 3 the mass lies so far out that it needs "
            "truncation=, in scale radii"
        )

    def density(r: Floats) -> tuple[Floats, Floats]:
        r2 = r * r
        return (1 + r2) ** (-(gamma + 1) / 2), -(gamma + 1) * r2 / (1 + r2)

    if truncation is None:
        return _profile(density, 1e8)
    return _faded(density, validate.positive("truncation", truncation), 0.3)


def nfw_profile(concentration: float, decay: float = 0.3) -> SphereProfile:
    """The halo that :func:`nfw` draws from."""
    decay = validate.number("decay", decay)
    if not 0.05 <= decay <= 1:
        raise ArgumentError(f"decay = {decay} is not between 0.05 and 1")

    def density(r: Floats) -> tuple[Floats, Floats]:
        return 1 / (r * (1 + r) ** 2), -1 - 2 * r / (1 + r)

    return _faded(density, validate.positive("concentration", concentration), decay)


def _faded(density: Density, edge: float, decay: float) -> SphereProfile:
    """That of a density with an exponential beyond the edge, where its slope has no step."""
    length = decay * edge
    power = float(density(np.array(edge))[1]) + edge / length

    def faded(r: Floats) -> tuple[Floats, Floats]:
        rho, slope = density(np.minimum(r, edge))
        beyond = np.maximum(r, edge)
        fall = (beyond / edge) ** power * np.exp((edge - beyond) / length)
        return rho * fall, np.where(r < edge, slope, power - r / length)

    return _profile(faded, edge + 40 * length)


def _profile(density: Density, last: float) -> SphereProfile:
    """Mass, potential and distribution of a density, from its centre to so many scale radii."""
    log, h = np.linspace(math.log(_FIRST), math.log(last), 2 * _NODES - 1, retstep=True)
    r = np.exp(log)
    rho, slope = density(r)
    shells = 4 * math.pi * rho * r**3
    first = shells[0] / (3 + slope[0])
    mass = first + np.append(0, np.cumsum(_simpson(shells, h)))
    outer = np.append(np.cumsum(_simpson(shells / r, h)[::-1])[::-1], 0)
    r, rho, slope = r[::2], rho[::2], slope[::2]
    depth = mass / r + outer
    total = mass[-1]
    # Of the binding energy, half the sum of the depth over all mass.
    binding = 0.5 * math.fsum((depth[1:] + depth[:-1]) / 2 * np.diff(mass)) + 0.5 * depth[0] * first
    length = total * total / (2 * binding)  # the virial radius is the unit
    found = _eddington(depth, -rho * slope * r / mass)
    return SphereProfile(r / length, mass / total, depth * length / total, found, 1 / length)


def _simpson(values: Floats, h: float) -> Floats:
    """Integrals over pairs of intervals of width h."""
    return h / 3 * (values[:-2:2] + 4 * values[1:-1:2] + values[2::2])


def _eddington(depth: Floats, rise: Floats) -> Floats:
    """The distribution at each depth, from d rho / d depth there; from the centre outwards."""
    curvature = np.diff(rise) / np.diff(depth)
    found = np.empty(len(depth))
    for k in range(len(depth)):  # of what is farther out, where it is constant piece by piece
        root = np.sqrt(depth[k] - depth[k:])
        found[k] = 2 * ((root[1:] - root[:-1]) * curvature[k:]).sum()
    found += rise[-1] / np.sqrt(np.maximum(depth - depth[-1], 1e-300)) * (depth > depth[-1])
    if found.min() < -1e-3 * found.max():
        raise ArgumentError("such a sphere has no isotropic distribution of velocities")
    return np.maximum(found, 0.0)


def _drawn(
    n: int, profile: SphereProfile, seed: Seed, mass_fraction: float, rescale: bool
) -> Particles:
    n = check_size(n, rescale)
    if not 0 < validate.number("mass_fraction", mass_fraction) <= 1:
        raise ArgumentError(f"mass_fraction = {mass_fraction} is not in (0, 1]")
    random, log = generator(seed), np.log(profile.radius)
    inside = np.log(mass_fraction * (1 - random.random(n)))
    radius = np.exp(np.interp(inside, np.log(profile.inside), log))
    depth = np.interp(np.log(radius), log, profile.depth)
    share = random.random(n)
    speed = np.concatenate(
        [_speeds(profile, depth[k : k + _AT_ONCE], share[k : k + _AT_ONCE])
         for k in range(0, n, _AT_ONCE)]
    )  # fmt: skip
    pos = directions(random, n) * radius[:, None]
    return sphere(pos, directions(random, n) * speed[:, None], rescale)


def _speeds(profile: SphereProfile, depth: Floats, share: Floats) -> Floats:
    """Speeds at places of some depth, below which are these shares of the bodies there."""
    s = np.linspace(0, 1, _SPEEDS)
    q = s * s  # of the speed of escape: slow bodies are many where a cusp is deep
    energy = depth[:, None] * (1 - q) * (1 + q)
    log = np.log(np.maximum(profile.distribution[::-1], 1e-300))
    density = np.exp(np.interp(energy, profile.depth[::-1], log)) * q * q * s
    density[energy < profile.depth[-1]] = 0.0
    below = np.zeros_like(density)
    np.cumsum(density[:, 1:] + density[:, :-1], axis=1, out=below[:, 1:])
    target = share * below[:, -1]
    k = np.clip((below <= target[:, None]).sum(axis=1) - 1, 0, _SPEEDS - 2)
    row = np.arange(len(depth))
    step = below[row, k + 1] - below[row, k]
    within = (target - below[row, k]) / np.where(step > 0, step, 1.0)
    found: Floats = (s[k] + within * (s[1] - s[0])) ** 2 * np.sqrt(2 * depth)
    return found

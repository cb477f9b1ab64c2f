"""Primordial binaries: bodies of a model split into two on a Kepler orbit, with G = 1."""

import math

import numpy as np

from grape6py._arrays import validate
from grape6py._arrays.kinds import Floats, Seed
from grape6py.errors import ArgumentError
from grape6py.in_units import taken
from grape6py.kepler import eccentric_anomaly
from grape6py.models import sampling
from grape6py.models.sampling import Particles
from grape6py.units import Units


@taken()
def with_binaries(
    particles: Particles,
    fraction: float,
    seed: Seed = None,
    *,
    separation: tuple[float, float] | float,
    mass_ratio: tuple[float, float] | float = (0.1, 1.0),
    eccentricity: float | str = "thermal",
    units: Units | None = None,
) -> Particles:
    """Make binaries of a fraction of the bodies.

    Each of these is replaced by two with its mass, its centre of mass and its momentum.

    Parameters
    ----------
    particles : Particles
        Masses, positions and velocities, with G = 1.
    fraction : float
        How many of the n bodies become binaries, from 0 to 1; round(fraction * n) of them are
        chosen at random. Massless bodies are not.
    separation : pair of float, or float
        Smallest and largest semi-major axis, in the units of the positions. Its logarithm is
        uniform in between. In Henon units binaries closer than about 2/n are hard.
    mass_ratio : pair of float, or float
        Smallest and largest mass of the second member over that of the first, above 0 and at
        most 1. The ratio is uniform in between.
    eccentricity : "thermal" or float
        "thermal": distributed as f(e) = 2 e; a number from 0 to below 1: the same for all.
    seed, units
        As in :func:`plummer`.

    Returns
    -------
    Particles
        The two members of each binary, the heavier one first (rows 2 k and 2 k + 1), then the
        other bodies, in the order of `particles`.

    Raises
    ------
    ArgumentError, NotFiniteError
        (ValueErrors) if a parameter is out of range, or if fewer bodies have mass than become
        binaries.

    Notes
    -----
    Orientations are isotropic and mean anomalies uniform. Thermal eccentricities: Jeans 1919,
    MNRAS 79, 408. Positions on the orbit: Murray & Dermott, "Solar System Dynamics" (1999),
    section 2.4. The energy grows by the sum of -m1 m2 / (2 a), but for tides.
    """
    mass = validate.floats("particles.mass", particles.mass, (None,))
    n = len(mass)
    pos, vel = (
        validate.floats(f"particles.{name}", getattr(particles, name), (n, 3))
        for name in ("pos", "vel")
    )
    if (mass < 0).any():
        row = int(np.argmax(mass < 0))
        raise ArgumentError(f"particles.mass[{row}] = {mass[row]} is negative")
    if not 0 <= validate.number("fraction", fraction) <= 1:
        raise ArgumentError(f"fraction = {fraction} is not between 0 and 1")
    axis_range, ratio_range = _pair("separation", separation), _pair("mass_ratio", mass_ratio)
    if ratio_range[1] > 1:
        raise ArgumentError(f"mass_ratio = {mass_ratio}: the first member is the heavier, so the "
                            "ratio is at most 1")  # fmt: skip
    if eccentricity != "thermal" and not (
        0 <= validate.number("eccentricity", eccentricity, negative=True) < 1
    ):
        raise ArgumentError(f"eccentricity = {eccentricity} is neither 'thermal' nor in [0, 1)")
    massive, count = np.flatnonzero(mass > 0), round(fraction * n)
    if count > len(massive):
        raise ArgumentError(
            f"fraction = {fraction}: {count} binaries of {len(massive)} bodies with mass"
        )

    if not count:
        return sampling.Particles(mass.copy(), pos.copy(), vel.copy())
    random = sampling.generator(seed, "binaries")
    chosen = np.sort(random.choice(massive, count, replace=False))
    axis = axis_range[0] * np.exp(random.random(count) * math.log(axis_range[1] / axis_range[0]))
    ratio = ratio_range[0] + random.random(count) * (ratio_range[1] - ratio_range[0])
    e = np.sqrt(random.random(count))
    if not isinstance(eccentricity, str):
        e[:] = eccentricity
    apart, motion = _orbits(random, mass[chosen], axis, e)
    first = mass[chosen] / (1 + ratio)
    second = mass[chosen] - first
    weight = np.column_stack([-second, first]) / mass[chosen][:, None]
    members = [
        (centre[chosen][:, None] + weight[:, :, None] * relative[:, None]).reshape(-1, 3)
        for centre, relative in ((pos, apart), (vel, motion))
    ]
    rest = np.delete(np.arange(n), chosen)
    return sampling.Particles(
        np.concatenate([np.column_stack([first, second]).ravel(), mass[rest]]),
        np.concatenate([members[0], pos[rest]]),
        np.concatenate([members[1], vel[rest]]),
    )


def _pair(name: str, values: tuple[float, float] | float) -> tuple[float, float]:
    """Two ascending numbers above zero; one number counts twice."""
    low, high = map(float, validate.floats(name, values, (2,)))
    if not 0 < low <= high:
        raise ArgumentError(f"{name} = {values}: give the smallest and the largest, above zero")
    return low, high


def _orbits(
    random: np.random.Generator, mass: Floats, axis: Floats, e: Floats
) -> tuple[Floats, Floats]:
    """Relative positions and velocities on orbits of random orientation and phase."""
    n = len(mass)
    periapsis = sampling.directions(random, n)  # P
    across = np.cross(sampling.directions(random, n), periapsis)
    across /= np.sqrt((across**2).sum(axis=1))[:, None]  # Q
    anomaly = eccentric_anomaly(2 * math.pi * random.random(n), e)
    cosine, sine, root = np.cos(anomaly), np.sin(anomaly), np.sqrt((1 - e) * (1 + e))
    apart = (axis * (cosine - e))[:, None] * periapsis + (axis * root * sine)[:, None] * across
    speed = np.sqrt(mass / axis) / (1 - e * cosine)
    motion = (speed * root * cosine)[:, None] * across - (speed * sine)[:, None] * periapsis
    return apart, motion

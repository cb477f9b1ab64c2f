"""The time scale of bodies, of which the largest step is a part.

It is that of bodies with mass alone, so that others do not change their steps, and a median, so
that neither one heavy body, nor one that is far away, nor hard binaries decide. For two bodies it
depends on what their orbit conserves, not on where on it they are.
"""

import math

import numpy as np

from grape6py import diagnostics
from grape6py._arrays.kinds import Attributes, Floats
from grape6py.bound_pairs import binaries
from grape6py.integrators.external import External
from grape6py.integrators.orbit_frame import turning_times

# Semi-major axis over pericentre of an orbit, at most.
_FAR = 2.0**14


def time_scale(
    mass: Floats, pos: Floats, vel: Floats, eps: float, outside: External | None, of: Attributes
) -> float:
    """sqrt(r^3 / M), where M is the mass of all (times G), and M / r the median depth of the
    potential; 1 if nothing attracts.

    A bound pair of nearest neighbours counts as one body. Two such make r = 3/2 a, the mean
    distance on a narrow orbit. With less than two bodies with mass it is the median over the orbits
    about that body, or in the field. `of` are options of :func:`diagnostics.potential`.
    """
    heavy = np.flatnonzero(mass > 0)
    if len(heavy) > 1:
        found = _of_heavy(mass[heavy], pos[heavy], vel[heavy], eps, of)
        return found if math.isfinite(found) else 1.0
    times = np.full(len(mass), np.inf)
    if len(heavy) == 1:
        m, others = mass[heavy], np.flatnonzero(mass <= 0)
        radius = _radius(m, pos[others] - pos[heavy], vel[others] - vel[heavy], eps)
        times[others] = radius * np.sqrt(radius / m)
    if outside is not None and len(mass):
        start = np.zeros((2, 3)) if outside.orbit_frame is None else outside.orbit_frame.start
        times = np.fmin(times, turning_times(outside.alone(), pos + start[0], vel + start[1]))
    times = times[np.isfinite(times) & (times > 0)]
    return float(np.median(times)) if len(times) else 1.0


def _of_heavy(mass: Floats, pos: Floats, vel: Floats, eps: float, of: Attributes) -> float:
    total = math.fsum(mass)
    pairs = binaries(mass, pos, vel, eps)
    one, two = pairs.first, pairs.second  # the heavier body first
    systems = np.delete(np.arange(len(mass)), two)
    if len(systems) > 2:
        depth = -diagnostics.potential(mass, pos, eps, **of)
        apart = np.sqrt(((pos[one] - pos[two]) ** 2).sum(axis=1) + eps * eps)
        depth[one] -= mass[two] / apart
        radius = total / np.sort(depth[systems])[len(systems) // 2]
    else:
        if len(systems) == 2:  # each at its centre of mass
            mass, pos, vel = mass.copy(), pos.copy(), vel.copy()
            for array in (pos, vel):
                array[one] += (mass[two] / (mass[one] + mass[two]))[:, None] * (
                    array[two] - array[one]
                )
            one, two = systems[:1], systems[1:]
        radius = float(_radius(total, pos[two] - pos[one], vel[two] - vel[one], eps)[0])
    return float(radius * math.sqrt(radius / total)) if radius > 0 else math.inf


def _radius(mass: Floats | float, apart: Floats, motion: Floats, eps: float) -> Floats:
    """Of orbits with a total mass: 3/2 of the semi-major axis; the distance if it is not bound, or
    so little that rounding errors may have bound it."""
    distance = np.sqrt((apart**2).sum(axis=1) + eps * eps)
    pericentre = (np.cross(apart, motion) ** 2).sum(axis=1) / (2 * mass)  # of a parabola
    with np.errstate(divide="ignore", invalid="ignore"):
        energy = (motion**2).sum(axis=1) / 2 - mass / distance
        axis = -mass / (2 * energy)
    is_bound = (energy < 0) & (axis <= _FAR * np.maximum(pericentre, eps))
    radius: Floats = np.where(is_bound, 1.5 * axis, distance)
    return radius

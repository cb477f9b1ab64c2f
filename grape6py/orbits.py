"""Orbits in a field from outside: ``fields.orbit``."""

from typing import NamedTuple

import numpy as np

from grape6py._arrays import validate
from grape6py._arrays.kinds import Attributes, Floats, Numbers
from grape6py.errors import ArgumentError
from grape6py.in_units import taken
from grape6py.integrators.external import AnyField
from grape6py.integrators.hermite import Hermite
from grape6py.units import Units

_STEPS: Attributes = {"eta": 2.0**-16, "backend": "cpu"}


class Orbit(NamedTuple):
    """Where bodies without mass are at m times.

    Attributes
    ----------
    time : ndarray, shape (m,); a float if one was given
    pos, vel : ndarray, shape (m, n, 3)
        Without the axis m for one time, and without n for one body.
    """

    time: Floats
    pos: Floats
    vel: Floats


@taken()
def orbit(
    field: AnyField,
    pos: Numbers,
    vel: Numbers,
    t: Numbers,
    *,
    G: float = 1.0,
    units: Units | None = None,
) -> Orbit:
    """Follow bodies without mass through a field, on in time or back.

    Parameters
    ----------
    field : Field or callable
        As of :class:`Hermite`. One that depends on time is that of time 0 at the start.
    pos, vel : array_like, shape (3,) or (n, 3)
        At time 0.
    t : float or array_like, shape (m,)
        Times, in any order; before the start if below zero.
    G : float
        Of the field's masses.
    units : Units, optional
        Of plain numbers: what is given back are quantities.

    Returns
    -------
    Orbit
        With one time and one body, its `pos` and `vel` are what ``Hermite(..., orbit=)`` takes.

    Raises
    ------
    ArgumentError, NotFiniteError
        (ValueErrors) for wrong shapes or values.

    Examples
    --------
    Where the Sun was three quarters of a turn ago:

    >>> from math import pi
    >>> from grape6py import fields
    >>> there = fields.orbit(fields.mwpotential2014(), [1, 0, 0], [0, 1, 0], -1.5 * pi)
    >>> abs(there.pos - [0, 1, 0]).max() < 1e-9
    True
    """
    times = validate.reals("t", t)
    if times.ndim > 1:
        raise ArgumentError(f"t has shape {times.shape}: give one time or a list")
    shape = validate.reals("pos", pos).shape
    x = validate.floats("pos", np.atleast_2d(validate.reals("pos", pos)), (None, 3))
    v = validate.floats("vel", np.atleast_2d(validate.reals("vel", vel)), (len(x), 3))
    at = validate.floats("t", np.atleast_1d(times), (None,))
    found = np.empty((2, len(at), len(x), 3))
    for way in (1, -1):
        rows = np.flatnonzero(at >= 0) if way > 0 else np.flatnonzero(at < 0)
        rows = rows[np.argsort(way * at[rows], kind="stable")]
        if not len(rows):
            continue
        with Hermite(np.zeros(len(x)), x, v, field=field, G=G, **_STEPS) as bodies:
            for row in rows:
                bodies.evolve(float(at[row]))
                found[:, row] = bodies.pos, bodies.vel
    if len(shape) == 1:
        found = found[:, :, 0]
    if not times.ndim:
        return Orbit(float(at[0]), *found[:, 0])  # type: ignore[arg-type]
    return Orbit(at, *found)

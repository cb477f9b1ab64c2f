"""The tidal radius of a cluster in the field of its galaxy."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from grape6py._arrays import validate
from grape6py._arrays.kinds import Floats, Untyped
from grape6py.errors import ArgumentError
from grape6py.fields import Field
from grape6py.in_units import taken
from grape6py.units import Units

_STEP = 1 / 512  # of the differences, as a share of the distance from the galaxy's centre
# Sixth-order first derivative from values at 1, 2 and 3 steps on both sides.
_WEIGHTS = np.array([-1, 9, -45, 45, -9, 1]) / 60
_PLACES = np.array([-3, -2, -1, 1, 2, 3])


@taken()
def tidal_radius(
    field: Callable[[float, Floats, Floats], Sequence[Untyped]],
    mass: float,
    pos: ArrayLike,
    vel: ArrayLike,
    *,
    time: float = 0.0,
    G: float = 1.0,
    units: Units | None = None,
) -> float:
    """Radius at which the tide of an external field balances a cluster's own pull.

    Parameters
    ----------
    field : callable
        field(t, pos, vel) gives the acceleration, shape (n, 3), at n positions and velocities,
        shape (n, 3), as the first of several results: acc, jerk, pot.
    mass : float
        Of the cluster, above 0.
    pos, vel : array_like, shape (3,)
        Of its centre, relative to the galaxy's.
    time : float
        At which the field is asked.
    G : float
        Constant of gravity, of the cluster's and of a built-in field's masses; 4.30091e-3 for pc,
        km/s and solar masses.
    units : Units, optional
        Of arguments and result, in which these are or may be quantities.

    Returns
    -------
    float
        (G M / (Omega^2 - d^2 Phi / dR^2))^(1/3), with the angular velocity Omega of the centre
        about the galaxy's, and the second derivative along the radius.

    Raises
    ------
    ArgumentError, NotFiniteError
        (ValueErrors) for wrong parameters, a field that is not of that form, or a tide that
        compresses the cluster.

    Notes
    -----
    King 1962, AJ 67, 471, equation 6; Renaud, Gieles & Boily 2011, MNRAS 418, 759. Differences
    of sixth order, over 1/85 of R: the field should be smooth over that.
    """
    mass, G = validate.positive("mass", mass), validate.positive("G", G)
    time = validate.number("time", time)
    pos, vel = validate.floats("pos", pos, (3,)), validate.floats("vel", vel, (3,))
    radius = float(np.sqrt(pos @ pos))
    if radius == 0:
        raise ArgumentError("pos is the galaxy's centre: there is no direction of the tide")
    outward = pos / radius
    places = pos + np.multiply.outer(_PLACES * _STEP * radius, outward)
    if isinstance(field, Field):
        field = field.with_gravity(G)
    results = field(time, places, np.tile(vel, (len(places), 1)))
    if not isinstance(results, tuple | list) or not results:
        raise ArgumentError(
            f"field(t, pos, vel) gives {type(results).__name__}, not a tuple of acc, jerk, pot"
        )
    acc = validate.floats("acc of field", results[0], places.shape)
    along = float(_WEIGHTS @ (acc @ outward)) / (_STEP * radius)  # -d^2 Phi / dR^2
    spin = np.cross(pos, vel) / radius**2
    tide = float(spin @ spin) + along
    if not tide > 0:
        raise ArgumentError(
            f"the tide at pos = {pos} compresses the cluster (Omega^2 - d^2 Phi / dR^2 = "
            f"{tide:.4g}): there is no tidal radius"
        )
    return float((G * mass / tide) ** (1 / 3))

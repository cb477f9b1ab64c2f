"""Bodies as arrays."""

from typing import NamedTuple

from grape6py._arrays.kinds import Floats


class Particles(NamedTuple):
    """Masses, positions and velocities of n bodies.

    Attributes
    ----------
    mass : ndarray of float64, shape (n,)
    pos, vel : ndarray of float64, shape (n, 3)
    """

    mass: Floats
    pos: Floats
    vel: Floats

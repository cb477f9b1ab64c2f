"""``accelerations``: what particles do to each other, in one call."""

from __future__ import annotations

from grape6py._arrays import libraries, validate
from grape6py._arrays.kinds import Numbers, Untyped
from grape6py.forces.grape6 import Grape6
from grape6py.in_units import taken
from grape6py.units import Units


@taken()
def accelerations(
    mass: Numbers,
    pos: Numbers,
    eps: float = 0.0,
    *,
    vel: Numbers | None = None,
    jerk: bool = False,
    potential: bool = False,
    G: float = 1.0,
    units: Units | None = None,
    backend: str = "auto",
    precision: str | None = None,
    threads: int | None = None,
) -> Untyped:
    """Accelerations of particles by the gravity of all others, by the direct sum.

    :class:`Grape6` keeps particles for many sums, and has neighbours; :class:`Tree` is faster from
    some 10^5 particles on.

    Parameters
    ----------
    mass : float or array_like, shape (n,)
    pos : array_like, shape (n, 3)
    eps : float
        Softening length.
    vel : array_like, shape (n, 3), optional
        Velocities, for the jerk; zero by default.
    jerk, potential : bool
        Give the time derivatives of the accelerations, and the potential, too.
    G : float
        The gravitational constant.
    units : Units, optional
        Units of the numbers: then, or if mass and pos are quantities (of astropy or AMUSE), all
        that has a unit may be given as a quantity, and comes out as such. See docs/formats.md.
    backend, precision, threads
        As in :class:`Grape6`.

    Returns
    -------
    ndarray, shape (n, 3), or tuple
        Accelerations; (acc, jerk), (acc, pot) or (acc, jerk, pot) if more is asked for, with pot of
        shape (n,). Arrays of the kind that came in: NumPy's, CuPy's, PyTorch's or JAX's.

    Raises
    ------
    ArgumentError, NotFiniteError
        (ValueErrors) for wrong shapes or values.
    Grape6Error
        Whatever else the library reports.

    Examples
    --------
    >>> from grape6py import accelerations
    >>> accelerations([1.0, 1.0], [[0.0, 0.0, 0.0], [2.0, 0.0, 0.0]])
    array([[ 0.25,  0.  ,  0.  ],
           [-0.25,  0.  ,  0.  ]])
    """
    del units  # of taken
    validate.order("accelerations(mass, pos)", mass, pos)
    G = validate.positive("G", G)
    library = libraries.library_of((mass, pos, vel))
    with Grape6(backend=backend, precision=precision, threads=threads, jerk=jerk) as grape:
        grape.set_particles(mass, pos, vel)
        acc, of_acc, pot, *_ = grape.forces(eps=eps)
    requested = [acc, of_acc if jerk else None, pot if potential else None]
    given = (array if G == 1 else array * G for array in requested if array is not None)
    found = [libraries.given_to(library, array) for array in given]
    return found[0] if len(found) == 1 else tuple(found)

"""Fields of other packages: galpy's, gala's and Agama's potentials, and functions for acceleration.

These packages are optional (``pip install 'grape6py[galpy]'`` and so on). All of them compute on
the CPU: arrays of a CUDA device go there and back. None gives the jerk, which is found by
differences of the acceleration along the path: jerk = (a(t + h, x + h v) - a(t - h, x - h v)) / 2h,
with h so small a part of |v| / |a| and |x| / |v| that it has nine or more digits.
"""

import contextlib
import importlib
from collections.abc import Callable

import numpy as np

from grape6py._arrays import validate
from grape6py._arrays.kinds import Attributes, Floats, Untyped
from grape6py.errors import ArgumentError
from grape6py.fields.analytic import FieldValues

_SHARE = 1e-5  # of the time in which a path changes; an error of the square of that


class _ByDifferences:
    """A field whose jerk is found by differences. A subclass has acceleration and potential."""

    acceleration: Callable[[float, Floats], Floats]
    potential: Callable[[float, Floats], Floats]
    _name: str

    def __repr__(self) -> str:
        return self._name

    def __call__(self, t: float, pos: Untyped, vel: Untyped) -> FieldValues:
        if hasattr(pos, "get") and not isinstance(pos, np.ndarray):  # CuPy's
            import cupy

            return FieldValues(*map(cupy.asarray, self(t, pos.get(), vel.get())))
        pos, vel = validate.floats("pos", pos, (None, 3)), validate.floats("vel", vel, (None, 3))
        acc = np.array(validate.floats("the acceleration", self.acceleration(t, pos), pos.shape))
        jerk = np.zeros_like(acc)
        step = self._step(pos, vel, acc)
        for h in set(step.tolist()):  # not one for each body: potentials may depend on time
            rows = slice(None) if (step == h).all() else step == h
            ahead = np.asarray(self.acceleration(t + h, pos[rows] + h * vel[rows]), float)
            behind = np.asarray(self.acceleration(t - h, pos[rows] - h * vel[rows]), float)
            jerk[rows] = (ahead - behind) / (2 * h)
        validate.check_finite("the acceleration beside the path", jerk)
        pot = validate.floats("the potential", self.potential(t, pos), (len(pos),))
        return FieldValues(acc, jerk, pot)

    @staticmethod
    def _step(pos: Floats, vel: Floats, acc: Floats) -> Floats:
        """Powers of 64, of which there are few, of at least a 64th of the wanted share."""
        r, v, a = (np.sqrt((array**2).sum(axis=1)) for array in (pos, vel, acc))
        with np.errstate(divide="ignore", invalid="ignore"):
            time = np.fmin(np.fmin(r / v, v / a), np.sqrt(r / a))
        time = np.where(np.isfinite(time) & (time > 0), time, 1.0)
        step: Floats = np.ldexp(1.0, np.frexp(_SHARE * time)[1] // 6 * 6)
        return step


class _OfFunctions(_ByDifferences):
    """That of a caller's functions."""

    def __init__(self, acceleration: Untyped, potential: Untyped, name: str) -> None:
        self.acceleration, self._potential, self._name = acceleration, potential, name

    def potential(self, t: float, pos: Floats) -> Floats:
        return np.zeros(len(pos)) if self._potential is None else self._potential(t, pos)


class _OfGalpy(_ByDifferences):
    def __init__(self, potential: Untyped, radius: float, speed: float) -> None:
        self._potential, self._radius, self._speed = potential, radius, speed
        self.is_natural = radius == speed == 1.0  # which no units but galpy's are
        self._name = f"galpy potential with radius {radius:g} and speed {speed:g}"
        self._module()

    @staticmethod
    def _module() -> Untyped:
        return importlib.import_module("galpy.potential")

    def _cylindrical(self, t: float, pos: Floats) -> tuple[Floats, Floats, Attributes]:
        x, y, z = pos.T / self._radius
        time = t * self._speed / self._radius
        return np.hypot(x, y), z, {"phi": np.arctan2(y, x), "t": time, "use_physical": False}

    def acceleration(self, t: float, pos: Floats) -> Floats:
        r, z, at = self._cylindrical(t, pos)
        galpy, potential = self._module(), self._potential
        out = galpy.evaluateRforces(potential, r, z, **at)
        up = galpy.evaluatezforces(potential, r, z, **at)
        turn = galpy.evaluatephitorques(potential, r, z, **at)
        with np.errstate(divide="ignore", invalid="ignore"):
            across = np.where(r > 0, turn / r, 0.0)
        cosine, sine = np.cos(at["phi"]), np.sin(at["phi"])
        found = [out * cosine - across * sine, out * sine + across * cosine, up + 0 * r]
        return np.column_stack(found) * (self._speed**2 / self._radius)

    def potential(self, t: float, pos: Floats) -> Floats:
        r, z, at = self._cylindrical(t, pos)
        found = self._module().evaluatePotentials(self._potential, r, z, **at)
        return np.asarray(found * self._speed**2 + 0 * r)


class _OfGala(_ByDifferences):
    """gala's units cost milliseconds a call. The functions below them take and give bare arrays,
    but are private: they are called where they give the same numbers."""

    _name = "gala potential"

    def __init__(self, potential: Untyped) -> None:
        self._potential, self._is_bare = potential, False
        probe = np.array([[1.0, 0.5, 0.25], [-2.0, 1.0, 0.75]])  # not as many as dimensions
        wanted = self.acceleration(0.0, probe), self.potential(0.0, probe)
        self._is_bare = True
        with contextlib.suppress(AttributeError, TypeError, ValueError):
            found = self.acceleration(0.0, probe), self.potential(0.0, probe)
            if all(map(np.array_equal, found, wanted)):
                return
        self._is_bare = False

    def _given(self, t: float, pos: Floats) -> tuple[Untyped, Untyped]:
        units = self._potential.units
        return np.ascontiguousarray(pos.T) * units["length"], t * units["time"]

    def acceleration(self, t: float, pos: Floats) -> Floats:
        if self._is_bare:
            return -np.asarray(
                self._potential._gradient(np.ascontiguousarray(pos.T), np.array([t], float)).T
            )
        where, when = self._given(t, pos)
        found = self._potential.acceleration(where, t=when)
        return np.asarray(found.decompose(self._potential.units).value.T)

    def potential(self, t: float, pos: Floats) -> Floats:
        if self._is_bare:
            return np.asarray(
                self._potential._energy(np.ascontiguousarray(pos), np.array([t], float))
            )
        where, when = self._given(t, pos)
        found = self._potential.energy(where, t=when)
        return np.asarray(found.decompose(self._potential.units).value)


class _OfAgama(_ByDifferences):
    _name = "Agama potential"

    def __init__(self, potential: Untyped) -> None:
        self._potential = potential

    def acceleration(self, t: float, pos: Floats) -> Floats:
        return np.asarray(self._potential.force(pos, t=t))

    def potential(self, t: float, pos: Floats) -> Floats:
        return np.asarray(self._potential.potential(pos, t=t))


def from_acceleration(
    acceleration: Callable[[float, Floats], Floats],
    potential: Callable[[float, Floats], Floats] | None = None,
    *,
    name: str = "from_acceleration",
) -> Callable[[float, Untyped, Untyped], FieldValues]:
    """A field from a function of time and place, whose jerk is found by differences.

    Parameters
    ----------
    acceleration : callable
        acceleration(t, pos), with pos of shape (n, 3), gives an array of that shape.
    potential : callable, optional
        potential(t, pos) gives one of shape (n,). Without, energies lack it.
    name : str
        What files of a run say of it.

    Returns
    -------
    callable
        ``field(t, pos, vel)``
    """
    return _OfFunctions(acceleration, potential, name)


def from_galpy(potential: Untyped, *, radius: float = 1.0, speed: float = 1.0) -> Untyped:
    """A field from a galpy potential, or a list of them.

    Parameters
    ----------
    potential : galpy.potential.Potential, or a list
    radius, speed : float
        What galpy's natural units of length and velocity are in yours: those of 8 kpc and
        220 km/s, if nothing else was set in galpy.

    Raises
    ------
    ImportError
        Without galpy: ``pip install galpy``.
    """
    radius, speed = validate.positive("radius", radius), validate.positive("speed", speed)
    return _OfGalpy(potential, radius, speed)


def from_gala(potential: Untyped) -> Untyped:
    """A field from a gala potential, in its unit system.

    Parameters
    ----------
    potential : gala.potential.PotentialBase
        With the units of the integration: for G = 1, ``DimensionlessUnitSystem()``.
    """
    return _OfGala(potential)


def from_agama(potential: Untyped) -> Untyped:
    """A field from an Agama potential, in the units that were set there.

    Parameters
    ----------
    potential : agama.Potential
    """
    if not (hasattr(potential, "force") and hasattr(potential, "potential")):
        raise ArgumentError(f"{potential!r} is no agama.Potential: it has no force and potential")
    return _OfAgama(potential)

"""What quantities of astropy and AMUSE are, and how they become numbers in units, and back.

in_units.py lets classes and functions take them. Everywhere else validate.py refuses them.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from grape6py._arrays.kinds import Untyped
from grape6py._arrays.unit_sizes import DIMENSIONS, FIRST_NAMES, named_size, size_of
from grape6py.errors import ArgumentError, MissingPackageError, UnitError

if TYPE_CHECKING:
    from types import ModuleType

    from grape6py.units import Units

_PACKAGES = "amuse", "pint", "unyt"  # whose quantities have no class attribute `unit`
# Fields of tuples that are quantities.
FIELDS = {
    "Particles": {"mass": "mass", "pos": "length", "vel": "velocity"},
    "Snapshot": {"mass": "mass", "pos": "length", "vel": "velocity"},
    "Energy": {"kinetic": "energy", "potential": "energy", "external": "energy"},
    "Forces": {"acc": "acceleration", "jerk": "jerk", "pot": "potential", "distance": "length"},
    "TreeForces": {"acc": "acceleration", "jerk": "jerk", "pot": "potential"},
    "FieldValues": {"acc": "acceleration", "jerk": "jerk", "pot": "potential"},
    "Nearest": {"distance": "length"},
    "Track": {"time": "time", "mass": "mass", "pos": "length", "vel": "velocity"},
    "History": {
        "time": "time",
        "radii": "length",
        **dict.fromkeys("kinetic potential external change total".split(), "energy"),
    },
    "Binaries": {"semi_major_axis": "length"},
    "Event": {"time": "time"},
    "StellarUpdate": {"mass": "mass", "next": "time", "kick": "velocity", "radius": "length"},
    "Orbits": {"a": "length", "P": "time", **dict.fromkeys("inc Omega omega f M".split(), "angle")},
    "Orbit": {"time": "time", "pos": "length", "vel": "velocity"},
    "Bound": {"mass": "mass"},
    "MassFunction": {"edges": "mass", "per_mass": "per mass", "error": "per mass"},
    "Profile": {
        "edges": "length",
        "radius": "length",
        "mass": "mass",
        "density": "density",
        "surface_density": "surface density",
        **dict.fromkeys(("dispersion", "radial", "tangential"), "velocity"),
    },
}


# ---- what quantities are ---------------------------------------------------------------------


def is_quantity(value: object) -> bool:
    """Whether a value has a unit, of any package's."""
    kind: Untyped = type(value)
    return _may_have_unit(kind) and getattr(value, "unit", "") is not None


@functools.cache
def _may_have_unit(kind: type) -> bool:
    """Whether a type is of quantities, or of columns of astropy's tables, which may have a unit."""
    if hasattr(kind, "unit"):
        return any(hasattr(kind, name) for name in ("to_value", "value_in", "quantity"))
    package = kind.__module__.partition(".")[0]
    return hasattr(kind, "value_in" if package == "amuse" else "to") and package in _PACKAGES


def one_of(unit: Untyped) -> Untyped:
    """The quantity that a unit of astropy or AMUSE is; None of what is none."""
    package = type(unit).__module__.partition(".")[0]
    if package == "amuse" and hasattr(unit, "new_quantity"):
        return unit.new_quantity(1.0)
    return 1.0 * unit if package == "astropy" and hasattr(unit, "decompose") else None


def holds_quantity(value: object, deep: int = 3) -> bool:
    """Whether a value is one, or has some in its lists, or in its array of objects."""
    parts: list[Untyped] = [value]
    for _ in range(deep + 1):
        kinds = set(map(type, parts))  # of a long list, too, these are few
        if any(map(_may_have_unit, kinds)) and any(map(is_quantity, parts)):
            return True
        arrays = (part for part in parts if type(part) is np.ndarray and part.dtype == object)
        if np.ndarray in kinds and any(any(map(is_quantity, array.flat)) for array in arrays):
            return True
        if not any(issubclass(kind, list | tuple) for kind in kinds):
            return False
        parts = [*chain.from_iterable(part for part in parts if isinstance(part, list | tuple))]
    return False


def first(value: Untyped) -> Untyped:
    """The first value in lists, or in an array of objects; another value as it is."""
    while isinstance(value, list | tuple) and value:
        value = value[0]
    if type(value) is np.ndarray and value.dtype == object and value.size:
        return value.flat[0]
    return value


def is_amuse(value: object) -> bool:
    kind = type(value)
    return kind.__module__.startswith("amuse.") and hasattr(kind, "value_in")


def unit_of(value: Untyped) -> str:
    """The unit's name, for messages."""
    return str(getattr(value, "unit", None) or getattr(value, "units", ""))


def without_unit(value: Untyped) -> Untyped:
    """What a quantity without dimension, as percents, is as a number; None for all others."""
    try:
        factor = _size(value, (0, 0, 0))
    except Exception:  # of either package
        return None
    return _times(bare_number(value), factor)[()]


def number(name: str, value: Untyped) -> Untyped:
    """Values that have no dimension as numbers; an ArgumentError for all others."""
    if not holds_quantity(value):
        return value
    if not is_quantity(value):
        parts = value.tolist() if isinstance(value, np.ndarray) else value
        return [number(name, part) for part in parts]
    found = without_unit(shown_of(name, value))
    if found is None:
        unit = unit_of(value) or "units"
        raise ArgumentError(
            f"{name} is a quantity in {unit}: a number is needed here; give units=Units(...) "
            "where that is taken"
        )
    return found


def shown_of(name: str, value: Untyped) -> Untyped:
    """A quantity of which no mask hides anything, on a linear scale."""
    if np.any(getattr(value, "mask", False)):
        raise ArgumentError(f"{name} is a masked quantity that hides values: leave those out")
    return getattr(value, "physical", value)  # of astropy's logarithmic units


def _size(value: Untyped, powers: tuple[int, int, int], *angles: Untyped) -> float:
    """Size of a quantity's unit in powers of gram, centimetre and second, or a package's error."""
    if is_amuse(value):
        return float(value.unit.new_quantity(1.0).value_in(_cgs(_module("amuse"), powers)))
    return float(value.unit.to(_cgs(_module("astropy"), powers), equivalencies=[*angles]))


def factor_of(name: str, value: Untyped, dimension: str) -> float:
    """What a number of a quantity's unit is in grams, centimetres and seconds."""
    if not hasattr(value, "unit"):
        raise ArgumentError(
            f"{name} is a quantity in {unit_of(value)} of {type(value).__module__}: those of "
            "astropy and AMUSE are taken"
        )
    angles: Untyped = ()
    if dimension in ("frequency", "angle") and not is_amuse(value):
        astropy: Untyped = _module("astropy")
        angles = astropy.dimensionless_angles()
    try:
        return _size(value, DIMENSIONS[dimension], *angles)
    except Exception as error:  # of either package
        unit = unit_of(value)
        known = f"in {unit}, which is no unit" if unit else "without a unit, not a quantity"
        raise ArgumentError(f"{name} is {known} of {dimension}") from error


def text(dimension: str, value: Untyped) -> str:
    """A scalar quantity as a unit's text: by the name of its unit, or in grams, centimetres, ..."""
    name = f"the unit of {dimension}"
    value = shown_of(name, value)
    size, count = factor_of(name, value, dimension), bare_number(value)
    if count.ndim:
        raise ArgumentError(f"{name} is {value}: not one quantity, but several")
    unit = "/".join(_OURS.get(part, part) for part in unit_of(value).replace(" ", "").split("/"))
    try:
        times = float(_times(count, size / size_of(dimension, unit)))  # other packages' Sun differs
    except ArgumentError:
        return named_size(dimension, float(count) * size)
    return unit if times == 1 else f"{times!r} {unit}"


def bare_number(value: Untyped) -> Untyped:
    """The number before a quantity's unit."""
    return np.asarray(value.number if is_amuse(value) else value.value)


# ---- numbers in units, and back ----------------------------------------------------------------


class Converter:
    """Makes numbers of quantities and quantities of numbers.

    Parameters
    ----------
    units : Units
        Of the numbers.
    package : {"astropy", "amuse"}
        Whose quantities are made.
    shown : dict, optional
        Units of mass, length, time and velocity in which they are made, as names or as the
        package's own: :attr:`Units.names` by default.
    """

    def __init__(
        self, units: Units, package: str = "astropy", shown: Mapping[str, Untyped] | None = None
    ) -> None:
        self.units, self.package = units, package
        self.shown = units.names | dict(shown or {})

    def numbers(
        self, name: str, value: Untyped, dimension: str | None, *, unitless: bool = False
    ) -> Untyped:
        """A quantity, or a tuple of bodies that are such, as numbers; what is none, as it is.

        Unless it may be `unitless`, a number with a dimension needs a unit: a UnitError.
        """
        fields = FIELDS.get(type(value).__name__)
        numbers = functools.partial(self.numbers, unitless=unitless)
        if fields is not None and isinstance(value, tuple):
            return value._replace(  # type: ignore[attr-defined]
                **{k: numbers(f"{name}.{k}", getattr(value, k), d) for k, d in fields.items()}
            )
        if type(value).__name__ == "Labelled":
            return value._replace(particles=numbers(name, value.particles, None))
        if name == "orbit" and isinstance(value, list | tuple) and len(value) == 2:
            pair = zip(("orbit[0]", "orbit[1]"), value, ("length", "velocity"), strict=True)
            return np.concatenate([np.ravel(numbers(*of)) for of in pair])
        if not holds_quantity(value):
            if name == "orbit" and not unitless and _needs_unit(value):
                raise UnitError("orbit has no units: give (position, velocity)")
            if dimension not in (None, "angle") and not unitless and _needs_unit(value):
                unit = self._unit(dimension)[1]
                raise UnitError(f"{name} has no unit: multiply it by one of {dimension}, as {unit}")
            return value
        if dimension is None:
            return number(name, value)
        if not is_quantity(value):
            parts = value.tolist() if isinstance(value, np.ndarray) else value
            if not all(map(holds_quantity, parts)):
                raise ArgumentError(f"{name} holds quantities, and numbers that have no unit")
            return [self.numbers(name, part, dimension) for part in parts]
        value = shown_of(name, value)
        factor = factor_of(name, value, dimension) / self.units.in_cgs(dimension)
        return _times(bare_number(value), factor)

    def given(self, value: Untyped, dimension: Untyped) -> Untyped:
        """Results as quantities."""
        if value is None:
            return None
        fields = FIELDS.get(type(value).__name__)
        if fields is not None and isinstance(value, tuple):
            if getattr(value, "kind", "") in ("encounter", "escape"):
                fields = fields | {"value": "length"}
            return value._replace(  # type: ignore[attr-defined]
                **{k: self.given(getattr(value, k), d) for k, d in fields.items()}
            )
        if type(value).__name__ == "Labelled":
            return value._replace(particles=self.given(value.particles, None))
        if isinstance(dimension, tuple):
            return tuple(self.given(*pair) for pair in zip(value, dimension, strict=False))
        if isinstance(value, list):  # of events
            return [self.given(part, dimension) for part in value]
        if dimension is None or not isinstance(value, np.ndarray | float | int):
            return value
        if dimension == "angle":
            radian = _module(self.package).rad
            return radian.new_quantity(value) if self.package == "amuse" else value << radian
        module, unit = self._unit(dimension)
        target = _cgs(module, DIMENSIONS[dimension])
        if self.package == "amuse":
            factor = self.units.in_cgs(dimension) / unit.new_quantity(1.0).value_in(target)
            return unit.new_quantity(_times(value, factor))
        return _times(value, self.units.in_cgs(dimension) / unit.to(target)) << unit

    def _unit(self, dimension: str) -> tuple[ModuleType, Untyped]:
        """Module of units, and the unit in which results of a dimension are given."""
        module = _module(self.package)
        mass, length, time, velocity = (
            _unit_named(module, self.shown[k]) for k in ("mass", "length", "time", "velocity")
        )
        return module, {
            "mass": mass, "length": length, "time": time, "velocity": velocity,
            "acceleration": velocity / time, "jerk": velocity / time**2,
            "potential": velocity**2, "energy": mass * velocity**2, "momentum": mass * velocity,
            "angular momentum": mass * length * velocity, "frequency": time**-1,
            "G": length * velocity**2 / mass, "density": mass / length**3,
            "surface density": mass / length**2, "per mass": mass**-1,
        }[dimension]  # fmt: skip


def _needs_unit(value: Untyped) -> bool:
    """Whether a value is of numbers whose meaning depends on the unit. Arrays of a GPU, which no
    package has with units, are numbers in the units that were said."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        return False
    return array.dtype.kind in "iuf" and bool((np.isfinite(array) & (array != 0)).any())


def _cgs(module: Untyped, powers: tuple[int, int, int]) -> Untyped:
    """A package's unit of powers of gram, centimetre and second."""
    mass, length, time = powers
    return module.g**mass * module.cm**length * module.s**time


def _times(value: Untyped, factor: float) -> Untyped:
    return value if abs(factor - 1) < 4e-15 else value * factor


def _module(package: str) -> ModuleType:
    try:
        return importlib.import_module(
            "amuse.units.units" if package == "amuse" else "astropy.units"
        )
    except ImportError as error:
        raise MissingPackageError(
            f"results in units are quantities of {package}, which is not installed "
            "(pip install grape6py[units])"
        ) from error


_OF_AMUSE = {"Msun": "MSun", "Rsun": "RSun", "pc": "parsec", "Mearth": "MEarth",
             "Mjup": "MJupiter"}  # fmt: skip
_OF_ASTROPY = {"Mearth": "earthMass", "Mjup": "jupiterMass"}
_OURS = FIRST_NAMES | {theirs: ours for ours, theirs in _OF_AMUSE.items()} | {"kms": "km/s"}


def _unit_named(module: ModuleType, name: Untyped) -> Untyped:
    """A unit as km/s of a module; what is one already, as it is."""
    if not isinstance(name, str):
        return name
    own = _OF_AMUSE if module.__name__.startswith("amuse") else _OF_ASTROPY
    above, _, below = (own.get(part, part) for part in name.partition("/"))
    unit = getattr(module, above)
    return unit / getattr(module, below) if below else unit

"""What quantities of astropy and AMUSE are, and how they become numbers in units, and back.

in_units.py lets classes and functions take them. Everywhere else validate.py refuses them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from grape6py._arrays.kinds import Untyped
from grape6py.errors import ArgumentError, MissingPackageError
from grape6py.units import DIMENSIONS, FIRST_NAMES, Units, size_of

if TYPE_CHECKING:
    from types import ModuleType

_NUMBERS = (type(None), float, int, str, bool)
# Fields of tuples that are quantities.
FIELDS = {
    "Particles": {"mass": "mass", "pos": "length", "vel": "velocity"},
    "Snapshot": {"mass": "mass", "pos": "length", "vel": "velocity"},
    "Energy": {"kinetic": "energy", "potential": "energy", "external": "energy"},
    "Forces": {"acc": "acceleration", "jerk": "jerk", "pot": "potential", "distance": "length"},
    "TreeForces": {"acc": "acceleration", "jerk": "jerk", "pot": "potential"},
    "FieldValues": {"acc": "acceleration", "jerk": "jerk", "pot": "potential"},
    "Nearest": {"distance": "length"},
    "Binaries": {"semi_major_axis": "length"},
    "Event": {"time": "time"},
}


# ---- what quantities are ---------------------------------------------------------------------


def is_quantity(value: object) -> bool:
    """Whether a value has a unit, of any package's."""
    kind = type(value)
    if kind in _NUMBERS or kind is np.ndarray or kind is list or kind is tuple:
        return False
    if hasattr(kind, "unit") and (hasattr(kind, "to_value") or hasattr(kind, "value_in")):
        return True
    if _is_amuse(value):
        return True
    return kind.__module__.partition(".")[0] in ("pint", "unyt") and hasattr(value, "units")


def holds_quantity(value: object, deep: int = 3) -> bool:
    """Whether a value is one, or has some in its lists, or in its array of objects."""
    if isinstance(value, list | tuple):
        # By their types first: a long list of floats is passed over quickly.
        plain = all(kind in _NUMBERS for kind in set(map(type, value)))
        return not plain and deep > 0 and any(holds_quantity(part, deep - 1) for part in value)
    if type(value) is np.ndarray:
        return value.dtype == object and any(map(is_quantity, value.flat))
    return is_quantity(value)


def _is_amuse(value: object) -> bool:
    return type(value).__module__.startswith("amuse.") and hasattr(value, "value_in")


def unit_of(value: Untyped) -> str:
    """The unit's name, for messages."""
    return str(getattr(value, "unit", None) or getattr(value, "units", ""))


def without_unit(value: Untyped) -> Untyped:
    """What a quantity without dimension, as percents, is as a number; None for all others."""
    if not _is_amuse(value) and hasattr(value, "to_value"):
        try:
            return value.to_value("")
        except Exception:  # astropy's UnitConversionError
            return None
    return None


def number(name: str, value: Untyped) -> Untyped:
    """Values that have no dimension as numbers; an ArgumentError for all others."""
    if not holds_quantity(value):
        return value
    if not is_quantity(value):
        parts = value.tolist() if isinstance(value, np.ndarray) else value
        return [number(name, part) for part in parts]
    found = without_unit(_shown(name, value))
    if found is None:
        unit = unit_of(value) or "units"
        raise ArgumentError(
            f"{name} is a quantity in {unit}: a number is needed here; give units=Units(...) "
            "where that is taken"
        )
    return found


def _shown(name: str, value: Untyped) -> Untyped:
    """A quantity of which no mask hides anything, on a linear scale."""
    if np.any(getattr(value, "mask", False)):
        raise ArgumentError(f"{name} is a masked quantity that hides values: leave those out")
    return getattr(value, "physical", value)  # of astropy's logarithmic units


def factor_of(name: str, value: Untyped, dimension: str) -> float:
    """What a number of a quantity's unit is in grams, centimetres and seconds."""
    if _is_amuse(value):
        target = _cgs(_module("amuse"), dimension)

        def convert() -> Untyped:
            return value.unit.new_quantity(1.0).value_in(target)

    elif hasattr(value, "to_value") and hasattr(value, "unit"):
        astropy: Untyped = _module("astropy")
        target = _cgs(astropy, dimension)
        angles = astropy.dimensionless_angles() if dimension == "frequency" else []

        def convert() -> Untyped:
            return value.unit.to(target, equivalencies=angles)

    else:
        raise ArgumentError(
            f"{name} is a quantity in {unit_of(value)} of {type(value).__module__}: those of "
            "astropy and AMUSE are taken"
        )
    try:
        return float(convert())
    except Exception as error:  # of either package
        unit = unit_of(value)
        known = f"in {unit}, which is no unit" if unit else "without a unit, not a quantity"
        raise ArgumentError(f"{name} is {known} of {dimension}") from error


def text(dimension: str, value: Untyped) -> str:
    """A scalar quantity as a unit's text: by the name of its unit, or in grams, centimetres, ..."""
    name = f"the unit of {dimension}"
    size = factor_of(name, value, dimension)
    count = _bare_number(value)
    if count.ndim:
        raise ArgumentError(f"{name} is {value}: not one quantity, but several")
    unit = FIRST_NAMES.get(unit_of(value), unit_of(value)).replace(" ", "")
    try:
        is_known = abs(size_of(dimension, unit) / size - 1) < 4e-15
    except ArgumentError:
        is_known = False
    if is_known:
        return unit if count == 1 else f"{float(count)!r} {unit}"
    cgs = {"mass": "g", "length": "cm", "time": "s", "velocity": "cm/s"}[dimension]
    return f"{float(count) * size!r} {cgs}"


def _bare_number(value: Untyped) -> Untyped:
    """The number before a quantity's unit."""
    return np.asarray(value.number if _is_amuse(value) else value.value)


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

    def numbers(self, name: str, value: Untyped, dimension: str | None) -> Untyped:
        """A quantity, or a tuple of bodies that are such, as numbers; what is none, as it is."""
        fields = FIELDS.get(type(value).__name__)
        if fields is not None and isinstance(value, tuple):
            return value._replace(  # type: ignore[attr-defined]
                **{k: self.numbers(f"{name}.{k}", getattr(value, k), d) for k, d in fields.items()}
            )
        if type(value).__name__ == "Labelled":
            return value._replace(particles=self.numbers(name, value.particles, None))
        if name == "orbit" and isinstance(value, list | tuple) and len(value) == 2:
            pair = zip(("orbit[0]", "orbit[1]"), value, ("length", "velocity"), strict=True)
            return np.concatenate([np.ravel(self.numbers(*of)) for of in pair])
        if not holds_quantity(value):
            return value
        if dimension is None:
            return number(name, value)
        if not is_quantity(value):
            parts = value.tolist() if isinstance(value, np.ndarray) else value
            return [self.numbers(name, part, dimension) for part in parts]
        value = _shown(name, value)
        factor = factor_of(name, value, dimension) / self.units.in_cgs(dimension)
        return _times(_bare_number(value), factor)

    def given(self, value: Untyped, dimension: Untyped) -> Untyped:
        """Results as quantities."""
        if value is None:
            return None
        fields = FIELDS.get(type(value).__name__)
        if fields is not None and isinstance(value, tuple):
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
        return self._quantity(value, dimension)

    def _quantity(self, value: Untyped, dimension: str) -> Untyped:
        module, unit = self._unit(dimension)
        target = _cgs(module, dimension)
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
            "angular momentum": mass * length * velocity, "frequency": 1 / time,
            "G": length * velocity**2 / mass, "density": mass / length**3,
        }[dimension]  # fmt: skip


def _cgs(module: Untyped, dimension: str) -> Untyped:
    """A package's unit of grams, centimetres and seconds."""
    mass, length, time = DIMENSIONS[dimension]
    return module.g**mass * module.cm**length * module.s**time


def _times(value: Untyped, factor: float) -> Untyped:
    return value if abs(factor - 1) < 4e-15 else value * factor


def _module(package: str) -> ModuleType:
    try:
        if package == "amuse":
            from amuse.units import units as module
        else:
            from astropy import units as module
    except ImportError as error:
        raise MissingPackageError(
            f"results in units are quantities of {package}, which is not installed "
            "(pip install grape6py[units])"
        ) from error
    found: ModuleType = module
    return found


_OF_AMUSE = {"Msun": "MSun", "Rsun": "RSun", "pc": "parsec", "Mearth": "MEarth",
             "Mjup": "MJupiter"}  # fmt: skip
_OF_ASTROPY = {"Mearth": "earthMass", "Mjup": "jupiterMass"}


def _unit_named(module: ModuleType, name: Untyped) -> Untyped:
    """A unit as km/s of a module; what is one already, as it is."""
    if not isinstance(name, str):
        return name
    own = _OF_AMUSE if module.__name__.startswith("amuse") else _OF_ASTROPY
    above, _, below = (own.get(part, part) for part in name.partition("/"))
    unit = getattr(module, above)
    return unit / getattr(module, below) if below else unit


_BODIES = {"mass": "mass", "pos": "length", "vel": "velocity"}


def converter_for(
    units: Units | None, given: Mapping[str, object], is_g_one: bool = False
) -> Converter | None:
    """What converts some arguments, or None if there are neither units nor quantities.

    Without `units` these are those of the arguments mass, pos and vel. `is_g_one`: numbers are in
    units with the same mass and length in which G = 1.
    """
    if units is not None and not isinstance(units, Units):
        raise ArgumentError(f"units = {units!r} are not Units(mass, length)")
    given = dict(given)
    for value in [*given.values()]:  # those of models
        bodies: Untyped = getattr(value, "particles", value)
        if type(bodies).__name__ in ("Particles", "Snapshot"):
            given |= bodies._asdict()
    package = "amuse" if any(map(_is_amuse, given.values())) else "astropy"
    shown: dict[str, Untyped] = {}
    if units is None:
        bodies = {name: given[name] for name in _BODIES if given.get(name) is not None}
        if "pos" not in given or not any(
            is_quantity(bodies.get(name)) and without_unit(bodies[name]) is None
            for name in ("mass", "pos")
        ):
            return None
        sizes: dict[str, Untyped] = {}
        for name, dimension in _BODIES.items():
            if name not in bodies and name == "vel":
                continue
            value = bodies.get(name)
            if not is_quantity(value):
                raise ArgumentError(f"{name} is no quantity, as others are: give units=Units(...)")
            factor_of(name, value, dimension)  # or an error
            value = _shown(name, value)
            shown[dimension] = value.unit
            sizes[dimension] = (
                value.unit.new_quantity(1.0) if _is_amuse(value) else 1.0 * value.unit
            )
        units = Units(**sizes)
    if is_g_one and units.G != 1:
        shown, units = units.names | shown, units.with_g_one()
    return Converter(units, package, shown)

"""Quantities of astropy and of AMUSE: taken where units are known, and given back.

What computes has plain numbers. :func:`takes_quantities` makes a class give an :class:`InUnits` of
itself when it is called with quantities or with `units`, and :func:`taken` does so for a function:
arguments become numbers, results quantities of the package that they came of, astropy's for
`units` alone. Everywhere else validate.py refuses quantities.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import numpy as np

from grape6py._arrays.kinds import Attributes, Untyped
from grape6py.errors import ArgumentError, MissingPackageError
from grape6py.units import DIMENSIONS, Units

if TYPE_CHECKING:
    from types import ModuleType

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)

_NUMBERS = (type(None), np.ndarray, float, int, str, list, bool)
# Dimensions of arguments by their names, in all that takes quantities.
_ARGUMENTS = {
    "mass": "mass", "source_mass": "mass",
    **dict.fromkeys("pos source_pos targets eps radius boundary centre h scale a b core cutoff "
                    "pericentre separation".split(), "length"),
    "vel": "velocity", "speed": "velocity", "acc": "acceleration", "last_acc": "acceleration",
    "bound": "acceleration", "jerk": "jerk",
    **dict.fromkeys("t time dt dt_max every".split(), "time"),
    "G": "G", "omega": "frequency",
}  # fmt: skip
# Dimensions of results by the names of methods and attributes, ...
_RESULTS: dict[str, Untyped] = {
    "mass": "mass", "pos": "length", "vel": "velocity", "acc": "acceleration", "jerk": "jerk",
    "time": "time", "step_sizes": "time", "G": "G", "origin": ("length", "velocity"),
    "potential": "potential", "energy_change": "energy", "momentum": "momentum",
    "angular_momentum": "angular momentum", "centre_of_mass": "length",
    "lagrangian_radii": "length", "walks": ("acceleration", "potential"), "bound": "acceleration",
    "tidal_radius": "length",
}  # fmt: skip
# ... and by the fields of tuples.
_FIELDS = {
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
    if type(value) in _NUMBERS:
        return False
    kind = type(value)
    if hasattr(kind, "unit") and (hasattr(kind, "to_value") or hasattr(kind, "value_in")):
        return True
    if _is_amuse(value):
        return True
    return kind.__module__.partition(".")[0] in ("pint", "unyt") and hasattr(value, "units")


def _is_amuse(value: object) -> bool:
    return type(value).__module__.startswith("amuse.") and hasattr(value, "value_in")


def unit_of(value: Untyped) -> str:
    """The unit's name, for messages."""
    return str(getattr(value, "unit", None) or getattr(value, "units", ""))


def number(name: str, value: Untyped) -> Untyped:
    """A quantity without a unit as a number; an ArgumentError for all others."""
    if not _is_amuse(value) and hasattr(value, "to_value"):
        try:
            return value.to_value("")
        except Exception:  # astropy's UnitConversionError
            pass
    raise ArgumentError(
        f"{name} is a quantity in {unit_of(value)}: a number is needed here; give units=Units(...) "
        "where that is taken"
    )


def _factor(name: str, value: Untyped, dimension: str) -> float:
    """What a number of a quantity's unit is in grams, centimetres and seconds."""
    if _is_amuse(value):
        target = _cgs(_module("amuse"), dimension)

        def convert() -> Untyped:
            return value.unit.new_quantity(1.0).value_in(target)

    elif hasattr(value, "to_value"):
        target = _cgs(_module("astropy"), dimension)

        def convert() -> Untyped:
            return value.unit.to(target)

    else:
        raise ArgumentError(
            f"{name} is a quantity in {unit_of(value)} of {type(value).__module__}: those of "
            "astropy and AMUSE are taken"
        )
    try:
        return float(convert())
    except Exception as error:  # of either package
        raise ArgumentError(
            f"{name} is in {unit_of(value)}, which is no unit of {dimension}"
        ) from error


def text(dimension: str, value: Untyped) -> str:
    """A scalar quantity as a unit's text: by the name of its unit, or in grams, centimetres, ..."""
    from grape6py import units

    size = _factor(f"the unit of {dimension}", value, dimension)
    count = float(_bare_number(value))
    name = units.FIRST_NAMES.get(unit_of(value), unit_of(value)).replace(" ", "")
    try:
        is_known = abs(units.size_of(dimension, name) / size - 1) < 4e-15
    except ArgumentError:
        is_known = False
    if is_known:
        return name if count == 1 else f"{count!r} {name}"
    cgs = {"mass": "g", "length": "cm", "time": "s", "velocity": "cm/s"}[dimension]
    return f"{count * size!r} {cgs}"


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
    names : dict, optional
        Units in which they are made: :attr:`Units.names` by default.
    """

    def __init__(
        self, units: Units, package: str = "astropy", names: dict[str, str] | None = None
    ) -> None:
        self.units, self.package = units, package
        self.names = names or units.names

    def numbers(self, name: str, value: Untyped, dimension: str | None) -> Untyped:
        """A quantity, or a tuple of bodies that are such, as numbers; what is none, as it is."""
        fields = _FIELDS.get(type(value).__name__)
        if fields is not None and isinstance(value, tuple):
            return value._replace(  # type: ignore[attr-defined]
                **{k: self.numbers(f"{name}.{k}", getattr(value, k), d) for k, d in fields.items()}
            )
        if type(value).__name__ == "Labelled":
            return value._replace(particles=self.numbers(name, value.particles, None))
        if name == "orbit" and isinstance(value, list | tuple) and len(value) == 2:
            pair = zip(("orbit[0]", "orbit[1]"), value, ("length", "velocity"), strict=True)
            return np.concatenate([np.ravel(self.numbers(*of)) for of in pair])
        if isinstance(value, list | tuple) and any(map(is_quantity, value)):
            return type(value)(self.numbers(name, part, dimension) for part in value)
        if not is_quantity(value):
            return value
        if dimension is None:
            return number(name, value)
        factor = _factor(name, value, dimension) / self.units.in_cgs(dimension)
        found = _bare_number(value)
        return found if abs(factor - 1) < 4e-15 else found * factor

    def given(self, value: Untyped, dimension: Untyped) -> Untyped:
        """Results as quantities."""
        if value is None:
            return None
        fields = _FIELDS.get(type(value).__name__)
        if fields is not None and isinstance(value, tuple):
            return value._replace(  # type: ignore[attr-defined]
                **{k: self.given(getattr(value, k), d) for k, d in fields.items()}
            )
        if type(value).__name__ == "Labelled":
            return value._replace(particles=self.given(value.particles, None))
        if isinstance(dimension, tuple):
            return tuple(self.given(*pair) for pair in zip(value, dimension, strict=False))
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
            _unit_named(module, self.names[k]) for k in ("mass", "length", "time", "velocity")
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


def _unit_named(module: ModuleType, name: str) -> Untyped:
    """A unit as km/s of a module."""
    above, _, below = name.partition("/")
    if module.__name__.startswith("amuse"):
        names = [_OF_AMUSE.get(part, part) for part in (above, below)]
    else:
        names = ["earthMass" if n == "Mearth" else "jupiterMass" if n == "Mjup" else n
                 for n in (above, below)]  # fmt: skip
    unit = getattr(module, names[0])
    return unit / getattr(module, names[1]) if below else unit


def converter_for(
    units: Units | None, given: Mapping[str, object], is_g_one: bool = False
) -> Converter | None:
    """What converts some arguments, or None if there are neither units nor quantities.

    Without `units` these are those of the arguments mass, pos and vel. `is_g_one`: numbers are in
    units with the same mass and length in which G = 1.
    """
    given = dict(given)
    for value in [*given.values()]:  # those of models
        bodies: Untyped = getattr(value, "particles", value)
        if type(bodies).__name__ in ("Particles", "Snapshot"):
            given |= bodies._asdict()
    found = [value for value in given.values() if is_quantity(value)]
    if units is None and not any(is_quantity(given.get(k)) for k in ("mass", "pos")):
        return None
    package = "amuse" if any(map(_is_amuse, found)) else "astropy"
    if units is None:
        mass, pos, vel = (given.get(name) for name in ("mass", "pos", "vel"))
        for name, value in (("mass", mass), ("pos", pos)):
            if not is_quantity(value):
                raise ArgumentError(f"{name} is no quantity, as others are: give units=Units(...)")
        unit = [_one_of(value) for value in (mass, pos)]
        units = Units(*unit, velocity=_one_of(vel) if is_quantity(vel) else None)
    elif not isinstance(units, Units):
        raise ArgumentError(f"units = {units!r} are not Units(mass, length)")
    names = units.names
    if is_g_one and units.G != 1:
        units = units.with_g_one()
    return Converter(units, package, names)


def _any(values: list[object]) -> bool:
    """Whether one of some arguments is a quantity or has such."""
    for value in values:
        if is_quantity(value):
            return True
        if isinstance(value, tuple | list) and _any([*value][:3]):
            return True
    return False


def _one_of(value: Untyped) -> Untyped:
    """One of a quantity's unit."""
    return value.unit.new_quantity(1.0) if _is_amuse(value) else 1.0 * value.unit


# ---- classes and functions that take quantities --------------------------------------------------


def bare(value: Untyped) -> Untyped:
    """The object of plain numbers in an InUnits, or what it is."""
    return value.__dict__["_bare"] if type(value) is InUnits else value


def converter_of(value: Untyped) -> Converter | None:
    """How an InUnits is seen; None for other objects."""
    return value.__dict__["_converter"] if type(value) is InUnits else None


def takes_quantities(cls: C) -> C:
    """Let a class that has an argument `units` take quantities."""

    def __new__(kind: type, *arguments: Untyped, **options: Untyped) -> Untyped:
        own: Untyped = super(cls, kind)
        if options.get("units") is None and not _any([*arguments, *options.values()]):
            return own.__new__(kind)
        names = inspect.signature(kind.__init__).parameters  # type: ignore[misc]
        given = dict(zip([*names][1:], arguments, strict=False)) | options
        units = given.pop("units", None)
        converter = converter_for(units, given, is_g_one="G" not in names)
        if converter is None:
            return own.__new__(kind)
        _check_field(converter, given.get("field"))
        if "G" in names and given.get("G") is None:
            given["G"] = converter.units.G
        numbers = {k: converter.numbers(k, v, _ARGUMENTS.get(k)) for k, v in given.items()}
        made = own.__new__(kind)
        made.__init__(**numbers)
        return InUnits(made, converter)

    signature = inspect.signature(cls.__init__)  # type: ignore[misc]
    cls.__signature__ = signature.replace(parameters=[*signature.parameters.values()][1:])  # type: ignore[attr-defined]
    cls.__new__ = __new__  # type: ignore[assignment]
    return cls


def _check_field(converter: Converter, field: object) -> None:
    of_field = getattr(field, "units", None)
    if of_field is not None and of_field != converter.units:
        raise ArgumentError(
            f"the field is in {of_field}, the bodies are in {converter.units}: make it with "
            "the same units"
        )


class InUnits:
    """An object of plain numbers, seen in units: what goes in may be quantities, what comes out is.

    It passes for an object of its class.
    """

    def __init__(self, made: Untyped, converter: Converter) -> None:
        self.__dict__["_bare"] = made
        self.__dict__["_converter"] = converter
        made._face = weakref.ref(self)

    @property  # type: ignore[misc]
    def __class__(self) -> Untyped:
        return type(self.__dict__["_bare"])

    @property
    def units(self) -> Units:
        """Of the numbers inside."""
        converter: Converter = self.__dict__["_converter"]
        return converter.units

    def __getattr__(self, name: str) -> Untyped:
        if name.startswith("_"):
            raise AttributeError(name)
        found = getattr(self.__dict__["_bare"], name)
        if inspect.ismethod(found):
            return functools.partial(self._call, name)
        return self.__dict__["_converter"].given(found, _RESULTS.get(name))

    def _call(self, name: str, *arguments: Untyped, **options: Untyped) -> Untyped:
        converter: Converter = self.__dict__["_converter"]
        method = getattr(self.__dict__["_bare"], name)
        bound = inspect.signature(method).bind(*arguments, **options)
        for key, value in bound.arguments.items():
            if key != "events":
                bound.arguments[key] = converter.numbers(key, value, _ARGUMENTS.get(key))
        found = method(*bound.args, **bound.kwargs)
        if name == "copy":
            return InUnits(found, converter)
        return converter.given(found, _RESULTS.get(name))

    def __setattr__(self, name: str, value: Untyped) -> None:
        made = self.__dict__["_bare"]
        setattr(made, name, self.__dict__["_converter"].numbers(name, value, _ARGUMENTS.get(name)))

    def __dir__(self) -> list[str]:
        return sorted({*dir(self.__dict__["_bare"]), "units"})

    def __len__(self) -> int:
        return len(self.__dict__["_bare"])

    def __repr__(self) -> str:
        return f"{self.__dict__['_bare']!r} in {self.units}"

    def __enter__(self) -> InUnits:
        self.__dict__["_bare"].__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.__dict__["_bare"].__exit__(*error)

    def __copy__(self) -> InUnits:
        return InUnits(self.__dict__["_bare"].copy(), self.__dict__["_converter"])

    def __deepcopy__(self, _: object) -> InUnits:
        return self.__copy__()

    def __reduce__(self) -> tuple[type[InUnits], tuple[Untyped, Converter]]:
        return InUnits, (self.__dict__["_bare"], self.__dict__["_converter"])

    def __reduce_ex__(self, _: object) -> Untyped:
        return self.__reduce__()


def taken(
    *, g_is_one: bool = True, **dimensions: str
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function that has an argument `units` take quantities, and give such.

    `dimensions` are those of arguments that mean something else than elsewhere. `g_is_one`: if it
    has no argument G, its numbers are in units in which G = 1.
    """

    def decorated(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def called(*arguments: P.args, **options: P.kwargs) -> R:
            if options.get("units") is None and not _any([*arguments, *options.values()]):
                return function(*arguments, **options)
            bound = signature.bind(*arguments, **options)
            given: Attributes = dict(bound.arguments)
            is_g_one = g_is_one and "G" not in signature.parameters
            converter = converter_for(given.pop("units", None), given, is_g_one)
            if converter is None:
                return function(*arguments, **options)  # a quantity is refused by its name
            numbers: Untyped = {
                name: converter.numbers(name, value, dimensions.get(name) or _ARGUMENTS.get(name))
                for name, value in given.items()
            } | {"units": converter.units}
            if "G" in signature.parameters:
                numbers.setdefault("G", converter.units.G)
            made: Untyped = function(**numbers)  # type: ignore[call-arg]
            if hasattr(type(made), "units"):  # a field
                made.units = converter.units
                return made  # type: ignore[no-any-return]
            return converter.given(made, _result(function.__name__, numbers))  # type: ignore[no-any-return]

        return called

    return decorated


def _result(name: str, given: Attributes) -> Untyped:
    """Dimensions of what a function gives."""
    if name != "accelerations":
        return _RESULTS.get(name)
    more = [d for k, d in (("jerk", "jerk"), ("potential", "potential")) if given.get(k)]
    return ("acceleration", *more) if more else "acceleration"

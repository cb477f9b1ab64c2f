"""Classes and functions that take quantities, and give them back.

What computes has plain numbers. :func:`takes_quantities` makes a class give an :class:`InUnits` of
itself when it is called with quantities or with `units`, and :func:`taken` does so for a function:
arguments become numbers, results quantities of the package that they came of, astropy's for
`units` alone.
"""

from __future__ import annotations

import functools
import inspect
import warnings
import weakref
from collections.abc import Callable, Mapping
from typing import ParamSpec, TypeVar

import numpy as np

from grape6py._arrays import quantities
from grape6py._arrays.kinds import Attributes, Untyped
from grape6py._arrays.quantities import FIELDS, Converter, first, holds_quantity, is_amuse
from grape6py.errors import ArgumentError, Grape6Warning, UnitError, meant
from grape6py.units import Units

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)

# Dimensions of arguments by their names, in all that takes quantities.
ARGUMENTS = {
    **dict.fromkeys("mass masses source_mass bulge_mass halo_mass black_hole".split(), "mass"),
    **dict.fromkeys("pos source_pos targets eps radius boundary centre h scale a b core cutoff "
                    "edges size pericentre separation semi_major_axis disk_height bulge_scale "
                    "halo_scale".split(), "length"),
    "vel": "velocity", "speed": "velocity", "acc": "acceleration", "last_acc": "acceleration",
    "jerk": "jerk", "snap": "snap",
    **dict.fromkeys("t time dt dt_max every P".split(), "time"),
    "G": "G", "omega": "frequency",
}  # fmt: skip
OF_ADD = ARGUMENTS | dict.fromkeys("inc Omega omega f M".split(), "angle")
# Dimensions of results by the names of methods and attributes.
_RESULTS: dict[str, Untyped] = {
    "mass": "mass", "pos": "length", "vel": "velocity", "acc": "acceleration", "jerk": "jerk",
    "time": "time", "step_sizes": "time", "G": "G", "origin": ("length", "velocity"),
    "potential": "potential", "energy_change": "energy", "momentum": "momentum",
    "angular_momentum": "angular momentum", "centre_of_mass": "length",
    "lagrangian_radii": "length", "walks": ("acceleration", "potential"),
    "tidal_radius": "length", "center_of_mass": "length", "density_centre": "length",
    "core_radius": "length", "half_mass_radius": "length", "virial_radius": "length",
    **dict.fromkeys("kinetic_energy potential_energy total_energy".split(), "energy"),
    "move_to_com": ("mass", "length", "velocity"),
    "crossing_time": "time", "relaxation_time": "time", "radius": "length",
}  # fmt: skip


def without_units(value: Untyped) -> Untyped:
    """The object of plain numbers in an InUnits, or what it is."""
    return value.__dict__["_bare"] if type(value) is InUnits else value


def converter_of(value: Untyped) -> Converter | None:
    """How an InUnits is seen; None for other objects."""
    return value.__dict__["_converter"] if type(value) is InUnits else None


def takes_quantities(cls: C) -> C:
    """Let a class that has an argument `units` take quantities; the class need not use it."""

    def __new__(kind: type, *arguments: Untyped, **options: Untyped) -> Untyped:
        own: Untyped = super(cls, kind)
        signature = inspect.signature(kind.__init__)  # type: ignore[misc]
        _check_names(kind.__name__, signature, options)
        first = arguments[0] if arguments else None
        units = options.get("units") or (
            hasattr(first, "_fields") and getattr(first, "units", None)
        )
        if not units and not holds_quantity([*arguments, *options.values()], 4):
            return own.__new__(kind)
        given = dict(signature.bind(None, *arguments, **options).arguments)
        del given["self"]
        bodies: Untyped = given.get("mass")
        if hasattr(bodies, "_fields") and given.get("pos") is None:  # Particles, or a Snapshot
            given |= bodies._asdict() | {"units": units}
            if getattr(bodies, "ids", None) is not None:
                given.setdefault("ids", bodies.ids)
        given = getattr(kind, "_in_order", dict)(given)
        converter, numbers = _in_numbers(given, signature)
        made = own.__new__(kind)
        if converter is None:
            return made  # quantities are refused by their names
        made.__init__(**numbers)
        mass = numbers.get("mass")
        if (
            units
            and "G" in signature.parameters
            and converter.units.G != 1
            and not holds_quantity([*given.values()], 4)
            and isinstance(mass, np.ndarray | list | tuple)
            and len(mass) > 1
            and abs(float(np.sum(mass)) - 1) < 1e-9  # as of a model of Henon's units, in others
        ):
            warnings.warn(
                f"plain numbers of total mass 1 are taken in {converter.units}, where G = "
                f"{converter.units.G:.4g}; of a model give it the units: plummer(n, units=...)",
                Grape6Warning,
                stacklevel=2,
            )
        return InUnits(made, converter)

    signature = inspect.signature(cls.__init__)  # type: ignore[misc]
    cls.__signature__ = signature.replace(parameters=[*signature.parameters.values()][1:])  # type: ignore[attr-defined]
    cls.__new__ = __new__  # type: ignore[assignment]
    return cls


def _check_names(called: str, signature: inspect.Signature, options: Mapping[str, object]) -> None:
    """Raise a TypeError that says what an argument is named here."""
    known = signature.parameters
    if wrong := [name for name in options if name not in known]:
        others = [name for name in known if name != "self"]
        raise TypeError(f"{called}() has no argument {wrong[0]}{meant(wrong[0], others)}")


def _in_numbers(
    given: Attributes, signature: inspect.Signature, g_is_one: bool = True
) -> tuple[Converter | None, Attributes]:
    """Arguments as numbers, with the constant of gravity of the units if none is given, and what
    has converted them; None if there is nothing to convert.

    Numbers without a unit are in the `units` that are given, else errors.
    """
    units: Untyped = given.pop("units", None)
    field: Untyped = given.get("field")
    takes_g, is_said = "G" in signature.parameters, units is not None
    if units is None and "mass" not in given:  # of an orbit
        units = getattr(field, "units", None)
    converter = converter_for(units, given, g_is_one and not takes_g)
    if converter is None:
        return None, given
    if hasattr(field, "in_units"):
        if field.units is None and not is_said:
            raise UnitError("field has no units: make it with units=Units(...)")
        given = given | {"field": field.in_units(converter.units)}
    elif getattr(field, "is_natural", False):
        raise UnitError(
            "field has no units but galpy's own: give from_galpy radius= and speed= in those of "
            "the bodies, as 8000 and 220 for pc and km/s"
        )
    numbers = functools.partial(converter.numbers, unitless=is_said)
    found = {k: numbers(k, value, ARGUMENTS.get(k)) for k, value in given.items()}
    return converter, {"G": converter.units.G} | found if takes_g else found


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
        return type(self._bare)

    @property
    def units(self) -> Units:
        """Of the numbers inside."""
        converter: Converter = self._converter
        return converter.units

    def __getattr__(self, name: str) -> Untyped:
        if name.startswith("_"):
            raise AttributeError(name)
        found = getattr(self._bare, name)
        if inspect.ismethod(found):
            return functools.update_wrapper(functools.partial(self._call, name), found)
        return self._converter.given(found, _RESULTS.get(name))

    def _call(self, name: str, *arguments: Untyped, **options: Untyped) -> Untyped:
        converter, method = self._converter, getattr(self._bare, name)
        bound = inspect.signature(method).bind(*arguments, **options)
        known = OF_ADD if name == "add" else ARGUMENTS
        for key, value in bound.arguments.items():
            if key == "events":
                events = value if isinstance(value, list | tuple) else (value,)
                bound.arguments[key] = [
                    e.in_numbers(converter) if hasattr(e, "in_numbers") else e for e in events
                ]
            else:
                bound.arguments[key] = converter.numbers(key, value, known.get(key))
        found = method(*bound.args, **bound.kwargs)
        if name == "copy":
            return InUnits(found, converter)
        return converter.given(found, _RESULTS.get(name))

    def __setattr__(self, name: str, value: Untyped) -> None:
        setattr(self._bare, name, value)

    def __dir__(self) -> list[str]:
        return sorted({*dir(self._bare), "units"})

    def __bool__(self) -> bool:
        return bool(self._bare)

    def __len__(self) -> int:
        return len(self._bare)

    def __getitem__(self, which: Untyped) -> Untyped:
        return self._converter.given(self._bare[which], None)

    def __repr__(self) -> str:
        return f"{self._bare!r} in {self.units}"

    def _repr_html_(self) -> str:
        shown: str = self._bare._repr_html_()
        return shown.replace("</caption>", f" in {self.units}</caption>", 1)

    def __enter__(self) -> InUnits:
        self._bare.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._bare.__exit__(*error)

    def __copy__(self) -> InUnits:
        return InUnits(self._bare.copy(), self._converter)

    def __deepcopy__(self, _: object) -> InUnits:
        return self.__copy__()

    def __reduce__(self) -> tuple[type[InUnits], tuple[Untyped, Converter]]:
        return InUnits, (self._bare, self._converter)


def taken(*, g_is_one: bool = True) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function take quantities, and give such.

    If it has an argument `units`, plain numbers are in these; it need make no use of that itself.
    `g_is_one`: if it has no argument G, its numbers are in units in which G = 1.
    """

    def decorated(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)
        computed: Callable[..., R] = function

        @functools.wraps(function)
        def called(*arguments: P.args, **options: P.kwargs) -> R:
            _check_names(function.__name__, signature, options)
            units = options.get("units")
            if units is None and not holds_quantity([*arguments, *options.values()], 4):
                return function(*arguments, **options)
            given: Attributes = dict(signature.bind(*arguments, **options).arguments)
            converter, numbers = _in_numbers(given, signature, g_is_one)
            if converter is None:
                return computed(
                    **{name: quantities.number(name, value) for name, value in numbers.items()}
                )
            also = {"units": converter.units} if "units" in signature.parameters else {}
            made: Untyped = computed(**numbers, **also)
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
    package = "amuse" if any(is_amuse(first(value)) for value in given.values()) else "astropy"
    shown: dict[str, Untyped] = {}
    if units is None:
        bodies = {k: first(given[k]) for k in FIELDS["Particles"] if given.get(k) is not None}
        have_unit = [k for k, value in bodies.items() if quantities.is_quantity(value)]
        if "pos" not in given or not any(
            k != "vel" and quantities.without_unit(quantities.shown_of(k, bodies[k])) is None
            for k in have_unit
        ):
            return None
        for name, dimension in FIELDS["Particles"].items():
            if name not in bodies and name == "vel":
                continue
            if name not in have_unit:
                other = have_unit[0]
                raise ArgumentError(
                    f"{name} is no quantity, as {other} is: make it one, or give units=Units(...) "
                    "where that is taken"
                )
            value = quantities.shown_of(name, bodies[name])
            quantities.factor_of(name, value, dimension)  # or an error
            shown[dimension] = value.unit
        units = Units(**{k: quantities.one_of(unit) for k, unit in shown.items()})
    if is_g_one and units.G != 1:
        shown, units = units.names | shown, units.with_g_one()
    return Converter(units, package, shown)

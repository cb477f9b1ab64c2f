"""The built-in fields: sums of analytic terms, evaluated by the library (csrc/shared/field.h)."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from grape6py._arrays import quantities, validate
from grape6py._arrays.closed import Closed
from grape6py._arrays.kinds import CData, Floats, Numbers, Untyped
from grape6py._lib import memory_space
from grape6py._lib.library import check, ffi, lib, pointer
from grape6py.errors import ArgumentError, Grape6Warning
from grape6py.in_units import ARGUMENTS, converter_for, taken
from grape6py.units import Units

# Kinds of terms: their number in the library, and the names of their parameters. Masses come first.
_KINDS = {
    "plummer": (lib.G6X_FIELD_PLUMMER, ("mass", "scale")),
    "miyamoto_nagai": (lib.G6X_FIELD_MIYAMOTO_NAGAI, ("mass", "a", "b")),
    "nfw": (lib.G6X_FIELD_NFW, ("mass", "scale")),
    "logarithmic": (lib.G6X_FIELD_LOGARITHMIC, ("speed", "core", "flattening")),
    "power_law_cutoff": (lib.G6X_FIELD_CUTOFF, ("mass", "exponent", "cutoff")),
}


class FieldValues(NamedTuple):
    """A field at n places.

    Attributes
    ----------
    acc, jerk : ndarray, shape (n, 3)
        Acceleration, and its time derivative along the path of a body.
    pot : ndarray, shape (n,)
        Potential.
    """

    acc: Floats
    jerk: Floats
    pot: Floats


class Term(NamedTuple):
    """One term of a field."""

    kind: str
    values: tuple[float, ...]

    def __repr__(self) -> str:
        names = _KINDS[self.kind][1]
        given = ", ".join(f"{k}={v:g}" for k, v in zip(names, self.values, strict=True))
        return f"{self.kind}({given})"


class Field(Closed):
    """A sum of analytic terms, in coordinates that may rotate.

    The functions of this module make one; fields add up by ``+``. A field does not change.
    Called as ``field(t, pos, vel)`` it gives what it does to bodies, with the G that it was made
    for, else 1; in quantities if it was made with `units`, in which its parameters then are, and
    `pos` is a quantity.
    """

    units: Units | None = None
    _made_for: float | None = None  # a G

    def __init__(self, terms: Iterable[Term] = (), omega: float = 0.0) -> None:
        self._terms, self._omega = tuple(terms), omega
        if len(self._terms) > lib.G6X_FIELD_TERMS:
            raise ArgumentError(
                f"a field of {len(self._terms)} terms: the built-in ones have up to "
                f"{lib.G6X_FIELD_TERMS}; give a function of your own"
            )

    @property
    def terms(self) -> tuple[Term, ...]:
        """The terms: name and parameters of each."""
        return self._terms

    @property
    def G(self) -> float | None:
        """The constant of gravity that the masses are for: of its units, or as given; or None."""
        return self._made_for if self.units is None else self.units.G

    @property
    def omega(self) -> float:
        """Angular speed with which the coordinates rotate about the z axis."""
        return self._omega

    def __add__(self, other: Field) -> Field:
        if not isinstance(other, Field):
            return NotImplemented
        units = self.units or other.units
        if units is not None:
            other = other.in_units(units)
        total = Field(self._terms + other._terms, self._omega + other._omega)
        total.units = units
        total._made_for = other.G if self.G is None else self.G
        if None not in (self.G, other.G) and self.G != other.G:
            raise ArgumentError(f"one field is for G = {self.G}, the other one for {other.G}")
        return total

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Field) and self.text == other.text and self.units == other.units

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        parts = [repr(term) for term in self._terms]
        if self._omega or not parts:
            parts.append(f"rotation(omega={self._omega:g})")
        return " + ".join(parts)

    def __call__(self, t: float, pos: Numbers, vel: Numbers) -> FieldValues:
        """What the field does to bodies.

        Parameters
        ----------
        t : float
            Time, of which built-in fields do not depend.
        pos, vel : array_like, shape (n, 3)
            NumPy's arrays, or arrays of a CUDA device.

        Returns
        -------
        FieldValues
            acc, jerk, pot, in the same memory.

        Raises
        ------
        ArgumentError, NotFiniteError
            (ValueErrors) for wrong shapes or values.
        """
        given = {"pos": pos, "vel": vel}
        if self.units is not None and quantities.holds_quantity([t, pos, vel], 4):
            converter: Untyped = converter_for(self.units, given)
            arguments = {"t": (t, "time"), "pos": (pos, "length"), "vel": (vel, "velocity")}
            numbers = (converter.numbers(name, *of) for name, of in arguments.items())
            values = self.with_gravity(converter.units.G)(*numbers)
            return converter.given(values, None)  # type: ignore[no-any-return]
        validate.number("t", t)
        alone = self if self.G is None else self.with_masses_times(self.G)
        found = memory_space.first_on_device(given)
        if found is not None:
            from grape6py.fields.device import on_device

            return FieldValues(*on_device(alone, found, given))
        x = validate.floats("pos", pos, (None, 3))
        v = validate.floats("vel", vel, (len(x), 3))
        out = FieldValues(np.zeros_like(x), np.zeros_like(x), np.zeros(len(x)))
        add_on_host(alone.c_struct(), 0.0, x, v, *out)
        return out

    @property
    def text(self) -> str:
        """The field as text, from which :meth:`from_text` makes it again."""
        rotation = [["rotation", self._omega]] if self._omega else []
        return json.dumps([*([t.kind, *t.values] for t in self._terms), *rotation])

    @classmethod
    def from_text(cls, text: str) -> Field:
        """A field from its :attr:`text`."""
        terms, omega = [], 0.0
        for kind, *values in json.loads(text):
            if kind == "rotation":
                omega = float(values[0])
            else:
                terms.append(_term(kind, *values))
        return cls(terms, omega)

    def with_gravity(self, G: float) -> Field:
        """The field with masses multiplied by G, which has to be that of its units."""
        if self.G is not None and not math.isclose(G, self.G, rel_tol=1e-3):
            where = "was made" if self.units is None else f"is in units {self.units},"
            raise ArgumentError(f"the field {where} for G = {self.G:.6g}, and not {G:.6g}")
        return self.with_masses_times(G)

    def with_masses_times(self, factor: float) -> Field:
        """The field with masses multiplied."""
        terms = (
            Term(kind, (first * factor, *rest)) if _KINDS[kind][1][0] == "mass" else term
            for term in self._terms
            for kind, (first, *rest) in [term]
        )
        return Field(terms, self._omega)

    def in_units(self, units: Units) -> Field:
        """The field in other units; as it is, if it has none."""
        own = self.units
        if own is None or own == units:
            return self

        def converted(name: str, value: float) -> float:
            return value * own.factor(ARGUMENTS[name], units) if name in ARGUMENTS else value

        terms = (
            Term(kind, tuple(map(converted, _KINDS[kind][1], values)))
            for kind, values in self._terms
        )
        made = Field(terms, converted("omega", self._omega))
        made.units = units
        return made

    def c_struct(self) -> CData:
        """The field as the library takes it: struct g6x_field."""
        c = ffi.new("struct g6x_field *", {"terms": len(self._terms), "omega": self._omega})
        for k, (kind, values) in enumerate(self._terms):
            c.term[k].kind = _KINDS[kind][0]
            for j, value in enumerate(values):
                c.term[k].p[j] = value
        return c


def add_on_host(c: CData, time: float, pos: Floats, vel: Floats, *sums: Floats | None) -> None:
    """Add a field of the library to acc, jerk and pot, NumPy's contiguous arrays or None."""
    check(lib.g6x_field_add(c, len(pos), time, *map(pointer, (pos, vel, *sums))))


def _term(kind: str, *values: float) -> Term:
    _, names = validate.choice("a field", kind, _KINDS)
    if len(values) != len(names):
        raise ArgumentError(f"{kind} has the parameters {', '.join(names)}: not {values}")
    term = Term(kind, tuple(map(validate.number, names, values)))
    if names[0] == "mass" and term.values[0] < 0:
        warnings.warn(f"{term}: a negative mass pushes bodies away", Grape6Warning, stacklevel=4)
    check(lib.g6x_field_add(Field([term]).c_struct(), 0, 0.0, *[ffi.NULL] * 5))  # limits of each
    return term


@taken(g_is_one=False)
def point_mass(mass: float, *, units: Units | None = None) -> Field:
    """A point: potential -m / r."""
    return plummer(mass, 0.0)


@taken(g_is_one=False)
def plummer(mass: float, scale: float, *, units: Units | None = None) -> Field:
    """Plummer's sphere: potential -m / sqrt(r^2 + scale^2) (Binney & Tremaine 2008, 2.44a)."""
    return Field([_term("plummer", mass, scale)])


@taken(g_is_one=False)
def miyamoto_nagai(mass: float, a: float, b: float, *, units: Units | None = None) -> Field:
    """A disk: potential -m / sqrt(R^2 + (a + sqrt(z^2 + b^2))^2) (Miyamoto & Nagai 1975, PASJ 27, 533).

    Parameters
    ----------
    mass : float
    a, b : float
        Scale length, and height, which is above 0.
    """  # noqa: E501
    return Field([_term("miyamoto_nagai", mass, a, b)])


@taken(g_is_one=False)
def nfw(mass: float, scale: float, *, units: Units | None = None) -> Field:
    """A halo: potential -m ln(1 + r / scale) / r (Navarro, Frenk & White 1996, ApJ 462, 563).

    Parameters
    ----------
    mass : float
        4 pi rho_0 scale^3, with density rho_0 / (x (1 + x)^2) at r = x scale; the mass inside is
        mass (ln(1 + x) - x / (1 + x)).
    scale : float
    """
    return Field([_term("nfw", mass, scale)])


@taken(g_is_one=False)
def logarithmic(
    speed: float, core: float = 0.0, flattening: float = 1.0, *, units: Units | None = None
) -> Field:
    """A flat rotation curve: potential speed^2 / 2 ln(R^2 + z^2 / q^2 + core^2).

    Binney & Tremaine 2008, equation 2.71a.

    Parameters
    ----------
    speed : float
        Circular speed far from the core.
    core : float
    flattening : float
        q, of the potential.
    """
    return Field([_term("logarithmic", speed, core, flattening)])


@taken(g_is_one=False)
def power_law_cutoff(
    mass: float, exponent: float, cutoff: float, *, units: Units | None = None
) -> Field:
    """A bulge: density as r^-exponent exp(-(r / cutoff)^2) (Bovy 2015, ApJS 216, 29).

    Parameters
    ----------
    mass : float
        In all.
    exponent : float
        From 0 to below 2.
    cutoff : float
    """
    return Field([_term("power_law_cutoff", mass, exponent, cutoff)])


@taken(g_is_one=False)
def rotation(omega: float, *, units: Units | None = None) -> Field:
    """Coordinates that rotate about the z axis: Coriolis' and centrifugal force.

    With it the other terms rotate, and velocities and energies are those in the rotating
    coordinates: the total energy is Jacobi's (Binney & Tremaine 2008, section 3.3.2).

    Parameters
    ----------
    omega : float
        Angular speed.
    """
    return Field(omega=validate.number("omega", omega))


@taken(g_is_one=False)
def mwpotential2014(
    radius: float | None = None,
    speed: float | None = None,
    *,
    G: float = 1.0,
    units: Units | None = None,
) -> Field:
    """galpy's model of the Milky Way: bulge, disk and halo (Bovy 2015, ApJS 216, 29).

    Parameters
    ----------
    radius, speed : float
        The Sun's distance from the centre, which stands for 8 kpc, and the circular speed there,
        220 km/s: they say what the units are. By default 1 each, or what these are in `units`.
    G : float
        Of these units, which then is also that of the integration.
    units : Units, optional

    Examples
    --------
    In parsec, solar masses and km/s:

    >>> from grape6py import fields
    >>> milky_way = fields.mwpotential2014(8000, 220, G=0.004301)
    """
    if radius is None:
        radius = 1.0 if units is None else 8 / units.value("length", "kpc")
    if speed is None:
        speed = 1.0 if units is None else 220 / units.value("velocity", "km/s")
    radius, speed = validate.positive("radius", radius), validate.positive("speed", speed)
    parts = (
        (0.05, power_law_cutoff(1.0, 1.8, 1.9 / 8 * radius)),
        (0.6, miyamoto_nagai(1.0, 3 / 8 * radius, 0.28 / 8 * radius)),
        (0.35, nfw(1.0, 2 * radius)),
    )
    total = Field()
    for share, field in parts:  # of the square of the circular speed
        inward = -float(field(0.0, [[radius, 0.0, 0.0]], [[0.0, 0.0, 0.0]]).acc[0, 0])
        total += field.with_masses_times(share * speed * speed / (radius * inward * G))
    total._made_for = G
    return total

"""Units of mass, length and time, and what numbers in them are in others."""

from __future__ import annotations

import math
import re

from grape6py._arrays import html, quantities
from grape6py._arrays.closed import Closed
from grape6py._arrays.unit_sizes import DIMENSIONS, FIRST_NAMES, G_CGS, named_size, size_of
from grape6py.errors import ArgumentError

_COUNTED = re.compile(
    r"(?:([-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)\s*)?([A-Za-z_]+(?:/[A-Za-z_]+)?)(?=[\s,]|$)"
)
_MANY = 1e12  # of a unit, of which numbers are better shown in a larger one


class Units(Closed):
    """Units in which numbers are.

    Parameters
    ----------
    mass, length : str, or quantity of astropy or AMUSE
        As "Msun", "5e4 Msun" or "1.3 pc". Of mass there are Msun, Mearth, Mjup, kg and g; of
        length pc, kpc, Mpc, AU, Rsun, km, m and cm; of time Gyr, Myr, kyr, yr, day and s.
    third : str or quantity, optional
        That of time or of velocity, as "Myr" or "km/s".
    time : str or quantity, optional
        By default such that G = 1: N-body units.
    velocity : str or quantity, optional
        Instead of `time`, as "km/s".

    Attributes
    ----------
    G : float
        The gravitational constant in these units.

    Raises
    ------
    ArgumentError
        (a ValueError) for a name that is none of these.

    Examples
    --------
    >>> from grape6py import Units
    >>> henon = Units("1e4 Msun", "2 pc")
    >>> henon.G
    1.0
    >>> round(henon.value("time", "Myr"), 4), round(henon.value("velocity", "km/s"), 4)
    (0.4217, 4.6373)
    >>> round(Units("Msun", "pc", velocity="km/s").G, 6)
    0.004301
    """

    def __init__(
        self,
        mass: object,
        length: object,
        third: object = None,
        *,
        time: object = None,
        velocity: object = None,
    ) -> None:
        if third is not None:
            is_velocity = "/" in str(getattr(third, "unit", third))
            time, velocity = (time, third) if is_velocity else (third, velocity)
        if time is not None and velocity is not None:
            raise ArgumentError("units of time and of velocity: give one of them")
        given = {"mass": mass, "length": length, "time": time, "velocity": velocity}
        texts = {
            k: _text(k, value)
            for k, value in given.items()
            if value is not None or k in ("mass", "length")
        }
        sizes = {k: size_of(k, text) for k, text in texts.items()}
        self._text, self._mass, self._length = list(texts.values()), sizes["mass"], sizes["length"]
        try:
            if "velocity" in sizes:
                self._time = self._length / sizes["velocity"]
            else:
                self._time = sizes.get("time") or math.sqrt(self._length**3 / (G_CGS * self._mass))
            derived = [self.in_cgs(dimension) for dimension in DIMENSIONS]
        except (OverflowError, ZeroDivisionError):
            derived = [0.0]
        if not all(0 < size < math.inf for size in derived):
            raise ArgumentError(
                f"{self}: units so large or small that those made of them are beyond double "
                "precision"
            )

    @classmethod
    def from_text(cls, text: str) -> Units:
        """Units as words: "Msun pc", "5e4 Msun 1.2 pc", "Msun kpc km/s", "Msun pc Myr"."""
        if not isinstance(text, str):
            raise ArgumentError(f"units {text!r} are no text")
        words = [f"{number} {name}".strip() for number, name in _COUNTED.findall(text)]
        if _COUNTED.sub("", text).strip(" ,") or len(words) not in (2, 3):
            raise ArgumentError(
                f"units {text!r} are not those of mass and length, and perhaps of time or velocity:"
                " as 'Msun pc' or 'Msun kpc km/s'"
            )
        return cls(
            *words[:2], **{"velocity" if "/" in word else "time": word for word in words[2:]}
        )

    @classmethod
    def from_cgs(cls, mass: float, length: float, velocity: float) -> Units:
        """Units of so many grams, centimetres and centimetres a second."""
        texts = named_size("mass", mass), named_size("length", length)
        henon = cls(*texts)
        if abs(velocity / henon.in_cgs("velocity") - 1) < 1e-12:
            return henon
        return cls(*texts, velocity=named_size("velocity", velocity))

    def with_g_one(self) -> Units:
        """Units of the same mass and length in which G = 1."""
        return self if self.G == 1 else Units(*self._text[:2])

    def in_cgs(self, dimension: str) -> float:
        """Size of a unit, by one of the names of DIMENSIONS, in grams, centimetres, seconds."""
        if dimension not in DIMENSIONS:
            raise ArgumentError(f"there is no dimension {dimension!r}: {', '.join(DIMENSIONS)}")
        m, length, t = DIMENSIONS[dimension]
        return self._mass**m * self._length**length * self._time**t

    @property
    def G(self) -> float:
        found = G_CGS / self.in_cgs("G")
        return 1.0 if abs(found - 1) < 1e-12 else found

    def factor(self, dimension: str, other: Units) -> float:
        """What a number of these units is to be multiplied by to be one of others."""
        if not isinstance(other, Units):
            raise ArgumentError(f"other = {other!r} is not Units(mass, length)")
        found = self.in_cgs(dimension) / other.in_cgs(dimension)
        return 1.0 if abs(found - 1) < 4e-15 else found

    def value(self, dimension: str, name: str) -> float:
        """Size of a unit in another of a name: ``units.value("time", "Myr")``."""
        return self.in_cgs(dimension) / size_of(dimension, name)

    @property
    def names(self) -> dict[str, str]:
        """Units to show numbers in: of mass, length, time and velocity, by astropy's names."""
        named = [FIRST_NAMES.get(name, name) for name in (t.split()[-1] for t in self._text)]
        mass = _shown("mass", f"{named[0]} Msun kg g", self._mass)
        length = _shown("length", f"{named[1]} kpc pc AU km m cm", self._length)
        is_earthly = length in ("km", "m", "cm")
        time = "s" if is_earthly else "yr" if length in ("AU", "Rsun") else "Myr"
        velocity = f"{length}/s" if is_earthly else "km/s"
        if len(named) > 2:
            if "/" in named[2]:
                velocity = named[2]
            else:
                time = named[2]
        return {"mass": mass, "length": length, "time": time, "velocity": velocity}

    def __str__(self) -> str:
        return " ".join(self._text)

    def __repr__(self) -> str:
        return f"Units.from_text({str(self)!r})"

    def _repr_html_(self) -> str:
        shown = {name: f"{self.value(name, unit):g} {unit}" for name, unit in self.names.items()}
        return html.table(f"Units {self}", shown | {"G": f"{self.G:g}"})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Units):
            return NotImplemented
        return all(self.factor(k, other) == 1 for k in ("mass", "length", "time"))

    __hash__ = None  # type: ignore[assignment]


def _shown(dimension: str, names: str, size: float) -> str:
    """The first of some units, or for very many of it the largest that is not much larger."""
    own, *others = names.split()
    if size < _MANY * size_of(dimension, own):
        return own
    return next((name for name in others if size_of(dimension, name) <= 4 * size), others[-1])


def _text(dimension: str, unit: object) -> str:
    """What the user gave as text."""
    if isinstance(unit, str):
        return " ".join(unit.split())
    given = unit if quantities.is_quantity(unit) else quantities.one_of(unit)
    if given is None:
        raise ArgumentError(f"the unit of {dimension} is {unit!r}, not a text, unit or quantity")
    return quantities.text(dimension, given)

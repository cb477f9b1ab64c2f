"""Units of mass, length and time, and what numbers in them are in others.

Constants: G of CODATA 2018; the Sun's mass from the nominal G M of IAU 2015 resolution B3, radii of
the Sun and the Earth's and Jupiter's masses from there, too; parsec and astronomical unit of IAU
2012 and 2015; Julian years. These are astropy's.
"""

from __future__ import annotations

import difflib
import math
import re
from typing import Final

from grape6py._arrays.closed import Closed
from grape6py.errors import ArgumentError

G_CGS: Final = 6.6743e-8
_AU = 1.495978707e13
_PC = _AU * 648000 / math.pi
_YEAR = 365.25 * 86400.0

# In grams, centimetres and seconds, by names, of which the first is astropy's.
_MASSES = {
    "Msun solMass M_sun": 1.3271244e26 / G_CGS, "Mearth earthMass": 3.986004e20 / G_CGS,
    "Mjup jupiterMass": 1.2668653e23 / G_CGS, "kg": 1e3, "g": 1.0,
}  # fmt: skip
_LENGTHS = {
    "pc parsec": _PC, "kpc": 1e3 * _PC, "Mpc": 1e6 * _PC, "AU au": _AU,
    "Rsun solRad R_sun": 6.957e10, "km": 1e5, "m": 1e2, "cm": 1.0,
}  # fmt: skip
_TIMES = {
    "Gyr": 1e9 * _YEAR, "Myr": 1e6 * _YEAR, "kyr": 1e3 * _YEAR, "yr": _YEAR,
    "day d": 86400.0, "s": 1.0,
}  # fmt: skip
_SIZES = {
    dimension: {name: size for names, size in table.items() for name in names.split()}
    for dimension, table in (("mass", _MASSES), ("length", _LENGTHS), ("time", _TIMES))
}

_COUNTED = re.compile(
    r"(?:([-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)\s*)?([A-Za-z_]+(?:/[A-Za-z_]+)?)(?=[\s,]|$)"
)
_MANY = 1e12  # of a unit, of which numbers are better shown in a larger one
# Powers of mass, length and time.
DIMENSIONS: Final = {
    "mass": (1, 0, 0), "length": (0, 1, 0), "time": (0, 0, 1), "velocity": (0, 1, -1),
    "acceleration": (0, 1, -2), "jerk": (0, 1, -3), "potential": (0, 2, -2), "energy": (1, 2, -2),
    "snap": (0, 1, -4), "momentum": (1, 1, -1), "angular momentum": (1, 2, -1),
    "frequency": (0, 0, -1), "G": (-1, 3, -2), "density": (1, -3, 0),
}  # fmt: skip


class Units(Closed):
    """Units in which numbers are.

    Parameters
    ----------
    mass, length : str, or quantity of astropy or AMUSE
        As "Msun", "5e4 Msun" or "1.3 pc". Of mass there are Msun, Mearth, Mjup, kg and g; of
        length pc, kpc, Mpc, AU, Rsun, km, m and cm; of time Gyr, Myr, kyr, yr, day and s.
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
        *,
        time: object = None,
        velocity: object = None,
    ) -> None:
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
        mass = _nearest(_MASSES, "Msun kg g", self._mass)
        length = _nearest(_LENGTHS, "kpc pc AU km m cm", self._length)
        named = [FIRST_NAMES.get(name, name) for name in (t.split()[-1] for t in self._text)]
        if self._length < _MANY * _SIZES["length"][named[1]]:
            length = named[1]
        if self._mass < _MANY * _SIZES["mass"][named[0]]:
            mass = named[0]
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

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Units):
            return NotImplemented
        return all(self.factor(k, other) == 1 for k in ("mass", "length", "time"))

    __hash__ = None  # type: ignore[assignment]


FIRST_NAMES = {
    name: names.split()[0]
    for table in (_MASSES, _LENGTHS, _TIMES)
    for names in table
    for name in names.split()
}


def _nearest(table: dict[str, float], names: str, size: float) -> str:
    """Of some names the largest unit that is not much larger than a size."""
    sizes = {name.split()[0]: value for name, value in table.items()}
    return next((name for name in names.split() if sizes[name] <= 4 * size), names.split()[-1])


def named_size(dimension: str, size: float) -> str:
    """A text of few digits for a size in grams, centimetres and seconds, if there is one."""
    names = {
        "mass": "Msun kg g", "length": "kpc pc AU km m cm", "time": "Gyr Myr kyr yr s",
        "velocity": "km/s m/s pc/Myr kpc/Gyr",
    }[dimension]  # fmt: skip
    for name in names.split():
        number = size / size_of(dimension, name)
        if number >= 1 and abs(float(f"{number:.6g}") / number - 1) < 1e-14:
            return f"{number:.6g} {name}" if number != 1 else name
    cgs = {"mass": "g", "length": "cm", "time": "s", "velocity": "cm/s"}[dimension]
    return f"{size!r} {cgs}"


def size_of(dimension: str, text: str) -> float:
    """A unit of mass, length, time or velocity in grams, centimetres and seconds."""
    if dimension not in (*_SIZES, "velocity"):
        raise ArgumentError(f"units with names are of {', '.join(_SIZES)} and velocity")
    if not isinstance(text, str):
        raise ArgumentError(f"the unit of {dimension} is {text!r}, not a text")
    size = _named(dimension, text)
    if not 0 < size < math.inf:
        raise ArgumentError(f"the unit of {dimension} is {text}: it is to be above zero")
    return size


def _named(dimension: str, text: str) -> float:
    number, _, name = text.strip().rpartition(" ")
    try:
        count = float(number) if number else 1.0
    except ValueError:
        raise ArgumentError(f"the unit of {dimension}: {number!r} is not a number") from None
    if dimension == "velocity":
        length, is_ratio, time = name.partition("/")
        if not is_ratio:
            raise ArgumentError(f"the unit of velocity {name!r} is not one like km/s")
        return count * _named("length", length) / _named("time", time)
    known = _SIZES[dimension]
    if name not in known:
        near = difflib.get_close_matches(name, known, 1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise ArgumentError(
            f"{name!r} is no unit of {dimension}{hint}; there are {', '.join(known)}"
        )
    return count * known[name]


def _text(dimension: str, given: object) -> str:
    """What the user gave as text."""
    if isinstance(given, str):
        return " ".join(given.split())
    from grape6py import quantities

    if not quantities.is_quantity(given):
        raise ArgumentError(f"the unit of {dimension} is {given!r}, not a text or a quantity")
    return quantities.text(dimension, given)

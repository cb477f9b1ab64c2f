"""Names and sizes of units, in grams, centimetres and seconds.

Constants: G of CODATA 2018; the Sun's mass from the nominal G M of IAU 2015 resolution B3, radii of
the Sun and the Earth's and Jupiter's masses from there, too; parsec and astronomical unit of IAU
2012 and 2015; Julian years. These are astropy's.
"""

import math
from typing import Final

from grape6py.errors import ArgumentError, meant

G_CGS: Final = 6.6743e-8
_AU = 1.495978707e13
_PC = _AU * 648000 / math.pi
_YEAR = 365.25 * 86400.0

# In grams, centimetres and seconds, by names, of which the first is astropy's.
MASSES = {
    "Msun solMass M_sun": 1.3271244e26 / G_CGS, "Mearth earthMass": 3.986004e20 / G_CGS,
    "Mjup jupiterMass": 1.2668653e23 / G_CGS, "kg": 1e3, "g": 1.0,
}  # fmt: skip
LENGTHS = {
    "pc parsec": _PC, "kpc": 1e3 * _PC, "Mpc": 1e6 * _PC, "AU au": _AU,
    "Rsun solRad R_sun": 6.957e10, "km": 1e5, "m": 1e2, "cm": 1.0,
}  # fmt: skip
TIMES = {
    "Gyr": 1e9 * _YEAR, "Myr": 1e6 * _YEAR, "kyr": 1e3 * _YEAR, "yr": _YEAR,
    "day d": 86400.0, "s": 1.0,
}  # fmt: skip
_SIZES = {
    dimension: {name: size for names, size in table.items() for name in names.split()}
    for dimension, table in (("mass", MASSES), ("length", LENGTHS), ("time", TIMES))
}

# Powers of mass, length and time.
DIMENSIONS: Final = {
    "mass": (1, 0, 0), "length": (0, 1, 0), "time": (0, 0, 1), "velocity": (0, 1, -1),
    "acceleration": (0, 1, -2), "jerk": (0, 1, -3), "potential": (0, 2, -2), "energy": (1, 2, -2),
    "snap": (0, 1, -4), "momentum": (1, 1, -1), "angular momentum": (1, 2, -1),
    "frequency": (0, 0, -1), "G": (-1, 3, -2), "density": (1, -3, 0),
    "surface density": (1, -2, 0), "per mass": (-1, 0, 0), "angle": (0, 0, 0),
}  # fmt: skip

FIRST_NAMES = {
    name: names.split()[0] for names in MASSES | LENGTHS | TIMES for name in names.split()
}


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
        raise ArgumentError(
            f"{name!r} is no unit of {dimension}{meant(name, known)}; there are {', '.join(known)}"
        )
    return count * known[name]

"""Fields from outside: what a galaxy does to the bodies of a cluster in it.

A field is anything that is called as ``field(t, pos, vel)`` and gives acceleration, jerk (the time
derivative of the acceleration along the path of a body) and potential. analytic.py has the built-in
ones, which add up by ``+`` and are evaluated by the library, on the CPU and on a GPU; adapters.py
takes those of galpy, gala and Agama; integrators/orbit_frame.py moves coordinates along an orbit.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from grape6py.errors import meant
from grape6py.fields.adapters import from_acceleration, from_agama, from_gala, from_galpy
from grape6py.fields.analytic import (
    Field,
    logarithmic,
    miyamoto_nagai,
    mwpotential2014,
    nfw,
    plummer,
    point_mass,
    power_law_cutoff,
    rotation,
)

if TYPE_CHECKING:
    from grape6py._arrays.kinds import Untyped
    from grape6py.orbits import orbit as orbit

__all__ = [
    "Field",
    "from_acceleration",
    "from_agama",
    "from_gala",
    "from_galpy",
    "logarithmic",
    "miyamoto_nagai",
    "mwpotential2014",
    "nfw",
    "orbit",
    "plummer",
    "point_mass",
    "power_law_cutoff",
    "rotation",
]


def __getattr__(name: str) -> Untyped:
    if name == "orbit":  # integrates, which stands above fields
        return importlib.import_module("grape6py.orbits").orbit
    hint = "" if name[0] == "_" else meant(name, __all__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return sorted({*globals(), "orbit"})

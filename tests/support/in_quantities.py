"""Bodies in quantities, the same in plain numbers, and how results of the two compare."""

import functools

import numpy as np
from astropy import constants
from astropy import units as u

from grape6py import Hermite, Leapfrog, Units, fields, plummer

KMS = u.km / u.s
ENERGY = u.Msun * KMS**2
GALACTIC = Units("Msun", "pc", velocity="km/s")
HENON = Units("5e4 Msun", "1.2 pc")

# Plain numbers are in these, in which G = 1.
LENGTH, MASS = u.def_unit("length", 1.2 * u.pc), u.def_unit("mass", 5e4 * u.Msun)
TIME = u.def_unit("time", np.sqrt(LENGTH**3 / (constants.G * MASS)).to(u.s))

# Units in which results are, of bodies in solar masses, parsecs and km/s: by their names, or by
# those of the methods that give them.
SHOWN = {
    "mass": u.Msun, "pos": u.pc, "vel": KMS, "acc": KMS / u.Myr, "jerk": KMS / u.Myr**2,
    "step_sizes": u.Myr, "time": u.Myr, "G": u.pc * KMS**2 / u.Msun, "energy_change": ENERGY,
    "potential()": KMS**2, "momentum()": u.Msun * KMS, "centre_of_mass()": u.pc,
    "angular_momentum()": u.Msun * u.pc * KMS, "lagrangian_radii()": u.pc,
    "energy()": None, "virial_ratio()": None, "particles()": None, "steps": None, "ids": None,
}  # fmt: skip
OF_FIELDS = SHOWN | {
    "pot": KMS**2, "distance": u.pc, "semi_major_axis": u.pc,
    "kinetic": ENERGY, "potential": ENERGY, "external": ENERGY,
}  # fmt: skip

EXACT = {"precision": "double", "backend": "cpu"}
KINDS = {
    "hermite": (Hermite, {"dt": 2e-3 * u.Myr, "eps": 0.05 * u.pc, **EXACT}),
    "direct": (Leapfrog, {"dt": 2e-3 * u.Myr, "eps": 10000 * u.AU, **EXACT}),
    "tree": (Leapfrog, {"dt": 1.0 * u.kyr, "eps": 0.05 * u.pc, "backend": "cpu-tree"}),
}
ERRORS = {"tree": 1e-5}  # it sums in single precision, and each system of units rounds otherwise
_random = np.random.default_rng(2).normal(size=(2, 12, 3))
PLACES = {"pos": _random[0] * 5 * u.kpc, "vel": _random[1] * 100 * KMS}


def as_given(value):
    return value


def by_hand(value):
    """Quantities, also those in dictionaries, lists and tuples, as numbers in which G = 1."""
    if isinstance(value, dict):
        return {name: by_hand(one) for name, one in value.items() if name != "units"}
    if hasattr(value, "_make"):
        return value._make(map(by_hand, value))
    if isinstance(value, list | tuple):
        return type(value)(map(by_hand, value))
    if not isinstance(value, u.Quantity):
        return value
    return value.decompose(bases=[MASS, LENGTH, TIME]).value


@functools.cache
def stars(n=30):
    """Neither at rest nor in the origin."""
    mass, pos, vel = plummer(n, 1, units=HENON)
    return {"mass": mass, "pos": pos + [2, 1, -1] * u.pc, "vel": vel + [3, -1, 2] * KMS}


def made(kind="hermite", how=as_given, n=30, **more):
    cls, options = KINDS[kind]
    return cls(**how(stars(n) | options | more))


def is_close(found, wanted, error=1e-9):
    found, wanted = np.asarray(found), np.asarray(wanted)
    return found.shape == wanted.shape and bool(
        (abs(found - wanted) <= error * np.abs(wanted).max(initial=0)).all()
    )


def is_in(found, unit):
    return isinstance(found, u.Quantity) and found.unit == unit


def assert_alike(cluster, plain, names, error=1e-9):
    """What one asks of bodies."""
    for name in names:
        asked = [getattr(each, name.removesuffix("()")) for each in (cluster, plain)]
        if name.endswith("()"):
            asked = [method() for method in asked]
        assert_same(*asked, SHOWN[name], error)


def assert_same(found, wanted, unit=None, error=1e-9):
    names = getattr(wanted, "_fields", None)
    if isinstance(wanted, Hermite | Leapfrog):
        assert_alike(found, wanted, SHOWN, error)
        assert_same(found.energy().total, wanted.energy().total, ENERGY, error)
    elif isinstance(wanted, fields.Field):
        assert_same(found(0.0, **PLACES), wanted(0.0, **by_hand(PLACES)), error=error)
    elif hasattr(wanted, "__len__") and not isinstance(wanted, np.ndarray | str):
        assert type(found).__name__ == type(wanted).__name__
        units = map(OF_FIELDS.get, names) if names else unit or [None] * len(wanted)
        for *pair, its_unit in zip(found, wanted, units, strict=True):
            assert_same(*pair, its_unit, error)
    elif unit is None or wanted is None:
        assert not isinstance(found, u.Quantity)
        assert found is wanted or is_close(found, wanted, error)
    else:
        assert is_in(found, unit), f"{type(found)} in {getattr(found, 'unit', None)}"
        assert is_close(by_hand(found), wanted, error)


def has_the_bits(one, other):
    return all(
        is_in(a, b.unit) and np.array_equal(a.value, b.value)
        for a, b in ((getattr(one, k), getattr(other, k)) for k in ("mass", "pos", "vel", "time"))
    )

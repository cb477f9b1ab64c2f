"""Bodies in quantities, the same in plain numbers and in quantities of a stand-in for AMUSE (the
real ones: tests/clients), and how results of them compare."""

import functools
import sys
from types import SimpleNamespace

import numpy as np
import pytest
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


def changed(change, value):
    """Quantities, also those in dictionaries, lists and tuples, by a function of one."""
    if isinstance(value, dict):
        return {name: changed(change, one) for name, one in value.items()}
    if hasattr(value, "_make"):
        return value._make(changed(change, one) for one in value)
    if isinstance(value, list | tuple):
        return type(value)(changed(change, one) for one in value)
    value = getattr(value, "physical", getattr(value, "quantity", value))
    return change(value) if isinstance(value, u.Quantity) else value


def as_given(value):
    return value


def by_hand(value):
    """Numbers in which G = 1."""
    if isinstance(value, dict):
        value = {name: one for name, one in value.items() if name != "units"}
    return changed(lambda one: one.decompose(bases=[MASS, LENGTH, TIME]).value, value)


def of_amuse(value):
    return changed(lambda one: AmuseQuantity(one.value, one.unit), value)


class AmuseQuantity:
    """With astropy's units, which the fixture gives what is used of AMUSE's."""

    def __init__(self, number, unit):
        self.number, self.unit = number, unit

    def value_in(self, unit):
        return (self.number * self.unit).to_value(unit)

    def __add__(self, other):
        return AmuseQuantity(self.number + other.value_in(self.unit), self.unit)

    def __len__(self):
        return len(self.number)


AmuseQuantity.__module__ = "amuse.units.quantities"


@pytest.fixture
def amuse(monkeypatch):
    units = {name: getattr(u, name) for name in
             "kg g kpc Mpc AU km percent m cm Gyr Myr kyr yr day s".split()}  # fmt: skip
    units |= {name: u.def_unit(name, of) for name, of in {
        "MSun": u.Msun, "MEarth": u.earthMass, "MJupiter": u.jupiterMass, "parsec": u.pc,
        "RSun": u.Rsun, "kms": KMS}.items()}  # fmt: skip
    inner = SimpleNamespace(**units, __name__="amuse.units.units")
    for name, module in ("amuse.units", SimpleNamespace(units=inner)), (inner.__name__, inner):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(sys.modules, "amuse", SimpleNamespace(units=SimpleNamespace(units=inner)))
    given = lambda unit, value: AmuseQuantity(value, unit)  # noqa: E731
    monkeypatch.setattr(u.UnitBase, "new_quantity", given, raising=False)
    return inner


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


def number_of(found):
    return getattr(found, "number", getattr(found, "value", None))


def assert_alike(cluster, plain, names, *how):
    """What one asks of bodies."""
    for name in names:
        asked = [getattr(each, name.removesuffix("()")) for each in (cluster, plain)]
        if name.endswith("()"):
            asked = [method() for method in asked]
        assert_same(*asked, SHOWN[name], *how)


def assert_same(found, wanted, unit=None, error=1e-9, kind=u.Quantity):
    """Of a unit and of a package's kind."""
    names = getattr(wanted, "_fields", None)
    if isinstance(wanted, Hermite | Leapfrog):
        assert_alike(found, wanted, SHOWN, error, kind)
        assert_same(found.energy().total, wanted.energy().total, ENERGY, error, kind)
    elif isinstance(wanted, fields.Field):
        assert_same(found(0.0, **PLACES), wanted(0.0, **by_hand(PLACES)), error=error)
    elif hasattr(wanted, "__len__") and not isinstance(wanted, np.ndarray | str):
        assert type(found).__name__ == type(wanted).__name__
        units = map(OF_FIELDS.get, names) if names else unit or [None] * len(wanted)
        for *pair, its_unit in zip(found, wanted, units, strict=True):
            assert_same(*pair, its_unit, error, kind)
    elif unit is None or wanted is None:
        assert not hasattr(found, "unit")
        assert found is wanted or is_close(found, wanted, error)
    else:
        assert type(found) is kind
        assert found.unit == unit
        assert is_close(by_hand(number_of(found) * unit), wanted, error)


def has_the_bits(one, other):
    pairs = [(getattr(one, k), getattr(other, k)) for k in ("mass", "pos", "vel", "time")]
    return all(
        type(a) is type(b) and a.unit == b.unit and np.array_equal(number_of(a), number_of(b))
        for a, b in pairs
    )

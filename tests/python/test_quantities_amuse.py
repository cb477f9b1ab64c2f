"""Quantities of AMUSE, by a stand-in for its units; the real ones: tests/clients."""

import copy
import sys
import types

import pytest
from astropy import units as u

from grape6py import (
    Hermite,
    Tree,
    Units,
    accelerations,
    diagnostics,
    fields,
    plummer,
    read_snapshot,
    write_snapshot,
)
from grape6py.errors import ArgumentError
from in_quantities import EXACT, GALACTIC, HENON, KMS, is_close, made, stars


class _AmuseUnit:
    """What is used of AMUSE's units, by those of astropy."""

    def __init__(self, of, name=""):
        self.of, self._name = u.Unit(of), name

    def __str__(self):
        return self._name or str(self.of)

    def __mul__(self, other):
        return _AmuseUnit(self.of * other.of)

    def __truediv__(self, other):
        return self * other**-1

    def __rtruediv__(self, one):
        return self**-1

    def __pow__(self, power):
        return _AmuseUnit(self.of**power)

    def new_quantity(self, value):
        return _AmuseQuantity(value, self)


class _AmuseQuantity:
    def __init__(self, number, unit):
        self.number, self.unit = number, unit

    def value_in(self, unit):
        return (self.number * self.unit.of).to_value(unit.of)

    def __len__(self):
        return len(self.number)


_AmuseQuantity.__module__ = "amuse.units.quantities"
_OF_AMUSE = {"MSun": u.Msun, "MEarth": u.earthMass, "MJupiter": u.jupiterMass, "kg": u.kg, "g": u.g,
             "parsec": u.pc, "kpc": u.kpc, "Mpc": u.Mpc, "AU": u.AU, "RSun": u.Rsun, "km": u.km,
             "percent": u.percent, "m": u.m, "cm": u.cm, "Gyr": u.Gyr, "Myr": u.Myr, "kyr": u.kyr,
             "yr": u.yr, "day": u.day, "s": u.s, "kms": KMS}  # fmt: skip


@pytest.fixture
def amuse(monkeypatch):
    package, units, inner = (types.ModuleType(name) for name in
                             ("amuse", "amuse.units", "amuse.units.units"))  # fmt: skip
    package.units, units.units = units, inner
    for name, unit in _OF_AMUSE.items():
        setattr(inner, name, _AmuseUnit(unit, name))
    for module in (package, units, inner):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return inner


def amuse_stars(amuse):
    units = amuse.MSun, amuse.parsec, amuse.kms
    return [unit.new_quantity(array.value)
            for array, unit in zip(stars().values(), units, strict=True)]  # fmt: skip


def test_quantities_of_amuse_go_in_and_come_out(amuse):
    eps, end = amuse.parsec.new_quantity(0.05), amuse.Myr.new_quantity(0.02)
    cluster = Hermite(*amuse_stars(amuse), eps=eps, dt=amuse.kyr.new_quantity(2.0), **EXACT)
    same = made()
    for each, t in ((cluster, end), (same, 0.02 * u.Myr)):
        each.evolve(t)
    units = {"mass": amuse.MSun, "pos": amuse.parsec, "vel": amuse.kms, "time": amuse.Myr}
    for name, unit in units.items():
        found = getattr(cluster, name)
        assert isinstance(found, _AmuseQuantity)
        assert is_close(found.value_in(unit), getattr(same, name).value, 1e-9)
    kinetic = cluster.energy().kinetic.value_in(amuse.MSun * amuse.kms**2)
    assert kinetic == pytest.approx(same.energy().kinetic.value, rel=1e-9)
    radii = cluster.lagrangian_radii().value_in(amuse.parsec)
    assert is_close(radii, same.lagrangian_radii().value, 1e-9)
    copied = copy.copy(cluster)
    assert isinstance(copied.pos, _AmuseQuantity)


def test_sums_models_and_fields_take_quantities_of_amuse(amuse):
    mass, pos, _ = amuse_stars(amuse)
    acc = accelerations(mass, pos)
    wanted = accelerations(stars()["mass"], stars()["pos"])
    assert is_close(acc.value_in(amuse.kms / amuse.Myr), wanted.value, 1e-9)
    field = fields.nfw(amuse.MSun.new_quantity(1e11), amuse.kpc.new_quantity(16.0), units=GALACTIC)
    assert field == fields.nfw(1e11 * u.Msun, 16 * u.kpc, units=GALACTIC)
    assert Units(amuse.MSun.new_quantity(5e4), amuse.parsec.new_quantity(1.2)) == HENON
    one = [getattr(amuse, name).new_quantity(1) for name in ("MSun", "AU", "kms")]
    units = Units(*one[:2], velocity=one[2])
    assert str(units) == "Msun AU km/s"
    assert str(Units(amuse.MEarth.new_quantity(2), amuse.RSun.new_quantity(1))) == "2.0 Mearth Rsun"
    assert Hermite(*plummer(9, 1), eta=amuse.percent.new_quantity(2)).settings["eta"] == 0.02
    with Tree(pos, mass) as tree:
        distance = tree.nearest(1).distance
        assert isinstance(distance, _AmuseQuantity)


def test_wrong_quantities_of_amuse_are_refused_by_name(amuse):
    mass, pos, vel = amuse_stars(amuse)
    for call, word in ((lambda: Hermite(pos, pos, vel), "mass"),
                       (lambda: Hermite(mass, pos, vel, eps=mass), "eps"),
                       (lambda: Hermite(mass, pos.number, vel), "pos"),
                       (lambda: diagnostics.momentum(mass, vel.number), "mass"),
                       (lambda: Hermite(*plummer(9, 1)).evolve(amuse.Myr.new_quantity(1)), "t"),
                       (lambda: plummer(amuse.Myr.new_quantity(1)), "n")):  # fmt: skip
        with pytest.raises(ArgumentError, match=rf"\b{word}\b"):
            call()


def test_files_remember_that_quantities_were_those_of_amuse(here, amuse):
    cluster = Hermite(*amuse_stars(amuse))
    cluster.save("a.h5")
    other = Hermite.load("a.h5")
    assert isinstance(other.pos, _AmuseQuantity)
    assert is_close(other.pos.value_in(amuse.parsec), stars()["pos"].value, 1e-12)
    write_snapshot("b.hdf5", *amuse_stars(amuse))
    found = read_snapshot("b.hdf5")
    assert is_close(found.pos * found.units.value("length", "pc"), stars()["pos"].value, 1e-12)

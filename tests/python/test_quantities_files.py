"""Files of clusters and snapshots in quantities; and AMUSE's quantities, by a stand-in for its
units (the real ones: tests/clients)."""

import copy
import pickle
import sys
import warnings
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
from astropy import units as u

import grape6py as g6
from grape6py import Hermite, Tree, Units, archive, fields, plummer, read_snapshot, write_snapshot
from grape6py.errors import ArgumentError, Grape6Warning
from in_quantities import EXACT, GALACTIC, HENON, KINDS, KMS, has_the_bits, is_close, made, stars


@pytest.mark.parametrize(("kind", "units"), [
    ("hermite", None), ("direct", HENON), ("tree", Units("1e3 Msun", "kpc", time="Gyr")),
])  # fmt: skip
def test_files_and_copies_keep_the_units_and_go_on_with_the_same_bits(here, kind, units):
    cluster = made(kind, **{} if units is None else {"units": units})
    cluster.save("a.h5")
    cluster.evolve(10 * u.kyr)
    archive.save("a.h5", cluster)
    for path in ("a.h5", "a/000001.hdf5"):
        with h5py.File(path) as file:
            assert Units.from_text(file.attrs["units"]) == cluster.units
    with h5py.File("a/000001.hdf5") as file:
        sizes = dict(file["Units"].attrs)
        found = [file["grape6py"][name][()] for name in ("mass", "pos", "vel")]
        time = file["Header"].attrs["Time"]
    mass, length = sizes["UnitMass_in_g"] * u.g, sizes["UnitLength_in_cm"] * u.cm
    speed = sizes["UnitVelocity_in_cm_per_s"] * u.cm / u.s
    for array, unit, wanted in zip(found, (mass, length, speed), cluster.particles(), strict=True):
        assert is_close((array * unit).to_value(wanted.unit), wanted.value, 1e-13)
    assert (time * length / speed).to_value(u.kyr) == pytest.approx(10, rel=1e-12)
    assert read_snapshot("a.h5").units == cluster.units
    others = [archive.restore("a.h5"), KINDS[kind][0].load("a/000001.hdf5"), cluster.copy(),
              copy.deepcopy(cluster), pickle.loads(pickle.dumps(cluster))]  # fmt: skip
    seen = []
    for other in others:
        assert isinstance(other, KINDS[kind][0])
        assert other.units == cluster.units
        assert has_the_bits(other, cluster)
        other.evolve(20 * u.kyr, lambda one: seen.append(one))
        assert seen[-1] is other
    cluster.evolve(20 * u.kyr)
    assert all(has_the_bits(other, cluster) for other in others)


def test_files_in_unusual_units_and_in_none_can_be_read(here):
    for name, units in ("a.h5", Units(1 * u.imperial.lb, 1 * u.lyr)), ("b.h5", None):
        cluster = Hermite(*plummer(10, 1), units=units)
        if units is not None:  # and come out with the bits with which they went in
            given = plummer(10, 1).pos * u.lyr
            assert np.array_equal(
                Hermite(np.ones(10) * u.imperial.lb, given, given / u.yr).pos, given
            )
        cluster.save(name)
        other = Hermite.load(name)
        assert getattr(other, "units", None) == units
        assert np.array_equal(other.pos, cluster.pos)


def test_binaries_in_a_file_are_in_its_units(here):
    pairs = g6.with_binaries(plummer(20, 1), 0.5, 1, separation=1e-3)
    cluster = Hermite(*pairs, units=HENON)
    axis = cluster.binaries().semi_major_axis
    assert axis.to_value(u.pc)[0] == pytest.approx(1.2e-3, rel=1e-3)
    archive.save("a.h5", cluster, binaries=cluster.binaries())
    with h5py.File("a/000000.hdf5") as file:
        found = file["grape6py/binaries/semi_major_axis"][()]
    assert is_close(found, axis.to_value(u.pc) / 1.2, 1e-12)
    with pytest.raises(ArgumentError, match="semi_major_axis"):
        archive.save("b.h5", Hermite(*pairs), binaries=cluster.binaries())


@pytest.mark.parametrize("path", ["a.hdf5", "a.amuse"])
@pytest.mark.parametrize("units", [None, HENON])
def test_snapshots_are_written_in_their_units_or_in_those_asked_for(here, path, units):
    bodies = g6.Particles(**stars())
    with warnings.catch_warnings():
        warnings.simplefilter("error", Grape6Warning)
        write_snapshot(path, bodies, units=units, time=1 * u.Myr)
    found = read_snapshot(path)
    cgs = found.units.in_cgs
    if path == "a.hdf5":
        assert found.units == (units or GALACTIC)
    sizes = cgs("mass") * u.g, cgs("length") * u.cm, cgs("velocity") * u.cm / u.s
    for array, size, wanted in zip(found, sizes, bodies, strict=True):
        assert is_close((array * size).to_value(wanted.unit), wanted.value, 1e-13)
        assert units or path == "a.amuse" or np.array_equal(array, wanted.value)
    assert (found.time * cgs("time") * u.s).to_value(u.Myr) == pytest.approx(1, rel=1e-13)


class _AmuseUnit:
    """What is used of AMUSE's units, by those of astropy."""

    def __init__(self, of, name=""):
        self.of, self._name = u.Unit(of), name

    def __str__(self):
        return self._name or str(self.of)

    def __mul__(self, other):
        return _AmuseUnit(self.of * other.of)

    def __truediv__(self, other):
        return _AmuseUnit(self.of / other.of)

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
OTHER_NAMES = {"MSun": u.Msun, "MEarth": u.earthMass, "MJupiter": u.jupiterMass, "parsec": u.pc,
               "RSun": u.Rsun, "kms": KMS}  # fmt: skip


@pytest.fixture
def amuse(monkeypatch):
    names = "kg g kpc Mpc AU km percent m cm Gyr Myr kyr yr day s".split()
    units = OTHER_NAMES | {name: getattr(u, name) for name in names}
    inner = SimpleNamespace(**{name: _AmuseUnit(unit, name) for name, unit in units.items()})
    inner.__name__ = "amuse.units.units"
    for name, module in (("amuse", SimpleNamespace(units=SimpleNamespace(units=inner))),
                         ("amuse.units", SimpleNamespace(units=inner)),
                         ("amuse.units.units", inner)):  # fmt: skip
        monkeypatch.setitem(sys.modules, name, module)
    return inner


def amuse_stars(amuse):
    units = amuse.MSun, amuse.parsec, amuse.kms
    return [unit.new_quantity(array.value)
            for array, unit in zip(stars().values(), units, strict=True)]  # fmt: skip


def test_quantities_of_amuse_go_in_and_come_out_of_integrations_and_files(here, amuse):
    eps, end = amuse.parsec.new_quantity(0.05), amuse.Myr.new_quantity(0.02)
    cluster = Hermite(*amuse_stars(amuse), eps=eps, dt=amuse.kyr.new_quantity(2.0), **EXACT)
    same = made()
    for each, t in ((cluster, end), (same, 0.02 * u.Myr)):
        each.evolve(t)
    cluster.save("a.h5")
    units = {"mass": amuse.MSun, "pos": amuse.parsec, "vel": amuse.kms, "time": amuse.Myr}
    for each in cluster, copy.copy(cluster), Hermite.load("a.h5"):
        for name, unit in units.items():
            found = getattr(each, name)
            assert isinstance(found, _AmuseQuantity)
            assert is_close(found.value_in(unit), getattr(same, name).value, 1e-9)
    kinetic = cluster.energy().kinetic.value_in(amuse.MSun * amuse.kms**2)
    assert kinetic == pytest.approx(same.energy().kinetic.value, rel=1e-9)
    radii = cluster.lagrangian_radii().value_in(amuse.parsec)
    assert is_close(radii, same.lagrangian_radii().value, 1e-9)
    write_snapshot("b.hdf5", *amuse_stars(amuse))
    found = read_snapshot("b.hdf5")
    assert is_close(found.pos * found.units.value("length", "pc"), stars()["pos"].value, 1e-12)


def test_other_calls_take_quantities_of_amuse_or_refuse_them_by_name(amuse):
    mass, pos, vel = amuse_stars(amuse)
    acc = g6.accelerations(mass, pos)
    wanted = g6.accelerations(stars()["mass"], stars()["pos"])
    assert is_close(acc.value_in(amuse.kms / amuse.Myr), wanted.value, 1e-9)
    field = fields.nfw(amuse.MSun.new_quantity(1e11), amuse.kpc.new_quantity(16.0), units=GALACTIC)
    assert field == fields.nfw(1e11 * u.Msun, 16 * u.kpc, units=GALACTIC)
    one = [getattr(amuse, name).new_quantity(1) for name in ("MEarth", "AU", "kms")]
    assert str(Units(*one[:2], velocity=one[2])) == "Mearth AU km/s"
    assert Hermite(*plummer(9, 1), eta=amuse.percent.new_quantity(2)).settings["eta"] == 0.02
    assert isinstance(Tree(pos, mass).nearest(1).distance, _AmuseQuantity)
    for call, word in ((lambda: Hermite(pos, pos, vel), "mass"),
                       (lambda: Hermite(mass, pos, vel, eps=mass), "eps"),
                       (lambda: Hermite(mass, pos.number, vel), "pos"),
                       (lambda: g6.diagnostics.momentum(mass, vel.number), "mass"),
                       (lambda: Hermite(*plummer(9, 1)).evolve(amuse.Myr.new_quantity(1)), "t"),
                       (lambda: plummer(amuse.Myr.new_quantity(1)), "n")):  # fmt: skip
        with pytest.raises(ArgumentError, match=rf"\b{word}\b"):
            call()

"""Files of clusters and snapshots in quantities."""

import warnings

import h5py
import numpy as np
import pytest
from astropy import units as u

from grape6py import (
    Hermite,
    Particles,
    Units,
    archive,
    plummer,
    read_snapshot,
    with_binaries,
    write_snapshot,
)
from grape6py.errors import ArgumentError, Grape6Warning
from in_quantities import GALACTIC, HENON, KINDS, has_the_bits, is_close, made, stars


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("units", [None, HENON, Units("1e3 Msun", "kpc", time="Gyr")])
def test_files_of_a_run_keep_the_units(here, kind, units):
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
    for other in (archive.restore("a.h5"), KINDS[kind][0].load("a/000001.hdf5")):
        assert isinstance(other, KINDS[kind][0])
        assert other.units == cluster.units
        assert has_the_bits(other, cluster)


@pytest.mark.parametrize("units", [
    Units(1 * u.imperial.lb, 1 * u.lyr), Units("earthMass", "AU"), Units("1E3 Msun", "pc"),
    Units("5e4 Msun", "1.2 pc", velocity="3.3 km/s"), None,
])  # fmt: skip
def test_files_in_unusual_units_and_in_none_can_be_read(here, units):
    cluster = Hermite(*plummer(10, 1), units=units)
    cluster.save("a.h5")
    other = Hermite.load("a.h5")
    assert getattr(other, "units", None) == units
    assert np.array_equal(other.pos, cluster.pos)
    with h5py.File("a.h5") as file:
        assert ("units" in file.attrs) == (units is not None)


def test_binaries_in_a_file_are_in_its_units(here):
    pairs = with_binaries(plummer(20, 1), 0.5, 1, separation=1e-3)
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
    bodies = Particles(**stars())
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


def test_formats_without_units_say_that_these_are_lost(here):
    for path in ("a.dat", "a.csv", "a.nemo"):
        with pytest.warns(Grape6Warning, match="units"):
            write_snapshot(path, **stars())
        assert is_close(read_snapshot(path).pos, stars()["pos"].value, 1e-14)


def test_snapshots_refuse_a_time_or_ids_that_fit_nothing(here):
    for bodies, options in ((stars(), {"time": 1 * u.pc}), (stars(), {"ids": np.arange(30) * u.s}),
                            (plummer(5, 1)._asdict(), {"time": 1 * u.Myr})):  # fmt: skip
        with pytest.raises(ArgumentError, match=next(iter(options))):
            write_snapshot("a.hdf5", **bodies, **options)

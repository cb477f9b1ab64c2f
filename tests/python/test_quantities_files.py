"""Files of clusters and snapshots in quantities."""

import warnings

import h5py
import numpy as np
import pytest
from astropy import units as u

import grape6py
from grape6py import (
    Hermite,
    Units,
    archive,
    picture,
    plummer,
    read_snapshot,
    with_binaries,
    write_snapshot,
)
from grape6py.errors import ArgumentError, Grape6Warning
from in_quantities import GALACTIC, HENON, KINDS, by_hand, has_the_bits, is_close, made, stars
from runs import here  # noqa: F401 (fixture)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("units", [None, HENON, Units("1e3 Msun", "kpc", time="Gyr")])
def test_files_of_a_run_keep_the_units(here, kind, units):  # noqa: F811
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
    for array, unit, name in zip(found, (mass, length, speed), ("mass", "pos", "vel"), strict=True):
        assert is_close(by_hand(array * unit), by_hand(getattr(cluster, name)), 1e-13)
    assert (time * length / speed).to_value(u.kyr) == pytest.approx(10, rel=1e-12)
    assert read_snapshot("a.h5").units == cluster.units


@pytest.mark.parametrize("load", [Hermite.load, archive.restore])
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_goes_on_in_quantities_with_the_same_bits(here, kind, load):  # noqa: F811
    cluster = made(kind)
    cluster.evolve(10 * u.kyr)
    cluster.save("a.h5")
    for path in ("a.h5", "a/000000.hdf5"):
        other = load(path)
        assert isinstance(other, KINDS[kind][0])
        assert other.units == cluster.units
        assert has_the_bits(other, cluster)
    other.evolve(20 * u.kyr)
    cluster.evolve(20 * u.kyr)
    assert has_the_bits(other, cluster)
    load("a.h5").save("a.h5")
    other.save("a.h5")
    assert has_the_bits(load("a.h5"), cluster)


@pytest.mark.parametrize("units", [
    Units(1 * u.imperial.lb, 1 * u.lyr), Units("earthMass", "AU"), Units("1E3 Msun", "pc"),
    Units("5e4 Msun", "1.2 pc", velocity="3.3 km/s"), HENON,
])  # fmt: skip
def test_files_in_unusual_units_can_be_read(here, units):  # noqa: F811
    cluster = Hermite(*plummer(10, 1), units=units)
    cluster.save("a.h5")
    other = Hermite.load("a.h5")
    assert other.units == units
    assert is_close(by_hand(other.pos), by_hand(cluster.pos), 1e-14)


def test_files_of_plain_numbers_give_plain_numbers(here):  # noqa: F811
    cluster = Hermite(*plummer(10, 1))
    cluster.save("a.h5")
    with h5py.File("a.h5") as file:
        assert "units" not in file.attrs
    assert type(Hermite.load("a.h5")) is Hermite


def test_binaries_in_a_file_are_in_its_units(here):  # noqa: F811
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


def test_a_picture_of_a_file_in_units_is_drawn(here):  # noqa: F811
    cluster = made()
    for t in (0, 5, 10) * u.kyr:
        cluster.evolve(t)
        cluster.save("a.h5")
    picture.draw_file("a.png", "a.h5")
    assert (here / "a.png").stat().st_size > 10000


@pytest.mark.parametrize("path", ["a.hdf5", "a.amuse"])
def test_snapshots_are_written_with_their_units(here, path):  # noqa: F811
    with warnings.catch_warnings():
        warnings.simplefilter("error", Grape6Warning)
        write_snapshot(path, *stars(), time=1 * u.Myr)
    found = read_snapshot(path)
    cgs = found.units.in_cgs
    arrays = (found.mass * cgs("mass") * u.g, found.pos * cgs("length") * u.cm,
              found.vel * cgs("velocity") * u.cm / u.s)  # fmt: skip
    for array, wanted in zip(arrays, stars(), strict=True):
        assert is_close(by_hand(array), by_hand(wanted), 1e-13)
    time = found.time * cgs("time") * u.s
    assert time.to_value(u.Myr) == pytest.approx(1, rel=1e-13)


def test_snapshots_keep_the_bits_of_quantities(here):  # noqa: F811
    write_snapshot("a.hdf5", *stars())
    found = read_snapshot("a.hdf5")
    assert found.units == GALACTIC
    for array, wanted in zip(found, stars(), strict=True):
        assert np.array_equal(array, wanted.value)


def test_snapshots_are_converted_to_the_units_that_are_asked_for(here):  # noqa: F811
    write_snapshot("a.hdf5", grape6py.Particles(*stars()), units=HENON, time=1 * u.Myr)
    found = read_snapshot("a.hdf5")
    assert found.units == HENON
    assert is_close(found.mass * 5e4, by_hand(stars()[0]), 1e-13)
    assert is_close(found.pos * 1.2, by_hand(stars()[1]), 1e-13)
    assert found.time * HENON.value("time", "Myr") == pytest.approx(1, rel=1e-13)
    cluster = made()
    write_snapshot("b.hdf5", cluster.particles(), time=cluster.time)
    assert np.array_equal(read_snapshot("b.hdf5").pos, cluster.pos.value)


def test_formats_without_units_say_that_these_are_lost(here):  # noqa: F811
    for path in ("a.dat", "a.csv", "a.nemo"):
        with pytest.warns(Grape6Warning, match="units"):
            write_snapshot(path, *stars())
        assert is_close(read_snapshot(path).pos, by_hand(stars()[1]), 1e-14)


def test_snapshots_refuse_a_time_or_ids_that_fit_nothing(here):  # noqa: F811
    for options in ({"time": 1 * u.pc}, {"ids": np.arange(30) * u.s}):
        with pytest.raises(ArgumentError, match=next(iter(options))):
            write_snapshot("a.hdf5", *stars(), **options)
    with pytest.raises(ArgumentError, match="time"):
        write_snapshot("a.hdf5", *plummer(5, 1), time=1 * u.Myr)

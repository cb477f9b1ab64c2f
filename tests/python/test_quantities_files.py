"""Files of clusters and snapshots in quantities."""

import copy
import pickle
import warnings

import h5py
import numpy as np
import pytest
from astropy import units as u

import grape6py as g6
import in_quantities
from grape6py import Hermite, Units, archive, plummer, read_snapshot, write_snapshot
from grape6py.errors import ArgumentError, Grape6Warning
from in_quantities import GALACTIC, HENON, as_given, has_the_bits, is_close, made, of_amuse, stars


def assert_holds(path, bodies, time):
    """A file in any units; which are given."""
    found = read_snapshot(path)
    cgs = found.units.in_cgs
    sizes = cgs("mass") * u.g, cgs("length") * u.cm, cgs("velocity") * u.cm / u.s
    for array, size, wanted in zip(found, sizes, bodies, strict=True):
        assert is_close((array * size).to_value(wanted.unit), wanted.value, 1e-13)
    assert (found.time * cgs("time") * u.s).to_value(time.unit) == pytest.approx(time.value)
    return found.units


@pytest.mark.parametrize(("kind", "how", "units"), [
    ("hermite", as_given, None), ("hermite", of_amuse, None), ("direct", as_given, HENON),
    ("tree", of_amuse, Units("1e3 Msun", "kpc", time="Gyr")),
])  # fmt: skip
def test_files_and_copies_keep_units_and_go_on_with_the_same_bits(here, amuse, kind, how, units):
    cluster = made(kind, how, **{} if units is None else {"units": units})
    cluster.save("a.h5")
    cluster.evolve(how(10 * u.kyr))
    archive.save("a.h5", cluster)
    assert read_snapshot("a.h5").units == cluster.units
    bodies = [in_quantities.number_of(one) * one.unit for one in cluster.particles()]
    assert assert_holds("a/000001.hdf5", bodies, 10 * u.kyr) == cluster.units
    cls = in_quantities.KINDS[kind][0]
    others = [archive.restore("a.h5"), cls.load("a/000001.hdf5"), cluster.copy(),
              copy.deepcopy(cluster), pickle.loads(pickle.dumps(cluster))]  # fmt: skip
    seen = []
    for other in others:
        assert isinstance(other, cls)
        assert other.units == cluster.units
        assert has_the_bits(other, cluster)
        other.evolve(how(20 * u.kyr), lambda one: seen.append(one))
        assert seen[-1] is other
    cluster.evolve(how(20 * u.kyr))
    assert all(has_the_bits(other, cluster) for other in others)


def test_files_in_unusual_units_and_in_none_can_be_read(here):
    for name, units in ("a.h5", Units(1 * u.imperial.lb, 1 * u.lyr)), ("b.h5", None):
        cluster = Hermite(*plummer(10, 1), units=units)
        if units is not None:  # and come out with the bits with which they went in
            given = plummer(10, 1).pos * u.lyr
            made_of = Hermite(np.ones(10) * u.imperial.lb, given, given / u.yr)
            assert np.array_equal(made_of.pos, given)
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
    with warnings.catch_warnings(action="error", category=Grape6Warning):
        write_snapshot(path, bodies, units=units, time=1 * u.Myr)
    found = assert_holds(path, bodies, 1 * u.Myr)
    if path == "a.hdf5":
        assert found == (units or GALACTIC)
        assert units or np.array_equal(read_snapshot(path).pos, bodies.pos.value)


def test_quantities_of_amuse_are_written_and_name_units(here, amuse):
    write_snapshot("a.hdf5", *of_amuse(list(stars().values())), time=of_amuse(1 * u.Myr))
    assert assert_holds("a.hdf5", stars().values(), 1 * u.Myr) == GALACTIC
    one = [getattr(amuse, name).new_quantity(1) for name in ("MEarth", "AU", "kms")]
    assert str(Units(*one[:2], velocity=one[2])) == "Mearth AU km/s"

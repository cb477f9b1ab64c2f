"""``grape6 run`` in units: of a model, of a file, in its log and its files."""

import re

import h5py
import numpy as np
import pytest

from grape6py import Hermite, Units, archive, plummer, read_snapshot, write_snapshot
from runs import assert_same_end, run

N = 30
EXACT = {"backend": "cpu", "precision": "double"}
HENON, GALACTIC = "5e4 Msun 1.2 pc", "1e10 Msun kpc km/s"
KINDS = ["mass", "length", "time", "velocity"]


def run_of(source, **options):
    named = {name.replace("_", "-"): value for name, value in (EXACT | options).items() if value}
    return run(source, *(word for name, value in named.items() for word in (f"--{name}", value)))


@pytest.mark.parametrize(("source", "written", "asked"), [
    ("plummer", "", HENON), ("plummer", "", "Mearth AU yr"), ("in.dat", "", "Msun pc km/s"),
    ("in.hdf5", GALACTIC, ""), ("in.amuse", "Msun AU yr", ""), ("in.hdf5", GALACTIC, HENON),
    ("in.h5", HENON, "kg m s"),
])  # fmt: skip
def test_a_run_is_that_of_plain_numbers_with_their_constant(here, capsys, source, written, asked):
    """These are in the log and in the files, and a restart has its bits.

    A model has mass and length of one, a file its units or, without any, those that are said."""
    if written:
        henon = Units.from_text(HENON)
        model = plummer(N, 1, units=henon)
        if source == "in.h5":
            Hermite(*model).save(source)
        else:
            write_snapshot(source, *model, units=Units.from_text(written))
    units = Units.from_text(asked) if asked else read_snapshot(source).units
    if not written:
        henon = units.with_g_one() if source == "plummer" else units
        write_snapshot("in.dat", *plummer(N, 1))
    size = {kind: henon.factor(kind, units) for kind in KINDS}
    length, time = size["length"], size["time"]
    bodies = [array * size[kind] for array, kind in
              zip(plummer(N, 1), ("mass", "length", "velocity"), strict=True)]  # fmt: skip
    step = {"eps": 0.0625 * length, "dt": time / 128}
    plain = Hermite(*bodies, G=units.G, **step, **EXACT)

    given = step | {"n": N if source == "plummer" else None, "units": asked}
    assert run_of(source, **given, t_end=time / 2, out="a.h5") == 0
    line = re.search("units: (.*); G = (.*)", capsys.readouterr().out)
    assert float(line[2]) == pytest.approx(units.G, rel=1e-5)
    for part, kind in zip(line[1].split(", "), KINDS, strict=True):
        name, number, unit = part.split()
        assert name == kind
        assert float(number) == pytest.approx(units.value(kind, unit), rel=1e-5)
    for found, wanted in zip(archive.read_particles("a.h5", 0), bodies, strict=True):
        assert np.allclose(found, wanted, rtol=1e-12)
    with h5py.File("a.h5") as file:
        assert ("G" in file.attrs) == (units.G != 1)
        assert file.attrs.get("G", 1.0) == pytest.approx(units.G, rel=1e-12)
        assert file.attrs["initial_energy"] == pytest.approx(plain.energy().total, rel=1e-8)
    plain.evolve(time / 2)
    found = read_snapshot("a.h5")
    assert found.units == units
    assert np.allclose(found.pos / length, plain.pos / length, atol=1e-8)

    if source == "plummer":
        assert run_of(source, **given, t_end=time / 4, out="b.h5") == 0
        capsys.readouterr()
        words = ["b.h5", "--restart", "--t-end", repr(time / 2)]
        assert run(*words, "--out", "c.h5", "--out", "c.amuse") == 0
        assert line[0] in capsys.readouterr().out
        assert run(*words) == 0
        for name in "bc":
            assert_same_end("a.h5", f"{name}.h5")
            assert read_snapshot(f"{name}.h5").units == units
        assert read_snapshot("c.amuse").units is not None


def test_n_body_units_only_name_what_is_computed(here, capsys):
    assert run_of("plummer", n=N, t_end=0.125, out="a.h5") == 0
    assert "units:" not in capsys.readouterr().out
    with h5py.File("a.h5") as file, h5py.File("a/000000.hdf5") as output:
        assert "units" not in file.attrs
        assert "Units" not in output
    assert run_of("plummer", n=N, t_end=0.125, units=HENON, out="b.h5") == 0
    assert_same_end("a.h5", "b.h5")

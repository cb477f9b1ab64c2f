"""``grape6 run`` in units: of a model, of a file, in its log and its files."""

import functools
import math
import re

import h5py
import numpy as np
import pytest
from astropy import constants
from astropy import units as u

from grape6py import Hermite, Units, archive, plummer, read_snapshot, write_snapshot
from runs import assert_same_end, run

N = 30
EXACT = ["--backend", "cpu", "--precision", "double"]
QUICK = ["plummer", "--n", N, *EXACT]
STEP = ["--eps", 0.0625, "--t-end", 0.5, "--dt", 1 / 128]
HENON, GALACTIC = "5e4 Msun 1.2 pc", "1e10 Msun kpc km/s"


def units_in(out):
    """The log's line of units: sizes of mass, length, time and velocity, and G."""
    line = next(line for line in out.splitlines() if line.startswith("units: "))
    found = re.fullmatch(r"units: mass (.*), length (.*), time (.*), velocity (.*); G = (.*)", line)
    sizes = [float(number) * u.Unit(name) for number, name in
             (part.split() for part in found.groups()[:4])]  # fmt: skip
    return *sizes, float(found[5])


@pytest.mark.parametrize(("text", "end", "mass", "length", "velocity"), [
    (HENON, 0.25, 5e4 * u.Msun, 1.2 * u.pc, None),
    ("Mearth AU yr", 150, u.earthMass, u.AU, u.AU / u.yr),
])  # fmt: skip
def test_a_model_has_mass_and_length_of_one_and_a_restart_its_bits(
    here, capsys, text, end, mass, length, velocity
):
    """In the units of log and files; and E = -G / 4."""
    velocity = velocity or np.sqrt(constants.G * mass / length)
    units = [u.Unit(unit) for unit in (mass, length, length / velocity, velocity)]
    constant = constants.G.to_value(units[1] * units[3] ** 2 / units[0])
    assert run(*QUICK, "--units", text, "--t-end", end, "--out", "a.h5") == 0
    first = units_in(capsys.readouterr().out)
    for size, unit in zip(first, units, strict=False):
        assert (size / unit).to_value(u.one) == pytest.approx(1, rel=1e-5)
    assert first[-1] == pytest.approx(constant, rel=1e-5)
    begun, model = archive.read_particles("a.h5", 0), plummer(N, 1)
    for array, wanted in zip(begun, model, strict=True):
        scale = math.sqrt(constant) if wanted is model.vel else 1
        assert np.allclose(array, wanted * scale, rtol=1e-12)
    with h5py.File("a.h5") as file:
        assert file.attrs.get("G", 1.0) == pytest.approx(constant, rel=1e-12)
        assert file.attrs["initial_energy"] == pytest.approx(-constant / 4, rel=0.1)
    words = ["--t-end", end / 2, "--dt-out", end / 8]
    assert run(*QUICK, "--units", text, *words, "--out", "b.h5") == 0
    capsys.readouterr()
    assert run("b.h5", "--restart", "--t-end", end, "--out", "c.h5", "--out", "c.amuse") == 0
    assert units_in(capsys.readouterr().out) == first
    assert run("b.h5", "--restart", "--t-end", end) == 0
    for name in "bc":
        assert_same_end("a.h5", f"{name}.h5")
        assert read_snapshot(f"{name}.h5").units == Units.from_text(text)
    assert read_snapshot("c.amuse").units is not None


def test_n_body_units_only_name_what_is_computed(here, capsys):
    assert run(*QUICK, "--t-end", 0.125, "--out", "a.h5") == 0
    assert "units:" not in capsys.readouterr().out
    with h5py.File("a.h5") as file, h5py.File("a/000000.hdf5") as output:
        assert "units" not in file.attrs
        assert "Units" not in output
    assert run(*QUICK, "--t-end", 0.125, "--units", HENON, "--out", "b.h5") == 0
    assert_same_end("a.h5", "b.h5")


@functools.cache
def henon_evolved():
    henon = Hermite(*plummer(N, 1), eps=0.0625, dt=1 / 128, backend="cpu", precision="double")
    henon.evolve(0.5)
    return henon.pos


@pytest.mark.parametrize(("ending", "text"), [("hdf5", GALACTIC), ("amuse", "Msun AU yr")])
def test_the_constant_is_that_of_the_files_units_which_units_convert(here, capsys, ending, text):
    """Whatever these are, the same happens in the same time."""
    henon, name = Units.from_text(HENON), f"in.{ending}"
    write_snapshot(name, *plummer(N, 1, units=henon), units=Units.from_text(text))
    begun = read_snapshot(name)
    time, size = (henon.factor(kind, begun.units) for kind in ("time", "length"))
    step = ["--t-end", repr(0.5 * time), "--dt", repr(time / 128), "--eps", repr(0.0625 * size)]
    assert run(name, *step, *EXACT, "--out", "a.h5") == 0
    assert units_in(capsys.readouterr().out)[-1] == pytest.approx(begun.units.G, rel=1e-5)
    assert run(name, "--units", HENON, *EXACT, *STEP, "--out", "b.h5") == 0
    assert "mass 50000 Msun, length 1.2 pc" in capsys.readouterr().out
    for found, units, scale in (("a.h5", begun.units, size), ("b.h5", henon, 1)):
        assert read_snapshot(found).units == units
        assert np.allclose(read_snapshot(found).pos / scale, henon_evolved(), atol=1e-8)
    with h5py.File("b.h5") as file:
        assert "G" not in file.attrs


def test_units_say_what_the_numbers_of_a_file_without_are(here, capsys):
    """And such a run is a start in others."""
    write_snapshot("in.dat", *plummer(N, 1))
    words = [*EXACT, "--t-end", 0.125]
    assert run("in.dat", *words, "--units", "Msun pc km/s", "--out", "a.h5") == 0
    assert units_in(capsys.readouterr().out)[-1] == pytest.approx(0.00430092, rel=1e-5)
    for one, other in zip(archive.read_particles("a.h5", 0), plummer(N, 1), strict=True):
        assert np.array_equal(one, other)
    assert read_snapshot("a.h5").units == Units.from_text("Msun pc km/s")
    assert run("in.dat", *words) == 0
    assert "units:" not in capsys.readouterr().out
    assert run("a.h5", *words, "--units", "kg m s", "--out", "b.h5", "--eps", 1e15) == 0
    one, other = archive.read_particles("a.h5"), archive.read_particles("b.h5", 0)
    for before, now, factor in zip(one, other, (u.Msun.to(u.kg), u.pc.to(u.m), 1e3), strict=True):
        assert np.allclose(now, before * factor, rtol=1e-12)

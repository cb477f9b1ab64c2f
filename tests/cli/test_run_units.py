"""``grape6 run`` in units: of a model, of a file, in its log and its files."""

import functools
import json
import math
import re

import h5py
import numpy as np
import pytest
from astropy import constants
from astropy import units as u

from grape6py import Hermite, Units, archive, plummer, read_snapshot, write_snapshot
from runs import assert_same_end, run

KMS = u.km / u.s
EXACT = ["--backend", "cpu", "--precision", "double"]
QUICK = ["--n", 60, *EXACT]
SHORT = [*QUICK, "--t-end", 0.125]
GALACTIC, HENON = Units("Msun", "pc", velocity="km/s"), Units("5e4 Msun", "1.2 pc")
SYSTEMS = {
    "5e4 Msun 1.2 pc": (5e4 * u.Msun, 1.2 * u.pc, None),
    "1e10 Msun kpc km/s": (1e10 * u.Msun, u.kpc, KMS),
    "Mearth AU yr": (u.earthMass, u.AU, u.AU / u.yr),
}


def of_astropy(text):
    """Units of mass, length, time and velocity, and G in these."""
    mass, length, velocity = SYSTEMS[text]
    if velocity is None:
        velocity = np.sqrt(constants.G * mass / length)
    mass, length, velocity = (u.Unit(unit) for unit in (mass, length, velocity))
    constant = constants.G.to_value(length * velocity**2 / mass)
    return mass, length, length / velocity, velocity, constant


def shown(out):
    """The log's line of units: sizes of mass, length, time and velocity, and G."""
    line = next(line for line in out.splitlines() if line.startswith("units: "))
    found = re.fullmatch(r"units: mass (.*), length (.*), time (.*), velocity (.*); G = (.*)", line)
    sizes = [float(number) * u.Unit(name) for number, name in
             (part.split() for part in found.groups()[:4])]  # fmt: skip
    return *sizes, float(found[5])


# ---- models --------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", SYSTEMS)
def test_a_model_has_mass_and_length_of_one_in_the_units_of_log_and_files(here, capsys, text):
    """And E = -G / 4."""
    words = [*SHORT, "--dt-out", 0.0625, "--units", text, "--out", "a.h5"]
    assert run("plummer", *words) == 0
    *units, constant = of_astropy(text)
    *sizes, found = shown(capsys.readouterr().out)
    for size, unit in zip(sizes, units, strict=True):
        assert (size / unit).to_value(u.one) == pytest.approx(1, rel=1e-5)
    assert found == pytest.approx(constant, rel=1e-5)
    begun, model = archive.read_particles("a.h5", 0), plummer(60, 1)
    assert np.allclose(begun.mass, model.mass, rtol=1e-12)
    assert np.allclose(begun.pos, model.pos, rtol=1e-12)
    assert np.allclose(begun.vel, model.vel * math.sqrt(constant), rtol=1e-12)
    with h5py.File("a.h5") as file:
        assert file.attrs.get("G", 1.0) == pytest.approx(constant, rel=1e-12)
        assert file.attrs["initial_energy"] == pytest.approx(-constant / 4, rel=0.1)
        assert Units.from_text(file.attrs["units"]) == Units.from_text(text)


def test_n_body_units_only_name_what_is_computed(here, capsys):
    assert run("plummer", *SHORT, "--out", "a.h5") == 0
    assert "units:" not in capsys.readouterr().out
    with h5py.File("a.h5") as file, h5py.File("a/000000.hdf5") as output:
        assert "units" not in file.attrs
        assert "Units" not in output
    assert run("plummer", *SHORT, "--units", "5e4 Msun 1.2 pc", "--out", "b.h5") == 0
    assert_same_end("a.h5", "b.h5")


# ---- restarts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["5e4 Msun 1.2 pc", "Mearth AU yr"])
def test_a_restart_goes_on_with_the_same_bits_in_the_same_units(here, capsys, text):
    end = 0.25 if "1.2" in text else 300
    assert run("plummer", *QUICK, "--units", text, "--t-end", end, "--out", "a.h5") == 0
    words = ["--t-end", end / 2, "--dt-out", end / 8]
    assert run("plummer", *QUICK, "--units", text, *words, "--out", "b.h5") == 0
    first = shown(capsys.readouterr().out)
    assert run("b.h5", "--restart", "--t-end", end, "--out", "c.h5", "--out", "c.amuse") == 0
    assert shown(capsys.readouterr().out) == first
    assert run("b.h5", "--restart", "--t-end", end) == 0
    for name in "bc":
        assert_same_end("a.h5", f"{name}.h5")
        assert read_snapshot(f"{name}.h5").units == Units.from_text(text)
    assert read_snapshot("c.amuse").units is not None
    capsys.readouterr()
    assert run("c.h5", "--restart", "--t-end", 2 * end, "--json") == 0
    assert Units.from_text(json.loads(capsys.readouterr().out)["units"]) == Units.from_text(text)


# ---- files to begin with -------------------------------------------------------------------------


def sphere_in(name, text):
    """A Plummer sphere of 5e4 solar masses and 1.2 pc, in a file that has units."""
    write_snapshot(name, *plummer(60, 1, units=HENON), units=Units.from_text(text))


@functools.cache
def henon_evolved():
    henon = Hermite(*plummer(60, 1), eps=0.0625, dt=1 / 128, backend="cpu", precision="double")
    henon.evolve(0.5)
    return henon.pos


@pytest.mark.parametrize("text", ["1e10 Msun kpc km/s", "Msun AU yr"])
@pytest.mark.parametrize("ending", ["hdf5", "amuse"])
def test_the_constant_is_that_of_the_files_units(here, capsys, text, ending):
    """Whatever these are, the same happens in the same time."""
    sphere_in(f"in.{ending}", text)
    begun = read_snapshot(f"in.{ending}")
    time, size = (HENON.factor(kind, begun.units) for kind in ("time", "length"))
    step = ["--t-end", repr(0.5 * time), "--dt", repr(time / 128), "--eps", repr(0.0625 * size)]
    assert run(f"in.{ending}", *step, *EXACT, "--out", "a.h5") == 0
    assert shown(capsys.readouterr().out)[-1] == pytest.approx(begun.units.G, rel=1e-5)
    found = read_snapshot("a.h5")
    assert found.units == begun.units
    assert np.allclose(found.pos / size, henon_evolved(), atol=1e-8)


def test_units_convert_those_of_the_file(here, capsys):
    sphere_in("in.hdf5", "1e10 Msun kpc km/s")
    step = ["--eps", 0.0625, "--t-end", 0.5, "--dt", 1 / 128]
    words = ["--units", "5e4 Msun 1.2 pc", *EXACT]
    assert run("in.hdf5", *words, *step, "--out", "a.h5") == 0
    assert "mass 50000 Msun, length 1.2 pc" in capsys.readouterr().out
    assert np.allclose(archive.read_particles("a.h5", 0).mass, 1 / 60, rtol=1e-12)
    assert np.allclose(archive.read_particles("a.h5", 0).vel, plummer(60, 1).vel, rtol=1e-11)
    found = read_snapshot("a.h5")
    assert found.units == HENON
    assert np.allclose(found.pos, henon_evolved(), atol=1e-8)
    with h5py.File("a.h5") as file:
        assert "G" not in file.attrs


def test_units_say_what_the_numbers_of_a_file_without_are(here, capsys):
    """And such a run is a start in others."""
    write_snapshot("in.dat", *plummer(60, 1))
    assert run("in.dat", *SHORT[2:], "--units", "Msun pc km/s", "--out", "a.h5") == 0
    assert shown(capsys.readouterr().out)[-1] == pytest.approx(0.00430092, rel=1e-5)
    for one, other in zip(archive.read_particles("a.h5", 0), plummer(60, 1), strict=True):
        assert np.array_equal(one, other)
    assert read_snapshot("a.h5").units == GALACTIC
    assert run("in.dat", *SHORT[2:]) == 0
    assert "units:" not in capsys.readouterr().out
    assert run("a.h5", "--backend", "cpu", "--t-end", 0.125, "--units", "kg m s", "--out", "b.h5",
               "--eps", 1e15) == 0  # fmt: skip
    one, other = archive.read_particles("a.h5"), archive.read_particles("b.h5", 0)
    for before, now, factor in zip(one, other, (u.Msun.to(u.kg), u.pc.to(u.m), 1e3), strict=True):
        assert np.allclose(now, before * factor, rtol=1e-12)


# ---- fields --------------------------------------------------------------------------------------

"""``grape6 run`` in units: of a model, of a file, in its log and its files."""

import json
import math
import re

import h5py
import numpy as np
import pytest
from astropy import constants
from astropy import units as u

from grape6py import Hermite, Units, archive, fields, plummer, read_snapshot, write_snapshot
from runs import assert_same_end, last_group, run
from runs import outputs as outputs_of

KMS = u.km / u.s
EXACT = ["--backend", "cpu", "--precision", "double"]
QUICK = ["--n", 60, *EXACT]
SHORT = [*QUICK, "--t-end", 0.125]
GALACTIC, HENON = Units("Msun", "pc", velocity="km/s"), Units("5e4 Msun", "1.2 pc")
SYSTEMS = {
    "Msun pc": (u.Msun, u.pc, None),
    "5e4 Msun 1.2 pc": (5e4 * u.Msun, 1.2 * u.pc, None),
    "Msun pc km/s": (u.Msun, u.pc, KMS),
    "1e10 Msun kpc km/s": (1e10 * u.Msun, u.kpc, KMS),
    "Msun pc Myr": (u.Msun, u.pc, u.pc / u.Myr),
    "Mearth AU yr": (u.earthMass, u.AU, u.AU / u.yr),
    "kg m s": (u.kg, u.m, u.m / u.s),
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


def check_outputs(folder, text):
    """All have Gadget's group of units."""
    mass, length, _, velocity, _ = of_astropy(text)
    assert list(folder.glob("*.hdf5"))
    for path in folder.glob("*.hdf5"):
        with h5py.File(path) as file:
            assert dict(file["Units"].attrs) == pytest.approx({
                "UnitMass_in_g": mass.to(u.g), "UnitLength_in_cm": length.to(u.cm),
                "UnitVelocity_in_cm_per_s": velocity.to(u.cm / u.s)}, rel=1e-12)  # fmt: skip


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
    check_outputs(here / "a", text)


@pytest.mark.parametrize("text", [None, "Msun pc", "5e4 Msun 1.2 pc"])
def test_n_body_units_only_name_what_is_computed(here, capsys, text):
    assert run("plummer", *SHORT, "--out", "a.h5") == 0
    assert "units:" not in capsys.readouterr().out
    with h5py.File("a.h5") as file, h5py.File("a/000000.hdf5") as output:
        assert "units" not in file.attrs
        assert "Units" not in output
    if text:
        assert run("plummer", *SHORT, "--units", text, "--out", "b.h5") == 0
        assert_same_end("a.h5", "b.h5")


def test_a_run_in_units_is_that_of_python(here):
    """With G of astropy, and velocities converted by hand."""
    words = ["--units", "Msun pc km/s", "--t-end", 8, "--dt", 0.0625, "--eps", 0.0625]
    assert run("plummer", *QUICK, *words, "--out", "a.h5") == 0
    *_, constant = of_astropy("Msun pc km/s")
    mass, pos, vel = plummer(60, 1)
    cluster = Hermite(mass, pos, vel * math.sqrt(constant), eps=0.0625, dt=0.0625, G=constant,
                      backend="cpu", precision="double")  # fmt: skip
    cluster.evolve(8)
    found = last_group("a.h5")[1]
    assert np.allclose(found["pos"], cluster.pos, rtol=1e-9)
    assert np.allclose(found["vel"], cluster.vel, rtol=1e-9)


@pytest.mark.parametrize("model", ["king", "uniform", "fractal", "galaxy", "merger"])
def test_all_models_come_in_units(here, capsys, model):
    assert run(model, *SHORT, "--units", "1e10 Msun kpc km/s", "--out", "a.h5") == 0
    assert "units: mass 1e+10 Msun, length 1 kpc" in capsys.readouterr().out
    assert run(model, *SHORT, "--out", "b.h5") == 0
    one, other = archive.read_particles("a.h5", 0), archive.read_particles("b.h5", 0)
    assert np.allclose(one.pos, other.pos, rtol=1e-12)
    speed = of_astropy("1e10 Msun kpc km/s")[-1] ** 0.5
    assert np.allclose(one.vel, other.vel * speed, rtol=1e-12)
    assert np.array_equal(*(archive.read_labelled(path)[1] for path in ("a.h5", "b.h5")))


def test_a_leapfrog_takes_units(here, capsys):
    words = ["--integrator", "leapfrog", "--dt", 0.0625, "--units", "Msun pc km/s"]
    quick = ["--n", 60, "--backend", "cpu-tree", "--t-end", 1]
    assert run("plummer", *quick, *words, "--out", "a.h5") == 0
    assert "G = 0.00430092" in capsys.readouterr().out
    assert read_snapshot("a.h5").units == GALACTIC


def test_other_formats_keep_the_units(here):
    out = [word for name in ("a.amuse", "a.dyn", "a.nemo", "a.dat") for word in ("--out", name)]
    assert run("plummer", *SHORT, "--units", "5e4 Msun 1.2 pc", "--out", "a.h5", *out) == 0
    wanted = archive.read_particles("a.h5")
    for name in ("a.h5", "a.amuse", "a.dyn"):
        found = read_snapshot(name).in_units(HENON)
        assert np.allclose(found.pos, wanted.pos, rtol=1e-12)
        assert np.allclose(found.vel, wanted.vel, rtol=1e-12)
        assert found.time == pytest.approx(0.125, rel=1e-12)
        assert read_snapshot(name).units is not None
    for name in ("a.nemo", "a.dat"):
        assert np.array_equal(read_snapshot(name).pos, wanted.pos)
        assert read_snapshot(name).units is None


# ---- restarts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["5e4 Msun 1.2 pc", "Msun pc km/s", "Msun pc Myr"])
def test_a_restart_goes_on_with_the_same_bits_in_the_same_units(here, capsys, text):
    end = 0.25 if "1.2" in text else 4
    assert run("plummer", *QUICK, "--units", text, "--t-end", end, "--out", "a.h5") == 0
    words = ["--t-end", end / 2, "--dt-out", end / 8]
    assert run("plummer", *QUICK, "--units", text, *words, "--out", "b.h5") == 0
    first = shown(capsys.readouterr().out)
    assert run("b.h5", "--restart", "--t-end", end, "--out", "c.h5", "--out", "c.amuse") == 0
    assert shown(capsys.readouterr().out) == first
    assert run("b.h5", "--restart", "--t-end", end) == 0
    for name in "bc":
        assert_same_end("a.h5", f"{name}.h5")
        check_outputs(here / name, text)
        assert read_snapshot(f"{name}.h5").units == Units.from_text(text)
    assert read_snapshot("c.amuse").units is not None
    capsys.readouterr()
    assert run("c.h5", "--restart", "--t-end", 2 * end, "--json") == 0
    assert Units.from_text(json.loads(capsys.readouterr().out)["units"]) == Units.from_text(text)


@pytest.mark.parametrize("text", ["earthMass AU", "1E4 Msun pc", "M_sun R_sun R_sun/d"])
def test_a_stopped_run_leaves_its_units_in_the_file_to_go_on_from(here, capsys, text):
    assert run("plummer", *SHORT, "--units", text, "--wall-time", 1e-6, "--json") == 3
    report = json.loads(capsys.readouterr().out)
    assert Units.from_text(report["units"]) == Units.from_text(text)
    assert report["settings"].get("G", 1) == Units.from_text(text).G
    assert read_snapshot("grape6-restart.h5").units == Units.from_text(text)
    assert run("grape6-restart.h5", "--restart", "--t-end", 0.25) == 0
    assert "units: mass 1 " in capsys.readouterr().out.replace("10000", "1")
    assert run("plummer", *SHORT, "--json") == 0
    assert "units" not in json.loads(capsys.readouterr().out)


def test_a_file_of_quantities_is_gone_on_from_and_a_start(here, capsys):
    with Hermite(*plummer(40, 1, units=HENON), eps=0.05 * u.pc, backend="cpu") as cluster:
        for t in (0, 4, 8) * u.kyr:
            cluster.evolve(t)
            cluster.save("a.h5")
        cluster.evolve(0.02 * u.pc / KMS)
        wanted = cluster.pos
    assert run("a.h5", "--restart", "--t-end", 0.02) == 0
    assert "units: mass 1 Msun, length 1 pc" in capsys.readouterr().out
    assert np.array_equal(archive.read_particles("a.h5").pos, wanted.value)
    again = archive.restore("a.h5")
    assert again.pos.unit == u.pc
    assert np.array_equal(again.pos, wanted)
    assert run("a.h5", "--t-end", 0.01, "--eps", 0.05, "--backend", "cpu", "--out", "b.h5") == 0
    assert shown(capsys.readouterr().out)[-1] == pytest.approx(0.00430092, rel=1e-5)
    assert read_snapshot("b.h5").units == GALACTIC


def test_a_restart_takes_no_units(here, capfd):
    assert run("plummer", *SHORT, "--units", "Msun pc", "--out", "a.h5") == 0
    assert run("a.h5", "--restart", "--t-end", 1, "--units", "Msun pc") == 2
    assert "leave out --units" in capfd.readouterr().err


# ---- files to begin with -------------------------------------------------------------------------


def sphere_in(name, text):
    """A Plummer sphere of 5e4 solar masses and 1.2 pc, in a file that has units."""
    write_snapshot(name, *plummer(60, 1, units=HENON), units=Units.from_text(text))


def henon_evolved():
    henon = Hermite(*plummer(60, 1), eps=0.0625, dt=1 / 128, backend="cpu", precision="double")
    henon.evolve(0.5)
    return henon


@pytest.mark.parametrize("text", [*list(SYSTEMS)[2:5], "Msun AU yr"])
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
    assert np.allclose(found.pos / size, henon_evolved().pos, atol=1e-8)


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
    assert np.allclose(found.pos, henon_evolved().pos, atol=1e-8)
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


def test_a_run_in_the_milky_way_is_the_same_in_all_units(here):
    """And that of Python in quantities."""
    henon = Units("1e4 Msun", "2 pc")
    stars = plummer(60, 1, units=henon)
    write_snapshot("in.hdf5", *stars)
    for name, units in (("a.h5", GALACTIC), ("b.h5", henon)):
        length, speed, time = (GALACTIC.factor(k, units) for k in ("length", "velocity", "time"))
        orbit = f"{8000 * length!r},0,{10 * length!r},0,{220 * speed!r},{5 * speed!r}"
        step = ["--t-end", repr(0.5 * time), "--dt", repr(time / 256), "--eps", repr(0.1 * length)]
        assert run("in.hdf5", "--field", "mwpotential2014", *EXACT, *step, "--units", str(units),
                   "--orbit", orbit, "--out", name) == 0  # fmt: skip
    one, other = (read_snapshot(name).in_units(GALACTIC) for name in ("a.h5", "b.h5"))
    assert np.allclose(one.pos, other.pos, atol=1e-9)
    assert np.allclose(one.vel, other.vel, atol=1e-9)
    cluster = Hermite(*stars, eps=0.1 * u.pc, dt=u.pc / KMS / 256, backend="cpu",
                      precision="double", field=fields.mwpotential2014(units=GALACTIC),
                      orbit=([8, 0, 0.01] * u.kpc, [0, 220, 5] * KMS))  # fmt: skip
    cluster.evolve(0.5 * u.pc / KMS)
    assert np.allclose(one.pos, cluster.pos.to_value(u.pc), atol=1e-9)


def test_the_milky_way_has_its_speed_in_the_units(here):
    words = ["--units", "Msun pc km/s", "--field", "mwpotential2014", "--t-end", 20, "--dt", 0.5]
    assert run("plummer", *QUICK, *words, "--orbit", "8000,0,0,0,220,0", "--out", "a.h5") == 0
    angle = 220 / 8000 * 20
    where, speed = archive.restore("a.h5").origin
    assert np.allclose(where, 8000 * np.array([math.cos(angle), math.sin(angle), 0]), rtol=1e-6)
    assert np.linalg.norm(speed) == pytest.approx(220, rel=1e-6)


def test_parameters_of_fields_are_in_the_units(here, capsys):
    """And bodies escape beyond a tidal radius in these."""
    words = ["--units", "Msun pc km/s", "--orbit", "8000,0,0,0,73.3,0", "--json", "--t-end", 1,
             "--field", "point_mass,mass=1e10", "--escape", "tidal", "--dt-max", 0.25]  # fmt: skip
    assert run("plummer", *QUICK, *words, "--out", "a.h5") == 0
    with h5py.File("a.h5") as file:
        radius = file[outputs_of("a.h5")[-1]]["state/escape"][0]
    assert radius == pytest.approx(2 * 8000 * (1 / 3e10) ** (1 / 3), rel=0.05)
    capsys.readouterr()
    more = ["--field", "nfw,mass=1e11,scale=16000"]
    assert run("plummer", *QUICK, *words, *more) == 0
    settings = json.loads(capsys.readouterr().out)["settings"]
    wanted = fields.point_mass(1e10) + fields.nfw(1e11, 16000)
    assert fields.Field.from_text(settings["field"]) == wanted

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
QUICK = ["--n", 60, "--backend", "cpu", "--precision", "double"]
SHORT = [*QUICK, "--t-end", 0.125]
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
    """Units of mass, length, velocity and time, and G in these."""
    mass, length, velocity = SYSTEMS[text]
    if velocity is None:
        velocity = np.sqrt(constants.G * mass / length)
    mass, length, velocity = (u.Unit(unit) for unit in (mass, length, velocity))
    constant = constants.G.to_value(length * velocity**2 / mass)
    return mass, length, velocity, length / velocity, constant


def shown(out):
    """The log's line of units: sizes of mass, length, time and velocity, and G."""
    line = next(line for line in out.splitlines() if line.startswith("units: "))
    found = re.fullmatch(r"units: mass (.*), length (.*), time (.*), velocity (.*); G = (.*)", line)
    sizes = [float(number) * u.Unit(name) for number, name in
             (part.split() for part in found.groups()[:4])]  # fmt: skip
    return *sizes, float(found[5])


def outputs(folder):
    return sorted(folder.glob("*.hdf5"))


# ---- models --------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", SYSTEMS)
def test_the_log_says_what_the_numbers_are(here, capsys, text):
    assert run("plummer", *SHORT, "--units", text) == 0
    mass, length, time, velocity, constant = shown(capsys.readouterr().out)
    of_mass, of_length, of_velocity, of_time, wanted = of_astropy(text)
    assert (mass / of_mass).to_value(u.one) == pytest.approx(1, rel=1e-5)
    assert (length / of_length).to_value(u.one) == pytest.approx(1, rel=1e-5)
    assert (velocity / of_velocity).to_value(u.one) == pytest.approx(1, rel=1e-5)
    assert (time / of_time).to_value(u.one) == pytest.approx(1, rel=1e-5)
    assert constant == pytest.approx(wanted, rel=1e-5)


def test_without_units_the_log_has_none(here, capsys):
    assert run("plummer", *SHORT, "--out", "a.h5") == 0
    assert "units:" not in capsys.readouterr().out
    with h5py.File("a.h5") as file:
        assert "units" not in file.attrs
    with h5py.File("a/000000.hdf5") as file:
        assert "Units" not in file


@pytest.mark.parametrize("text", ["Msun pc", "5e4 Msun 1.2 pc"])
def test_n_body_units_only_name_what_is_computed(here, text):
    assert run("plummer", *SHORT, "--out", "a.h5") == 0
    assert run("plummer", *SHORT, "--units", text, "--out", "b.h5") == 0
    assert_same_end("a.h5", "b.h5")


@pytest.mark.parametrize("text", [text for text, (_, _, v) in SYSTEMS.items() if v is not None])
def test_a_model_has_mass_and_length_of_one_in_the_units(here, text):
    """And E = -G / 4."""
    assert run("plummer", *SHORT, "--units", text, "--out", "a.h5") == 0
    *_, constant = of_astropy(text)
    found, model = archive.read_particles("a.h5", 0), plummer(60, 1)
    assert np.allclose(found.mass, model.mass, rtol=1e-12)
    assert np.allclose(found.pos, model.pos, rtol=1e-12)
    assert np.allclose(found.vel, model.vel * math.sqrt(constant), rtol=1e-12)
    with h5py.File("a.h5") as file:
        assert file.attrs["G"] == pytest.approx(constant, rel=1e-12)
        assert file.attrs["initial_energy"] == pytest.approx(-constant / 4, rel=0.1)
        assert Units.from_text(file.attrs["units"]) == Units.from_text(text)


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


def test_a_run_in_units_is_that_in_others(here):
    """Of the same time."""
    times = {"Msun pc": 1.0}
    for text in ("Msun pc km/s", "Msun pc Myr"):
        times[text] = Units("Msun", "pc").factor("time", Units.from_text(text))
    for k, (text, time) in enumerate(times.items()):
        words = ["--units", text, "--t-end", repr(time), "--dt", repr(time / 64), "--eps", 0.0625]
        assert run("plummer", *QUICK, *words, "--out", f"{k}.h5") == 0
    one, *others = (archive.read_particles(f"{k}.h5").pos for k in range(3))
    for other in others:
        assert np.allclose(other, one, atol=1e-9)


@pytest.mark.parametrize("model", ["king", "uniform", "fractal", "galaxy", "merger"])
def test_all_models_come_in_units(here, capsys, model):
    assert run(model, *SHORT, "--units", "1e10 Msun kpc km/s", "--out", "a.h5") == 0
    assert "units: mass 1e+10 Msun, length 1 kpc" in capsys.readouterr().out
    assert run(model, *SHORT, "--out", "b.h5") == 0
    one, other = archive.read_particles("a.h5", 0), archive.read_particles("b.h5", 0)
    assert np.allclose(one.pos, other.pos, rtol=1e-12)
    speed = of_astropy("1e10 Msun kpc km/s")[-1] ** 0.5
    assert np.allclose(one.vel, other.vel * speed, rtol=1e-12)
    components = [archive.read_labelled(path)[1] for path in ("a.h5", "b.h5")]
    assert np.array_equal(*components)


def test_a_leapfrog_takes_units(here, capsys):
    words = ["--integrator", "leapfrog", "--dt", 0.0625, "--units", "Msun pc km/s"]
    quick = ["--n", 60, "--backend", "cpu-tree", "--t-end", 1]
    assert run("plummer", *quick, *words, "--out", "a.h5") == 0
    assert "G = 0.00430092" in capsys.readouterr().out
    assert read_snapshot("a.h5").units == Units("Msun", "pc", velocity="km/s")


@pytest.mark.parametrize("text", ["earthMass AU", "1E4 Msun pc", "M_sun R_sun R_sun/d"])
def test_all_names_of_units_are_taken(here, text):
    assert run("plummer", *SHORT, "--units", text, "--out", "a.h5") == 0
    assert read_snapshot("a.h5").units is not None
    assert run("a.h5", "--restart", "--t-end", 0.25) == 0


# ---- files that are written ----------------------------------------------------------------------


@pytest.mark.parametrize("text", SYSTEMS)
def test_outputs_have_gadgets_group_of_units(here, text):
    assert run("plummer", *SHORT, "--dt-out", 0.0625, "--units", text, "--out", "a.h5") == 0
    mass, length, velocity, *_ = of_astropy(text)
    assert len(outputs(here / "a")) == 3
    for path in outputs(here / "a"):
        with h5py.File(path) as file:
            found = dict(file["Units"].attrs)
        assert found["UnitMass_in_g"] == pytest.approx(mass.to(u.g), rel=1e-12)
        assert found["UnitLength_in_cm"] == pytest.approx(length.to(u.cm), rel=1e-12)
        cgs = velocity.to(u.cm / u.s)
        assert found["UnitVelocity_in_cm_per_s"] == pytest.approx(cgs, rel=1e-12)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", ["5e4 Msun 1.2 pc", "1e10 Msun kpc km/s"])
def test_pynbody_reads_outputs_in_physical_units(here, text):
    pynbody = pytest.importorskip("pynbody", reason="SKIP: pynbody")
    assert run("plummer", *SHORT, "--units", text, "--out", "a.h5") == 0
    path = outputs(here / "a")[-1]
    mass, length, velocity, *_ = of_astropy(text)
    found, wanted = pynbody.load(str(path)), archive.read_particles("a.h5")
    order = np.argsort(found["iord"])
    for name, unit, array, size in (("mass", "Msol", wanted.mass, mass.to(u.Msun)),
                                    ("pos", "kpc", wanted.pos, length.to(u.kpc)),
                                    ("vel", "km s**-1", wanted.vel, velocity.to(KMS))):  # fmt: skip
        physical = np.asarray(found[name].in_units(unit))[order]
        assert np.allclose(physical, array * size, rtol=1e-3)  # its parsec and Sun are rounded


def test_other_formats_keep_the_units(here):
    out = [word for name in ("a.amuse", "a.dyn", "a.nemo", "a.dat") for word in ("--out", name)]
    assert run("plummer", *SHORT, "--units", "5e4 Msun 1.2 pc", "--out", "a.h5", *out) == 0
    wanted = archive.read_particles("a.h5")
    for name in ("a.h5", "a.amuse", "a.dyn"):
        found = read_snapshot(name).in_units(Units("5e4 Msun", "1.2 pc"))
        assert np.allclose(found.pos, wanted.pos, rtol=1e-12)
        assert np.allclose(found.vel, wanted.vel, rtol=1e-12)
        assert found.time == pytest.approx(0.125, rel=1e-12)
        assert read_snapshot(name).units is not None
    for name in ("a.nemo", "a.dat"):
        assert np.array_equal(read_snapshot(name).pos, wanted.pos)
        assert read_snapshot(name).units is None


def test_json_has_the_units(here, capsys):
    assert run("plummer", *SHORT, "--units", "Msun pc km/s", "--json", "--out", "a.h5") == 0
    report = json.loads(capsys.readouterr().out)
    assert Units.from_text(report["units"]) == Units("Msun", "pc", velocity="km/s")
    assert report["settings"]["G"] == pytest.approx(of_astropy("Msun pc km/s")[-1], rel=1e-12)
    assert report["history"][-1]["time"] == 0.125
    assert run("plummer", *SHORT, "--json") == 0
    assert "units" not in json.loads(capsys.readouterr().out)


# ---- restarts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["5e4 Msun 1.2 pc", "Msun pc km/s", "Msun pc Myr"])
def test_a_restart_goes_on_with_the_same_bits_in_the_same_units(here, capsys, text):
    end = 0.25 if "1.2" in text else 4
    assert run("plummer", *QUICK, "--units", text, "--t-end", end, "--out", "a.h5") == 0
    words = ["--t-end", end / 2, "--dt-out", end / 8]
    assert run("plummer", *QUICK, "--units", text, *words, "--out", "b.h5") == 0
    first = shown(capsys.readouterr().out)
    assert run("b.h5", "--restart", "--t-end", end) == 0
    assert shown(capsys.readouterr().out) == first
    assert_same_end("a.h5", "b.h5")
    with h5py.File("b.h5") as file:
        assert Units.from_text(file.attrs["units"]) == Units.from_text(text)
    for path in outputs(here / "b"):
        with h5py.File(path) as file:
            assert len(file["Units"].attrs) == 3


def test_a_restart_into_another_file_keeps_the_units_there(here, capsys):
    assert run("plummer", *SHORT, "--units", "Msun pc km/s", "--out", "a.h5") == 0
    assert run("a.h5", "--restart", "--t-end", 0.25, "--out", "b.h5", "--out", "b.amuse") == 0
    assert read_snapshot("b.amuse").units is not None
    assert read_snapshot("b.h5").units == Units("Msun", "pc", velocity="km/s")
    for path in outputs(here / "b"):
        with h5py.File(path) as file:
            assert "Units" in file
    capsys.readouterr()
    assert run("b.h5", "--restart", "--t-end", 0.5) == 0
    assert "units: mass 1 Msun" in capsys.readouterr().out


def test_json_of_a_restart_has_the_units(here, capsys):
    assert run("plummer", *SHORT, "--units", "Msun pc km/s", "--out", "a.h5") == 0
    capsys.readouterr()
    assert run("a.h5", "--restart", "--t-end", 0.25, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert Units.from_text(report["units"]) == Units("Msun", "pc", velocity="km/s")


def test_a_stopped_run_leaves_its_units_in_the_file_to_go_on_from(here, capsys):
    words = ["--units", "Msun pc km/s", "--wall-time", 1e-6]
    assert run("plummer", *SHORT, *words) == 3
    assert read_snapshot("grape6-restart.h5").units == Units("Msun", "pc", velocity="km/s")
    capsys.readouterr()
    assert run("grape6-restart.h5", "--restart", "--t-end", 0.25) == 0
    assert "units: mass 1 Msun" in capsys.readouterr().out


def in_python():
    """The file of an integration in quantities."""
    stars = plummer(40, 1, units=Units("5e4 Msun", "1.2 pc"))
    with Hermite(*stars, eps=0.05 * u.pc, backend="cpu") as cluster:
        for t in (0, 4, 8) * u.kyr:
            cluster.evolve(t)
            cluster.save("a.h5")
        cluster.evolve(0.02 * u.pc / KMS)
        return cluster.pos


def test_a_file_of_quantities_is_gone_on_from(here, capsys):
    wanted = in_python()
    assert run("a.h5", "--restart", "--t-end", 0.02) == 0
    assert "units: mass 1 Msun, length 1 pc" in capsys.readouterr().out
    assert np.array_equal(archive.read_particles("a.h5").pos, wanted.value)
    cluster = archive.restore("a.h5")
    assert cluster.pos.unit == u.pc
    assert np.array_equal(cluster.pos.value, wanted.value)


def test_a_file_of_quantities_is_a_start_with_its_units(here, capsys):
    in_python()
    assert run("a.h5", "--t-end", 0.01, "--eps", 0.05, "--backend", "cpu", "--out", "b.h5") == 0
    assert shown(capsys.readouterr().out)[-1] == pytest.approx(0.00430092, rel=1e-5)
    assert read_snapshot("b.h5").units == Units("Msun", "pc", velocity="km/s")


# ---- files to begin with -------------------------------------------------------------------------


def in_file(name, text):
    """A Plummer sphere of 5e4 solar masses and 1.2 pc, in a file that has units."""
    units = Units.from_text(text)
    write_snapshot(name, *plummer(60, 1, units=Units("5e4 Msun", "1.2 pc")), units=units)
    return units


@pytest.mark.parametrize("text", [*list(SYSTEMS)[2:5], "Msun AU yr"])
@pytest.mark.parametrize("ending", ["hdf5", "amuse"])
def test_the_constant_is_that_of_the_files_units(here, capsys, text, ending):
    """Whatever these are, the same happens in the same time."""
    in_file(f"in.{ending}", text)
    begun = read_snapshot(f"in.{ending}")
    time = Units("5e4 Msun", "1.2 pc").factor("time", begun.units)
    size = Units("5e4 Msun", "1.2 pc").factor("length", begun.units)
    step = ["--t-end", repr(0.5 * time), "--dt", repr(time / 128), "--eps", repr(0.0625 * size)]
    words = ["--backend", "cpu", "--precision", "double", "--out", "a.h5"]
    assert run(f"in.{ending}", *step, *words) == 0
    assert shown(capsys.readouterr().out)[-1] == pytest.approx(begun.units.G, rel=1e-5)
    henon = Hermite(*plummer(60, 1), eps=0.0625, dt=1 / 128, backend="cpu", precision="double")
    henon.evolve(0.5)
    found = read_snapshot("a.h5")
    assert found.units == begun.units
    assert np.allclose(found.pos / size, henon.pos, atol=1e-8)


def test_units_convert_those_of_the_file(here, capsys):
    in_file("in.hdf5", "1e10 Msun kpc km/s")
    words = ["--units", "5e4 Msun 1.2 pc", "--backend", "cpu", "--precision", "double"]
    step = ["--eps", 0.0625, "--t-end", 0.5, "--dt", 1 / 128]
    assert run("in.hdf5", *words, *step, "--out", "a.h5") == 0
    assert "mass 50000 Msun, length 1.2 pc" in capsys.readouterr().out
    henon = Hermite(*plummer(60, 1), eps=0.0625, dt=1 / 128, backend="cpu", precision="double")
    assert np.allclose(archive.read_particles("a.h5", 0).mass, 1 / 60, rtol=1e-12)
    assert np.allclose(archive.read_particles("a.h5", 0).vel, henon.vel, rtol=1e-11)
    henon.evolve(0.5)
    found = read_snapshot("a.h5")
    assert found.units == Units("5e4 Msun", "1.2 pc")
    assert np.allclose(found.pos, henon.pos, atol=1e-8)
    with h5py.File("a.h5") as file:
        assert "G" not in file.attrs


def test_units_say_what_the_numbers_of_a_file_without_are(here, capsys):
    write_snapshot("in.dat", *plummer(60, 1))
    assert run("in.dat", *SHORT[2:], "--units", "Msun pc km/s", "--out", "a.h5") == 0
    assert shown(capsys.readouterr().out)[-1] == pytest.approx(0.00430092, rel=1e-5)
    found, wanted = archive.read_particles("a.h5", 0), plummer(60, 1)
    for one, other in zip(found, wanted, strict=True):
        assert np.array_equal(one, other)
    assert read_snapshot("a.h5").units == Units("Msun", "pc", velocity="km/s")
    assert run("in.dat", *SHORT[2:]) == 0
    assert "units:" not in capsys.readouterr().out


def test_a_run_of_units_is_a_start_in_others(here):
    assert run("plummer", *SHORT, "--units", "Msun pc km/s", "--out", "a.h5") == 0
    assert run("a.h5", "--backend", "cpu", "--t-end", 0.125, "--units", "kg m s", "--out", "b.h5",
               "--eps", 1e15) == 0  # fmt: skip
    one, other = archive.read_particles("a.h5"), archive.read_particles("b.h5", 0)
    assert np.allclose(other.mass, one.mass * u.Msun.to(u.kg), rtol=1e-12)
    assert np.allclose(other.pos, one.pos * u.pc.to(u.m), rtol=1e-12)
    assert np.allclose(other.vel, one.vel * 1e3, rtol=1e-12)


# ---- fields --------------------------------------------------------------------------------------


def test_the_milky_way_is_in_the_units(here):
    text = "Msun pc km/s"
    words = ["--units", text, "--field", "mwpotential2014", "--orbit", "8000,0,0,0,220,0"]
    assert run("plummer", *QUICK, *words, "--t-end", 20, "--dt", 0.5, "--out", "a.h5") == 0
    cluster = archive.restore("a.h5")
    angle = 220 / 8000 * 20
    where, speed = cluster.origin
    assert np.allclose(where, 8000 * np.array([math.cos(angle), math.sin(angle), 0]), rtol=1e-6)
    assert np.linalg.norm(speed) == pytest.approx(220, rel=1e-6)
    with h5py.File("a.h5") as file:
        field = fields.Field.from_text(file.attrs["field"])
    pull = Units.from_text(text).G * field(0.0, [[8000.0, 0, 0]], [[0, 0, 0]]).acc[0, 0]
    assert pull == pytest.approx(-(220**2) / 8000, rel=1e-9)


def test_a_run_in_the_milky_way_is_the_same_in_all_units(here):
    """And that of Python in quantities."""
    galactic, henon = Units("Msun", "pc", velocity="km/s"), Units("1e4 Msun", "2 pc")
    stars = plummer(60, 1, units=henon)
    write_snapshot("in.hdf5", *stars)
    words = ["--field", "mwpotential2014", "--backend", "cpu", "--precision", "double"]
    for name, units in (("a.h5", galactic), ("b.h5", henon)):
        length, speed, time = (galactic.factor(k, units) for k in ("length", "velocity", "time"))
        orbit = f"{8000 * length!r},0,{10 * length!r},0,{220 * speed!r},{5 * speed!r}"
        step = ["--t-end", repr(0.5 * time), "--dt", repr(time / 256), "--eps", repr(0.1 * length)]
        assert run("in.hdf5", *words, *step, "--units", str(units), "--orbit", orbit,
                   "--out", name) == 0  # fmt: skip
    one, other = (read_snapshot(name).in_units(galactic) for name in ("a.h5", "b.h5"))
    assert np.allclose(one.pos, other.pos, atol=1e-9)
    assert np.allclose(one.vel, other.vel, atol=1e-9)
    cluster = Hermite(*stars, eps=0.1 * u.pc, dt=u.pc / KMS / 256, backend="cpu",
                      precision="double", field=fields.mwpotential2014(units=galactic),
                      orbit=([8, 0, 0.01] * u.kpc, [0, 220, 5] * KMS))  # fmt: skip
    cluster.evolve(0.5 * u.pc / KMS)
    assert np.allclose(one.pos, cluster.pos.to_value(u.pc), atol=1e-9)


def test_parameters_of_fields_are_in_the_units(here, capsys):
    words = ["--units", "Msun pc km/s", "--field", "point_mass,mass=1e10", "--field",
             "nfw,mass=1e11,scale=16000", "--json"]  # fmt: skip
    assert run("plummer", *SHORT, *words, "--orbit", "8000,0,0,0,220,0") == 0
    settings = json.loads(capsys.readouterr().out)["settings"]
    wanted = fields.point_mass(1e10) + fields.nfw(1e11, 16000)
    assert fields.Field.from_text(settings["field"]) == wanted


def test_bodies_escape_beyond_a_tidal_radius_in_the_units(here):
    words = ["--field", "point_mass,mass=1e10", "--orbit", "8000,0,0,0,73.3,0", "--escape", "tidal"]
    assert run("plummer", *QUICK, "--units", "Msun pc km/s", *words, "--t-end", 1, "--out", "a.h5",
               "--dt-max", 0.25) == 0  # fmt: skip
    with h5py.File("a.h5") as file:
        radius = file[outputs_of("a.h5")[-1]]["state/escape"][0]
    assert radius == pytest.approx(2 * 8000 * (1 / 3e10) ** (1 / 3), rel=0.05)


# ---- mistakes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("words", "message"), [
    (["--units", "Msum pc"], "did you mean Msun?"), (["--units", "Msun parsecs"], "parsec"),
    (["--units", "Msun"], "mass and length"), (["--units", "Msun pc km/s Myr"], "Msun kpc km/s"),
    (["--units", "pc Msun"], "no unit of mass"), (["--units", "-1 Msun pc"], "above zero"),
    (["--units", "0 Msun pc"], "above zero"), (["--units", "Msun pc km/h"], "unit of time"),
    (["--units", "Msun pc kg"], "unit of time"), (["--units"], "expected one argument"),
    (["--units", ""], "units"),
])  # fmt: skip
def test_wrong_units_are_refused(here, capfd, words, message):
    assert run("plummer", *SHORT, "--out", "a.h5", *words) in (1, 2)
    assert message in capfd.readouterr().err
    assert not list(here.glob("a*"))


def test_a_restart_takes_no_units(here, capfd):
    assert run("plummer", *SHORT, "--units", "Msun pc", "--out", "a.h5") == 0
    assert run("a.h5", "--restart", "--t-end", 1, "--units", "Msun pc") == 2
    assert "leave out --units" in capfd.readouterr().err

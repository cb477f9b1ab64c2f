"""Files of an expanding universe: h and a are in what has units, as pynbody and yt have them; and
what these read and write."""

import io
import warnings

import numpy as np
import pytest

import hand_made
from grape6py import Grape6Warning, Hermite, Units, plummer, read_snapshot, write_snapshot
from grape6py.cli import main
from hand_made import GADGET, GIZMO, KPC, MSUN, SWIFT, VEL

OF_GIZMO = GIZMO | {"UnitLength_In_CGS": KPC / 0.7, "UnitMass_In_CGS": 1e10 * MSUN / 0.7}
PLANCK = {"Omega0": 0.3, "OmegaLambda": 0.7, "HubbleParam": 0.7}
STARS = ((1, 0), (1, 0), (4, 0))
CODE, OURS = Units("1e10 Msun", "kpc", velocity="km/s"), Units("Msun", "kpc", velocity="km/s")


def put(groups):
    def change(file):
        for name, attributes in groups.items():
            file.require_group(name).attrs.update(attributes)
        if "GIZMO_version" in file["Header"].attrs:
            file["PartType0/ParticleIDGenerationNumber"] = np.zeros(2, int)

    return change


def made(code, z):
    """A file of a code at a redshift, in units of 1e10 Msun/h, kpc/h and km/s."""
    about = {"Time": 1 / (1 + z), "Redshift": z}
    if code == "binary":
        return hand_made.gadget(bodies=STARS, time=about["Time"], cosmology=(0.3, z))
    bodies = ((0, 0), (0, 0), (1, 0)) if code == "GIZMO" else STARS
    groups = {
        "Gadget-2": {"Units": GADGET, "Header": PLANCK},
        "no units": {"Header": PLANCK},
        "Gadget-4": {"Parameters": GADGET | PLANCK | {"ComovingIntegrationOn": 1}},
        "GIZMO": {"Header": OF_GIZMO | {
            "ComovingIntegrationOn": 1, "Omega_Matter": 0.3, "Omega_Lambda": 0.7,
            "Omega_Baryon": 0.05, "Omega_Radiation": 0.0, "HubbleParam": 0.7,
            "GIZMO_version": 2022}},
    }[code]  # fmt: skip
    return hand_made.gadget_hdf5(bodies=bodies, change=put(groups), **about)


def physical(path):
    """Our bodies in Msun, kpc and km/s, where a file of no units has those of CODE."""
    with pytest.warns(Grape6Warning, match="comoving"):
        found = read_snapshot(path)
    assert found.time is None
    assert found.expansion is not None
    found = (found if found.units else found.in_units(CODE)).in_units(OURS)
    assert found.expansion is None
    return found


def bodies_of_yt(path):
    yt = pytest.importorskip("yt", reason="SKIP: yt")
    yt.set_log_level("error")
    data = yt.load(str(path)).all_data()
    names = ("mass", "Msun"), ("position", "kpc"), ("velocity", "km/s")
    ids = data["all", "ParticleIDs"].v
    return ids, [data["all", f"particle_{name}"].to(unit).v for name, unit in names]


def bodies_of_pynbody(path):
    data = pytest.importorskip("pynbody", reason="SKIP: pynbody").load(str(path))
    names, context = {"mass": "Msol", "pos": "kpc", "vel": "km s^-1"}, data.conversion_context()
    return data["iord"], [
        np.asarray(data[key].in_units(unit, **context)) for key, unit in names.items()
    ]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("theirs", "code", "z"), [
    *((bodies_of_yt, code, 2.0) for code in ("Gadget-2", "no units", "binary")),
    *((bodies_of_pynbody, code, 2.0) for code in ("Gadget-4", "GIZMO")),
    (bodies_of_yt, "Gadget-2", 0.0),
])  # fmt: skip
def test_bodies_are_those_of_yt_and_pynbody(tmp_path, theirs, code, z):
    path = tmp_path / ("a" if code == "binary" else "a.hdf5")
    path.write_bytes(made(code, z))
    found, (ids, arrays) = physical(path), theirs(path)
    order, ours = np.argsort(ids), np.argsort(found.ids)
    for one, other in zip(found, arrays, strict=True):
        rtol = 1e-5 if theirs is bodies_of_yt else 1e-4
        assert np.allclose(one[ours], other[order], rtol=rtol, atol=0)


def test_swift_has_no_h_and_peculiar_velocities():
    """Its user guide: co-moving positions, no h, velocities a dx/dt."""
    groups = {"Units": SWIFT, "Cosmology": {"Cosmological run": [1], "h": [0.7]},
              "Header": {"Time": [1e-3], "Redshift": [1.0]}}  # fmt: skip
    with pytest.warns(Grape6Warning, match="comoving"):
        found = read_snapshot(io.BytesIO(hand_made.gadget_hdf5(bodies=STARS, change=put(groups))))
    kpc = found.in_units(OURS)
    assert kpc.mass[0] == pytest.approx(5e9, rel=1e-12)
    assert kpc.pos[0].tolist() == pytest.approx([0.5, 1.0, 1.5], rel=1e-12)
    assert kpc.vel[0].tolist() == pytest.approx(VEL[0], rel=1e-12)


@pytest.mark.parametrize(("header", "expands"), [
    ({"Time": 1.0, "Omega0": 0.3}, True), ({"Time": 1.5, "Omega0": 0.3}, False),
    ({"Time": 0.25, "Redshift": 3.0}, True), ({"Time": 0.25, "Redshift": 2.0}, False),
    ({"Time": 0.0, "ComovingIntegrationOn": 1, "Redshift": 1.0}, True),
    ({"Time": 1.0, "ComovingIntegrationOn": 0, "Omega0": 0.3}, False), ({"Time": 1.0}, False),
    ({"Time": 0.25, "Redshift": 3.0, "Omega0": 0.3, "ComovingIntegrationOn": 0}, False),
])  # fmt: skip
def test_signs_of_an_expanding_universe(header, expands):
    with warnings.catch_warnings(record=True, action="always") as said:
        found = read_snapshot(io.BytesIO(hand_made.gadget_hdf5(**header)))
    assert [bool(said), found.expansion is not None, found.time is None] == [expands] * 3


def test_an_impossible_universe_is_refused():
    for header in ({"HubbleParam": 0.0}, {"HubbleParam": np.nan}, {"Redshift": -1.0},
                   {"Redshift": np.inf}):  # fmt: skip
        data = hand_made.gadget_hdf5(**{"ComovingIntegrationOn": 1, "Time": 0.0} | header)
        with pytest.raises(ValueError, match="HubbleParam"):
            read_snapshot(io.BytesIO(data))


@pytest.mark.filterwarnings("ignore")
def test_a_run_refuses_comoving_bodies_and_takes_what_convert_makes(here, capsys):
    (here / "a.hdf5").write_bytes(made("Gadget-2", 1.0))
    short = ["--t-end", "1e-9", "--eps", "1"]
    assert main(["run", "a.hdf5", *short]) == 1
    assert "grape6 convert a.hdf5" in capsys.readouterr().err
    assert main(["convert", "a.hdf5", "still.hdf5", "--units", "Msun kpc km/s"]) == 0
    assert "comoving" in capsys.readouterr().out
    found = read_snapshot("still.hdf5")
    assert found.expansion is None
    assert found.mass[0] == pytest.approx(0.5e10 / 0.7)
    assert main(["run", "still.hdf5", *short, "--out", "b.h5"]) == 0
    write_snapshot("again.hdf5", found)
    assert read_snapshot("again.hdf5").units == OURS


pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]  # yt and pynbody are
NAMES = {"tipsy": "a.std", "gadget": "a.gadget", "gadget2": "a.gadget2", "gadget-hdf5": "a.hdf5"}
N = 100


def near(array, other, name):
    rtol = 0 if name == "gadget-hdf5" else 1e-7
    return np.allclose(np.asarray(array), other, rtol=rtol, atol=0)


@pytest.mark.parametrize(("name", "files"), [
    *((name, 1) for name in NAMES), *((name, 3) for name in NAMES if name != "tipsy"),
])  # fmt: skip
def test_pynbody_opens_what_is_written(tmp_path, name, files):
    """Also a snapshot in numbered files, one of which has an id beyond 32 bits."""
    pynbody = pytest.importorskip("pynbody", reason="SKIP: pynbody")
    model, path = plummer(N, seed=1), tmp_path / NAMES[name]
    ids = np.random.default_rng(1).permutation(10 * N)[:N]
    if files > 1:
        ids[70], path = 2**40, tmp_path / f"a{'.hdf5' * (name == 'gadget-hdf5')}"
    given = {} if name == "tipsy" else {"ids": ids}
    write_snapshot(path, model, format=name, files=files, time=0.375, **given)
    found = pynbody.load(str(path if files == 1 else tmp_path / "a"))
    assert len(found) == len(found.dm) == N
    assert near(found["pos"], model.pos, name)
    assert near(found["vel"], model.vel, name)
    assert near(found["mass"], model.mass, name)
    if name == "tipsy":
        assert found.properties["time"] == 0.375
    else:
        assert np.array_equal(found["iord"], ids)


@pytest.mark.parametrize(("text", "of_a_run"), [
    ("Msun pc Myr", False), ("5e4 Msun 1.2 pc", True), (None, True),
])  # fmt: skip
def test_yt_and_pynbody_know_units(here, text, of_a_run):
    """N-body units have no size: there yt shows the file's numbers as code units."""
    yt = pytest.importorskip("yt", reason="SKIP: yt")
    pynbody = pytest.importorskip("pynbody", reason="SKIP: pynbody")
    yt.set_log_level("error")
    units, model, path = text and Units.from_text(text), plummer(N, seed=1), "a.hdf5"
    if of_a_run:
        given = plummer(N, seed=1, units=units) if units else model
        cluster = Hermite(*given, eps=0.1, units=units) if units else Hermite(*given, eps=0.1)
        cluster.save("run.h5")
        path = "run/000000.hdf5"
        model, units = read_snapshot(path), read_snapshot(path).units
    else:
        write_snapshot(path, model, units=units, time=0.375)
    found, other = yt.load(path), pynbody.load(path)
    assert float(found.current_time) == read_snapshot(path).time
    data = found.all_data()
    order = np.argsort(data["all", "ParticleIDs"].v)
    for field, key, unit, dimension, array in (
        ("particle_mass", "mass", "g", "mass", model.mass),
        ("particle_position", "pos", "cm", "length", model.pos),
        ("particle_velocity", "vel", "cm/s", "velocity", model.vel),
    ):
        size = units.in_cgs(dimension) if units else 1.0
        theirs = data["all", field].to(unit if units else f"code_{dimension}").v[order]
        assert np.allclose(theirs, array * size, rtol=1e-12, atol=0), field
        if units:
            physical = other[key].in_units(unit.replace("/s", " s^-1"), a=1, h=1)
            theirs = np.asarray(physical)[np.argsort(other["iord"])]
            assert np.allclose(theirs, array * size, rtol=1e-12, atol=0), key
    if units and not of_a_run:
        assert read_snapshot(path).units == units

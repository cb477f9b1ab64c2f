"""pynbody and yt read what is written here, and what pynbody writes is read."""

import numpy as np
import pytest

from grape6py import Hermite, Units, plummer, read_snapshot, write_snapshot

pytestmark = pytest.mark.filterwarnings("ignore")
NAMES = {"tipsy": "a.std", "gadget": "a.gadget", "gadget2": "a.gadget2", "gadget-hdf5": "a.hdf5"}
N = 100


@pytest.fixture(scope="module")
def pynbody():
    return pytest.importorskip("pynbody", reason="SKIP: pynbody")


@pytest.fixture
def ids():
    return np.random.default_rng(1).permutation(10 * N)[:N]


def near(array, other, name):
    rtol = 0 if name == "gadget-hdf5" else 1e-7
    return np.allclose(np.asarray(array), other, rtol=rtol, atol=0)


@pytest.mark.parametrize(("name", "files"), [
    *((name, 1) for name in NAMES), *((name, 3) for name in NAMES if name != "tipsy"),
])  # fmt: skip
def test_pynbody_opens_what_is_written(pynbody, tmp_path, name, files, ids):
    """Also a snapshot in numbered files, one of which has an id beyond 32 bits."""
    model, path = plummer(N, seed=1), tmp_path / NAMES[name]
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
    ("Msun pc Myr", False), ("5e4 Msun 1.2 pc", True), ("1e10 Msun kpc km/s", False),
    (None, False), (None, True),
])  # fmt: skip
def test_yt_and_pynbody_know_units(tmp_path, monkeypatch, text, of_a_run):
    """N-body units have no size: there yt shows the file's numbers as code units."""
    yt = pytest.importorskip("yt", reason="SKIP: yt")
    pynbody = pytest.importorskip("pynbody", reason="SKIP: pynbody")
    yt.set_log_level("error")
    monkeypatch.chdir(tmp_path)
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

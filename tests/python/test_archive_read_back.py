"""Whatever a run's files say of it is read: after a load, and when files are written to again."""

import json
import pickle
import warnings
from pathlib import Path

import astropy.units as u
import h5py
import numpy as np
import pytest

from grape6py import Hermite, Leapfrog, archive, events, fields, in_units, plummer
from grape6py.errors import ArgumentError, Grape6Warning, SnapshotError
from runs import run

CASES = {
    "constant step": (Hermite, {"dt": 2**-7, "passes": 2, "precision": "double"}),
    "field": (Hermite, {"field": fields.plummer(10.0, 5.0), "eta": 0.01, "G": 0.5}),
    "orbit": (Hermite, {"field": fields.point_mass(1e4), "orbit": [50, 0, 0, 0, 10, 0]}),
    "units": (Hermite, {"eps": 0.02 * u.pc}),
    "leapfrog": (Leapfrog, {"dt": 2**-7, "theta": 0.6, "boundary": 1.5, "method": "bh"}),
    "its accuracy": (Leapfrog, {"dt_max": 2**-6, "eta": 0.02, "accuracy": 1e-4, "order": 4}),
}  # fmt: skip


def begun(case, n=30):
    kind, options = CASES[case]
    mass, pos, vel = plummer(n, seed=1)
    if case == "units":
        mass, pos, vel = mass * 100 * u.Msun, pos * u.pc, vel * 0.6 * u.km / u.s
    if kind is Leapfrog:
        options = {"backend": "cpu-tree"} | options
    return kind(mass, pos, vel, **({"eps": 0.02} | options))


def moved(cluster, steps=3):
    """Brings it to some times, with changes and events on the way."""
    unit = u.Myr if hasattr(cluster.time, "unit") else 1
    for k in range(1, steps + 1):
        if k == 2:
            cluster.remove(cluster.ids[:4])
        near = [] if unit == u.Myr else [events.Escape(2.0, "remove"), events.EnergyError(0.5)]
        cluster.evolve(k * unit / 16, events=near)
        yield cluster


def contents(path):
    """Attributes and arrays of a file by name, without those that say what was before."""
    found = {}

    def take(name, thing):
        found.update({f"{name}@{key}": value for key, value in thing.attrs.items()})
        if isinstance(thing, h5py.Dataset):
            found[name] = thing[()]

    with h5py.File(path) as file:
        take("", file)
        for name, thing in file.items():
            if file.get(name, getlink=True).__class__ is h5py.HardLink:
                take(name, thing)
                if isinstance(thing, h5py.Group):
                    thing.visititems(lambda k, v, of=name: take(f"{of}/{k}", v))
    return found


def same_contents(one, other):
    assert one.keys() == other.keys()
    for name, value in one.items():
        assert np.array_equal(value, other[name]), name


ABOUT = {"name": "sphere", "dt_out": 0.0625, "of the user": 3}


@pytest.mark.parametrize("case", CASES)
def test_what_was_written_is_read_and_written_again(case, here):
    """The history is that of the conserved energy, with the work of fields, without changes."""
    whole, true = begun(case), []
    bare = in_units.without_units(whole)
    initial = bare.energy().total
    archive.save("a.h5", whole, about=ABOUT, component=whole.ids % 3)
    for _ in moved(whole):
        true.append((bare.energy().total - bare.energy_change - initial) / abs(initial))
        whole.save("a.h5")
    found = [record["error"] for record in archive.history("a.h5")[1]]
    assert found == pytest.approx([0, *true], abs=1e-15)
    assert max(map(abs, found)) < (0.5 if "leapfrog" in case else 1e-3)

    again = archive.restore("a.h5")
    for name, loaded in ("c", again), ("d", pickle.loads(pickle.dumps(again))):
        loaded.save(f"{name}.h5")
        same_contents(contents("a/000003.hdf5"), contents(f"{name}/000000.hdf5"))
        for key, value in contents(f"{name}.h5").items():
            if key.startswith("@"):
                assert np.array_equal(value, contents("a.h5")[key]), key
        assert archive.history(f"{name}.h5")[1] == archive.history("a.h5")[1][-1:]

    again = archive.restore("a.h5")
    for cluster, path in ((whole, "b.h5"), (again, "a.h5")):
        cluster.evolve(0.25 * (u.Myr if case == "units" else 1))
        cluster.save(path)
    one, other = contents("a/000004.hdf5"), contents("b/000000.hdf5")
    given = [f"@{name}" for name in ABOUT] + ["grape6py/component"]  # at the first save of a.h5
    other |= {name: one[name] for name in given}
    other["@initial_energy"] = one["@initial_energy"]  # that of the first output of a file
    same_contents(one, other)
    records = archive.history("a.h5")
    Path("a.h5").unlink()
    with pytest.warns(Grape6Warning, match="read from its outputs"):
        again = archive.history("a.h5")
    assert repr(again) == repr(records)  # the index says what the outputs do


CHANGES = [
    (Hermite, {}, {"eta": 0.01}, "eta 0.01 instead of 0.02"),
    (Hermite, {}, {"precision": "double"}, "precision double instead of auto"),
    (Leapfrog, {"dt_max": 2**-6, "eta": 0.02}, {"eta": 0.01}, "eta 0.01 instead of 0.02"),
]


@pytest.mark.parametrize(("kind", "options", "change", "words"), CHANGES)
def test_a_run_goes_on_with_another_setting_and_says_so(kind, options, change, words, here):
    options = {"eps": 0.1, "backend": "cpu"} | options
    cluster = kind(*plummer(50, seed=1), **options)
    cluster.evolve(0.125)
    cluster.save("a.h5")
    with warnings.catch_warnings(action="ignore", category=Grape6Warning):  # of another precision
        again = kind.load("a.h5", **change)
    again.evolve(0.25)
    fresh = kind.restored(cluster.settings | {k: v for k, v in change.items() if k == "eta"},
                          cluster.mass, cluster.state(), time=0.125, backend="cpu",
                          precision=change.get("precision"))  # fmt: skip
    fresh.evolve(0.25)
    assert np.array_equal(again.pos, fresh.pos)
    again.save("a.h5")
    again.save("a.h5")
    later = kind.load("a.h5")
    assert (later.settings, later.precision) == (again.settings, again.precision)
    later.evolve(0.375)
    later.save("a.h5")
    assert archive.history("a.h5")[0]["changes"] == f"at time 0.125: {words}"
    assert "changes" not in contents("a/000000.hdf5")
    with pytest.raises(SnapshotError, match="other settings: " + next(iter(change))):
        cluster.save("a.h5")
    assert "changes" not in later.copy()._about


REFUSED = [
    (Hermite, {}, {"eps": 0.2}, "eps: a run that goes on takes backend, precision"),
    (Hermite, {}, {"dt": 0.1, "passes": 2}, "dt, passes: a run"),
    (Hermite, {}, {"eta": -1}, "eta"),
    (Leapfrog, {"dt": 0.1}, {"eta": 0.1}, "eta: a.h5 is of one constant step"),
    (Hermite, {"dt": 0.1}, {"eta": 0.1}, "eta: a.h5 is of one constant step"),
    (Leapfrog, {"dt": 0.1, "backend": "cpu-tree"}, {"precision": "double"}, "sums of a tree"),
]


@pytest.mark.parametrize(("kind", "options", "change", "words"), REFUSED)
def test_what_cannot_be_changed_is_named(kind, options, change, words, here):
    kind(*plummer(20, seed=1), **({"eps": 0.1, "backend": "cpu"} | options)).save("a.h5")
    with pytest.raises(ArgumentError, match=words):
        kind.load("a.h5", **change)


def test_the_log_of_a_restart_goes_on_where_the_first_one_ended(here, capfd):
    def log(*given):
        assert run(*given, "--json") == 0
        return json.loads(capfd.readouterr().out)["history"]

    field = "--field", "logarithmic,speed=5,core=1,flattening=1"
    given = "plummer", "--n", 20, "--dt-out", 0.125, *field
    whole = log(*given, "--t-end", 0.5)
    assert max(abs(record["error"]) for record in whole) < 1e-4
    log(*given, "--t-end", 0.25, "--out", "a.h5")
    assert log("a.h5", "--restart", "--t-end", 0.5) == whole
    assert [r["error"] for r in archive.history("a.h5")[1]] == [r["error"] for r in whole]


def test_the_command_changes_output_times_and_accuracy(here, capfd):
    assert run("plummer", "--n", 20, "--t-end", 0.25, "--dt-out", 0.125, "--out", "a.h5") == 0
    options = "--eta", 0.01, "--dt-out", 0.25, "--precision", "double"
    assert run("a.h5", "--restart", "--t-end", 0.5, *options) == 0
    assert "changed at time 0.25: eta 0.01 instead of 0.02; at" in capfd.readouterr().out
    assert run("a.h5", "--restart", "--t-end", 1) == 0
    about, records = archive.history("a.h5")
    assert [record["time"] for record in records] == [0, 0.125, 0.25, 0.5, 0.75, 1]
    assert (about["eta"], about["dt_out"], about["precision"]) == (0.01, 0.25, "double")
    whats = "eta 0.01 instead of 0.02", "precision double instead of auto", "dt_out 0.25 instead"
    assert all(f"at time 0.25: {what}" in about["changes"] for what in whats)
    assert run("a.h5", "--restart", "--t-end", 2, "--eps", 0.1, "--field", "nfw,mass=1,scale=1")
    words = "--restart takes all settings but --dt-out, --eta and --precision from the file: leave"
    assert f"{words} out --eps, --field" in capfd.readouterr().err

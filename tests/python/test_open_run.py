"""A run is read as a sequence of its outputs. What is expected is read with h5py, by hand."""

import contextlib
import itertools
import json
import multiprocessing
from pathlib import Path

import h5py
import numpy as np
import pytest
from astropy import units as u

import on_ranks
from grape6py import Hermite, Leapfrog, Units, archive, open_run, plummer, write_snapshot
from grape6py.errors import ArgumentError, CallOrderError, Grape6Warning, SnapshotError
from grape6py.files.runs import index as run_index
from runs import command

TIMES = 0.0, 0.125, 0.25, 0.375, 0.5
ARRAYS = "mass", "pos", "vel", "ids"
HENON = Units("5e4 Msun", "1.2 pc")
MYR, PC = HENON.value("time", "Myr"), HENON.value("length", "pc")
ENERGY = HENON.value("mass", "Msun") * HENON.value("velocity", "km/s") ** 2
KINDS = {
    "hermite": lambda *stars: Hermite(*stars, eps=0.1, backend="cpu"),
    "blocks": lambda *stars: Leapfrog(*stars, eps=0.1, dt_max=1 / 32, backend="cpu"),
    "leapfrog": lambda *stars: Leapfrog(*stars, eps=0.1, dt=1 / 64, backend="cpu-tree"),
    "units": lambda *stars: Hermite(*stars, eps=0.1, backend="cpu", units=HENON),
}
ON_RANKS = """
from mpi4py.MPI import COMM_WORLD as all
from grape6py import Leapfrog, plummer
own = [array[all.rank :: all.size] for array in plummer(31, 1)]
cluster = Leapfrog(*own, eps=0.1, dt=1 / 32, backend="cpu-tree", comm=all)
for time in 0, 0.125, 0.25:
    cluster.evolve(time)
    cluster.save("r.h5")
"""
each_kind = pytest.mark.parametrize("kind", KINDS)


def at(cluster, t):
    return t * MYR * u.Myr if hasattr(cluster, "units") else t


def written(kind="hermite", n=30, times=TIMES, change=lambda k, cluster: None, path="r.h5"):
    cluster = KINDS[kind](*(array[:n] for array in plummer(max(n, 1), 1)))
    for k, t in enumerate(times):
        cluster.evolve(at(cluster, t))
        change(k, cluster)
        cluster.save(path)
    return cluster


def changed(k, cluster):
    if k == 1:
        cluster.remove([3, 7])
    if k == 2:
        mass = 0.1 * (u.Msun if hasattr(cluster, "units") else 1)
        cluster.add(mass, [0, 0, 0], [0, 0, 0], ids=[2**63])
    if k == 3:
        cluster.merge([0, 1])


def plain(values):
    return np.asarray(getattr(values, "value", values))


def expected(path="r.h5"):
    """Attributes and arrays of all outputs, in whatever number of files."""
    found = []
    with h5py.File(path) as file:
        for name in filter(str.isdigit, file):
            parts = [file[name]] if "mass" in file[name] else [*file[name].values()]
            arrays = {k: np.concatenate([part[k] for part in parts]) for k in ARRAYS}
            found.append(dict(parts[0].attrs) | arrays)
    return found


def assert_is(found, wanted):
    assert found.time == wanted["time"]
    assert all(np.array_equal(getattr(found, name), wanted[name]) for name in ARRAYS)


CASES = [*itertools.product(KINDS, (0, 1, 2, 30)), ("ranks", 31)]


@pytest.mark.parametrize(("kind", "n"), CASES)
def test_a_run_is_the_sequence_of_its_outputs(here, kind, n):
    if kind == "ranks":  # in numbered files
        assert on_ranks.run(2, "-c", ON_RANKS, cwd=here).returncode == 0
        cluster = Leapfrog.load("r.h5", backend="cpu-tree")
    else:
        cluster = written(kind, n)
    all_, found = expected(), open_run("r.h5")
    assert (found.id, found.settings) == (cluster.run_id, cluster.settings)
    assert found.units == found[0].units == getattr(cluster, "units", None)
    for k, (got, wanted) in enumerate(zip(found, all_, strict=True)):
        assert_is(got, wanted)
        assert_is(found[np.int64(k - len(all_))], wanted)
    for k in (len(all_), -len(all_) - 1):
        with pytest.raises(IndexError, match=rf"r\.h5 has {len(all_)} outputs, and not number {k}"):
            found[k]
    edges = (None, 0, 2, -1, 9)
    for each in itertools.starmap(slice, itertools.product(edges, edges, (None, 2, -1, -3))):
        assert found[each].history.steps.tolist() == [one["steps"] for one in all_[each]]
    assert_is(found[1:][::-1][-1], all_[1])
    assert_is(*open_run(next(Path("r").glob("000001.*hdf5"))), all_[1])


@each_kind
def test_the_history_is_read_without_the_outputs_in_the_units_of_the_run(here, kind, monkeypatch):
    written(kind)
    all_, found = expected(), open_run("r.h5")
    monkeypatch.setattr(run_index.Run, "opened", None)  # which opens one
    rows = {name: np.array([one[name] for one in all_]) for name in all_[0] if name not in ARRAYS}
    total, none = rows["kinetic"] + rows["potential"], np.zeros(len(all_))
    rows |= {"external": none, "change": none, "total": total, "error": total / abs(total[0]) + 1}
    rows |= {"virial_ratio": -rows["kinetic"] / rows["potential"]}
    sizes = {"time": MYR, "radii": PC} | dict.fromkeys(("kinetic", "potential", "total"), ENERGY)
    assert set(found.history._fields) == set(rows)
    for name, values in rows.items():
        wanted = values * (sizes.get(name, 1.0) if kind == "units" else 1.0)
        assert np.allclose(plain(getattr(found.history, name)), wanted, 1e-13, 1e-15), name
    assert np.array_equal(plain(found.times), plain(found.history.time))


@each_kind
def test_bodies_at_a_time_and_by_their_ids(here, kind):
    cluster, all_, found = written(kind), expected(), open_run("r.h5")
    for own, mode in itertools.product(range(5), ("before", "nearest", "exact")):
        assert_is(found.at(found.times[own], mode), all_[own])
    for near in np.nextafter(0.125, [0, 1]):  # as changes of units make them
        assert_is(found.at(at(cluster, near)), all_[1])
    assert_is(found.at(at(cluster, 0.24)), all_[1])
    assert_is(found[::-1].at(at(cluster, 0.24), "nearest"), all_[2])
    for t, mode, words in (
        (-0.1, "exact", "times from 0"),
        (0.51, "nearest", "to 0."),
        (0, "x", "x"),
    ):
        with pytest.raises(ArgumentError, match=words):
            found.at(at(cluster, t), mode)
    written(kind, times=(0.3,), path="straight.h5")
    exact, wanted = found.at(at(cluster, 0.3), "exact"), expected("straight.h5")[0]
    assert all(np.array_equal(getattr(exact, k), wanted[k]) for k in ARRAYS)

    written(kind, change=changed, path="changed.h5")
    ids, scale = [2**63, 3, 0, 1, 29, 3], PC if kind == "units" else 1.0
    track = open_run("changed.h5")[1:].track(ids)
    assert [x.shape for x in track] == [(6,), (4,), (4, 6), (4, 6, 3), (4, 6, 3)]
    for one, row in zip(expected("changed.h5")[1:], plain(track.pos), strict=True):
        for number, got in zip(ids, row, strict=True):
            mine = one["pos"][one["ids"] == np.uint64(number)] * scale
            assert np.allclose(got, mine if len(mine) else np.nan, 1e-13, 0, equal_nan=True)
    assert set(np.isnan(plain(track.mass[-1])).tolist()) == {True, False}


@each_kind
def test_an_earlier_output_goes_on_with_the_same_bits_and_never_takes_a_place(here, kind):
    cluster, whole = written(kind), open_run("r.h5")
    before = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
    for which, source in (1, "r.h5"), (-4, whole), (0, whole[1:]), (None, whole[:2]):
        again = Hermite.load(source, which)
        for end in at(cluster, 0.5), at(cluster, 0.75):
            again.evolve(end)
            assert plain(again.time) != 0.5 or np.array_equal(again.pos, cluster.pos)
            with pytest.raises(SnapshotError, match=r"from time 0\.125: take another name"):
                again.save("r.h5", overwrite=True)
    assert before == {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
    with pytest.raises(IndexError, match="5 outputs, and not number 5"):
        Hermite.load("r.h5", 5)


def test_an_earlier_output_goes_on_with_the_settings_that_it_had(here):
    cluster = written(times=TIMES[:2])
    later = Hermite.load("r.h5", eta=0.01)
    later.evolve(0.25)
    later.save("r.h5")
    for which, like in (1, cluster), (-1, later):
        again = Hermite.load("r.h5", which)
        again.evolve(0.5)
        like.evolve(0.5)
        assert again.settings == like.settings
        assert np.array_equal(again.pos, like.pos)
    assert open_run("r.h5").changes == ["at time 0.125: eta 0.01 instead of 0.02"]


@pytest.mark.filterwarnings("ignore:.* is not there. read from its outputs")  # no index yet
def test_a_run_that_is_being_written_is_read_all_the_time(here):
    times, found, lengths = [k / 64 for k in range(40)], None, set()
    arguments = "hermite", 30, times, changed, "s.h5"
    process = multiprocessing.get_context("fork").Process(target=written, args=arguments)
    process.start()
    while not lengths or max(lengths) < len(times):
        with contextlib.suppress(FileNotFoundError):
            found = found or open_run("s.h5")
            lengths.add(len(found))
            assert [one.time for one in found] == times[: max(lengths)]
            found.refresh()
    process.join()
    assert len(lengths) > 2
    with pytest.raises(CallOrderError, match="slice it anew"):
        found[:].refresh()
    written(path="t.h5")
    Path("s").rename("old")
    Path("t").rename("s")
    Path("t.h5").rename("s.h5")
    with pytest.raises(SnapshotError, match=r"s\.h5 holds another run now"):
        found.refresh()


def test_a_lost_output_is_an_error_of_its_own_and_a_lost_index_a_warning(here):
    written()
    all_, found = expected(), open_run("r.h5")
    Path("r/000001.hdf5").unlink()
    Path("r/000003.hdf5").write_bytes(Path("r/000002.hdf5").read_bytes()[:-1])
    iterator = iter(found)
    for k in range(5):
        with pytest.raises(SnapshotError, match=f"00000{k}") if k % 2 else contextlib.nullcontext():
            assert_is(next(iterator), all_[k])
    assert [Path(name).name for name in found.missing()] == ["000001.hdf5"]
    with pytest.raises(SnapshotError, match="000001"):
        Hermite.load(found, 1)
    Path("r.h5").write_text("notes")
    with pytest.warns(Grape6Warning, match="read from its outputs"):
        assert open_run("r.h5").times.tolist() == [0, 0.25, 0.5]
    Path("a.h5").write_text("notes")
    with pytest.raises(SnapshotError, match=r"a\.h5 is not an HDF5 file\. .* read_snapshot reads"):
        open_run("a.h5")


def test_info_and_plot_show_a_run_and_a_snapshot(here, capsys):
    written()
    write_snapshot("a.dat", plummer(20, 1))
    assert command("info", "r.h5", "--json", "--which", 1) == 0
    about = json.loads(capsys.readouterr().out)
    wanted = {"moments": 5, "number": 1, "time": 0.125, "bodies": 30, "times": [0, 0.5]}
    assert about.items() >= (wanted | {"writing": False}).items()
    with archive.Writer("r.h5"):
        assert command("info", "r.h5") == 0
    assert "writing:       True\n" in capsys.readouterr().out
    for source, *out in ("r.h5",), ("a.dat", "-o", "b.pdf"), ("r/000001.hdf5", "-o", "c.svg"):
        assert command("plot", source, *out) == 0
    for name, start in ("r.png", b"\x89PNG"), ("b.pdf", b"%PDF"), ("c.svg", b"<?xml"):
        assert Path(name).read_bytes().startswith(start)
    assert (command("plot", "r.h5", "-o", "a.txt"), command("plot", "none.h5")) == (2, 1)

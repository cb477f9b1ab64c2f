"""``overwrite=True`` and ``--overwrite``: another run in the place of what a name has."""

import shutil
import warnings
from unittest import mock

import pytest

from grape6py import Hermite, Leapfrog, archive
from grape6py.errors import Grape6Warning, SnapshotError
from runs import cluster_of, run, times


def names(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def another_run(path):
    cluster = cluster_of(40)
    for time in (0.0, 0.25, 0.5):
        cluster.evolve(time)
        cluster.save(path)


def outputs_without_index(path):
    another_run(path)
    path.unlink()


def damaged_index(path):
    another_run(path)
    path.write_bytes(path.read_bytes()[:-9])


def leapfrog(path):
    Leapfrog(*cluster_of(20).particles(), eps=0.1, dt=0.125).save(path)


def no_run(path):
    path.write_text("notes")


THERE = [another_run, outputs_without_index, damaged_index, leapfrog, no_run]


@pytest.mark.parametrize("there", THERE)
def test_the_first_save_replaces_what_is_there_and_later_ones_add(there, here):
    there(here / "a.h5")
    cluster = cluster_of(30)
    for time in (0.0, 0.125):  # the same call each time, as in a callback
        cluster.evolve(time)
        cluster.save("a.h5", overwrite=True)
    assert names(here) == ["a.h5", "a/.lock", "a/000000.hdf5", "a/000001.hdf5"]
    assert times("a.h5") == [0.0, 0.125]
    assert Hermite.load("a.h5").run_id == cluster.run_id


@pytest.mark.parametrize("there", THERE)
def test_without_it_nothing_is_replaced_and_the_error_says_what_to_do(there, here):
    there(here / "a.h5")
    before = {name: (here / name).read_bytes() for name in names(here)}
    words = {
        no_run: "is not an HDF5 file",
        outputs_without_index: "a.h5 is not there, but .*/a has the outputs of another run: overw",
    }
    words = words.get(there, "a.h5 holds another run: overwrite=True replaces it")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Grape6Warning)  # that the index is lost
        with pytest.raises(SnapshotError, match=words):
            cluster_of(30).save("a.h5")
    assert {name: (here / name).read_bytes() for name in names(here)} == before


@pytest.mark.parametrize("damage", [True, False])
def test_a_run_that_was_loaded_never_replaces_its_own_file(damage, here):
    another_run(here / "a.h5")
    if damage:  # the last output: the one before it is gone on from
        (here / "a/000002.hdf5").write_bytes(b"damaged")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Grape6Warning)
        again = Hermite.load("a.h5", eta=0.01)
    again.evolve(0.75)
    again.save("a.h5", overwrite=True)
    assert times("a.h5") == [0.0, 0.25, *[0.5] * (not damage), 0.75]
    early = cluster_of(40)
    early._run_id = again.run_id
    with pytest.raises(SnapshotError, match="other settings"):
        early.save("a.h5", overwrite=True)
    with pytest.raises(SnapshotError, match="one output of a run: take another name"):
        early.save("a/000001.hdf5", overwrite=True)


def test_a_first_output_that_fails_leaves_the_old_run_and_says_where(here):
    another_run(here / "a.h5")
    old = archive.read_particles("a.h5")

    full = OSError(28, "No space left on device")
    with (
        mock.patch("grape6py.files.storage.output_file.written", side_effect=full),
        pytest.raises(OSError, match="No space"),
        pytest.warns(Grape6Warning, match=r"a\.h5: what was there before is a\.h5\.~1~ now"),
    ):
        cluster_of(30).save("a.h5", overwrite=True)
    assert (archive.read_particles("a.h5.~1~").pos == old.pos).all()
    assert names(here) == ["a.h5.~1~", "a.~1~/.lock", *(f"a.~1~/00000{k}.hdf5" for k in range(3))]


def test_other_files_in_the_folder_are_left_and_named(here):
    another_run(here / "a.h5")
    (here / "a" / "notes.txt").write_text("mine")
    with pytest.warns(Grape6Warning, match=r"a\.~1~: files that are no outputs were left"):
        cluster_of(30).save("a.h5", overwrite=True)
    assert (here / "a.~1~" / "notes.txt").read_text() == "mine"
    assert "a.h5.~1~" not in names(here)


def test_the_command_replaces_all_that_it_writes(here, capfd):
    given = "plummer", "--n", 16, "--t-end", 0.25, "--out", "a.h5", "--out", "b.dat"
    for more in ([], ["--overwrite"]):
        assert run(*given, "--plot", "c.png", *more) == 0
    assert not [name for name in names(here) if "~" in name]
    assert "was there" not in capfd.readouterr().err
    shutil.rmtree("a")
    assert run(*given) == 0  # without it all are kept
    kept = {"a.h5.~1~", "b.dat.~1~"}
    assert kept <= set(names(here))


def test_a_restart_into_another_file_can_be_repeated(here):
    given = "--out", "b.h5", "--overwrite"
    assert run("plummer", "--n", 16, "--t-end", 0.25, "--dt-out", 0.125, "--out", "a.h5") == 0
    for _ in range(2):
        assert run("a.h5", "--restart", "--t-end", 0.5, *given) == 0
        assert times("b.h5") == [0.25, 0.375, 0.5]
    assert times("a.h5") == [0.0, 0.125, 0.25]
    assert run("a.h5", "--restart", "--t-end", 0.5, "--overwrite") == 0  # goes on in its own
    assert times("a.h5") == [0.0, 0.125, 0.25, 0.375, 0.5]

"""HDF5 files of a run: their layout, labels of bodies, other versions. Restarts have the same bits:
test_archive_read_back.py."""

import warnings
from unittest import mock

import h5py
import numpy as np
import pytest

import runs
from grape6py import Hermite, Leapfrog, archive, plummer, snapshot
from grape6py.errors import ArgumentError, Grape6Warning, SnapshotError
from grape6py.files.storage import output_file
from runs import cluster_of, edited, outputs, run, times


def written(path, **options):
    """A file of three groups; the cluster that wrote it."""
    cluster = cluster_of(40, **options)
    for time in (0.0, 0.25, 0.3):
        cluster.evolve(time)
        cluster.save(path)
    return cluster


def test_a_file_has_a_group_for_each_output_whose_particles_can_be_read(path):
    cluster = written(path)
    data = path.read_bytes()
    assert data[8] == 0  # the version of the superblock, which every HDF5 reads
    assert output_file.changed(data, lambda _: None) == data
    for again in cluster, Hermite.load(path):  # twice at one time: one output
        again.save(path)
    with h5py.File(path) as file:
        assert outputs(path) == ["000000", "000001", "000002"]
        assert [file[g].attrs["time"] for g in outputs(path)] == [0.0, 0.25, 0.3]
        last = file["000002"]
        for name, array in cluster.particles()._asdict().items():
            assert np.array_equal(last[name], array)
            assert last[name].dtype == np.float64
        for name, array in cluster.state().items():
            assert np.array_equal(last["state"][name], array)
        assert dict(file.attrs).items() >= cluster.settings.items()
    assert np.array_equal(archive.read_particles(path).pos, cluster.pos)
    assert np.array_equal(archive.read_particles(path, 0).pos, plummer(40, 1).pos)
    assert np.array_equal(snapshot.read_snapshot(path).vel, cluster.vel)
    with pytest.raises(SnapshotError):
        archive.read_particles(path, 3)
    root, groups = archive.history(path)
    assert root["eps"] == 1 / 16
    assert [g["time"] for g in groups] == [0.0, 0.25, 0.3]


@pytest.mark.parametrize("name", ["x.npz", "x.dat", "x", "run.h5.~1~", ".h5"])
def test_other_endings_are_refused_by_name(tmp_path, name):
    with pytest.raises(ArgumentError, match=r"ends in \.h5 or \.hdf5"):
        cluster_of(40).save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_one_output_is_a_file_of_its_own(path, tmp_path):
    cluster = written(path)
    one = tmp_path / "run" / "000001.hdf5"
    early = Hermite.load(one)
    assert early.time == 0.25
    before = path.read_bytes()  # outputs stand in the order of their times
    with pytest.raises(SnapshotError, match=r"goes on to time 0\.3, and this is 0\.25"):
        early.save(path)
    assert path.read_bytes() == before
    early.evolve(0.3)
    assert np.array_equal(early.pos, Hermite.load(path).pos)
    assert np.array_equal(snapshot.read_snapshot(one).mass, cluster.mass)
    with pytest.raises(SnapshotError, match="one output"):
        early.save(one)
    early.save(tmp_path / "other.h5")
    assert Hermite.load(tmp_path / "other.h5").run_id == cluster.run_id


def test_labels_follow_their_bodies_when_others_leave(path):
    stars = Leapfrog(*plummer(60, 1), eps=0.1, dt=1 / 8, boundary=1.0)
    labels = np.arange(60)
    with archive.Writer(path) as writer:
        writer.save(stars, component=labels[stars.ids])
        stars.evolve(4.0)
        writer.save(stars)
    assert 0 < stars.n < 60
    assert np.array_equal(snapshot.read_snapshot(path).component, labels[stars.ids])
    with h5py.File(path) as file:
        for name, array in (("ids", stars.ids), ("component", labels[stars.ids])):
            assert np.array_equal(file[f"000001/{name}"], array)
    again = Leapfrog.load(path)
    assert np.array_equal(again.ids, stars.ids)
    assert again.ids.dtype == stars.ids.dtype
    again.evolve(5.0)
    again.save(path)
    assert np.array_equal(snapshot.read_snapshot(path).component, labels[again.ids])


@pytest.mark.parametrize(("component", "words"), [
    ([1, 2, 3], "has 3 entries, for 64 bodies"), (np.full(64, 200), "goes from 200 to 200"),
    (np.full(64, -1), "goes from -1"), (np.full(64, 0.5), "component"),
    (np.ones((64, 2), int), "component"),
])  # fmt: skip
def test_wrong_labels_are_refused(path, component, words):
    with pytest.raises(ArgumentError, match=words):
        archive.save(path, cluster_of(), component=component)
    assert not path.exists()


@pytest.mark.slow
def test_grape6_run_saves_labels_and_goes_on_with_them(here):
    end = ["--t-end", 0.125, "--dt-out", 0.0625, "--backend", "cpu"]
    assert run("merger", "--n", 120, *end, "--out", "a.h5") == 0
    labels = snapshot.read_snapshot("a.h5").component
    assert sorted(set(labels)) == list(range(8))
    assert run("a.h5", "--restart", "--t-end", 0.1875, "--out", "b.h5", "--plot", "b.png") == 0
    assert run("a.h5", *end, "--out", "c.h5") == 0  # bodies of its last output, at time 0
    for name in "b.h5", "c.h5":
        assert np.array_equal(snapshot.read_snapshot(name).component, labels)
    assert archive.history("c.h5")[1][0]["time"] == 0
    assert run("plummer", "--n", 60, *end, "--out", "d.h5") == 0
    assert snapshot.read_snapshot("d.h5").component is None


def test_a_file_whose_last_output_is_damaged_has_its_labels(path):
    cluster = cluster_of()
    archive.save(path, cluster, component=np.arange(64))
    cluster.evolve(0.25)
    cluster.save(path)
    (path.parent / "run" / "000001.hdf5").write_bytes(b"nothing")
    with pytest.warns(Grape6Warning, match="gone on from time 0 instead"):
        again = Hermite.load(path)
    again.evolve(0.5)
    again.save(path)
    assert np.array_equal(snapshot.read_snapshot(path).component, np.arange(64))


@pytest.mark.parametrize(("version", "words"), [
    (1, r"run\.h5 .* before the first release"), (4, r"run\.h5 is of a newer .*'grape6py run 4'"),
    (2, r"run\.h5 .* before the first release: .*'grape6py run 2'; its outputs in .*run are files "
        "of their own$"),
])  # fmt: skip
def test_an_index_of_another_form_is_refused_and_its_outputs_are_read(path, version, words):
    cluster = written(path)
    if version == 1:  # all was in one file
        with h5py.File(path, "w") as file:
            file["000000/mass"] = np.ones(3)
            file.attrs["format"] = "grape6py run 1"
    else:
        edited(path, lambda file: file.attrs.update(format=f"grape6py run {version}"))
    content = path.read_bytes()
    for use in (Hermite.load, archive.history, cluster.save):
        with pytest.raises(SnapshotError, match=words):
            use(path)
    assert path.read_bytes() == content
    assert np.array_equal(Hermite.load(path.parent / "run" / "000002.hdf5").pos, cluster.pos)


def test_a_state_that_has_more_than_is_known_is_not_gone_on_from(path):
    written(path)
    output = path.parent / "run" / "000002.hdf5"
    edited(output, lambda file: file.create_dataset("grape6py/state/watched", data=np.ones((1, 3))))
    with pytest.raises(SnapshotError, match=r"another version of grape6py: .*state/watched"):
        Hermite.load(output)
    assert len(archive.read_particles(output).mass)
    with pytest.warns(Grape6Warning, match=r"state/watched; gone on from time 0\.25 instead"):
        Hermite.load(path)


def test_index_and_folder_may_be_renamed_together(path, tmp_path):
    cluster = written(path)
    path.rename(tmp_path / "new.h5")
    (tmp_path / "run").rename(tmp_path / "new")
    again = Hermite.load(tmp_path / "new.h5")
    assert np.array_equal(again.pos, cluster.pos)
    again.evolve(0.5)
    again.save(tmp_path / "new.h5")
    assert runs.times(tmp_path / "new.h5") == [0, 0.25, 0.3, 0.5]


def names(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def outputs_without_index(path):
    written(path)
    path.unlink()


def damaged_index(path):
    written(path)
    path.write_bytes(path.read_bytes()[:-9])


def leapfrog(path):
    Leapfrog(*cluster_of(20).particles(), eps=0.1, dt=0.125).save(path)


def no_run(path):
    path.write_text("notes")


THERE = [written, outputs_without_index, damaged_index, leapfrog, no_run]


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
    written(here / "a.h5")
    if damage:  # the last output: the one before it is gone on from
        (here / "a/000002.hdf5").write_bytes(b"damaged")
    with warnings.catch_warnings(action="ignore", category=Grape6Warning):
        again = Hermite.load("a.h5", eta=0.01)
    again.evolve(0.75)
    again.save("a.h5", overwrite=True)
    assert times("a.h5") == [0.0, 0.25, *[0.3] * (not damage), 0.75]
    early = cluster_of(40)
    early._run_id = again.run_id
    with pytest.raises(SnapshotError, match="other settings"):
        early.save("a.h5", overwrite=True)
    with pytest.raises(SnapshotError, match="one output of a run: take another name"):
        early.save("a/000001.hdf5", overwrite=True)


def test_a_first_output_that_fails_leaves_the_old_run_and_says_where(here):
    written(here / "a.h5")
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
    written(here / "a.h5")
    (here / "a" / "notes.txt").write_text("mine")
    with pytest.warns(Grape6Warning, match=r"a\.~1~: files that are no outputs were left"):
        cluster_of(30).save("a.h5", overwrite=True)
    assert (here / "a.~1~" / "notes.txt").read_text() == "mine"
    assert "a.h5.~1~" not in names(here)


def test_a_restart_into_another_file_can_be_repeated(here):
    given = "--out", "b.h5", "--overwrite"
    assert run("plummer", "--n", 16, "--t-end", 0.25, "--dt-out", 0.125, "--out", "a.h5") == 0
    for _ in range(2):
        assert run("a.h5", "--restart", "--t-end", 0.5, *given) == 0
        assert times("b.h5") == [0.25, 0.375, 0.5]
    assert times("a.h5") == [0.0, 0.125, 0.25]
    assert run("a.h5", "--restart", "--t-end", 0.5, "--overwrite") == 0  # goes on in its own
    assert times("a.h5") == [0.0, 0.125, 0.25, 0.375, 0.5]

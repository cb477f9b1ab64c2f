"""HDF5 files of a run: their layout, labels of bodies, other versions. Restarts have the same bits:
test_archive_read_back.py."""

import h5py
import numpy as np
import pytest

import runs
from grape6py import Hermite, Leapfrog, archive, galaxy, plummer, snapshot
from grape6py.errors import ArgumentError, Grape6Warning, SnapshotError
from grape6py.files.storage import output_file
from runs import cluster_of, edited, outputs, run


def written(path, **options):
    """A file of three groups; the cluster that wrote it."""
    cluster = cluster_of(40, **options)
    for time in (0.0, 0.25, 0.3):
        cluster.evolve(time)
        cluster.save(path)
    return cluster


def test_a_file_has_a_group_for_each_output(path):
    cluster = written(path)
    with h5py.File(path) as file:
        assert outputs(path) == ["000000", "000001", "000002"]
        assert [file[g].attrs["time"] for g in outputs(path)] == [0.0, 0.25, 0.3]
        last = file["000002"]
        assert last["mass"].shape == (40,)
        assert last["pos"].shape == last["vel"].shape == (40, 3)
        assert last["pos"].dtype == np.float64
        assert np.array_equal(last["pos"], cluster.pos)
        assert np.array_equal(last["mass"], cluster.mass)
        for name, array in cluster.state().items():
            assert np.array_equal(last["state"][name], array)
        assert dict(file.attrs).items() >= cluster.settings.items()


def test_particles_of_any_output_time_can_be_read(path):
    cluster = written(path)
    assert np.array_equal(archive.read_particles(path).pos, cluster.pos)
    assert np.array_equal(archive.read_particles(path, 0).pos, plummer(40, 1).pos)
    assert np.array_equal(snapshot.read_snapshot(path).vel, cluster.vel)
    with pytest.raises(SnapshotError):
        archive.read_particles(path, 3)
    root, groups = archive.history(path)
    assert root["eps"] == 1 / 16
    assert [g["time"] for g in groups] == [0.0, 0.25, 0.3]


def test_saving_twice_at_one_time_makes_one_output(path):
    cluster = written(path)
    cluster.save(path)
    Hermite.load(path).save(path)
    assert outputs(path) == ["000000", "000001", "000002"]


@pytest.mark.parametrize("name", ["x.npz", "x.dat", "x", "run.h5.~1~", ".h5"])
def test_other_endings_are_refused_by_name(tmp_path, name):
    with pytest.raises(ArgumentError, match=r"ends in \.h5 or \.hdf5"):
        cluster_of(40).save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_file_that_goes_on_is_not_added_to(path):
    """Outputs stand in the order of their times, and a restart is from the last."""
    written(path)
    early = Hermite.load(path.with_suffix("") / "000001.hdf5")
    before = path.read_bytes()
    with pytest.raises(SnapshotError, match=r"goes on to time 0\.3, and this is 0\.25"):
        early.save(path)
    assert path.read_bytes() == before


def test_one_output_is_a_file_of_its_own(path, tmp_path):
    cluster = written(path)
    one = tmp_path / "run" / "000001.hdf5"
    early = Hermite.load(one)
    assert early.time == 0.25
    early.evolve(0.3)
    assert np.array_equal(early.pos, Hermite.load(path).pos)
    assert np.array_equal(snapshot.read_snapshot(one).mass, cluster.mass)
    with pytest.raises(SnapshotError, match="one output"):
        early.save(one)
    early.save(tmp_path / "other.h5")
    assert Hermite.load(tmp_path / "other.h5").run_id == cluster.run_id


DISK = galaxy(30, 10, 40, seed=1, black_hole=0.01)


def test_labels_given_once_are_in_every_output(path):
    cluster = Leapfrog(*DISK.particles, eps=0.1, dt=1 / 16, backend="cpu")
    archive.save(path, cluster, component=DISK.component)
    cluster.evolve(0.25)
    cluster.save(path)
    again = Leapfrog.load(path)
    again.evolve(0.5)
    again.save(path)
    for which in 0, 1, 2:
        particles, component = archive.read_labelled(path, which)
        assert component.dtype == np.int8
        assert np.array_equal(component, DISK.component)
        assert np.array_equal(particles.mass, DISK.particles.mass)
    assert np.array_equal(archive.read_component(path).component, DISK.component)


def test_labels_follow_their_bodies_when_others_leave(path):
    stars = Leapfrog(*plummer(60, 1), eps=0.1, dt=1 / 8, boundary=1.0)
    labels = np.arange(60)
    with archive.Writer(path) as writer:
        writer.save(stars, component=labels[stars.ids])
        stars.evolve(4.0)
        writer.save(stars)
    assert 0 < stars.n < 60
    assert np.array_equal(archive.read_labelled(path)[1], labels[stars.ids])
    found = archive.read_component(path)
    assert np.array_equal(found.of(stars.ids), stars.ids)
    with h5py.File(path) as file:
        for name, array in (("ids", stars.ids), ("component", labels[stars.ids])):
            assert np.array_equal(file[f"000001/{name}"], array)
    again = Leapfrog.load(path)
    assert np.array_equal(again.ids, stars.ids)
    assert again.ids.dtype == stars.ids.dtype
    again.evolve(5.0)
    again.save(path)
    assert np.array_equal(archive.read_labelled(path)[1], labels[again.ids])


def test_files_without_labels_say_so(path):
    cluster_of().save(path)
    assert archive.read_component(path) is None
    assert archive.read_labelled(path)[1] is None
    assert len(snapshot.read_snapshot(path).mass) == 64


@pytest.mark.parametrize(("component", "words"), [
    ([1, 2, 3], "has 3 entries, for 64 bodies"), (np.full(64, 200), "goes from 200 to 200"),
    (np.full(64, -1), "goes from -1"), (np.full(64, 0.5), "component"),
    (np.ones((64, 2), int), "component"),
])  # fmt: skip
def test_wrong_labels_are_refused(path, component, words):
    with pytest.raises(ArgumentError, match=words):
        archive.save(path, cluster_of(), component=component)
    assert not path.exists()


def test_grape6_run_saves_labels_and_goes_on_with_them(here):
    end = ["--t-end", 0.125, "--dt-out", 0.0625, "--backend", "cpu"]
    assert run("merger", "--n", 120, *end, "--out", "a.h5") == 0
    labels = archive.read_component("a.h5").component
    assert sorted(set(labels)) == list(range(8))
    assert run("a.h5", "--restart", "--t-end", 0.1875, "--out", "b.h5", "--plot", "b.png") == 0
    assert run("a.h5", *end, "--out", "c.h5") == 0  # bodies of its last output, at time 0
    for name in "b.h5", "c.h5":
        assert np.array_equal(archive.read_component(name).component, labels)
    assert archive.history("c.h5")[1][0]["time"] == 0
    assert run("plummer", "--n", 60, *end, "--out", "d.h5") == 0
    assert archive.read_component("d.h5") is None


def test_a_file_whose_last_output_is_damaged_has_its_labels(path):
    cluster = cluster_of()
    archive.save(path, cluster, component=np.arange(64))
    cluster.evolve(0.25)
    cluster.save(path)
    (path.parent / "run" / "000001.hdf5").write_bytes(b"nothing")
    assert np.array_equal(archive.read_component(path).component, np.arange(64))
    edited(path.parent / "run" / "000000.hdf5", lambda file: file["grape6py"].pop("component"))
    assert archive.read_component(path) is None


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
    again = Hermite.load(path.parent / "run" / "000002.hdf5")
    assert np.array_equal(again.pos, cluster.pos)


def test_a_state_that_has_more_than_is_known_is_not_gone_on_from(path):
    written(path)
    output = path.parent / "run" / "000002.hdf5"
    edited(output, lambda file: file.create_dataset("grape6py/state/watched", data=np.ones((1, 3))))
    with pytest.raises(SnapshotError, match=r"another version of grape6py: .*state/watched"):
        Hermite.load(output)
    assert len(archive.read_particles(output).mass)
    with pytest.warns(Grape6Warning, match=r"state/watched; gone on from time 0\.25 instead"):
        Hermite.load(path)


def test_an_index_has_the_form_that_every_hdf5_reads(path):
    written(path)
    data = path.read_bytes()
    assert data[8] == 0  # the version of the superblock
    assert output_file.changed(data, lambda _: None) == data


def test_index_and_folder_may_be_renamed_together(path, tmp_path):
    cluster = written(path)
    path.rename(tmp_path / "new.h5")
    (tmp_path / "run").rename(tmp_path / "new")
    again = Hermite.load(tmp_path / "new.h5")
    assert np.array_equal(again.pos, cluster.pos)
    again.evolve(0.5)
    again.save(tmp_path / "new.h5")
    assert runs.times(tmp_path / "new.h5") == [0, 0.25, 0.3, 0.5]

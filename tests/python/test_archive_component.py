"""Files of a run keep what each body belongs to."""

import h5py
import numpy as np
import pytest

from grape6py import Leapfrog, archive, galaxy, plummer, snapshot
from grape6py.errors import ArgumentError
from runs import cluster_of, edited, run

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

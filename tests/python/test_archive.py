"""HDF5 files of a run: their layout. Restarts have the same bits: test_archive_read_back.py."""

import h5py
import numpy as np
import pytest

from grape6py import Hermite, archive, plummer, snapshot
from grape6py.errors import ArgumentError, SnapshotError
from runs import cluster_of, outputs


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

"""HDF5 files of a run: their layout, restarts with the same bits."""

import h5py
import numpy as np
import pytest

from grape6py import Hermite, archive, picture, plummer, snapshot
from grape6py.errors import Grape6Warning, SnapshotError


def make(n=40, **options):
    return Hermite(*plummer(n, 1), eps=1 / 16, **options)


def written(path, **options):
    """A file of three groups; the cluster that wrote it."""
    cluster = make(**options)
    for time in (0.0, 0.25, 0.3):
        cluster.evolve(time)
        cluster.save(path)
    return cluster


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.h5"


def test_a_file_has_a_group_for_each_output_time(path):
    cluster = written(path)
    with h5py.File(path) as file:
        assert list(file) == ["000000", "000001", "000002"]
        assert [file[g].attrs["time"] for g in file] == [0.0, 0.25, 0.3]
        last = file["000002"]
        assert last["mass"].shape == (40,)
        assert last["pos"].shape == last["vel"].shape == (40, 3)
        assert last["pos"].dtype == np.float64
        assert np.array_equal(last["pos"], cluster.pos)
        assert np.array_equal(last["mass"], cluster.mass)
        for name, array in cluster.state().items():
            assert np.array_equal(last["state"][name], array)
        assert dict(file.attrs).items() >= cluster.settings.items()


OPTIONS = [{}, {"passes": 2}, {"dt": 0.01, "precision": "double"}, {"precision": "double"}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_restart_has_the_bits_of_an_uninterrupted_run(path, options):
    written(path, **options).close()
    again, whole = Hermite.load(path), make(**options)
    assert (again.time, again.precision) == (0.3, whole.precision)
    assert again.settings == whole.settings
    again.evolve(0.77)
    whole.evolve(0.77)
    for name, array in whole.state().items():
        assert np.array_equal(again.state()[name], array), name
    assert np.array_equal(again.pos, whole.pos)
    assert np.array_equal(again.vel, whole.vel)
    assert (again.steps, again.blocks) == (whole.steps, whole.blocks)


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


@pytest.mark.parametrize("precision", ["double", "single"])
def test_a_restart_in_another_mode_warns_of_other_bits(path, precision):
    written(path)
    with pytest.warns(Grape6Warning, match=f"grape.*{precision}"):
        cluster = Hermite.load(path, precision=precision)
    assert cluster.precision == precision


def test_a_restart_on_another_backend_warns_of_other_bits(path):
    written(path)
    with h5py.File(path, "a") as file:
        file.attrs["backend"] = "cuda sm_90"
    with pytest.warns(Grape6Warning, match="cuda sm_90"):
        Hermite.load(path)


@pytest.mark.parametrize("other", [{"eta": 0.01}, {"dt": 0.1}, {"precision": "double"},
                                   {"passes": 2}], ids=str)  # fmt: skip
def test_a_file_takes_no_group_of_other_settings(path, other):
    """Its attributes would no longer say what made the group: a restart would have other bits."""
    written(path)
    before = path.read_bytes()
    with pytest.raises(SnapshotError, match="other settings"):
        make(**other).save(path)
    assert path.read_bytes() == before


def test_a_file_that_goes_on_is_not_added_to(path):
    """Groups stand in the order of their times, and a restart is from the last."""
    written(path)
    before = path.read_bytes()
    with pytest.raises(SnapshotError, match=r"goes on to time 0\.3, and this is 0\.0"):
        make().save(path)
    assert path.read_bytes() == before


def test_a_file_has_the_history_of_its_run(path):
    cluster = written(path)
    root, records = archive.history(path)
    start = make().energy().total
    assert root["initial_energy"] == start
    assert records[-1]["error"] == (cluster.energy().total - start) / abs(start)
    assert records[-1]["virial_ratio"] == cluster.virial_ratio()
    assert records[-1]["radii"] == cluster.lagrangian_radii().tolist()
    assert [record["time"] for record in records] == [0.0, 0.25, 0.3]


def test_a_file_can_be_drawn(path, tmp_path):
    written(path)
    picture.draw_file(tmp_path / "run.png", path)
    drawn = (tmp_path / "run.png").read_bytes()
    assert drawn.startswith(b"\x89PNG")
    assert len(drawn) > 20000

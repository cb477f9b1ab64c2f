"""Names inside a run's files are no paths: nothing outside is read, renamed or written to."""

import os

import h5py
import numpy as np
import pytest

from grape6py import Hermite, archive, read_snapshot
from grape6py.errors import Grape6Warning, SnapshotError
from grape6py.files.storage import atomic_files
from runs import edited, run
from test_archive import written
from test_archive_broken import put


@pytest.fixture
def precious(tmp_path):
    """A file of somebody else, which must stay as it is."""
    file = tmp_path / "victim" / "precious.dat"
    file.parent.mkdir()
    file.write_text("precious")
    yield file
    assert file.read_text() == "precious"
    assert os.listdir(file.parent) == ["precious.dat"]


@pytest.mark.parametrize("absolute", [True, False])
def test_an_index_that_names_another_file_reads_and_renames_its_own(path, precious, absolute):
    cluster = written(path)
    name = precious if absolute else "../victim/precious.dat"
    edited(path, put("000002", h5py.ExternalLink(str(name), "/grape6py")))
    assert np.array_equal(Hermite.load(path).pos, cluster.pos)
    (path.parent / "run" / "000002.hdf5").write_bytes(b"damaged")
    with pytest.warns(Grape6Warning, match="its checksum"):
        early = Hermite.load(path)
    early.evolve(0.5)
    early.save(path)
    assert [r["time"] for r in archive.history(path)[1]] == [0.0, 0.25, 0.5]


def test_a_restart_from_such_a_file_leaves_the_others(path, precious, monkeypatch):
    monkeypatch.chdir(path.parent)
    written(path)
    (path.parent / "run" / "000002.hdf5").unlink()
    os.symlink(precious, path.parent / "run" / "000002.hdf5")
    assert run("run.h5", "--restart", "--t-end", 0.5) == 0
    assert archive.history(path)[1][-1]["time"] == 0.5
    assert os.readlink(path.parent / "run" / "000002.hdf5.~1~") == str(precious)


def test_a_planted_link_is_not_written_through(path, precious):
    cluster = written(path)
    os.symlink(precious, path.parent / "run" / "000003.hdf5")
    cluster.evolve(0.5)
    cluster.save(path)
    assert np.array_equal(Hermite.load(path).pos, cluster.pos)


def test_a_pipe_or_device_among_the_outputs_is_refused_at_once(path, capsys):
    written(path)
    last = path.parent / "run" / "000002.hdf5"
    for make in (os.mkfifo, lambda name: os.symlink("/dev/zero", name)):
        last.unlink()
        make(last)
        with pytest.warns(Grape6Warning, match=r"000002\.hdf5: .*no regular file.*time 0\.25"):
            assert Hermite.load(path).time == 0.25
    path.unlink()
    with pytest.warns(Grape6Warning, match="read from its outputs"):
        assert Hermite.load(path).time == 0.25
    os.mkfifo(path)
    assert run(path, "--restart", "--t-end", 1) == 1
    assert "run.h5: it is no regular file" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["grape6py/mass", "grape6py/state/pos", "grape6py"])
def test_arrays_in_other_files_are_refused(path, tmp_path, name):
    written(path)
    one = path.parent / "run" / "000002.hdf5"
    os.mkfifo(tmp_path / "pipe")

    edited(one, put(name, h5py.ExternalLink(str(tmp_path / "pipe"), "/pos")))
    with pytest.raises(SnapshotError, match=r"000002\.hdf5 is damaged or incomplete: .*is a link"):
        Hermite.load(one)
    with pytest.warns(Grape6Warning, match=r"000002\.hdf5 is damaged or incomplete"):
        assert Hermite.load(path).time == 0.25


def test_numbered_files_that_are_pipes_are_refused(tmp_path):
    os.mkfifo(tmp_path / "snap.0.hdf5")
    with pytest.raises(OSError, match="no regular file"):
        read_snapshot(tmp_path / "snap.hdf5")
    with pytest.raises(IsADirectoryError):
        atomic_files.opened(tmp_path)

"""Files that are no archives of a run, or damaged ones: refused by name, left as they are."""

import shutil

import h5py
import numpy as np
import pytest

from grape6py import Hermite, archive
from grape6py.errors import SnapshotError
from test_archive import make, written


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.h5"


def foreign(path):
    with h5py.File(path, "w") as file:
        file.attrs["author"] = "somebody else"
        file["stars"] = np.arange(10.0)


def test_foreign_files_are_refused_and_left_alone(path):
    foreign(path)
    before = path.read_bytes()
    for use in (make().save, Hermite.load, archive.history, archive.read_particles):
        with pytest.raises(SnapshotError, match="made by grape6py"):
            use(path)
    assert path.read_bytes() == before


def test_text_is_not_overwritten_by_a_group(path):
    path.write_text("my thesis\n")
    with pytest.raises(SnapshotError):
        make().save(path)
    assert path.read_text() == "my thesis\n"


def test_an_empty_hdf5_file_can_be_filled(path):
    h5py.File(path, "w").close()
    make().save(path)
    assert Hermite.load(path).time == 0


def test_no_file_and_no_folder_are_named(path, tmp_path):
    with pytest.raises(FileNotFoundError):
        Hermite.load(path)
    with pytest.raises(OSError, match="nowhere"):
        make().save(tmp_path / "nowhere" / "run.h5")
    with pytest.raises(OSError, match="directory"):
        Hermite.load(tmp_path)


def refused(path):
    """Whatever is wrong with a file, it is a SnapshotError, or a restart all the same."""
    try:
        Hermite.load(path).close()
    except SnapshotError as error:
        return str(path) in str(error)
    return None


@pytest.mark.parametrize("share", [0.0, 0.01, 0.1, 0.5, 0.9, 0.999])
def test_truncated_files_are_refused(path, share):
    written(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    assert refused(path)


def broken(name):
    """Ways to break a file, each a function of the open file."""

    def change(file):
        group = file["000002"]
        if name.startswith("no "):
            where, _, what = name[3:].rpartition("/")
            place = group[where] if where else group
            if what in place:
                del place[what]
            elif what in group.attrs:
                del group.attrs[what]
            else:
                del file.attrs[what]
        elif name == "group is a dataset":
            del file["000002"]
            file["000002"] = np.arange(3.0)
        elif name == "state is a dataset":
            del group["state"]
            group["state"] = np.arange(3.0)
        elif name == "passes is a word":
            file.attrs["passes"] = "many"
        elif name == "mode is unknown":
            file.attrs["precision"] = "half"
        else:
            del group["state/vel"]
            bad = {"vel is short": np.zeros((39, 3)), "vel is NaN": np.full((40, 3), np.nan),
                   "vel is text": np.full(40, b"fast")}  # fmt: skip
            group["state/vel"] = bad[name]

    return change


@pytest.mark.parametrize("how", [
    "no mass", "no state", "no state/dt", "no state/acc", "no time", "no steps", "no eps", "no eta",
    "no passes", "no precision", "no backend", "no dt_max", "group is a dataset",
    "state is a dataset", "passes is a word", "mode is unknown", "vel is short", "vel is NaN",
    "vel is text",
])  # fmt: skip
def test_files_with_something_missing_or_wrong_are_refused_by_name(path, how):
    written(path)
    with h5py.File(path, "a") as file:
        broken(how)(file)
    assert refused(path)


def test_a_group_that_is_interrupted_is_taken_back(path, monkeypatch):
    """A second Ctrl-C while the restart file is written: what was there before is whole."""
    cluster = written(path)

    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(cluster, "state", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cluster.save(path)
    assert Hermite.load(path).time == 0.3
    monkeypatch.undo()
    cluster.save(path)
    assert list(h5py.File(path)) == ["000000", "000001", "000002", "000003"]


def test_a_file_can_be_copied_between_two_groups(path, tmp_path):
    """It is closed after each, as somebody who looks at a run under way will want."""
    cluster = make()
    for k in range(3):
        cluster.evolve(k / 8)
        cluster.save(path)
        shutil.copy(path, tmp_path / "copy.h5")
        assert Hermite.load(tmp_path / "copy.h5").time == k / 8

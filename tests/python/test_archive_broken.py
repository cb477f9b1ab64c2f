"""Files that are no archives of a run, or damaged ones: refused by name, left as they are."""

import io
import os
import shutil
import warnings

import h5py
import numpy as np
import pytest

from grape6py import Hermite, archive, plummer, read_snapshot
from grape6py.errors import Grape6Warning, SnapshotError
from grape6py.files.storage import atomic_files
from hand_made import put
from runs import cluster_of, edited, run
from test_archive import written


def foreign(path):
    with h5py.File(path, "w") as file:
        file.attrs["author"] = "somebody else"
        file["stars"] = np.arange(10.0)


@pytest.mark.parametrize(("make", "words"), [
    (foreign, "made by grape6py"), (lambda path: h5py.File(path, "w").close(), "made by grape6py"),
    (lambda path: path.write_text("my thesis\n"), r"run\.h5"),
], ids=["hdf5", "empty", "text"])  # fmt: skip
def test_foreign_files_are_refused_and_left_alone(path, make, words):
    make(path)
    before = path.read_bytes()
    for use in (cluster_of(40).save, Hermite.load, archive.history, archive.read_particles):
        with pytest.raises(SnapshotError, match=words):
            use(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_no_file_and_no_folder_are_named(path, tmp_path):
    with pytest.raises(FileNotFoundError):
        Hermite.load(path)
    with pytest.raises(OSError, match="nowhere"):
        cluster_of(40).save(tmp_path / "nowhere" / "run.h5")
    with pytest.raises(OSError, match="directory"):
        Hermite.load(tmp_path)


@pytest.mark.parametrize("damage", [
    0.0, 0.01, 0.5, 0.999, lambda file: file.__delitem__("000001"),
    lambda file: file.__delitem__("index/history"), lambda file: file["index/history"].resize(2, 0),
    lambda file: file["index/history"].__setitem__((1, 0), np.nan),
])  # fmt: skip
def test_a_damaged_index_is_read_from_its_outputs(path, damage):
    """Cut, or with a right seal and a wrong structure; it is whole after the next save."""
    written(path)
    content = path.read_bytes()
    if callable(damage):
        edited(path, damage)
    else:
        path.write_bytes(content[: int(damage * len(content))])
    with pytest.warns(Grape6Warning, match=r"run\.h5 is .* read from its outputs in .*run"):
        cluster = Hermite.load(path)
    assert cluster.time == 0.3
    with pytest.warns(Grape6Warning, match="read from its outputs"):
        cluster.save(path)
    with warnings.catch_warnings(action="error"):
        root, records = archive.history(path)
    assert [r["time"] for r in records] == [0.0, 0.25, 0.3]
    with h5py.File(path) as now, h5py.File(io.BytesIO(content)) as before:
        assert dict(now.attrs) == dict(before.attrs)
        assert set(now) == set(before)
        for name in now["index"]:
            assert np.array_equal(now["index"][name], before["index"][name])
    assert root["eps"] == 1 / 16


def test_a_lost_index_is_read_from_its_outputs(path):
    written(path)
    content = path.read_bytes()
    path.unlink()
    with pytest.warns(Grape6Warning, match=r"run\.h5 is not there: read from its outputs"):
        cluster = Hermite.load(path)
    cluster.evolve(0.5)
    with pytest.warns(Grape6Warning):
        cluster.save(path)
    assert len(archive.history(path)[1]) == 4
    path.unlink()
    for output in (path.parent / "run").glob("*.hdf5"):
        output.write_bytes(b"")
    with pytest.raises(FileNotFoundError, match=r"run\.h5 is not there"):
        Hermite.load(path)
    path.write_bytes(content[:-1])
    with pytest.raises(SnapshotError, match=r"run\.h5 is damaged"):
        Hermite.load(path)


def test_a_damaged_output_is_passed_over_and_kept(path):
    cluster = written(path)
    last = path.parent / "run" / "000002.hdf5"
    content = bytearray(last.read_bytes())
    content[len(content) // 2] ^= 1
    last.write_bytes(content)
    with pytest.raises(SnapshotError, match="checksum"):
        archive.read_particles(path)
    with pytest.warns(Grape6Warning, match=r"000002\.hdf5 is damaged.*gone on from time 0\.25"):
        early = Hermite.load(path)
    assert early.time == 0.25
    early.evolve(0.3)
    early.save(path)
    assert (path.parent / "run" / "000002.hdf5.~1~").read_bytes() == content
    assert np.array_equal(Hermite.load(path).pos, cluster.pos)
    for number in range(3):
        (path.parent / "run" / f"00000{number}.hdf5").unlink()
    lost = r"run\.h5 has no output that is whole.*its output .*000002\.hdf5: No such file"
    with pytest.raises(SnapshotError, match=lost):
        Hermite.load(path)


def test_an_output_of_another_run_is_not_taken(path):
    written(path)
    written(path.with_name("other.h5"))
    shutil.copy(path.parent / "other" / "000002.hdf5", path.parent / "run" / "000002.hdf5")
    with pytest.warns(Grape6Warning, match="is of another run"):
        assert Hermite.load(path).time == 0.25


def refused(path):
    try:
        with warnings.catch_warnings(record=True, action="always", category=Grape6Warning) as given:
            Hermite.load(path).close()
    except SnapshotError as error:
        return str(path) in str(error)
    return any(str(path) in str(warning.message) for warning in given)


VEL = "grape6py/state/vel"
WRONG = [
    ("grape6py", np.arange(3.0)), ("grape6py/state", np.arange(3.0)), ("passes", "many"),
    ("precision", "half"), (VEL, np.zeros((39, 3))), (VEL, np.full((40, 3), np.nan)),
    (VEL, np.full(40, b"fast")), ("grape6py/mass", np.full(40, np.nan)), ("passes", 2**40),
    ("eps", 1j), *((name, None) for name in """grape6py/mass grape6py/state
    grape6py/state/dt grape6py/state/acc grape6py/time grape6py/steps eps eta passes precision
    backend dt_max""".split()),
]  # fmt: skip


def test_files_with_something_missing_or_wrong_are_refused_by_name(path):
    written(path)
    of_index = [(name, None) for name in ("eps", "passes", "run", "format", "precision")]
    for file, wrong in (path.parent / "run" / "000002.hdf5", WRONG), (path, of_index):
        content = file.read_bytes()
        for name, value in wrong:
            edited(file, put(name, value))
            assert refused(file), name
            file.write_bytes(content)


def test_parts_of_a_first_output_that_was_never_named_whole_are_kept(tmp_path):
    """As after ranks that were killed between two names; without them the run begins anew."""
    path, folder = tmp_path / "a.h5", tmp_path / "a"
    folder.mkdir()
    (folder / "000000.1.hdf5").write_bytes(b"a part")
    Hermite(*plummer(10, seed=1), eps=0.1).save(path)
    assert len(Hermite.load(path)) == 10
    assert (folder / "000000.1.hdf5.~1~").read_bytes() == b"a part"


def test_a_writer_that_cannot_begin_holds_nothing(tmp_path, monkeypatch):
    def failing(*_):
        raise PermissionError("no permission")

    with monkeypatch.context() as patch:
        patch.setattr(atomic_files, "remove_aside", failing)
        with pytest.raises(PermissionError):
            archive.Writer(tmp_path / "a.h5")
    archive.Writer(tmp_path / "a.h5").close()


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


def test_a_restart_from_such_a_file_leaves_the_others(path, precious, here):
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

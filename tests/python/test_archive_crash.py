"""Whatever was saved is there after a crash at any moment, a full disk, or another writer."""

import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from unittest import mock

import h5py
import numpy as np
import pytest

import capi
from grape6py import Hermite, archive
from grape6py.errors import FileInUseError, Grape6Warning, SnapshotError
from grape6py.files.storage import atomic_files
from runs import COMMAND, cluster_of, run, times

# ---- crashes -----------------------------------------------------------------------------------


class Log:
    """Stands for `os` in the module that writes, and notes what it changes."""

    def __init__(self):
        self.calls = []
        self._names = {}

    def __getattr__(self, name):
        return getattr(os, name)

    def open(self, name, flags, *mode):
        number = os.open(name, flags, *mode)
        if flags & os.O_CREAT and not str(name).endswith(".lock"):
            self._names[number] = name
            self.calls.append(("create", name))
        return number

    def write(self, number, data):
        done = os.write(number, data)
        self.calls.append(("write", self._names[number], bytes(data[:done])))
        return done

    def fsync(self, number):
        os.fsync(number)
        if number in self._names:
            self.calls.append(("sync", self._names[number]))

    def close(self, number):
        self._names.pop(number, None)
        os.close(number)

    def replace(self, name, to):
        os.replace(name, to)
        self.calls.append(("replace", name, to))

    def mkdir(self, name):
        os.mkdir(name)
        self.calls.append(("mkdir", name))


def replay(calls, disk, cut=None, synced_only=False):
    """Do the calls again, the last with the first `cut` of its bytes alone.

    With `synced_only`, the last bytes of a file that was not synced are lost: the machine stopped.
    """
    shutil.rmtree(disk, ignore_errors=True)
    disk.mkdir()
    unsynced = {}
    for number, (what, name, *more) in enumerate(calls):
        place = disk / name
        if what == "mkdir":
            place.mkdir()
        elif what == "create":
            place.write_bytes(b"")
        elif what == "write":
            data = more[0] if cut is None or number < len(calls) - 1 else more[0][:cut]
            place.write_bytes(place.read_bytes() + data)
            unsynced[name] = len(data)
        elif what == "sync":
            unsynced.pop(name, None)
        else:
            os.replace(place, disk / more[0])
            if name in unsynced:
                unsynced[more[0]] = unsynced.pop(name)
    for name, length in unsynced.items() if synced_only else ():
        place = disk / name
        place.write_bytes(place.read_bytes()[: -length // 2])


def logged(folder, monkeypatch, saves):
    """Saves in a folder: calls that changed something, and how many were done after each."""
    log, done = Log(), []
    monkeypatch.chdir(folder)
    monkeypatch.setattr(atomic_files, "os", log)
    cluster = cluster_of(12)
    for number in range(saves):
        cluster.evolve(number / 8)
        cluster.save("run.h5")
        done.append(len(log.calls))
    monkeypatch.undo()
    root = str(folder) + "/"
    return [(c[0], *(w.removeprefix(root) if isinstance(w, str) else w for w in c[1:]))
            for c in log.calls], done  # fmt: skip


def check_saved(path, reported, step=1 / 8):
    """A file holds all outputs that were reported as written, and can be gone on from.

    A damaged index would be a warning.
    """
    if not reported:
        return
    found = [r["time"] for r in archive.history(path)[1]]
    assert found[:reported] == [number * step for number in range(reported)]
    cluster = Hermite.load(path)
    assert cluster.time >= (reported - 1) * step
    cluster.evolve(cluster.time + step)
    cluster.save(path)
    assert len(archive.history(path)[1]) > reported
    cluster.close()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("synced_only", [False, True])
def test_a_crash_at_any_write_leaves_every_output(tmp_path, monkeypatch, synced_only):
    saves = int(os.environ.get("GRAPE6_TEST_SAVES", "2"))
    (tmp_path / "log").mkdir()
    calls, done = logged(tmp_path / "log", monkeypatch, saves)
    assert len(calls) > 6 * saves
    pick = random.Random(1)
    for end in range(1, len(calls) + 1):
        what, _, *more = calls[end - 1]
        cuts = [None]
        if what == "write":
            cuts += sorted({0, 1, len(more[0]) - 1, pick.randrange(len(more[0]))})
        for cut in cuts:
            replay(calls[:end], tmp_path / "disk", cut, synced_only)
            complete = end if cut is None else end - 1
            check_saved(tmp_path / "disk" / "run.h5", sum(d <= complete for d in done))


SAVING = """
from grape6py import Hermite, plummer
cluster = Hermite(*plummer(300, 1), eps=1/16, dt=1/64)
for number in range(10000):
    cluster.evolve(number / 64)
    cluster.save("run.h5")
    print(number + 1, flush=True)
"""


@pytest.mark.full
def test_a_kill_at_any_moment_leaves_every_output(tmp_path):
    pick = random.Random(2)
    env = capi.clean_environment({"PYTHONPATH": str(capi.ROOT)})
    for number in range(int(os.environ.get("GRAPE6_TEST_KILLS", "3"))):
        folder = tmp_path / str(number)
        folder.mkdir()
        saving = subprocess.Popen([sys.executable, "-c", SAVING], cwd=folder, env=env,
                                  stdout=subprocess.PIPE, text=True)  # fmt: skip
        saving.stdout.readline()
        time.sleep(pick.uniform(0, 0.3))
        saving.kill()
        check_saved(folder / "run.h5", 1 + len(saving.communicate()[0].split()), 1 / 64)
        assert not [p for p in folder.rglob(".*") if p.name != ".lock"]


# ---- damage ------------------------------------------------------------------------------------


def test_no_changed_byte_is_taken_for_a_number(tmp_path):
    cluster = cluster_of(12)
    cluster.save(tmp_path / "run.h5")
    one = tmp_path / "run" / "000000.hdf5"
    pick = random.Random(3)
    for path in one, tmp_path / "run.h5":
        whole = path.read_bytes()
        for _ in range(int(os.environ.get("GRAPE6_TEST_MUTATIONS", "40"))):
            data = bytearray(whole)
            for _ in range(pick.choice((1, 1, 4))):
                data[pick.randrange(len(data))] ^= pick.randrange(1, 256)
            path.write_bytes(data if pick.random() < 0.8 else data[: pick.randrange(len(data))])
            began = time.monotonic()
            if path == one:
                with pytest.raises(SnapshotError):
                    Hermite.load(one)
            else:
                with pytest.warns(Grape6Warning, match="read from its outputs"):
                    again = Hermite.load(path)
                assert np.array_equal(again.pos, cluster.pos)
                assert again.settings == cluster.settings
            assert time.monotonic() - began < 5
        path.write_bytes(whole)


# ---- full disks --------------------------------------------------------------------------------


def test_a_limit_of_the_file_size_ends_a_run_with_one_line(tmp_path):
    limits = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (%d, %d)); "
    main = "from grape6py.cli import main; import sys; sys.exit(main(sys.argv[1:]))"
    env = capi.clean_environment({"PYTHONPATH": str(capi.ROOT)})
    command = ["run", "--n", "500", "--t-end", "0.5", "--out", "a.h5"]
    for size in 100, 90000:
        done = subprocess.run([sys.executable, "-c", limits % (size, size) + main, *command],
                              cwd=tmp_path, env=env, check=False, capture_output=True, text=True,
                              timeout=60)  # fmt: skip
        assert done.returncode == 1, done.stderr
        last = done.stderr.splitlines()[-1]
        assert last.startswith("grape6: ")
        assert last.endswith(": File too large")
        assert not list(tmp_path.glob(".*"))


def full_after(writes):
    """The disk is full after some writes."""
    full, disk = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), Log()
    disk.write = mock.Mock(wraps=os.write, side_effect=[mock.DEFAULT] * writes + [full] * 99)
    return mock.patch.object(atomic_files, "os", disk)


@pytest.mark.parametrize("writes", [0, 1])
def test_a_full_disk_is_an_exception_and_loses_nothing(tmp_path, writes):
    path = tmp_path / "run.h5"
    cluster = cluster_of(12)
    cluster.save(path)
    cluster.evolve(0.25)
    with full_after(writes), pytest.raises(OSError, match="No space left"):
        cluster.save(path)
    assert Hermite.load(path).time == 0
    assert not list(tmp_path.rglob(".0*"))
    cluster.save(path)
    assert [r["time"] for r in archive.history(path)[1]] == [0, 0.25]


def test_a_full_disk_ends_a_run_with_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with full_after(5):
        assert run("--n", 20, "--t-end", 1, "--out", "a.h5") == 1
    err = capsys.readouterr().err
    assert err.startswith("grape6: ")
    assert err.endswith("a.h5: No space left on device\n")
    assert len(err.splitlines()) == 1
    assert len(times("a.h5")) == 2


# ---- readers and writers -----------------------------------------------------------------------


def test_a_reader_never_disturbs_the_writer(tmp_path):
    path = tmp_path / "run.h5"
    cluster = cluster_of(12)
    cluster.save(path)
    with h5py.File(path) as index, h5py.File(tmp_path / "run" / "000000.hdf5") as output:
        held = index["000000"], output["PartType1"]
        code = (
            f"import h5py, sys; f = h5py.File({str(path)!r}); g = f['000000']; "
            f"print(flush=True); sys.stdin.read()"
        )
        other = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE)  # fmt: skip
        other.stdout.readline()
        cluster.evolve(0.125)
        cluster.save(path)
        cluster.save(path)
        assert len(held[1]["Masses"]) == 12
        other.communicate(b"")
    assert len(archive.history(path)[1]) == 2


def test_a_second_writer_is_refused_at_its_start(here, capsys):
    env = capi.clean_environment({"PYTHONPATH": str(capi.ROOT)})
    command = [*COMMAND, "--n", "200", "--t-end", "1000", "--dt-out", "0.25", "--out", "a.h5"]
    first = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
    while not (line := first.stdout.readline()).startswith("  0.25"):
        assert line
    for second in (
        ["--n", 50, "--t-end", 1, "--out", "a.h5"],
        ["a.h5", "--restart", "--t-end", 2000],
    ):
        assert run(*second) == 1
        assert capsys.readouterr().err == "grape6: a.h5 is being written by another run\n"
    with pytest.raises(FileInUseError):
        cluster_of(40).save("a.h5")
    assert Hermite.load("a.h5").n == 200  # who reads is not refused
    first.send_signal(signal.SIGKILL)
    first.communicate()
    with h5py.File("a.h5") as file:
        assert {file[name]["mass"].shape for name in ("000000", "000001")} == {(200,)}
    assert run("--n", 50, "--t-end", 0.25, "--out", "a.h5") == 0


def test_where_there_are_no_locks_files_are_written_all_the_same(tmp_path, monkeypatch):
    none = mock.Mock(side_effect=OSError(errno.ENOLCK, "No locks available"))
    monkeypatch.setattr(atomic_files.fcntl, "flock", none)
    cluster_of(12).save(tmp_path / "a.h5")
    assert times(tmp_path / "a.h5") == [0.0]

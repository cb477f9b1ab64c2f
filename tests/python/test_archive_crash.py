"""Whatever was saved is there after a crash at any moment, a full disk, or another writer; what is
written is private until it is whole, under a name of its own."""

import contextlib
import errno
import itertools
import multiprocessing
import os
import random
import signal
import stat
import subprocess
import sys
import time
from unittest import mock

import h5py
import numpy as np
import pytest

import capi
import tools
from endings import Ending, Killed
from grape6py import Hermite, archive, plummer, read_snapshot, write_snapshot
from grape6py.cli import main
from grape6py.errors import FileInUseError, Grape6Warning, SnapshotError
from grape6py.files.storage import atomic_files
from runs import COMMAND, cluster_of, run, times


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
@pytest.mark.slow
def test_a_crash_at_any_call_leaves_every_output(tmp_path, monkeypatch):
    for calls in itertools.count(1):
        ending, reported = Ending(Killed, calls), 0
        path = tmp_path / str(calls) / "run.h5"
        path.parent.mkdir()
        cluster = cluster_of(12)
        with monkeypatch.context() as patch, contextlib.suppress(Killed):
            patch.setattr(atomic_files, "os", ending)
            for number in range(2):
                cluster.evolve(number / 8)
                cluster.save(path)
                reported += 1
        check_saved(path, reported)
        if ending.left > 0:
            break
    assert reported == 2
    assert calls > 12


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


@pytest.mark.slow
def test_a_limit_of_the_file_size_ends_a_run_with_one_line(here):
    limits = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (%d, %d)); "
    main = "from grape6py.cli import main; import sys; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", limits % (90000, 90000) + main]
    command += ["run", "--n", "500", "--t-end", "0.5", "--out", "a.h5"]
    env = capi.clean_environment({"PYTHONPATH": str(capi.ROOT)})
    last = tools.run(command, code=1, env=env, timeout=60).stderr.splitlines()[-1]
    assert last.startswith("grape6: ")
    assert last.endswith(": File too large")
    assert not list(here.glob(".*"))


@pytest.mark.parametrize("writes", [0, 1])
def test_a_full_disk_is_an_exception_and_loses_nothing(tmp_path, writes):
    path = tmp_path / "run.h5"
    cluster = cluster_of(12)
    cluster.save(path)
    cluster.evolve(0.25)
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    write = mock.Mock(wraps=os.write, side_effect=[mock.DEFAULT] * writes + [full] * 99)
    with mock.patch("os.write", write), pytest.raises(OSError, match="No space left"):
        cluster.save(path)
    assert Hermite.load(path).time == 0
    assert not list(tmp_path.rglob(".0*"))
    cluster.save(path)
    assert [r["time"] for r in archive.history(path)[1]] == [0, 0.25]


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


@pytest.mark.slow
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


MODELS = [plummer(200 + k, seed=k) for k in range(4)]


def _convert(k, begin):
    begin.wait()
    raise SystemExit(main(["convert", f"{k}.nemo", "a.hdf5", *["--files", "2"] * (k % 2)]))


@pytest.mark.slow
def test_conversions_to_one_name_at_a_time_lose_no_file(here):
    for k, model in enumerate(MODELS):
        write_snapshot(f"{k}.nemo", model)
    fork = multiprocessing.get_context("fork")
    for _ in range(3):
        begin = fork.Barrier(4)
        all_ = [fork.Process(target=_convert, args=(k, begin)) for k in range(4)]
        for one in all_:
            one.start()
        for one in all_:
            one.join()
            assert one.exitcode == 0
        there = [path for path in here.glob("a.*") if ".1.hdf5" not in path.name]
        assert sorted(len(read_snapshot(path).mass) for path in there) == [200, 201, 202, 203]
        for path in here.glob("a.*"):
            path.unlink()


@pytest.mark.parametrize("mode", [0o600, 0o640, None])
def test_a_file_has_the_permissions_of_the_old_one_and_is_private_before(tmp_path, mode):
    path, seen = tmp_path / "a", []
    if mode is not None:
        path.write_bytes(b"old")
        path.chmod(mode)

    def pieces():
        (aside,) = tmp_path.glob(".a.*")
        seen.append(stat.S_IMODE(aside.stat().st_mode))
        yield b"new"

    atomic_files.write_whole(path, pieces())
    (tmp_path / "b").write_bytes(b"")
    usual = stat.S_IMODE((tmp_path / "b").stat().st_mode)
    assert seen == [usual if mode is None else 0o600]
    assert stat.S_IMODE(path.stat().st_mode) == (usual if mode is None else mode)


def test_no_name_that_somebody_else_has_put_there_is_written_to(tmp_path, monkeypatch):
    """A link is planted under the name that would be taken first."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    names = iter(["0" * 8, "1" * 8])
    monkeypatch.setattr(atomic_files.secrets, "token_hex", lambda _: next(names))
    (tmp_path / ".a.00000000.grape6").symlink_to(victim)
    atomic_files.write_whole(tmp_path / "a", b"new")
    assert victim.read_bytes() == b"precious"
    assert not (tmp_path / "a").is_symlink()


def test_leftovers_are_removed_and_nothing_else(tmp_path):
    names = [".a.h5.0123abcd.grape6", ".a.h5.123", ".a.h5.0123abcd", ".b.h5.0123abcd.grape6"]
    for name in names:
        (tmp_path / name).write_bytes(b"x")
    with atomic_files.Aside(tmp_path / "a.h5", [b"of a writer that lives"]) as aside:
        atomic_files.remove_aside(str(tmp_path), r"a\.h5")
        aside.put()
    assert sorted(os.listdir(tmp_path)) == sorted([*names[1:], "a.h5"])


def test_a_folder_that_cannot_be_synced_is_a_warning(tmp_path, monkeypatch):
    def fail(folder):
        raise OSError(5, "Input/output error", folder)

    monkeypatch.setattr(atomic_files, "sync_folder", fail)
    with pytest.warns(UserWarning, match="a is written, and its folder not synced: Input/output"):
        atomic_files.write_whole(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"

"""What is written: private until it is whole, under a name of its own, and nothing else is lost."""

import concurrent.futures
import multiprocessing
import os
import stat

import pytest

from grape6py import plummer, read_snapshot, write_snapshot
from grape6py.cli import main
from grape6py.files.storage import atomic_files

MODELS = [plummer(200 + k, seed=k) for k in range(4)]


def test_threads_that_write_one_name_leave_one_of_their_files(tmp_path):
    path = tmp_path / "a.nemo"
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        writing = [pool.submit(write_snapshot, path, MODELS[k % 2]) for k in range(40)]
        while not all(one.done() for one in writing):
            if path.exists():
                found = read_snapshot(path)
                assert found.pos.tobytes() == MODELS[len(found.mass) - 200].pos.tobytes()
    assert [one.result() for one in writing] == [None] * 40
    assert os.listdir(tmp_path) == ["a.nemo"]


def _convert(k, begin):
    begin.wait()
    raise SystemExit(main(["convert", f"{k}.nemo", "a.hdf5", *["--files", "2"] * (k % 2)]))


def test_conversions_to_one_name_at_a_time_lose_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
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
        there = [
            p for p in tmp_path.iterdir() if p.name.startswith("a.") and ".1.hdf5" not in p.name
        ]
        found = sorted(len(read_snapshot(path).mass) for path in there)
        assert found == [200, 201, 202, 203]
        for path in tmp_path.glob("a.*"):
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

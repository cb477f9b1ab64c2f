"""Where machine code of the kernels for GPUs is found: in the package, or in the user's own folder,
which may be full, damaged, read-only or another's. What compiles it is made up here."""

import os
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pytest

from grape6py.cuda import compiler, machine_code

WHAT = ("grape", 90, 13)


@pytest.fixture
def compiles(monkeypatch, tmp_path):
    """Names of the kernels that were compiled."""
    names = []

    def compile_kernel(kernel, precision, capability):
        names.append(kernel)
        return f"code of {kernel}".encode() * 100

    monkeypatch.setattr(compiler, "compile_kernel", compile_kernel)
    monkeypatch.setattr(machine_code, "PACKAGED", str(tmp_path / "packaged"))
    monkeypatch.setenv(machine_code.VARIABLE, str(tmp_path / "cache"))
    return names


def test_what_was_compiled_once_is_found_later(compiles, monkeypatch):
    made = machine_code.make(["few", "some"], *WHAT)
    assert machine_code.find(["some", "few", "middle"], *WHAT) == made
    assert sorted(compiles) == ["few", "some"]
    # Another precision, device, CUDA or text has code of its own.
    for what in (("single", 90, 13), ("grape", 100, 13), ("grape", 90, 12)):
        assert machine_code.find(["few"], *what) == {}
    monkeypatch.setattr(compiler, "text_of", lambda _: "another text")
    assert machine_code.find(["few"], *WHAT) == {}


def test_the_package_s_code_comes_first_and_makes_no_folder(compiles, tmp_path):
    name = machine_code.file_name("few", *WHAT)
    (tmp_path / "packaged").mkdir()
    (tmp_path / "packaged" / name).write_bytes(machine_code.pack(name, b"made ahead"))
    assert machine_code.find(["few"], *WHAT) == {"few": b"made ahead"}
    assert not (tmp_path / "cache").exists()


def damage(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


SPOILT = {"damaged": damage,
          "cut-short": lambda path: path.write_bytes(path.read_bytes()[:-5]),
          "another-kernel's": lambda path: path.write_bytes(machine_code.pack("some", b"code")),
          "link": lambda path: path.symlink_to(path.rename(path.with_name("elsewhere"))),
          "writable-by-others": lambda path: path.chmod(0o666),
          "folder": lambda path: (path.unlink(), path.mkdir()),
          "pipe": lambda path: (path.unlink(), os.mkfifo(path))}  # fmt: skip


@pytest.mark.parametrize("spoil", SPOILT)
def test_row39_a_file_that_cannot_be_trusted_is_compiled_again(compiles, spoil, tmp_path):
    right = machine_code.make(["few"], *WHAT)
    (path,) = (tmp_path / "cache").rglob("few-*")
    SPOILT[spoil](path)
    assert machine_code.find(["few"], *WHAT) == {}
    assert machine_code.make(["few"], *WHAT) == right
    if spoil != "folder":
        assert machine_code.find(["few"], *WHAT) == right
    assert not [name for name in os.listdir(machine_code.folder()) if name[0] == "."]


def no_home(tmp_path, monkeypatch):
    """Where nothing may be written to the working folder."""
    monkeypatch.delenv(machine_code.VARIABLE)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    monkeypatch.chdir(tmp_path)


def full_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "rename", Mock(side_effect=OSError(28, "no space left")))


def below_a_file(tmp_path, monkeypatch):
    """Where root may not write either."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(machine_code.VARIABLE, str(tmp_path / "file/cache"))


def writable_by_others(tmp_path, monkeypatch):
    os.makedirs(machine_code.folder())
    os.chmod(machine_code.folder(), 0o777)


@pytest.mark.parametrize("where", [no_home, full_disk, below_a_file, writable_by_others])
def test_row39_without_a_folder_kernels_are_made_in_memory(compiles, tmp_path, monkeypatch, where):
    where(tmp_path, monkeypatch)
    assert list(machine_code.make(["few"], *WHAT)) == ["few"]
    assert machine_code.find(["few"], *WHAT) == {}
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [*tmp_path.glob("file")]


def test_row39_many_compile_at_once(compiles):
    """Each file is whole whenever it is there."""

    def use(_):
        made = machine_code.make(["few", "some"], *WHAT)
        return made, machine_code.find(["few", "some"], *WHAT)

    with ThreadPoolExecutor(4) as pool:
        assert all(found == made for made, found in pool.map(use, range(80)))


def test_a_cache_is_below_cupys_and_one_users(monkeypatch, tmp_path):
    monkeypatch.delenv(machine_code.VARIABLE, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert machine_code.folder() == f"{tmp_path}/.cupy/kernel_cache/grape6-{os.geteuid()}"

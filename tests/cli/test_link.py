"""grape6 link: every file that it puts is found by clients, and goes again, and no other."""

import json
import os
import subprocess
import sys

import pytest

from grape6py import paths
from grape6py.cli import link, main
from grape6py.cli import prefix as prefix_module

LINKED = """
    lib/libgrape6.so lib/libg6.so lib/libg6a.so lib/libg6lx.so lib/libsapporo.so lib/libpg5.so
    lib/pkgconfig/grape6.pc lib/pkgconfig/g6lib.pc lib/pkgconfig/sapporo_light.pc
    lib/cmake/grape6/grape6Config.cmake lib/cmake/grape6/grape6Config-release.cmake
    lib/cmake/grape6/grape6ConfigVersion.cmake
    include/g6lib.h include/g5lib.h include/g6lib.f90 include/gp5util.h include/g6x_mpi.h
    share/grape6/grape.sh
    """.split()
THEIRS = {"lib/libg6.so": "another library", "lib/pkgconfig/other.pc": "x", "include/a.h": "y"}


def tree(folder):
    """Contents or target of every file, None of every folder, by name."""
    found = {}
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        found[name] = os.readlink(path) if path.is_symlink() else None
        if path.is_file() and not path.is_symlink():
            found[name] = path.read_bytes()
    return found


def put(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def grape6(capsys, *arguments, code=0):
    assert main(["link", *map(str, arguments)]) == code
    printed = capsys.readouterr()
    return printed.err if code else printed.out


def names_in(text):
    return [line.split()[0] for line in text.splitlines() if line.startswith("  ")]


@pytest.fixture(params=["new", "used by others", "like a conda environment"])
def prefix(request, tmp_path):
    folder = tmp_path / "a prefix"
    if request.param == "used by others":
        put(folder, {n: t for n, t in THEIRS.items() if n != "lib/libg6.so"})
    if request.param == "like a conda environment":
        put(folder, {"conda-meta/history": "", "lib/libz.so.1": "z", "share/doc/x": ""})
        (folder / "lib64").symlink_to("lib")
    return folder


def test_what_was_put_is_said_and_taken_away_again(capsys, prefix):
    before = tree(prefix)
    for _ in range(2):  # the second time over the first
        said = names_in(grape6(capsys, "--prefix", prefix))
        assert sorted(said) == sorted(LINKED)
        assert all((prefix / name).is_file() for name in LINKED)
    assert tree(prefix).keys() - before.keys() >= {*LINKED}
    assert sorted(names_in(grape6(capsys, "--remove", "--prefix", prefix))) == sorted(LINKED)
    assert tree(prefix) == before
    assert prefix.exists() == bool(before)
    assert "nothing of that" in grape6(capsys, "--remove", "--prefix", prefix, code=1)


def test_files_of_others_are_named_and_left_alone(capsys, tmp_path):
    put(tmp_path, THEIRS)
    before = tree(tmp_path)
    said = grape6(capsys, "--prefix", tmp_path, code=1)
    assert names_in(said) == ["lib/libg6.so"]
    assert "--only" in said
    assert "--force" in said
    assert tree(tmp_path) == before
    grape6(capsys, "--prefix", tmp_path, "--only", "sapporo", "pg5")
    assert not (tmp_path / "share/grape6/grape.sh").exists()
    assert {**tree(tmp_path), **before} == tree(tmp_path)
    grape6(capsys, "--prefix", tmp_path, "--remove")
    assert tree(tmp_path) == before


def test_what_is_forced_comes_back(capsys, tmp_path):
    put(tmp_path, THEIRS)
    before = tree(tmp_path)
    for _ in range(2):
        said = grape6(capsys, "--prefix", tmp_path, "--force")
    grape6(capsys, "--prefix", tmp_path / "." / "lib" / "..")
    assert os.readlink(tmp_path / "lib/libg6.so") == "libgrape6.so"
    assert "put aside" not in said  # at the first time only
    grape6(capsys, "--prefix", tmp_path, "--remove")
    assert tree(tmp_path) == before


def test_every_file_that_is_forced_is_kept_and_the_last_comes_back(capsys, tmp_path):
    name, kept = tmp_path / "lib/libg6.so", tmp_path / "share/grape6/kept/lib/libg6.so"
    for text in "ABC":
        put(tmp_path, {"lib/libg6.so": text})
        said = grape6(capsys, "--prefix", tmp_path, "--only", "g6", "--force")
        assert "another file was put aside: " + str(kept) in said
        name.unlink()
    assert [kept.read_text(), *(kept.with_name(f"{kept.name}.~{k}~").read_text() for k in (1, 2))] \
        == [*"ABC"]  # fmt: skip
    grape6(capsys, "--prefix", tmp_path, "--remove")
    assert {n: what for n, what in tree(tmp_path).items() if what} == {
        "lib/libg6.so": b"C",
        "share/grape6/kept/lib/libg6.so": b"A",
        "share/grape6/kept/lib/libg6.so.~1~": b"B",
    }


@pytest.mark.parametrize("name", ["../victim", "{}/victim", "a/../../victim", "out/victim", ""])
def test_a_record_removes_nothing_outside_its_prefix(capsys, tmp_path, name):
    (tmp_path / "victim").write_text("precious")
    prefix = tmp_path / "prefix"
    record = {"files": {name.format(tmp_path): prefix_module._state_of(b"precious")}, "folders": []}
    put(prefix, {"share/grape6/linked.json": json.dumps(record)})
    (prefix / "out").symlink_to("..")
    main(["link", "--prefix", str(prefix), "--remove"])
    assert (tmp_path / "victim").read_text() == "precious"


def test_only_some_are_removed(capsys, tmp_path):
    before = tree(tmp_path)
    grape6(capsys, "--prefix", tmp_path, "--only", "g6", "sapporo")
    removed = [
        names_in(grape6(capsys, "--prefix", tmp_path, "--remove", "--only", name))
        for name in ("g6", "sapporo")
    ]
    assert removed[0] == [f"lib/libg6{x}.so" for x in ("", "a", "lx")] + ["lib/pkgconfig/g6lib.pc"]
    assert removed[1][0] == "lib/libgrape6.so"  # with the last of those that need it
    assert tree(tmp_path) == before


def test_headers_of_others_are_left_out(capsys, tmp_path):
    """As those of AMUSE's framework, which emulates a GRAPE-6."""
    put(tmp_path, {"include/g6lib.h": "theirs"})
    said = grape6(capsys, "--prefix", tmp_path, code=1)
    assert names_in(said) == ["include/g6lib.h"]
    grape6(capsys, "--prefix", tmp_path, "--only", "sapporo", "g6", "pg5", "starlab")
    assert (tmp_path / "include/g6lib.h").read_text() == "theirs"


def test_a_file_that_was_changed_is_left(capsys, tmp_path):
    grape6(capsys, "--prefix", tmp_path, "--only", "starlab")
    (tmp_path / "share/grape6/grape.sh").write_text("mine")
    said = grape6(capsys, "--prefix", tmp_path, code=1)
    assert names_in(said) == ["share/grape6/grape.sh"]
    assert "grape.sh  (left: it was changed)" in grape6(capsys, "--prefix", tmp_path, "--remove")
    assert [n for n, what in tree(tmp_path).items() if what] == ["share/grape6/grape.sh"]


def test_the_environment_is_the_active_one(capsys, monkeypatch, tmp_path):
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    assert "--prefix DIR" in grape6(capsys, code=1)
    for n, name in enumerate(("CONDA_PREFIX", "VIRTUAL_ENV")):
        monkeypatch.setenv(name, str(tmp_path / str(n)))
        grape6(capsys)
        assert (tmp_path / str(n) / "lib/libg6.so").exists()


def test_a_prefix_with_the_package_in_it_may_be_moved(monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "LIBRARY", tmp_path / "lib/python3.11/grape6py/lib/libgrape6.so")
    assert link._files(tmp_path, [])["lib/libgrape6.so"] == "python3.11/grape6py/lib/libgrape6.so"


@pytest.mark.parametrize("refused", ["mkdir", "replace"])
@pytest.mark.parametrize("call", range(6))
def test_a_folder_that_may_not_be_written_stays_as_it_is(
    capsys, monkeypatch, tmp_path, refused, call
):
    """root may write anywhere, so the n-th call of the system is refused."""
    put(tmp_path, THEIRS)
    where = {"mkdir": type(tmp_path), "replace": os}[refused]
    before, true, calls = tree(tmp_path), getattr(where, refused), []

    def fail(path, *arguments, **more):
        calls.append(path)
        if len(calls) == call + 1:
            raise PermissionError(13, "Permission denied", str(path))
        return true(path, *arguments, **more)

    monkeypatch.setattr(where, refused, fail)
    said = grape6(capsys, "--prefix", tmp_path, "--force", code=1)
    assert said.startswith(f"grape6: {tmp_path}/")
    assert said.endswith("Permission denied; name a folder that you may write to by --prefix DIR\n")
    assert tree(tmp_path) == before


def test_what_a_killed_call_left_is_removed(capsys, monkeypatch, tmp_path):
    put(tmp_path, THEIRS)
    before = tree(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "symlink", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            main(["link", "--prefix", str(tmp_path), "--force"])
    grape6(capsys, "--prefix", tmp_path, "--remove")
    assert tree(tmp_path) == before


def test_starlab_is_told_the_folder(capsys, tmp_path):
    grape6(capsys, "--prefix", tmp_path, "--only", "starlab")
    script = f". {tmp_path}/share/grape6/grape.sh; echo $GRAPE_LDFLAGS_ $GRAPE_LIBS_"
    said = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout
    assert said == f"-L{tmp_path}/lib -Wl,-rpath,{tmp_path}/lib -lgrape6\n"


def test_a_broken_record_is_named(capsys, tmp_path):
    put(tmp_path, {"share/grape6/linked.json": "{"})
    assert "share/grape6/linked.json is broken" in grape6(capsys, "--prefix", tmp_path, code=1)


def test_the_packages_own_folder_is_refused(capsys):
    """By force, the library would become a link to itself."""
    said = grape6(capsys, "--prefix", paths.PREFIX, "--force", code=1)
    assert "the package's own folder" in said
    assert not paths.LIBRARY.is_symlink()


def test_a_file_is_no_prefix(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    for options in ([], ["--force"]):
        said = grape6(capsys, "--prefix", tmp_path / "file", *options, code=1)
        assert said.startswith(f"grape6: {tmp_path}/file")


@pytest.mark.parametrize(
    ("name", "header", "call"),
    [
        ("grape6", "g6lib", "g6_npipes()"),
        ("g6", "stdio", "g6_npipes()"),
        ("g6lx", "stdio", "g6_npipes()"),
        ("sapporo", "stdio", "g6_npipes()"),
        ("pg5", "gp5util", "g5_get_number_of_pipelines()"),
    ],
)
def test_programs_link_by_each_name_and_run_anywhere(capsys, tmp_path, name, header, call):
    """Those of old have no declarations."""
    prefix, source, program = (tmp_path / name for name in ("prefix", "two.c", "two"))
    grape6(capsys, "--prefix", prefix, "--only", name.removesuffix("lx"))
    source.write_text(f"#include <{header}.h>\nint main(void) {{ return {call} == 48 ? 7 : 1; }}\n")
    where = [f"-I{prefix}/include", f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib", f"-l{name}"]
    subprocess.run(["gcc", "-std=gnu89", source, "-o", program, *where], check=True)
    assert subprocess.run([program], env={}, cwd="/", check=False).returncode == 7

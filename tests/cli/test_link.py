"""grape6 link: every file that it puts is found by clients, and goes again, and no other."""

import itertools
import json
import os
import subprocess
import sys

import pytest

from grape6py import paths
from grape6py.cli import link, main
from grape6py.cli import prefix as prefix_module
from tools import run

LINKED = """
    lib/libgrape6.so lib/libg6.so lib/libg6a.so lib/libg6lx.so lib/libsapporo.so lib/libpg5.so
    lib/libpg6.so lib/libg6avx.so lib/libg5a.so lib/libphibdma.so lib/libg75.so lib/libhib.so
    lib/libgrape6.a
    lib/pkgconfig/grape6.pc lib/pkgconfig/g6lib.pc lib/pkgconfig/sapporo_light.pc
    lib/cmake/grape6/grape6Config.cmake lib/cmake/grape6/grape6Config-release.cmake
    lib/cmake/grape6/grape6ConfigVersion.cmake
    include/g6lib.h include/g5lib.h include/g6lib.f90 include/gp5util.h include/g6x_mpi.h
    include/grape6.h include/gp6util.h include/g5nbutil.h
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
        assert sorted(names_in(grape6(capsys, "--prefix", prefix))) == sorted(LINKED)
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
    put(tmp_path, {"include/g6lib.h": "theirs"})  # as of AMUSE's framework, and left out
    said = grape6(capsys, "--prefix", tmp_path, code=1)
    assert names_in(said) == ["include/g6lib.h", "lib/libg6.so"]
    grape6(capsys, "--prefix", tmp_path, "--only", "sapporo", "pg5", "starlab")
    assert (tmp_path / "include/g6lib.h").read_text() == "theirs"


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


def test_starlab_is_told_the_folder_by_a_file_that_is_left_if_it_was_changed(capsys, tmp_path):
    grape6(capsys, "--prefix", tmp_path, "--only", "starlab")
    script = f". {tmp_path}/share/grape6/grape.sh; echo $GRAPE_LDFLAGS_ $GRAPE_LIBS_"
    said = run(["sh", "-c", script]).stdout
    assert said == f"-L{tmp_path}/lib -Wl,-rpath,{tmp_path}/lib -lgrape6\n"
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


@pytest.mark.parametrize("refused", ["mkdir", "replace"])
@pytest.mark.parametrize("call", range(6))
def test_a_folder_that_may_not_be_written_is_left(capsys, monkeypatch, tmp_path, refused, call):
    """root may write anywhere, so the n-th call of the system is refused."""
    put(tmp_path, THEIRS)
    where = {"mkdir": type(tmp_path), "replace": os}[refused]
    before, true, calls = tree(tmp_path), getattr(where, refused), itertools.count()

    def fail(path, *arguments, **more):
        if next(calls) == call:
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


@pytest.mark.parametrize("options", [[], ["--force"]])
def test_what_is_no_prefix_or_its_record_is_named(capsys, tmp_path, options):
    (tmp_path / "file").write_text("")
    said = grape6(capsys, "--prefix", tmp_path / "file", *options, code=1)
    assert said.startswith(f"grape6: {tmp_path}/file")
    put(tmp_path, {"share/grape6/linked.json": "{"})
    said = grape6(capsys, "--prefix", tmp_path, *options, code=1)
    assert "share/grape6/linked.json is broken" in said
    said = grape6(capsys, "--prefix", paths.PREFIX, *options, code=1)
    assert "the package's own folder" in said  # by force, the library would be a link to itself
    assert not paths.LIBRARY.is_symlink()


# By the name of --only: libraries, and the header that comes with them.
BY_NAME = {
    "grape6": ("grape6", "grape6", "g6_npipes()"), "g6": ("g6 g6a g6lx", "stdio", "g6_npipes()"),
    "sapporo": ("sapporo", "stdio", "g6_npipes()"), "pg6": ("pg6 g6avx", "gp6util", "g6_npipes()"),
    "pg5": ("pg5", "gp5util", "g5_get_number_of_pipelines()"),
    "g5": ("g5a phibdma", "gp5util", "g5_get_number_of_pipelines()"),
    "g7": ("g75 hib", "g5nbutil", "g5_get_number_of_pipelines()"),
}  # fmt: skip


def compiled(folder, *flags, header="stdio", call="g6_npipes()", name="two"):
    """A program that returns 7. Those of old have no declarations."""
    program = f"#include <{header}.h>\nint main(void) {{ return {call} == 48 ? 7 : 1; }}\n"
    (folder / "two.c").write_text(program)
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    run(["gcc", "-std=gnu89", folder / "two.c", "-o", folder / name, *flags])
    return folder / name


def runs(program):
    """With an empty environment, from anywhere."""
    return subprocess.run([program], env={}, cwd="/", check=False, stderr=-3).returncode == 7


def flags_of(prefix, *names):
    where = [f"-I{prefix}/include", f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib"]
    return [*where, *(f"-l{name}" for name in names)]


@pytest.mark.parametrize("name", BY_NAME)
def test_programs_link_by_each_name_and_run_anywhere(capsys, tmp_path, name):
    assert {*link.NAMES} == {*BY_NAME, "static", "starlab"}
    libraries, header, call = BY_NAME[name]
    grape6(capsys, "--prefix", tmp_path / "p", "--only", name)
    for library in libraries.split():
        flags = flags_of(tmp_path / "p", library)
        assert runs(compiled(tmp_path, *flags, header=header, call=call))


@pytest.mark.parametrize("where", ["p/bin/two", "p/lib/deep/er/two.so", "two"])
def test_a_program_built_before_runs_after_remove(capsys, tmp_path, where):
    """The library is left for one below the prefix; all else goes, files of others come back."""
    prefix = tmp_path / "p"
    put(prefix, THEIRS)
    before = tree(prefix)
    grape6(capsys, "--prefix", prefix, "--force")
    program = compiled(tmp_path, *flags_of(prefix, "g6"), name=where)
    assert runs(program)
    said = grape6(capsys, "--prefix", prefix, "--remove")
    assert runs(program) == where.startswith("p/")
    if runs(program):
        assert "lib/libgrape6.so was left, without which these do not start" in said
        assert said.splitlines()[-1] == "  " + where.removeprefix("p/")
        assert tree(prefix)["lib/libg6.so"] == b"another library"
        assert not (prefix / "include/g6lib.h").exists()
        grape6(capsys, "--prefix", prefix, "--remove", "--force")
        assert not runs(program)
        program.unlink()
    assert {n: what for n, what in tree(prefix).items() if what} == \
        {n: what for n, what in before.items() if what}  # fmt: skip


def test_remove_asks_only_for_programs_that_need_the_library(capsys, tmp_path):
    """Not for other programs, nor for files that only look like programs."""
    prefix = tmp_path / "p"
    grape6(capsys, "--prefix", prefix, "--only", "g6")
    whole = compiled(tmp_path, call="48", name="p/bin/other").read_bytes()
    for n, junk in enumerate((b"", b"\x7fELF\x02\x01", whole[:300], b"\0libgrape6.so\0")):
        (prefix / f"bin/junk{n}").write_bytes(junk)
        (prefix / f"bin/junk{n}").chmod(0o755)
    os.mkfifo(prefix / "bin/pipe")
    assert "was left" not in grape6(capsys, "--prefix", prefix, "--remove")
    grape6(capsys, "--prefix", prefix, "--only", "g6")
    compiled(tmp_path, *flags_of(prefix, "g6"), name="p/bin/needs")
    compiled(tmp_path, *flags_of(prefix, "g6")[:2], "-Wl,-rpath,$ORIGIN/../lib", "-lg6",
             name="p/bin/origin")  # fmt: skip
    compiled(tmp_path, *flags_of(prefix, "g6")[:2], "-lg6", name="p/bin/without")
    said = grape6(capsys, "--prefix", prefix, "--remove").splitlines()
    assert said[-3:] == [f"  bin/{name}" for name in ("needs", "origin", "without")]


# grapite renames five calls of the library so, and defines these five itself.
RENAMED = "g6_open g6_set_j_particle g6calc_firsthalf g6calc_lasthalf g6_set_ti".split()
WRAPPER = """
#include "g6lib.h"
int __grape_g6_open(int), __grape_g6_set_ti(int, double), opened;
int g6_open(int id) { opened++; return __grape_g6_open(id); }
int direct_set_j, error_set; /* names of the library's own: hidden */
int main(void) {
    int id = 3;
    return g6_open(3) || g6_open_(&id) || __grape_g6_set_ti(3, 0) || opened != 1
        || g6_close(3) ? 1 : 7;
}
"""


@pytest.mark.parametrize("flags", [[], ["-static"], ["-static-pie"]], ids=" ".join)
def test_a_host_renames_and_defines_calls_of_the_static_library(capsys, tmp_path, flags):
    grape6(capsys, "--prefix", tmp_path, "--only", "static", "grape6")
    (tmp_path / "names").write_text("".join(f"{n} __grape_{n}\n" for n in RENAMED))
    (tmp_path / "two.c").write_text(WRAPPER.replace("#include", "int g6_open_(int *);\n#include"))
    for command in (
        ["ar", "x", tmp_path / "lib/libgrape6.a"],
        ["objcopy", "--redefine-syms=names", "grape6.o"],
        ["gcc", "-fPIE", *flags, f"-I{tmp_path}/include", "two.c", "grape6.o", "-lm", "-pthread"],
    ):
        run(command, cwd=tmp_path)
    assert runs(tmp_path / "a.out")
    asked = run([tmp_path / "a.out"], code=1, env={"GRAPE6_BACKEND": "cuda"})
    assert asked.stderr.startswith("grape6: ")
    assert ("-static uses no GPU" in asked.stderr) == bool(flags)


def test_the_static_library_has_the_calls_alone(capsys):
    def names(*command):
        listed = run(command).stdout.splitlines()
        return {line.split()[2] for line in listed if len(line.split()) == 3}

    exported = names("nm", "-D", "--defined-only", paths.LIBRARY)
    assert names("nm", "-g", "--defined-only", paths.STATIC) == exported


@pytest.mark.parametrize(
    ("name", "sign", "first"), [("grape6", 1, 0), ("g6", 1, 0), ("pg5", 1, 1), ("sapporo", -1, 1)]
)
def test_a_program_gets_the_potentials_of_the_library_it_names(capsys, tmp_path, name, sign, first):
    """And, at address 1, the first or the second particle of what it sends. It needs the library
    alone when it runs; a user's choice has precedence."""
    prefix, source, program = (tmp_path / name for name in ("prefix", "two.c", "two"))
    grape6(capsys, "--prefix", prefix)
    source.write_text("""
#include <g5lib.h>
int main(void)
{
    double x[2][3] = {{0}}, m[2] = {1, 3}, a[1][3], p[1];
    g5_open(), g5_set_n(2), g5_set_eps_to_all(1.0), g5_set_xmj(1, 1, x, m);
    g5_calculate_force_on_x(x, a, p, 1);
    return (int)p[0] + 3;
}
""")
    where = [f"-I{prefix}/include", f"-L{prefix}/lib", f"-Wl,-rpath,{paths.LIBRARY_DIR}"]
    run(["gcc", source, "-o", program, *where, f"-l{name}"])
    hand = {"GRAPE6_G5_POT_SIGN": "1", "GRAPE6_G5_SOURCE": "first"}
    right = sign * (3 if first else 1)
    for env, expected in ({}, right), (hand, 1), ({"GRAPE6_CLIENT": "fdps"}, 1):
        run([program], code=expected + 3, env=env)

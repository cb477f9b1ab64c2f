"""The build: an sdist that is whole, what is installed, no way to end the host,
other machines.

The names that the library exports, its SONAME and NODELETE: test_contract_symbols.py."""

import ctypes
import json
import os
import re
import shlex
import shutil
import sys
import zipfile

import numpy as np
import pytest

import capi
import fuzzing
import grape6py
import tools
from grape6py import paths, plummer, reference
from grape6py.cli import selftest
from packages import LOOSE, pip, wheel
from particles import relative
from tools import run

pytestmark = pytest.mark.full
ENDINGS = {"exit", "_exit", "_Exit", "quick_exit", "__assert_fail", "abort"}
CSRC = capi.ROOT / "csrc"
NO_HEADERS = ["-C", "cmake.define.Python_INCLUDE_DIR=/nowhere"]
USER = """
cmake_minimum_required(VERSION 3.13)
project(maps C)
find_package(grape6 0.1 REQUIRED)
add_executable(maps maps.c)
target_link_libraries(maps grape6::grape6)
"""


@pytest.fixture(scope="module")
def prefix(variants, tmp_path_factory):
    """Where cmake --install has put a library that CMake built alone."""
    folder = tmp_path_factory.mktemp("prefix")
    run(["cmake", "--install", variants["counted"].folder, "--prefix", folder])
    return folder


@pytest.fixture(params=["pip, moved", "cmake --install"])
def anywhere(request, tmp_path):
    """A folder with lib/ and include/, however installed."""
    if request.param == "cmake --install":
        return request.getfixturevalue("prefix")
    return shutil.copytree(request.getfixturevalue("installed"), tmp_path / "moved")


def commands(folder):
    """(entry, words) of what a build compiles of csrc."""
    entries = json.loads((folder / "compile_commands.json").read_text())
    return [(one, shlex.split(one["command"])) for one in entries if "/csrc/" in one["file"]]


# ---- the arithmetic is the library's own ---------------------------------------------
PARENT = f"""
cmake_minimum_required(VERSION 3.22)
project(parent C Fortran)
add_compile_options($<$<COMPILE_LANGUAGE:C>:-ffast-math> -ffp-contract=fast)
add_link_options(-ffast-math)
set(CMAKE_C_FLAGS "-Ofast {" ".join(LOOSE)}")
set(CMAKE_C_EXTENSIONS OFF)
add_subdirectory("{capi.ROOT}" library)
add_executable(two_body "{capi.TESTS}/fortran/two_body.f90")
target_link_libraries(two_body grape6::fortran)
"""


def test_loose_flags_of_a_project_around_are_taken_back(tmp_path):
    tools.need("gfortran")
    (tmp_path / "CMakeLists.txt").write_text(PARENT)
    run([tools.need("cmake"), "-S", tmp_path, "-B", tmp_path / "b", "-G", "Unix Makefiles"])
    link = shlex.split((tmp_path / "b/library/CMakeFiles/grape6.dir/link.txt").read_text())
    for words in [*(words for _, words in commands(tmp_path / "b")), link]:
        last = max(k for k, word in enumerate(words) if word in LOOSE)
        assert {*words[last:]} >= {"-fno-fast-math", "-fno-unsafe-math-optimizations"}
        assert "-ffp-contract=off" in words[last:] or words is link
        assert "-Ofast" not in words


@pytest.fixture(scope="module")
def by_clang(built, unpacked, tmp_path_factory):
    """The same objects, but of csrc/core and the direct sum's kernels such by clang, with the flags
    of a user before those of CMakeLists.txt."""
    tools.need("clang")
    folder, objects = tmp_path_factory.mktemp("clang"), []
    for entry, (_, *words) in commands(unpacked / "objects"):
        out = words.index("-o") + 1
        if re.search("csrc/core/|direct_kernel", entry["file"]):
            words[out] = folder / f"{len(objects)}.o"
            run(["clang", "-march=native", "-ffast-math", *words, "-Wno-pass-failed",
                 "-Wno-overriding-t-option"], cwd=entry["directory"])  # fmt: skip
        objects.append(unpacked / "objects" / words[out])
    run(["gcc", "-shared", *objects, "-lm", "-pthread", "-o", folder / "libgrape6.so"])
    return folder / "libgrape6.so"


def test_no_flag_of_the_user_changes_a_bit(by_clang, unpacked, model, isa, tmp_path):
    env, found = capi.clean_environment({"GRAPE6_LOG": "none", "GRAPE6_ISA": isa}), set()
    by_gcc = unpacked / "objects/libgrape6.so"
    for number, library in enumerate((capi.library_path(), by_gcc, by_clang)):
        program, flags = tmp_path / str(number), [f"-I{capi.ROOT / 'include'}", "-std=gnu11"]
        run([tools.need("gcc"), *flags, capi.TESTS / "c/sums.c", library,
             f"-Wl,-rpath,{library.parent}", "-o", program])  # fmt: skip
        found.add(run([program, model[1], f"cpu {isa}"], env=env, text=False).stdout)
        # And a host keeps its denormals.
        script = "import ctypes, sys; ctypes.CDLL(sys.argv[1]); print(float('1e-310') / 2)"
        assert run([sys.executable, "-c", script, library]).stdout == "5e-311\n"
    assert len(found) == 1


def test_sources_refuse_flags_that_nothing_has_taken_back():
    """As where they are compiled without CMakeLists.txt."""
    command = [tools.need("gcc"), "-std=gnu11", "-fsyntax-only", f"-I{CSRC}",
               f"-I{capi.ROOT / 'include'}", CSRC / "core/jmemory.c"]  # fmt: skip
    run(command)
    flags = "-ffast-math -ffinite-math-only -freciprocal-math -fsingle-precision-constant".split()
    for flag in flags + ["-mfpmath=387"] * ("x86_64" in os.uname().machine):
        done = tools.started([*command, flag])
        assert flag[:12] in done.stderr or "-ffast-math or parts of it" in done.stderr


# ---- the host lives on -------------------------------------------------------------
def test_one_function_alone_can_end_the_host(built, unpacked):
    objects = unpacked.glob("objects/CMakeFiles/*/csrc/**/*.o")
    uses = {path: run([tools.need("nm"), "-u", path]).stdout for path in objects}
    found = {path: ENDINGS.intersection(re.findall(r"U (\w+)", uses[path])) for path in uses}
    ((error, names),) = [(path, names) for path, names in found.items() if names]
    assert (error.name, names) == ("error.c.o", {"abort"})
    callers, function = set(), None
    for line in run([tools.need("objdump"), "-dr", error]).stdout.splitlines():
        if head := re.match(r"[0-9a-f]+ <(\w+)", line):
            function = head[1]
        if re.search(r"\babort\b", line):
            callers.add(function)
    assert callers == {"error_set"}


# ---- the package -------------------------------------------------------------------
def test_the_sdist_has_what_git_has_and_nothing_built(unpacked):
    files = run(["git", "ls-files"], cwd=capi.ROOT).stdout.split()
    wanted = {name for name in files if name.startswith(("csrc/", "include/", "grape6py/"))}
    wanted.add("include/g6lib.f90")  # which is made
    there = {str(path.relative_to(unpacked)) for top in ("csrc", "include", "grape6py")
             for path in (unpacked / top).rglob("*.*")}  # fmt: skip
    assert wanted == there


def test_the_wheel_with_a_bridge_is_for_this_python(built):
    version = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert re.fullmatch(rf"grape6py-[\d.]+-{version}-{version}-(many)?linux_\w+\.whl", built.name)
    names = zipfile.ZipFile(built).namelist()
    assert len([name for name in names if re.fullmatch(r"grape6py/_bridge\..*\.so", name)]) == 1
    assert "grape6py/lib/interpreter" not in names
    for name in ("data/plummer1024.dat", "py.typed", "__init__.pyi"):
        assert f"grape6py/{name}" in names
    for path in (CSRC / "shared").iterdir():
        assert f"grape6py/cuda/kernels/shared/{path.name}" in names
    kernels = (capi.ROOT / "grape6py/cuda/kernels").rglob("*.*")
    assert {str(path.relative_to(capi.ROOT)) for path in kernels} <= set(names)


def test_without_a_bridge_a_build_goes_on_and_the_wheel_fits_any_python(built, unpacked, tmp_path):
    for missing, options in (("Python.h", NO_HEADERS), ("cffi", [])):
        env = {"PYTHONPATH": str(tmp_path)} if missing == "cffi" else {}
        path, text = wheel(unpacked, tmp_path / missing, *options, **env)
        assert f"no {missing}" in text
        assert "built without the bridge to Python" in text
        assert re.fullmatch(r"grape6py-[\d.]+-py3-none-linux_\w+\.whl", path.name)
        assert not [name for name in zipfile.ZipFile(path).namelist() if "_bridge" in name]
        (tmp_path / "cffi.py").write_text("raise ImportError")
    text = pip("download", "--python-version", "3.10", "--only-binary=:all:", "--no-deps",
               "-d", tmp_path / "none", path, code=1)  # fmt: skip
    assert "requires a different Python: 3.10.0 not in '>=3.11'" in text


def test_a_missing_compiler_is_one_clear_line(unpacked):
    options = ["--no-deps", "--no-build-isolation"]
    text = pip("wheel", *options, unpacked, code=1, CC="no-such-compiler")
    assert len(re.findall(r"libgrape6\.so was not built: .* needs a C compiler", text)) == 1


def test_the_version_stands_once(built, prefix):
    version = grape6py.__version__
    cmake = prefix / "lib/cmake/grape6/grape6ConfigVersion.cmake"
    assert f'"{version}"' in cmake.read_text()
    assert f"\nVersion: {version}\n" in (prefix / "lib/pkgconfig/grape6.pc").read_text()
    assert built.name.startswith(f"grape6py-{version}-")
    text = ctypes.create_string_buffer(32)
    major, minor, patch = map(int, version.split("."))
    assert capi.call("g6x_version", text, 32) == 10000 * major + 100 * minor + patch
    assert text.value.decode() == f"grape6py {version}"


def test_what_is_installed_is_stripped_and_linked_to_no_python(installed):
    (bridge,) = installed.glob("_bridge*.so")
    for path in bridge, installed / "lib/libgrape6.so":
        read = run([tools.need("readelf"), "-d", "-S", path]).stdout
        needed = re.findall(r"NEEDED.*\[(.*)\]", read)
        assert "libc.so.6" in needed
        assert [name for name in needed if "python" in name] == []
    assert ".debug_info" not in read
    assert paths.LIBRARY.stat().st_size < 4e6
    exported = run([tools.need("nm"), "-D", "--defined-only", bridge]).stdout
    assert set(re.findall(r" T (\w+)", exported)) == {"PyInit__bridge", "grape6_bridge_start"}


# ---- programs that use it ----------------------------------------------------------
def test_a_program_links_by_pkg_config_and_by_find_package(anywhere, tmp_path):
    env = {**os.environ, "PKG_CONFIG_PATH": str(anywhere / "lib/pkgconfig")}
    flags = run([tools.need("pkg-config"), "--cflags", "--libs", "grape6"], env=env).stdout.split()
    run([tools.need("gcc"), capi.TESTS / "c/maps.c", "-o", tmp_path / "maps", *flags])
    shutil.copy(capi.TESTS / "c/maps.c", tmp_path)
    (tmp_path / "CMakeLists.txt").write_text(USER)
    found = f"-Dgrape6_DIR={anywhere}/lib/cmake/grape6"
    run([tools.need("cmake"), "-S", tmp_path, "-B", tmp_path / "b", found])
    run(["cmake", "--build", tmp_path / "b"])
    for program in tmp_path / "maps", tmp_path / "b/maps":  # elsewhere, with an empty environment
        done = run([program], env={}, cwd="/")
        assert done.stderr == ""
        folder = re.search(r"(/\S*)/libgrape6.so", done.stdout)[1]
        assert os.path.samefile(folder, anywhere / "lib")
        assert "libpython" not in done.stdout


def test_cmake_asks_for_no_python(variants, prefix):
    assert "Python_" not in (variants["counted"].folder / "CMakeCache.txt").read_text()
    files = {str(path.relative_to(prefix)) for path in prefix.rglob("*") if path.is_file()}
    cmake = ["grape6Config.cmake", "grape6Config-debug.cmake", "grape6ConfigVersion.cmake"]
    assert files == {"lib/libgrape6.so", "lib/pkgconfig/grape6.pc", "include/g6lib.h",
                     "include/g5lib.h", "include/g6lib.f90", "include/gp5util.h",
                     "include/g6x_mpi.h", "include/grape6.h", "include/gp6util.h",
                     "include/g5nbutil.h", "lib/libgrape6.a",
                     *(f"lib/cmake/grape6/{name}" for name in cmake)}  # fmt: skip


# ---- another machine ---------------------------------------------------------------
QEMU = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]
N = 1100  # a block of addresses and a part of one
KINDS = ("grape", "double", "single", "fmm", "bh", "walk", "walk double", "grape5")
# Largest (median, maximum) of the relative errors of acc, jerk and pot besides those of
# grape6 selftest: trees at theta 0.5, single pairs of walks and GRAPE-5.
LIMITS = selftest.LIMITS | {"fmm": {"acc": (3e-4, 3e-2), "jerk": (2e-3, 2e-1), "pot": (3e-5, 3e-4)},
                            "bh": {"acc": (1e-4, 5e-3), "jerk": (1e-3, 1e-1), "pot": (1e-5, 3e-4)},
                            "walk": {"acc": (1e-6, 1.6e-5), "pot": (1e-6, 5e-6)},
                            "walk double": {"acc": (3e-15, 2e-14), "pot": (1e-15, 1e-14)},
                            "grape5": {"acc": (1e-7, 5e-6), "pot": (6e-8, 5e-7)}}  # fmt: skip
# And of the mean error along the force, which acts like a wrong G.
BIAS = {"grape": 2e-8, "double": 5e-17, "walk double": 5e-17}


@pytest.fixture(scope="module")
def aarch64(variants):
    """Runs a C program on another machine."""
    for tool in ("aarch64-linux-gnu-gcc", "qemu-aarch64"):
        tools.need(tool)
    assert (variants["aarch64"].folder / "libgrape6.so.debug").exists()

    def run_there(name, *arguments, more=(), **env):
        command = [*QEMU, variants["aarch64"].program(name, *more), *arguments]
        env = capi.clean_environment({"GRAPE6_LOG": "none", **env})
        return run(command, env=env, text=False).stdout

    return run_there


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Particles, away from zero, and a file of them."""
    particles = plummer(N, seed=1, mass_fraction=0.999)
    particles = particles._replace(pos=particles.pos + np.array((100, -50, 25)))
    path = tmp_path_factory.mktemp("model") / "model"
    np.column_stack(particles[:3]).tofile(path)
    return particles, path


@pytest.fixture(scope="module")
def truth(model):
    """The plain sums, and those of GRAPE-5, which has a softening and knows no self."""
    particles, _ = model
    plain = reference.direct_sum(*particles, nearest=True, h2=0.01, extended=True)
    softened = reference.direct_sum(*particles, eps2=1e-4, extended=True)
    return plain, softened._replace(pot=particles.mass / 0.01 - softened.pot)


def test_aarch64_keeps_the_errors_and_the_bits_of_every_sum(aarch64, model, truth):
    """That bits depend neither on threads nor on cuts is judged by the program itself."""
    printed = aarch64("sums", model[1], "cpu neon", GRAPE6_ISA="neon")
    found = np.frombuffer(printed).reshape(len(KINDS), N, 9)
    for kind, rows in zip(KINDS, found, strict=True):
        sums = dict(zip(("acc", "jerk", "pot"), np.split(rows[:, :7], (3, 6), axis=1), strict=True))
        for name, (median, largest) in LIMITS[kind].items():
            true = getattr(truth[kind == "grape5"], name).reshape(N, -1)
            error = relative(sums[name], true)
            assert np.median(error) < median, (kind, name, np.median(error))
            assert error.max() < largest, (kind, name, error.max())
            # Else all pairs have been left to the exact sum.
            assert np.median(error) > 1e-9 or "double" in kind, (kind, name)
        along = (sums["acc"] * truth[0].acc).sum(1) / (truth[0].acc ** 2).sum(1) - 1
        assert abs(along.mean()) < BIAS.get(kind, np.inf), (kind, along.mean())
    numbers = [len(row) for row in truth[0].neighbours]
    for rows in found[:2]:
        assert (rows[:, 7] == truth[0].nearest).all()
        assert (rows[:, 8] == numbers).all()


def test_aarch64_lacks_the_instruction_sets_of_x86(aarch64):
    with pytest.raises(AssertionError, match="this machine lacks the instruction set"):
        aarch64("sums", "/dev/null", "cpu avx2", GRAPE6_ISA="avx2")


def test_aarch64_keeps_the_contract_in_random_calls(aarch64):
    assert aarch64("fuzz", "3", "0", "200", more=fuzzing.PARTS) == b""

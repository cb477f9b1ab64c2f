"""The build: clean compilers, a wheel that links anywhere, no way to end the host, other machines.

The names that the library exports, its SONAME and NODELETE: test_contract_symbols.py.
"""

import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from concurrent.futures import ThreadPoolExecutor
from platform import machine

import numpy as np
import pytest

import capi
import tools
from variants import VARIANTS, rules, run

ENDINGS = {"exit", "_exit", "_Exit", "quick_exit", "__assert_fail", "abort"}


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """What a wheel is made of, copied, and built by gcc with warnings as errors."""
    folder = tmp_path_factory.mktemp("build") / "tree"
    shutil.copytree(capi.ROOT / "grape6py", folder / "grape6py",
                    ignore=shutil.ignore_patterns("lib", "include", "__pycache__"))  # fmt: skip
    for name in ("csrc", "include"):
        shutil.copytree(capi.ROOT / name, folder / name)
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(capi.ROOT / name, folder)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation",
               "--disable-pip-version-check", "-w", folder / "dist", folder]  # fmt: skip
    env = {**os.environ, "CC": tools.need("gcc"), "CFLAGS": "-Werror"}
    done = subprocess.run(command, env=env, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def objects(tree):
    return sorted(tree.glob("build/temp*/core/*.o"))


@pytest.fixture(scope="module")
def installed(tree):
    """A fresh virtual environment with the wheel, and what it needs, in it."""
    (wheel,) = tree.glob("dist/*.whl")
    folder = tree.parent / "venv"
    venv.create(folder, symlinks=True)
    run([sys.executable, "-m", "pip", "--python", folder / "bin/python", "install", "--quiet",
         "--disable-pip-version-check", wheel])  # fmt: skip
    return folder


def start(folder, *flags):
    """tests/c/maps.c, built with these flags and run elsewhere with an empty environment."""
    program = folder / "maps"
    run([tools.need("gcc"), capi.TESTS / "c" / "maps.c", "-o", program, *flags])
    done = subprocess.run([program], env={}, cwd="/", check=True, capture_output=True, text=True)
    assert done.stderr == ""
    return done.stdout


# ---- compilers ---------------------------------------------------------------------


def test_gcc_and_the_strict_warnings_have_nothing_to_say(objects):
    expected = {job[0] for job in rules().compilations(machine())}
    assert {path.stem for path in objects} == expected
    strict = "-Wall -Wextra -Wconversion -Wstrict-prototypes".split()
    assert set(strict) <= set(rules().FLAGS)


def test_clang_has_nothing_to_say():
    clang = [tools.need("clang")]
    flags = ["-Werror", "-fsyntax-only"]
    jobs = rules().compilations(machine())
    commands = [rules().compile_command(clang, job, flags, os.devnull) for job in jobs]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(run, commands))


# ---- the host lives on -------------------------------------------------------------


def undefined(path):
    return set(re.findall(r"U (\w+)", run([tools.need("nm"), "-u", path]).stdout))


def test_one_object_alone_can_end_the_host(objects):
    found = {path.stem: undefined(path) & ENDINGS for path in objects}
    assert {stem: names for stem, names in found.items() if names} == {"core_error": {"abort"}}


def test_one_function_alone_calls_abort(objects):
    (error,) = [path for path in objects if path.stem == "core_error"]
    callers, function = set(), None
    for line in run([tools.need("objdump"), "-dr", error]).stdout.splitlines():
        if head := re.match(r"[0-9a-f]+ <(\w+)", line):
            function = head[1]
        if re.search(r"\babort\b", line):
            callers.add(function)
    assert callers == {"error_set"}


# ---- the wheel ---------------------------------------------------------------------


def test_the_wheel_with_a_bridge_is_for_this_python(tree):
    (wheel,) = tree.glob("dist/*.whl")
    version = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert re.fullmatch(rf"grape6py-[\d.]+-{version}-{version}-linux_\w+\.whl", wheel.name)
    names = zipfile.ZipFile(wheel).namelist()
    assert f"grape6py/{rules().BRIDGE}" in names
    assert "grape6py/lib/interpreter" not in names
    for name in rules().SHARED_HEADERS:
        assert f"grape6py/cuda/kernels/shared/{name}" in names
    kernels = (capi.ROOT / "grape6py/cuda/kernels").rglob("*.*")
    assert {str(path.relative_to(capi.ROOT)) for path in kernels} <= set(names)


def test_without_cffi_the_build_goes_on_and_the_wheel_fits_every_python(tree, tmp_path):
    copy = shutil.copytree(tree, tmp_path / "tree", ignore=shutil.ignore_patterns("*.so", "dist"))
    script = (
        "import runpy, sys\n"
        "sys.modules['cffi'] = None\n"
        "sys.argv = ['setup.py', 'bdist_wheel']\n"
        "runpy.run_path('setup.py', run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=copy, check=False,
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "no cffi: building without the bridge" in done.stdout + done.stderr
    (wheel,) = copy.glob("dist/*.whl")
    assert re.fullmatch(r"grape6py-[\d.]+-py3-none-linux_\w+\.whl", wheel.name)
    assert not [name for name in zipfile.ZipFile(wheel).namelist() if "_bridge" in name]


def test_the_bridge_is_not_linked_to_a_python(installed):
    (bridge,) = installed.glob("lib/python*/site-packages/grape6py/_bridge*.so")
    needed = re.findall(r"NEEDED.*\[(.*)\]", run([tools.need("readelf"), "-d", bridge]).stdout)
    assert "libc.so.6" in needed
    assert [name for name in needed if "python" in name] == []
    exported = run([tools.need("nm"), "-D", "--defined-only", bridge]).stdout
    assert set(re.findall(r" T (\w+)", exported)) == {"PyInit__bridge", "grape6_bridge_start"}


def test_a_program_links_by_grape6_config_and_maps_no_python(installed):
    config = [installed / "bin/grape6", "config", "--cflags", "--libs"]
    maps = start(installed, *run(config).stdout.split())
    assert re.search(rf"{installed}/lib/python[\d.]+/site-packages/grape6py/lib/libgrape6.so", maps)
    assert "libpython" not in maps


def test_the_installed_library_needs_no_python(installed):
    (library,) = installed.glob("lib/python*/site-packages/grape6py/lib/libgrape6.so")
    needed = run([tools.need("ldd"), library]).stdout
    assert "libc.so" in needed
    assert "python" not in needed


def test_the_installed_package_computes(installed):
    script = "import grape6py as g\nwith g.Grape6() as b: print(b)"
    done = subprocess.run([installed / "bin/python", "-I", "-c", script], cwd="/", check=False,
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("moved", [False, True], ids=["in-place", "moved"])
def test_a_program_links_by_pkg_config(installed, moved, tmp_path):
    (package,) = installed.glob("lib/python*/site-packages/grape6py")
    if moved:
        package = shutil.copytree(package, tmp_path / "elsewhere")
    env = {**os.environ, "PKG_CONFIG_PATH": str(package / "lib/pkgconfig")}
    command = [tools.need("pkg-config"), "--cflags", "--libs", "grape6"]
    flags = subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout
    maps = start(tmp_path, *flags.split())
    mapped = re.search(r"(/\S*)/libgrape6.so", maps)[1]
    assert os.path.samefile(mapped, package / "lib")


# ---- another machine ---------------------------------------------------------------


def table(text):
    return np.array([list(map(float.fromhex, row.split())) for row in text.splitlines()])


def test_aarch64_gives_the_forces_of_this_machine(variants):
    for tool in (VARIANTS["aarch64"].cc, "qemu-aarch64"):
        tools.need(tool)
    program = variants["aarch64"].program("forces")
    there = table(run(["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", program]).stdout)
    here = table(capi.run_c("forces").stdout)
    assert there.shape == here.shape == (900, 8)
    limits = ((1e-7, 1e-5), (1e-14, 1e-13), (1e-5, 1e-3))  # median, largest: grape, double, single
    for (median, largest), rows in zip(
        limits, (slice(300), slice(300, 600), slice(600, 900)), strict=True
    ):
        for columns in (slice(0, 3), slice(3, 6), slice(6, 7)):
            size = np.linalg.norm(here[rows, columns], axis=1)
            error = np.linalg.norm(there[rows, columns] - here[rows, columns], axis=1) / size
            assert np.median(error) < median
            assert error.max() < largest
    assert (there[:600, 7] == here[:600, 7]).all()

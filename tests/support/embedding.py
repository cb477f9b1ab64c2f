"""Environments with the package in them, as an installation makes them, but within a moment: numpy
and cffi are links to those of this Python, and the device is that of fake_device.py.

`bridge_parts` (a fixture) has the programs; `Environment` is a virtual environment.
"""

import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import _cffi_backend
import cffi
import numpy as np
import pycparser
import pytest

import capi
import tools
from grape6py import paths
from once import made_once
from variants import BUILD

SITE = f"lib/python3.{sys.version_info.minor}/site-packages"
LIBPYTHON = Path(sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("INSTSONAME"))
TRAPS = "-ffpe-trap=zero,overflow,invalid"
COUNTS = BUILD / "counted/bridge"  # where support/covered.py looks for them
RPATH = "-Wl,-rpath,$ORIGIN/lib"  # programs are copied into the package of an environment
SOURCES = """python/bridge python/driver python/gil python/find_python python/site_packages
    core/error core/options core/config core/environment simd/dispatch""".split()

FAKE_GPU = """
#include <stdint.h>
#include <string.h>
int fake_gpu_push_context(void *context) { return !context; }
int fake_gpu_pop_context(void **context) { return !context; }
int fake_gpu_launch(void) { return 0; }
int fake_gpu_copy_in(uint64_t to, const void *from, size_t bytes, void *stream)
{ return memcpy((void *)to, from, bytes) && !stream; }
int fake_gpu_copy_out(void *to, uint64_t from, size_t bytes, void *stream)
{ return memcpy(to, (void *)from, bytes) && !stream; }
int fake_gpu_fill(uint64_t to, unsigned char value, size_t bytes, void *stream)
{ return memset((void *)to, value, bytes) && !stream; }
int fake_gpu_query(void *stream) { return !stream; }
int fake_gpu_record(void *event, void *stream) { return !event || !stream; }
int fake_gpu_follow(void *stream, void *event, unsigned nothing)
{ return !event || !stream || nothing; }
int fake_gpu_error_text(int error, const char **text) { return *text = "text", error < 0; }
int cuInit(unsigned flags) { return flags != 0; }
int cuDeviceGetCount(int *count) { return *count = 1, 0; }
int cuDriverGetVersion(int *version) { return *version = 0, 0; }
int cuGetErrorString(int error, const char **text) { return fake_gpu_error_text(error, text); }
void probe_grape(void) {}
void probe_double(void) {}
void probe_single(void) {}
"""


def packages():
    """Files and folders of numpy and cffi, as they lie in a site-packages folder."""
    numpy = Path(np.__file__).parent
    found = [numpy, numpy.with_name("numpy.libs")]
    found += [Path(module.__file__).parent for module in (cffi, pycparser)]
    return [path for path in [*found, Path(_cffi_backend.__file__)] if path.exists()]


def gcc(out, *arguments):
    flags = "-std=gnu11 -O1 -g -fPIC -Wall -Wextra -Werror -pthread".split()
    paths = [f"-I{capi.ROOT / 'csrc'}", f"-I{capi.ROOT / 'include'}"]
    run(tools.need("gcc"), *flags, *paths, *arguments, "-o", out, "-lm")


def compile_parts(folder):
    """The library and the program. Lines that run are counted by what is compiled here, once."""
    folder.mkdir()
    sources = [capi.ROOT / "csrc" / f"{name}.c" for name in SOURCES]
    calls = capi.TESTS / "c/bridge_calls.c"
    link = ["-shared", "-Wl,-soname,libgrape6.so", "-Wl,-z,nodelete"]
    shutil.rmtree(COUNTS, ignore_errors=True)
    COUNTS.mkdir(parents=True)
    counted = ["--coverage", "-fprofile-update=atomic", "-dumpdir", f"{COUNTS}/"]
    library = folder / "libgrape6.so"
    gcc(library, *sources, calls, *link, *counted)
    gcc(folder / "open_device", capi.TESTS / "c/open_device.c", library, RPATH)


class Parts:
    """A folder with the library, the programs and the driver."""

    def __init__(self, folder):
        self.folder = folder
        self.library, self.program = folder / "libgrape6.so", folder / "open_device"
        self.driver = self.fake("libcuda.so.1", FAKE_GPU)

    def fortran(self, name, *flags):
        """tests/fortran/open_device.f90 with these flags."""
        out = self.folder / name
        if not out.exists():
            source = capi.TESTS / "fortran/open_device.f90"
            run(tools.need("gfortran"), *flags, source, self.library, RPATH, "-o", out)
        return out

    def with_driver(self, folder):
        """For LD_LIBRARY_PATH."""
        return f"{folder}:{self.driver}"

    def fake(self, name, code):
        """A shared library of this name, in a folder of its own."""
        folder = self.folder / f"fake-{name}-{len(list(self.folder.iterdir()))}"
        folder.mkdir()
        (folder / "fake.c").write_text(code)
        gcc(folder / name, folder / "fake.c", "-shared")
        return folder


class Environment:
    """A virtual environment with the package, and with the parts' library in it."""

    def __init__(self, parts, folder):
        venv.create(folder, symlinks=True, with_pip=False)
        self.parts, self.folder = parts, folder
        self.site = folder / SITE
        self.package = self.site / "grape6py"
        for path in packages():
            (self.site / path.name).symlink_to(path)
        ignored = shutil.ignore_patterns("lib", "__pycache__")
        shutil.copytree(paths.PREFIX, self.package, ignore=ignored)
        (self.package / "lib").mkdir()
        self.library = Path(shutil.copy(parts.library, self.package / "lib"))
        self.device = Path(
            shutil.copy(capi.SUPPORT / "fake_device.py", self.package / "cuda/device.py")
        )
        self.python = folder / "bin/python"

    def start(self, how="plain", program=None, env=(), **options):
        """Runs a program with nothing in its environment but the driver's place and `env`."""
        copy = self.package / (program or self.parts.program).name
        if not copy.exists():
            shutil.copy(program or self.parts.program, copy)
        found = {"LD_LIBRARY_PATH": self.parts.driver, **dict(env)}
        options = {"capture_output": True, "text": True, "timeout": 60, **options}
        return subprocess.run(
            [copy, how],
            env={name: str(value) for name, value in found.items() if value is not None},
            check=False,
            **options,
        )


def run(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stderr}"
    return done


def assert_quiet(done):
    assert (done.returncode, done.stdout or "", done.stderr or "") == (0, "", "")


@pytest.fixture(scope="session")
def bridge_parts(tmp_path_factory, shared_folder):
    """The programs of these tests. Their folder's name is not one that every tool likes."""
    tools.need_bridge()
    if not LIBPYTHON.exists():
        pytest.skip(f"SKIP: {LIBPYTHON} not found: take a Python with a shared library")
    folder = tmp_path_factory.mktemp("bridge") / "Übung 1"
    shutil.copytree(made_once(shared_folder / "bridge-parts", compile_parts), folder)
    return Parts(folder)

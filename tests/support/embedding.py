"""Environments with the package in them, as an installation makes them, but within a moment: numpy
and cffi are links to those of this Python, and the device is that of fake_device.py.

`bridge_parts` (a fixture) has the programs; `Environment` is a virtual environment."""

import re
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
from tools import run
from variants import BUILD

MINOR = f"3.{sys.version_info.minor}"
SITE = f"lib/python{MINOR}/site-packages"
LIBPYTHON = Path(sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("INSTSONAME"))
TRAPS = "-ffpe-trap=zero,overflow,invalid"
COUNTS = BUILD / "counted/bridge"  # where support/covered.py looks for them
RPATH = "-Wl,-rpath,$ORIGIN/lib"  # programs are copied into the package of an environment
SOURCES = """python/bridge python/gil python/find_python
    core/error core/options core/config simd/dispatch
    util/clock util/memory util/threads""".split()

# A driver, whose INIT, COUNT and VERSION are what it says.
INIT = "int cuInit(unsigned flags) { return flags ? 1 : INIT; }"
FAKE_GPU = (
    INIT
    + """
#include <stdint.h>
#include <string.h>
#ifndef WRONG_THREAD
#define WRONG_THREAD 0
#endif
int cuDeviceGetCount(int *count) { return *count = COUNT, WRONG_THREAD; }
int cuDriverGetVersion(int *version) { return *version = VERSION, 0; }
int cuGetErrorString(int error, const char **text)
{ return *text = "no such luck", error < 0; }
int fake_gpu_error_text(int error, const char **text) { return cuGetErrorString(error, text); }
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
void probe_grape(void) {}
void probe_double(void) {}
void probe_single(void) {}
"""
)


def packages():
    """Files and folders of numpy and cffi, as they lie in a site-packages folder."""
    numpy = Path(np.__file__).parent
    found = [numpy, numpy.with_name("numpy.libs")]
    found += [Path(module.__file__).parent for module in (cffi, pycparser)]
    return [path for path in [*found, Path(_cffi_backend.__file__)] if path.exists()]


def gcc(out, *arguments):
    flags = "-std=gnu11 -O1 -g -fPIC -Wall -Wextra -Werror -pthread".split()
    paths = [f"-I{capi.ROOT / 'csrc'}", f"-I{capi.ROOT / 'include'}"]
    run([tools.need("gcc"), *flags, *paths, *arguments, "-o", out, "-lm"])


def compile_parts(folder):
    """The library and the program. Lines that run are counted by what is compiled here, once."""
    folder.mkdir()
    shutil.rmtree(COUNTS, ignore_errors=True)
    COUNTS.mkdir(parents=True)
    library = folder / "libgrape6.so"
    gcc(library, "-D_GNU_SOURCE", *(capi.ROOT / f"csrc/{name}.c" for name in SOURCES),
        capi.TESTS / "c/bridge_calls.c", "-shared", "-Wl,-soname,libgrape6.so", "-Wl,-z,nodelete",
        "--coverage", "-fprofile-update=atomic", "-dumpdir", f"{COUNTS}/")  # fmt: skip
    gcc(folder / "open_device", capi.TESTS / "c/open_device.c", library, RPATH)


class Parts:
    """A folder with the library, the programs and the driver."""

    def __init__(self, folder):
        self.folder = folder
        self.library, self.program = folder / "libgrape6.so", folder / "open_device"
        self.driver = self.fake_driver()

    def fortran(self, name, *flags):
        """tests/fortran/open_device.f90 with these flags."""
        out = self.folder / name
        if not out.exists():
            source = capi.TESTS / "fortran/open_device.f90"
            run([tools.need("gfortran"), *flags, source, self.library, RPATH, "-o", out])
        return out

    def with_driver(self, folder):
        """For LD_LIBRARY_PATH."""
        return f"{folder}:{self.driver}"

    def fake(self, name, code, *flags):
        """A shared library of this name, in a folder of its own."""
        folder = self.folder / f"fake-{name}-{len(list(self.folder.iterdir()))}"
        folder.mkdir()
        (folder / "fake.c").write_text(code)
        gcc(folder / name, folder / "fake.c", "-shared", *flags)
        return folder

    def fake_driver(self, init=0, count=1, version=0, code=FAKE_GPU):
        """One that says so."""
        flags = f"-DINIT={init}", f"-DCOUNT={count}", f"-DVERSION={version}"
        return self.fake("libcuda.so.1", code, *flags)


class Environment:
    """A virtual environment with the package, and with the parts' library in it."""

    def __init__(self, parts, folder):
        venv.create(folder, symlinks=True, with_pip=False)
        self.parts, self.folder = parts, folder
        self.site = folder / SITE
        self.package = self.site / "grape6py"
        for path in packages():
            (self.site / path.name).symlink_to(path)
        (self.package / "lib").mkdir(parents=True)
        ignored = shutil.ignore_patterns("__pycache__")  # tests change what is in cuda alone
        shutil.copytree(paths.PREFIX / "cuda", self.package / "cuda", ignore=ignored)
        for path in paths.PREFIX.iterdir():
            if path.name not in ("lib", "cuda", "__pycache__"):
                (self.package / path.name).symlink_to(path)
        self.library = self.copy(parts.library, "lib")
        self.copy(capi.SUPPORT / "fake_device.py", "cuda/device.py")
        self.python = folder / "bin/python"

    def configure(self, pattern, text):
        """Replaces what is in pyvenv.cfg."""
        file = self.folder / "pyvenv.cfg"
        file.write_text(re.sub(pattern, text, file.read_text(), flags=re.MULTILINE))

    def extend(self, module, code):
        """Adds to what the package's part for CUDA has."""
        with (self.package / f"cuda/{module}.py").open("a") as file:
            file.write(f"\n{code}")

    def preload(self, name, code, driver=None):
        """What makes a program load this library first; LD_PRELOAD takes no blank."""
        self.copy(self.parts.fake(name, code) / name)
        return {"LD_PRELOAD": name,
                "LD_LIBRARY_PATH": f"{self.package}:{driver or self.parts.driver}"}  # fmt: skip

    def copy(self, path, place="."):
        """Of a file, in the package."""
        return Path(shutil.copy(path, self.package / place))

    def start(self, how="plain", program=None, env=(), **options):
        """Runs a program with nothing in its environment but the driver's place and `env`."""
        program = program or self.parts.program
        copy = self.package / program.name
        if not copy.exists():
            self.copy(program)
        found = {"LD_LIBRARY_PATH": self.parts.driver, **dict(env)}
        env = {name: str(value) for name, value in found.items() if value is not None}
        options = {"capture_output": True, "text": True, "timeout": 60, **options}
        return subprocess.run([copy, how], env=env, check=False, **options)


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

"""Builds libgrape6.so, plain C that Python reaches through cffi in ABI mode, into the package,
and lays the headers, the Fortran module's source and grape6.pc beside it.

Where cffi and Python.h are there, also _bridge, by which the library starts Python for a GPU."""

import importlib.util
import os
import platform
import shutil
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).parent
HEADERS = ["g6lib.h", "g5lib.h", "g6lib.f90"]
SHARED_HEADERS = sorted(path.name for path in (ROOT / "csrc/shared").iterdir())
BRIDGE = "_bridge" + sysconfig.get_config_var("EXT_SUFFIX")

# Contraction is written out (fma) or not wanted; gcc 12 has miscompiled splits of doubles into
# packed pairs with the SLP vectoriser.
FLAGS = """-std=gnu11 -O3 -g -fPIC -Wall -Wextra -Wconversion -Wstrict-prototypes
    -ffp-contract=off -fno-math-errno -fno-tree-slp-vectorize -pthread""".split()

# Compiled once per instruction set and width; those of one width, once per instruction set.
KERNELS = {"cpu/direct_kernel.c": (32, 64), "cpu/walks_kernel.c": (32, 64), "tree/kernel.c": (32,),
           "cpu/grape5_kernel.c": (32,)}  # fmt: skip
X86_FLAGS = {
    "avx2": ["-mavx2", "-mfma"],
    "avx512": """-mavx512f -mavx512dq -mavx512vl -mavx512bw -mavx2 -mfma
        -mprefer-vector-width=512""".split(),
}

PC = """\
prefix=${pcfiledir}/../..
libdir=${prefix}/lib
includedir=${prefix}/include

Name: grape6
Description: The GRAPE-6 host library in software
Version: @version@
Cflags: -I${includedir}
Libs: -L${libdir} -Wl,-rpath,${libdir} -lgrape6
"""


def compilations(machine):
    """(object name, source, extra flags) of everything in a library for this machine."""
    csrc = ROOT / "csrc"
    kernels = {csrc / name: widths for name, widths in KERNELS.items()}
    for source in sorted(csrc.glob("*/*.c")):
        if source not in kernels and source.name != "embed.c":
            yield f"{source.parent.name}_{source.stem}", source, []
    x86 = X86_FLAGS if machine.lower() in ("x86_64", "amd64") else {}
    for isa, flags in {"base": [], **x86}.items():
        for source, widths in kernels.items():
            for bits in widths:
                defines = [f"-DISA={isa}", f"-DREAL_BITS={bits}", f'-DOPS_HEADER="simd/{isa}.h"']
                yield f"{source.parent.name}_{source.stem}_{isa}_{bits}", source, defines + flags


def compile_command(cc, job, extra, out):
    """Command line that compiles one of `compilations` with compiler and flags given."""
    _, source, flags = job
    paths = [f"-I{ROOT / 'csrc'}", f"-I{ROOT / 'include'}"]
    return [*cc, *FLAGS, *flags, *extra, *paths, "-c", str(source), "-o", str(out)]


def link_command(cc, objects, extra, out):
    """Command line that links objects as the library."""
    link = ["-shared", "-pthread", "-lm"]
    if sys.platform == "linux":
        link += ["-Wl,-soname,libgrape6.so", "-Wl,-z,nodelete", "-Wl,-z,relro,-z,now"]
        link += [f"-Wl,--version-script={ROOT / 'csrc/api/libgrape6.map'}"]
    return [*cc, *map(str, objects), *link, *extra, "-o", str(out)]


def missing_for_bridge():
    """What the bridge to Python cannot be built without and is not here; None if all is."""
    if sys.platform != "linux":
        return "Linux"
    if importlib.util.find_spec("cffi") is None:
        return "cffi"
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        return "Python.h (of python3-dev)"
    return None


def bridge_command(cc, source, extra, out):
    """Command line that makes the bridge. It is not linked to libpython, whose names it takes from
    the process: the library opens the right one by its full path, or the host is Python."""
    paths = [ROOT / "csrc", ROOT / "include", sysconfig.get_path("include")]
    flags = "-std=gnu11 -O2 -g -fPIC -shared -fvisibility=hidden -pthread -Wall".split()
    return [*cc, *flags, *extra, *(f"-I{path}" for path in paths), str(source), "-o", str(out)]


def emit_bridge(out):
    """Writes the bridge's C source."""
    path = ROOT / "csrc/python/declare.py"
    spec = importlib.util.spec_from_file_location("grape6_declare", path)
    declare = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(declare)
    declare.bridge().emit_c_code(str(out))


class BuildLibrary(build_ext):
    """Compiles csrc with the C compiler and links it as a library of no Python version."""

    def destination(self):
        return Path("grape6py") if self.inplace else Path(self.build_lib, "grape6py")

    def get_outputs(self):
        built = ["lib/libgrape6.so", "lib/pkgconfig/grape6.pc"]
        built += [f"include/{header}" for header in HEADERS]
        built += [f"cuda/kernels/shared/{header}" for header in SHARED_HEADERS]
        built += [] if missing_for_bridge() else [BRIDGE]
        return [str(self.destination() / name) for name in built]

    def get_output_mapping(self):
        return {}

    def run(self):
        package = self.destination()
        target = package / "lib/libgrape6.so"
        objects = Path(self.build_temp, "core")
        objects.mkdir(parents=True, exist_ok=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        cc = os.environ.get("CC", "gcc").split()
        extra = os.environ.get("CFLAGS", "").split()
        newest = max(p.stat().st_mtime for p in [*ROOT.glob("csrc/*/*"), *ROOT.glob("include/*")])
        self.build_bridge(cc, extra, package)

        def compile_one(job):
            out = objects / f"{job[0]}.o"
            if self.force or not out.exists() or out.stat().st_mtime < newest:
                self.spawn(compile_command(cc, job, extra, out))
            return out

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            compiled = list(pool.map(compile_one, compilations(platform.machine())))
        self.spawn(link_command(cc, compiled, extra, target))

        (package / "include").mkdir(exist_ok=True)
        (package / "lib/pkgconfig").mkdir(exist_ok=True)
        for header in HEADERS:
            shutil.copy(ROOT / "include" / header, package / "include" / header)
        pc = PC.replace("@version@", self.distribution.get_version())
        (package / "lib/pkgconfig/grape6.pc").write_text(pc)
        shared = package / "cuda/kernels/shared"
        shutil.copytree(ROOT / "csrc/shared", shared, dirs_exist_ok=True)
        if self.inplace:  # nothing else tells this library its Python: it lies in no environment
            (package / "lib/interpreter").write_text(f"executable = {sys.executable}\n")

    def build_bridge(self, cc, extra, package):
        missing = missing_for_bridge()
        if missing:
            self.warn(f"no {missing}: building without the bridge to Python, so without a GPU")
            return
        source = Path(self.build_temp, "_bridge.c")
        emit_bridge(source)
        self.spawn(bridge_command(cc, source, extra, package / BRIDGE))


class Wheel(bdist_wheel):
    """The library depends on the platform, not on the Python version. The bridge does: a wheel
    with one, called fit for every Python, would be kept by pip and leave the others without GPU."""

    def get_tag(self):
        python, abi, platform = super().get_tag()
        return ("py3", "none", platform) if missing_for_bridge() else (python, abi, platform)


if __name__ == "__main__":  # the tests build variants of the library with the rules above
    setup(
        ext_modules=[Extension("grape6py.lib.libgrape6", sources=[])],
        cmdclass={"build_ext": BuildLibrary, "bdist_wheel": Wheel},
    )

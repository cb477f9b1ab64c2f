"""Variants of the library: other compilers and flags, built by the very rules of setup.py.

The fixture `variants` (conftest.py) keeps them for the session; each is named in VARIANTS and
is built when a test first asks for it, in a folder of its own as a file libgrape6.so.
"""

import functools
import importlib.util
import os
import platform
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import capi
import tools
from once import made_once

# The kernels' copies of inline functions would take a sanitizer minutes to compile, and the whole
# library optimized takes five times as long as so. No bit depends on it.
QUICK = ["-O1", "-Dalways_inline="]
SANITIZED = [*QUICK, "-fno-omit-frame-pointer"]
COUNTED = [*QUICK, "--coverage", "-fprofile-update=atomic"]
ADDRESS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


@dataclass(frozen=True)
class Recipe:
    """Compiler, flags for its every call, and what the library is for."""

    cc: str = "gcc"
    flags: list = field(default_factory=list)
    machine: str = platform.machine()
    exported: bool = False  # internal names too


VARIANTS = {
    # The library itself, for programs that call what it does not export.
    "internals": Recipe(flags=QUICK, exported=True),
    # Reads and writes out of bounds, leaks, undefined arithmetic; allocations can be made to fail.
    "address": Recipe(flags=[*SANITIZED, *ADDRESS, "-DGRAPE6_FAULT_INJECTION"], exported=True),
    # Makes the mistake that GRAPE6_TEST_MISTAKE names.
    "mistakes": Recipe(flags=[*QUICK, "-DGRAPE6_MISTAKES"]),
    # Counts the lines that are run: tests/covered.py.
    "coverage": Recipe(flags=[*COUNTED, "-DGRAPE6_FAULT_INJECTION"], exported=True),
    "thread": Recipe(flags=[*SANITIZED, "-fsanitize=thread"]),
    "aarch64": Recipe(cc="aarch64-linux-gnu-gcc", flags=[*QUICK, "-Werror"], machine="aarch64"),
}


@functools.cache
def rules():
    """The module setup.py; its setup() is not run."""
    spec = importlib.util.spec_from_file_location("grape6_setup", capi.ROOT / "setup.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stderr}"
    return done


def clean(command, code=0, printed=False, timeout=240, **env):
    """Runs a program; it must end with this code and, unless told to, print nothing."""
    env = capi.clean_environment({"GRAPE6_LOG": "none", **env})
    done = subprocess.run(list(map(str, command)), env=env, check=False, capture_output=True,
                          text=True, timeout=timeout)  # fmt: skip
    assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr[-5000:]}"
    assert printed or done.stdout == done.stderr == ""
    return done


@dataclass(frozen=True)
class Variant:
    """A built library, and the programs compiled to go with it."""

    recipe: Recipe
    folder: Path

    @property
    def library(self):
        return self.folder / "libgrape6.so"

    def program(self, name, *more):
        """tests/c/<name>.c and what else is named, compiled as the library was and linked to it."""
        paths = [f"-I{capi.ROOT / 'include'}", f"-I{capi.ROOT / 'csrc'}"]
        warnings = ["-std=gnu11", "-g", "-Wall", "-Wextra", "-Werror", "-pthread"]
        command = [self.recipe.cc, *self.recipe.flags, *warnings, *paths,
                   capi.TESTS / "c" / f"{name}.c", *more, self.library,
                   f"-Wl,-rpath,{self.folder}", "-lm", "-o"]  # fmt: skip
        return made_once(self.folder / name, lambda out: run([*command, out]))


def build(recipe, folder):
    """The library of a recipe."""
    folder.mkdir()
    jobs = list(rules().compilations(recipe.machine))
    objects = [folder / f"{job[0]}.o" for job in jobs]
    commands = [
        rules().compile_command([recipe.cc], job, recipe.flags, out)
        for job, out in zip(jobs, objects, strict=True)
    ]
    kernels_first = sorted(commands, key=lambda c: "kernel" not in c[-1])
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(run, kernels_first))
    link = rules().link_command([recipe.cc], objects, recipe.flags, folder / "libgrape6.so")
    if recipe.exported:
        link = [part for part in link if "--version-script" not in part]
    run(link)


class Variants:
    """Builds what is asked for, once, below a folder."""

    def __init__(self, folder):
        self.folder = folder

    def __getitem__(self, name):
        recipe = VARIANTS[name]
        tools.need(recipe.cc)
        return Variant(recipe, made_once(self.folder / name, functools.partial(build, recipe)))

"""Variants of the library: the presets of CMakePresets.json, which says what each is for.

The fixture `variants` (conftest.py) keeps them for the session; each is built when a test first
asks for it, in its folder below build/, where the next run finds what has not changed."""

import functools
import os
import re
from dataclasses import dataclass
from pathlib import Path

import capi
import tools
from once import made_once
from tools import run

BUILD = capi.ROOT / "build"


def clean(command, code=0, printed=False, timeout=240, **env):
    """Runs a program; it must end with this code and, unless told to, print nothing."""
    env = capi.clean_environment({"GRAPE6_LOG": "none", **env})
    done = run(command, code, env=env, timeout=timeout)
    assert printed or done.stdout == done.stderr == ""
    return done


@dataclass(frozen=True)
class Variant:
    """A built library, and a folder for the programs compiled to go with it."""

    folder: Path
    programs: Path

    @property
    def library(self):
        return self.folder / "libgrape6.so"

    def setting(self, name):
        """A variable of CMake."""
        cache = (self.folder / "CMakeCache.txt").read_text()
        return re.search(rf"^{name}:\w+=(.*)$", cache, re.MULTILINE)[1]

    def program(self, name, *more):
        """tests/c/<name>.c and what else is named, compiled as the library was and linked to it."""
        paths = [f"-I{capi.ROOT / 'include'}", f"-I{capi.ROOT / 'csrc'}"]
        warnings = ["-std=gnu11", "-g", "-Wall", "-Wextra", "-Werror", "-pthread"]
        command = [self.setting("CMAKE_C_COMPILER"), *self.setting("CMAKE_C_FLAGS").split(),
                   *warnings, *paths, capi.TESTS / "c" / f"{name}.c", *more, self.library,
                   f"-Wl,-rpath,{self.folder}", "-lm", "-o"]  # fmt: skip
        return made_once(self.programs / name, lambda out: run([*command, out]))


def configure(preset, folder):
    tools.need("cc")
    run([tools.need("cmake"), "--preset", preset, "-S", capi.ROOT, "-B", folder], cwd=capi.ROOT)


def build(preset, programs):
    """The library of a preset."""
    folder = BUILD / preset
    configure(preset, folder)
    run(["cmake", "--build", folder, "--parallel", os.cpu_count()])
    programs.mkdir()


class Variants:
    """Builds what is asked for, once a run; the folder is the run's."""

    def __init__(self, folder):
        self.folder = folder

    def __getitem__(self, name):
        programs = made_once(self.folder / name, functools.partial(build, name))
        return Variant(BUILD / name, programs)

"""``grape6 config``: what a compiler needs to build a program with the library.

Prints the values asked for in the order asked for, on one line:
``gcc prog.c $(grape6 config --cflags --libs)``.

``--python`` tells the library which Python a program that is none shall start for a GPU: this
one, where the library lies in no environment that would tell it (an editable installation, a
user's folder). It is written to ``lib/interpreter`` beside the library, which
csrc/python/find_python.c reads.
"""

import argparse
import json
import sys
import sysconfig
from pathlib import Path

from grape6py import __version__, paths
from grape6py.files.storage import atomic_files


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the subcommand takes."""
    parser.description = (__doc__ or "").partition("\n")[0]
    add = parser.add_argument
    for name, (_, meaning) in _table().items():
        add(f"--{name}", dest="names", action="append_const", const=name, help=meaning)
    add("--json", action="store_true", help="print a JSON object")
    add("--python", action="store_true",
        help="make this the Python that programs start for a GPU")  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Print the values; all of them, one a line, if none was named."""
    if options.python:
        return _write_interpreter(options.json)
    table = _table()
    values = {name: table[name][0] for name in options.names or table}
    if options.json:
        print(json.dumps(values, indent=2))
    elif options.names:
        print(" ".join(table[name][0] for name in options.names))
    else:
        for name, value in values.items():
            print(f"{name + ':':11s} {value}")
    if not paths.LIBRARY.exists():
        print(f"grape6: {paths.LIBRARY} does not exist: install the package again", file=sys.stderr)
        return 1
    return 0


def _write_interpreter(as_json: bool) -> int:
    values = {"executable": sys.executable}
    library = f"{sysconfig.get_config_var('LIBDIR')}/{sysconfig.get_config_var('INSTSONAME')}"
    if sysconfig.get_config_var("Py_ENABLE_SHARED"):
        values["libpython"] = library
    text = "".join(f"{name} = {value}\n" for name, value in values.items())
    try:
        atomic_files.write_whole(paths.INTERPRETER, text.encode())
    except OSError as error:
        why = f"{error.filename}: {error.strerror}"
        print(f"grape6: {why}; write these lines to that file:", file=sys.stderr)
        print(text, end="")
        return 1
    if as_json:
        print(json.dumps({"file": str(paths.INTERPRETER), **values}, indent=2))
    else:
        print(f"written to {paths.INTERPRETER}:\n{text}", end="")
    return 0


def _table() -> dict[str, tuple[str, str]]:
    include, lib = _word(paths.INCLUDE_DIR), _word(paths.LIBRARY_DIR)
    folder, name = f"-L{lib} -Wl,-rpath,{lib}", "-lgrape6"
    # Flags and sources are words of a command line; the other places are as they are.
    return {
        "cflags": (f"-I{include}", "flags for the C compiler"),
        "libs": (f"{folder} {name}", "flags for the linker"),
        "ldflags": (folder, "the first part of --libs: the library's folder and the run path"),
        "libs-only": (name, "the last part of --libs: the library's name"),
        "fflags": (f"-I{include}", "flags for the Fortran compiler"),
        "fsource": (_word(paths.FORTRAN_SOURCE), "the Fortran module, to be compiled along"),
        "data": (str(paths.SNAPSHOT), "a snapshot to try programs with: 1024 bodies, as text"),
        "prefix": (str(paths.PREFIX), "where all of it lies"),
        "includedir": (str(paths.INCLUDE_DIR), "where g6lib.h and g6lib.f90 lie"),
        "libdir": (str(paths.LIBRARY_DIR), "where libgrape6.so lies"),
        "pkgconfig": (str(paths.PKGCONFIG_DIR), "where grape6.pc lies, for PKG_CONFIG_PATH"),
        "cmakedir": (str(paths.CMAKE_DIR), "where grape6Config.cmake lies, for grape6_DIR"),
        "version": (__version__, "version of the package"),
    }


def _word(path: Path) -> str:
    """The path as one word of a command line, escaped as pkg-config does it."""
    return str(path).replace("\\", "\\\\").replace(" ", "\\ ")

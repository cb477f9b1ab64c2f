"""``grape6 link``: the library in an environment or a folder, under the names clients look for.

Only what this command has put somewhere is replaced or removed by it. Files of others are named
and left as they are; with ``--force`` they are put aside, and come back with ``--remove``.
"""

import argparse
import contextlib
import mmap
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from grape6py import paths
from grape6py.cli.prefix import Files, Prefix
from grape6py.errors import Grape6Error

LIBRARY = "libgrape6.so"
# What clients look for, by the name that chooses it; lib/libgrape6.so belongs to all.
NAMES = {
    "grape6": ["lib/pkgconfig/grape6.pc", "lib/cmake/grape6", "include/g6lib.f90",
               *(f"include/{name}.h" for name in ("g6lib", "g5lib", "g6x_mpi", "grape6"))],
    "g6": ["lib/libg6.so", "lib/libg6a.so", "lib/libg6lx.so", "lib/pkgconfig/g6lib.pc"],
    "sapporo": ["lib/libsapporo.so", "lib/pkgconfig/sapporo_light.pc"],
    "pg6": ["lib/libpg6.so", "lib/libg6avx.so", "include/gp6util.h", "include/g6lib.h"],
    "pg5": ["lib/libpg5.so", "include/gp5util.h", "include/g5lib.h"],
    "g5": ["lib/libg5a.so", "lib/libphibdma.so", "include/gp5util.h", "include/g5lib.h"],
    "g7": ["lib/libg75.so", "lib/libhib.so", "include/g5nbutil.h", "include/g5lib.h"],
    "static": ["lib/libgrape6.a"],
    "starlab": ["share/grape6/grape.sh"],
}  # fmt: skip

# Linker scripts, which leave a mark in the program for csrc/core/config.c.
MARKED = {"lib/libpg5.so": "grape6_linked_as_pg5", "lib/libsapporo.so": "grape6_linked_as_sapporo"}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the subcommand takes."""
    parser.description = (__doc__ or "").partition("\n")[0]
    add = parser.add_argument
    add("--prefix", metavar="DIR", help="where to: DIR/lib and so on; default: the environment")
    add("--only", nargs="+", choices=NAMES, metavar="NAME", help=f"of {', '.join(NAMES)}")
    forced = "put files of others aside; with --remove, remove the library that programs need, too"
    add("--force", action="store_true", help=forced)
    add("--remove", action="store_true", help="take away what was put there")


def run(options: argparse.Namespace) -> int:
    """Put the files or remove them, and say which."""
    folder = options.prefix or os.environ.get("VIRTUAL_ENV") or os.environ.get("CONDA_PREFIX")
    if not folder and sys.prefix == sys.base_prefix:
        raise Grape6Error("no environment is active: say where to, as in grape6 link --prefix DIR")
    return (_remove if options.remove else _put)(Prefix(folder or sys.prefix), options)


def _put(prefix: Prefix, options: argparse.Namespace) -> int:
    if (prefix.folder / "lib").resolve() == paths.LIBRARY_DIR:
        raise Grape6Error(f"{prefix.folder} is the package's own folder: name another by --prefix")
    for library in (paths.LIBRARY, paths.STATIC):
        if not library.exists():
            raise Grape6Error(f"{library} does not exist: install the package again")
    files = _files(prefix.folder, options.only or NAMES)
    foreign = prefix.foreign(files)
    if foreign and not options.force:
        names = "\n".join(f"  {name}" for name in foreign)
        print(
            f"grape6: nothing was put into {prefix.folder}: others have these files there\n"
            f"{names}\ngrape6: leave them out by --only, or put them aside by --force",
            file=sys.stderr,
        )
        return 1
    kept = prefix.put(files)
    print(f"put into {prefix.folder}:")
    for name, what in files.items():
        aside = f"  (another file was put aside: {kept[name]})" if name in kept else ""
        print(f"  {name}" + (f" -> {what}" if isinstance(what, str) else "") + aside)
    return 0


def _remove(prefix: Prefix, options: argparse.Namespace) -> int:
    names = [*prefix.files]
    if options.only:
        others = [_files(prefix.folder, [name]) for name in NAMES if name not in options.only]
        shared = {file for files in others if {*files} <= {*prefix.files} for file in files}
        chosen = {*_files(prefix.folder, options.only)} - shared
        names = [name for name in names if name in chosen]
    if not names:
        raise Grape6Error(f"{prefix.folder} has nothing of that from grape6 link")
    library, users = f"lib/{LIBRARY}", list[Path]()
    if library in names and not options.force:
        files = (Path(root, name) for root, _, found in os.walk(prefix.folder) for name in found)
        users = sorted(path for path in files if _names(path, LIBRARY))
        names = [name for name in names if name != library or not users]
    left = prefix.remove(names)
    print(f"removed from {prefix.folder}:")
    for name in names:
        print(f"  {name}" + ("  (left: it was changed)" if name in left else ""))
    if users:
        print(f"{library} was left, without which these do not start (--force removes it):")
        print("\n".join(f"  {path.relative_to(prefix.folder)}" for path in users))
    return 0


def _files(folder: Path, names: Iterable[str]) -> Files:
    """Contents (bytes) or target (str) of each file of the chosen names, by its own name."""
    files: dict[str, str | bytes] = {f"lib/{LIBRARY}": _target(folder, paths.LIBRARY)}
    for name in (name for chosen in names for name in NAMES[chosen]):
        path = paths.PREFIX / name
        if path.is_dir():
            files |= {f"{name}/{each.name}": each.read_bytes() for each in sorted(path.iterdir())}
        elif name in MARKED:
            files[name] = f"INPUT({LIBRARY})\n{MARKED[name]} = 1;\n".encode()
        elif name.endswith(".so"):
            files[name] = LIBRARY
        elif name.endswith(".a"):
            files[name] = _target(folder, paths.STATIC)
        elif name.endswith(".pc"):
            files[name] = paths.PKGCONFIG_FILE.read_bytes()
        elif name.endswith(".sh"):
            text = Path(__file__).with_name(path.name).read_text(encoding="utf-8")
            files[name] = text.replace("@libdir@", str(folder / "lib")).encode()
        elif path != paths.FORTRAN_SOURCE or path.exists():  # it may not have been made
            files[name] = path.read_bytes()
    return files


def _target(folder: Path, library: Path) -> str:
    """The library of this package; by a relative path in its own folder, which may be moved."""
    inside = library.is_relative_to(folder)
    return os.path.relpath(library, folder / "lib") if inside else str(library)


def _names(path: Path, library: str) -> bool:
    """Whether it is a program or library, but for this package, that names `library`; also one that
    finds it elsewhere: none is taken for one that does not need it."""
    if path.is_symlink() or not path.is_file() or path.resolve().is_relative_to(paths.PREFIX):
        return False
    with contextlib.suppress(OSError), path.open("rb") as file:
        if file.read(4) == b"\x7fELF":
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole:
                return whole.find(b"\0%s\0" % library.encode()) >= 0
    return False

"""``grape6 link``: the library in an environment or a folder, under the names clients look for.

Only what this command has put somewhere is replaced or removed by it. Files of others are named
and left as they are; with ``--force`` they are put aside, and come back with ``--remove``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from grape6py import paths
from grape6py.cli.prefix import Files, Prefix
from grape6py.errors import Grape6Error

if TYPE_CHECKING:
    import argparse

    from grape6py.cli import Commands

LIBRARY = "libgrape6.so"
# What clients look for, by the name that chooses it; lib/libgrape6.so belongs to all.
NAMES = {
    "grape6": ["lib/pkgconfig/grape6.pc", "lib/cmake/grape6"],
    "g6": ["lib/libg6.so", "lib/libg6a.so", "lib/libg6lx.so", "lib/pkgconfig/g6lib.pc"],
    "sapporo": ["lib/libsapporo.so", "lib/pkgconfig/sapporo_light.pc"],
    "pg5": ["lib/libpg5.so", "include/gp5util.h", "include/g5lib.h"],
    "starlab": ["share/grape6/grape.sh"],
}
NAMES["grape6"] += [f"include/{name}" for name in ("g6lib.h", "g5lib.h", "g6lib.f90", "g6x_mpi.h")]


def add_parser(commands: Commands) -> None:
    """Add the subcommand to the argparse object `commands`."""
    parser = commands.add_parser(
        "link",
        help="put the library where clients look for it",
        description=(__doc__ or "").partition("\n")[0],
    )
    parser.add_argument(
        "--prefix", metavar="DIR", help="where to: DIR/lib and so on; default: the environment"
    )
    parser.add_argument(
        "--only", nargs="+", choices=NAMES, metavar="NAME", help=f"of {', '.join(NAMES)}"
    )
    parser.add_argument("--force", action="store_true", help="put files of others aside")
    parser.add_argument("--remove", action="store_true", help="take away what was put there")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Put the files or remove them, and say which."""
    prefix = Prefix(options.prefix or _environment())
    return (_remove if options.remove else _put)(prefix, options)


def _put(prefix: Prefix, options: argparse.Namespace) -> int:
    if (prefix.folder / "lib").resolve() == paths.LIBRARY_DIR:
        raise Grape6Error(f"{prefix.folder} is the package's own folder: name another by --prefix")
    if not paths.LIBRARY.exists():
        raise Grape6Error(f"{paths.LIBRARY} does not exist: install the package again")
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
    chosen = _files(prefix.folder, options.only) if options.only else prefix.files
    names = [name for name in prefix.files if name in chosen]
    if options.only and {*prefix.files} - {*chosen}:
        names.remove(f"lib/{LIBRARY}")  # others need it
    if not names:
        raise Grape6Error(f"{prefix.folder} has nothing of that from grape6 link")
    left = prefix.remove(names)
    print(f"removed from {prefix.folder}:")
    for name in names:
        print(f"  {name}" + ("  (left: it was changed)" if name in left else ""))
    return 0


def _environment() -> str:
    """The folder of the active environment."""
    for folder in (os.environ.get("VIRTUAL_ENV"), os.environ.get("CONDA_PREFIX")):
        if folder:
            return folder
    if sys.prefix != sys.base_prefix:
        return sys.prefix
    raise Grape6Error("no environment is active: say where to, as in grape6 link --prefix DIR")


def _files(folder: Path, names: Iterable[str]) -> Files:
    """Contents (bytes) or target (str) of each file of the chosen names, by its own name."""
    files: dict[str, str | bytes] = {f"lib/{LIBRARY}": _target(folder)}
    for name in (name for chosen in names for name in NAMES[chosen]):
        path = paths.PREFIX / name
        if path.is_dir():
            files |= {f"{name}/{each.name}": each.read_bytes() for each in sorted(path.iterdir())}
        elif name.endswith(".so"):
            files[name] = LIBRARY
        elif name.endswith(".pc"):
            files[name] = paths.PKGCONFIG_FILE.read_bytes()
        elif name.endswith(".sh"):
            text = Path(__file__).with_name(path.name).read_text(encoding="utf-8")
            files[name] = text.replace("@libdir@", str(folder / "lib")).encode()
        else:
            files[name] = path.read_bytes()
    return files


def _target(folder: Path) -> str:
    """The library of this package; by a relative path where it is in the same folder, which may
    then be moved."""
    if paths.LIBRARY.is_relative_to(folder):
        return os.path.relpath(paths.LIBRARY, folder / "lib")
    return str(paths.LIBRARY)

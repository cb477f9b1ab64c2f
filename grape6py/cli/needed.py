"""Programs that need a library of a folder: by what an ELF file says of itself, of 64 bits."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

LOAD, DYNAMIC = 1, 2  # types of segments
NEEDED, STRINGS, STRINGS_SIZE, RPATH, RUNPATH = 1, 5, 10, 15, 29  # entries of the dynamic section


def programs(folder: Path, library: str) -> list[Path]:
    """Programs and libraries below `folder` that find `library` in its lib, or nowhere.

    Not those that find another file of that name by their run path: they need this one no more.
    """
    return sorted(path for path in _executables(folder) if _needs(path, folder / "lib", library))


def _executables(folder: Path) -> Iterator[Path]:
    for root, _, names in os.walk(folder):
        for path in (Path(root, name) for name in names):
            is_file = path.is_file() and not path.is_symlink()
            if is_file and (".so" in path.name or path.stat().st_mode & 0o111):
                yield path


def _needs(path: Path, place: Path, library: str) -> bool:
    try:
        needed, run_path = _dynamic(path)
    except (OSError, ValueError, struct.error):  # not readable, or no such file
        return False
    others = [p for p in run_path if os.path.exists(p / library) and p.resolve() != place.resolve()]
    return library in needed and not others


def _dynamic(path: Path) -> tuple[list[str], list[Path]]:
    """What it needs, and where that is looked for."""
    with path.open("rb") as file:

        def read(start: int, size: int) -> bytes:
            file.seek(start)
            return file.read(min(size, path.stat().st_size))

        header = read(0, 64)
        if header[:6] != b"\x7fELF\x02\x01":
            raise ValueError
        (offset,) = struct.unpack_from("<Q", header, 32)
        (count,) = struct.unpack_from("<H", header, 56)
        table = read(offset, 56 * count)
        segments = [s for s in struct.iter_unpack("<IIQQQQQQ", table) if s[0] in (LOAD, DYNAMIC)]
        entries: list[tuple[int, int]] = []
        for kind, _, start, _, _, size, *_ in segments:
            if kind == DYNAMIC:
                entries += struct.iter_unpack("<qQ", read(start, size))
        values = dict(entries)
        address, strings = values.get(STRINGS, 0), b""
        for kind, _, start, begin, _, size, *_ in segments:
            if kind == LOAD and begin <= address < begin + size:
                strings = read(start + address - begin, values.get(STRINGS_SIZE, 0))

    def text(at: int) -> str:
        return os.fsdecode(strings[at:].split(b"\0", 1)[0])

    needed = [text(at) for key, at in entries if key == NEEDED]
    folders = ":".join(text(at) for key, at in entries if key in (RPATH, RUNPATH)).split(":")
    for origin in ("$ORIGIN", "${ORIGIN}"):
        folders = [folder.replace(origin, str(path.parent)) for folder in folders]
    return needed, [Path(folder) for folder in folders if folder]

"""Bodies as text, a line a body: m x y z vx vy vz (NBODY6's dat.10), or as a header names them.

The header is the first line, with or without a ``#``: names of columns, as m or mass, x, pos_x or
pos.x, vx, vel_x or vel.x, id or name. Columns of other names are left out. Written with 17
significant digits, so that what is read back has the same bits; CSV with a header, and ids.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from grape6py.errors import SnapshotError
from grape6py.formats.bodies import Snapshot
from grape6py.formats.source import Source
from grape6py.formats.table import Rows, Table

COLUMNS = ("m", "x", "y", "z", "vx", "vy", "vz")
_ALIASES = {
    "m": "m mass masses", "id": "id ids name index key particleid particleids",
    **{a: f"{a} pos_{a} pos.{a} position_{a}" for a in "xyz"},
    **{f"v{a}": f"v{a} v_{a} vel_{a} vel.{a} velocity_{a}" for a in "xyz"},
}  # fmt: skip
_KNOWN = {alias: name for name, aliases in _ALIASES.items() for alias in aliases.split()}
_LINES = 4096  # of bodies written at a time


def recognises(source: Source) -> bool:
    """Whether the file is text: it may be wrong in some line."""
    head = source.head
    return not re.search(rb"[\x00-\x08\x0e-\x1f]", head)


def read(source: Source, which: int) -> Snapshot:
    """Bodies of the one snapshot of a text."""
    del which
    names, offset, line = _header(source)
    table = Table(source, names or COLUMNS, offset, line)
    at = {name: k for k, name in enumerate(names or COLUMNS)}
    missing = [name for name in COLUMNS[:4] if name not in at]
    if missing:
        raise SnapshotError(f"{source.name}:{line - 1}: no column of {', '.join(missing)} is named")
    place, motion = [at[a] for a in "xyz"], [at.get(f"v{a}", -1) for a in "xyz"]
    if min(motion) < 0 and max(motion) >= 0:
        raise SnapshotError(f"{source.name}:{line - 1}: not all of vx, vy and vz are named")
    rows = Rows()
    for some in table.pieces():
        if min(motion) >= 0:
            vel = some[:, motion]
        else:
            vel = source.absent_velocities(len(some), "column of vx, vy and vz")
        id_ = some[:, at["id"]] if "id" in at else np.zeros(len(some))
        rows.add(some[:, at["m"]], some[:, place], vel, id_)
    mass, pos, vel, numbers = rows.joined(0, 3, 3, 0)
    ids = None
    if "id" in at:
        if (numbers != np.rint(numbers)).any() or (np.abs(numbers) > 2**53).any():
            raise source.wrong("an id is no whole number, or above 2^53")
        ids = numbers.astype(np.int64)
    return Snapshot(mass, pos, vel, ids=ids)


def _header(source: Source) -> tuple[list[str] | None, int, int]:
    """Names of the columns, where the lines after them begin, and the number of that line."""
    offset, number = 0, 1
    lines = source.head.split(b"\n")
    for line in lines:
        text = line.decode("utf-8", "replace").strip()
        is_comment = text.startswith("#")
        words = re.split(r"[\s,;]+", text.lstrip("# ").strip(", ;").lower())
        words = [word.strip('"').partition("[")[0] for word in words]
        if is_comment:  # which may go on in words
            words = words[: _columns(lines[number:])]
        names = [_KNOWN.get(word, word) for word in words]
        if {"m", "x", "y", "z"} <= set(names) and len(set(names)) == len(names):
            return names, offset + len(line) + 1, number + 1
        if text and not is_comment:
            if re.match(r"[A-Za-z_]", text) and not re.match(r"(nan|inf)", text, re.IGNORECASE):
                missing = [name for name in COLUMNS[:4] if name not in names]
                raise SnapshotError(
                    f"{source.name}:{number}: no body, and as a header it names no column of "
                    f"{', '.join(missing) or 'its own'}"
                )
            break
        offset += len(line) + 1
        number += 1
    return None, 0, 1


def _columns(lines: list[bytes]) -> int:
    """Numbers in the first line that has any."""
    rows = (re.split(rb"[\s,;]+", line.partition(b"#")[0].strip(b" \t\r,;")) for line in lines)
    return next((len(row) for row in rows if row != [b""]), 0)


def write(content: Snapshot, comment: str) -> Iterator[bytes]:
    """The lines of a file."""
    for line in comment.splitlines():
        yield f"# {line}\n".encode()
    for table in _tables(content):
        lines = (" ".join(f"{value:23.16e}" for value in row) + "\n" for row in table.tolist())
        yield "".join(lines).encode()


def write_csv(content: Snapshot, comment: str) -> Iterator[bytes]:
    """The lines of a file with a header."""
    del comment  # most readers of CSV know none
    ids = content.ids
    yield (",".join(["id"] * (ids is not None) + list(COLUMNS)) + "\n").encode()
    first = 0
    for table in _tables(content):
        lines = [",".join(map(repr, row)) + "\n" for row in table.tolist()]
        if ids is not None:
            some = ids[first : first + len(table)].tolist()
            lines = [f"{number},{line}" for number, line in zip(some, lines, strict=True)]
        first += len(table)
        yield "".join(lines).encode()


def _tables(content: Snapshot) -> Iterator[np.ndarray[tuple[int, int], np.dtype[np.float64]]]:
    """Rows of m x y z vx vy vz, some at a time."""
    mass, pos, vel = content
    for first in range(0, len(mass), _LINES):
        some = slice(first, first + _LINES)
        yield np.column_stack([mass[some], pos[some], vel[some]])

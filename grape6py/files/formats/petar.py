"""PeTar's snapshots, as text or binary.

The header has the number of the file, the number of particles and the time, and in some runs the
place and velocity of the frame, in which the particles then are. Each particle is a row of mass,
position, velocity and binary state, then what stellar evolution adds, and eleven numbers more, of
which the first is its id. All are of eight bytes in binary files. Known: Wang and
others 2020, MNRAS 497, 536, and PeTar's README.
"""

import re
import struct
from collections.abc import Iterator

import numpy as np

from grape6py._arrays.kinds import AnyArray
from grape6py.files.formats.bodies import Snapshot
from grape6py.files.formats.source import Source, copy_columns
from grape6py.files.formats.table import Table, lines_of

_FEWEST, _MOST = 19, 60  # columns
_TAIL = 11  # columns from the id to the last, but for those of old files
_OLD, _OLD_ID = 19, 9
_HEADERS = (3, 9)  # numbers: with the frame, each particle has the external potential, too
_KNOWN = {3: (19, 20, 24, 34), 9: (21, 25, 35)}  # columns without, with, and with all of, evolution
_INTEGER = re.compile(rb"-?\d{1,18}")


def recognises(source: Source) -> bool:
    """Whether the header and the rows fit."""
    return recognises_text(source) or _binary(source) is not None


def recognises_text(source: Source) -> bool:
    """Whether two lines are those of a header and of a particle."""
    header, _, rest = source.head.partition(b"\n")
    words = header.split()
    if len(words) not in _HEADERS or not all(map(_INTEGER.fullmatch, words[:2])):
        return False
    if int(words[1]) == 0:
        return not rest.strip()
    return _FEWEST <= len(rest.partition(b"\n")[0].split()) <= _MOST


def read(source: Source, _which: int) -> Snapshot:
    """Particles in the file's order."""
    return _read_text(source) if recognises_text(source) else _read_binary(source)


def _id_column(header: int, columns: int) -> int:
    if columns == _OLD:
        return _OLD_ID
    return columns - _TAIL - (header == _HEADERS[1])


def _read_text(source: Source) -> Snapshot:
    header = source.head.partition(b"\n")[0]
    words = header.split()
    try:
        n, time = int(words[1]), float(words[2])
    except ValueError as error:
        raise source.wrong(f"line 1: {error}") from None

    def id_column(columns: int) -> int:
        if not _FEWEST <= columns <= _MOST:
            raise source.wrong(f"a particle has {columns} columns")
        return _id_column(len(words), columns)

    table = Table(source, None, len(header) + 1, 2, id_column)
    (mass, pos, vel), ids = table.columns(0, [1, 2, 3], [4, 5, 6])
    if len(mass) != n:
        raise source.wrong(f"it names {n} particles, and has {len(mass)}")
    if ids.dtype != np.int64:
        raise source.wrong("an id is above 2^63, which PeTar has not")
    return Snapshot(mass, pos, vel, time=time, ids=ids)


def _binary(source: Source) -> tuple[int, float, int, int] | None:
    """Number of particles, time, and numbers in the header and in a row."""
    if source.size < 24:
        return None
    number, n, time = struct.unpack("<2qd", source.head[:24])
    if not (0 <= number < 2**31 and n > 0 and np.isfinite(time) and (time == 0 or time > 1e-30)):
        return None
    fitting = []
    for words in _HEADERS:
        columns, rest = divmod(source.size - 8 * words, 8 * n)
        if rest == 0 and _FEWEST <= columns <= _MOST:
            fitting.append((columns not in _KNOWN[words], words, columns))
    if not fitting:
        return None
    _, words, columns = min(fitting)
    return n, time, words, columns


def _read_binary(source: Source) -> Snapshot:
    layout = _binary(source)
    if layout is None:
        raise source.wrong(f"it has {source.size} bytes, which no number of PeTar's rows makes")
    n, time, header, columns = layout
    mass, pos, vel, ids = np.empty(n), np.empty((n, 3)), np.empty((n, 3)), np.empty(n, np.int64)
    for some, rows in source.pieces(8 * header, np.dtype(("<f8", columns)), n, "particles"):
        copy_columns((mass, pos, vel), some, rows)
        words: AnyArray = rows.view("<i8")
        ids[some] = words[:, _id_column(header, columns)]
    return Snapshot(mass, pos, vel, time=time, ids=ids)


def write(content: Snapshot, _comment: str) -> Iterator[bytes]:
    """The lines of a file to begin a run with: what PeTar finds out by itself is zero."""
    yield f"0 {len(content.mass)} {content.time or 0.0:.17e}\n".encode()
    row = "{:.17e} " * 7 + "0 0.0 {} 0 0" + " 0.0" * 7 + " 0\n"
    yield from lines_of(content, lambda number, numbers: row.format(*numbers, number))

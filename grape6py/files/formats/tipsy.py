"""Tipsy's snapshots: gas, dark and star particles in single precision.

A header of time (double) and five counts, mostly with four bytes behind them; then rows of floats.
"Standard" files, which this writes, are big-endian. Bonsai writes 2 in the four bytes of a native
header, and ids of 64 bits in place of eps and phi: above 3e18 those of dark particles, and below
those of stars. Known: Katz and Quinn, TIPSY manual, and Bonsai's tipsyIO.cpp.
"""

import struct
from collections.abc import Iterator

import numpy as np

from grape6py.files.formats.bodies import Snapshot, narrowed
from grape6py.files.formats.source import Source, copy_columns, of_this_machine

# Floats of a particle: mass, position and velocity, and then rho, temp, hsmooth, metals and phi of
# gas, eps and phi of dark matter, metals, tform, eps and phi of stars.
_COLUMNS = {"gas": 12, "dark": 9, "star": 11}
_BONSAI, _DARK = struct.pack("<i", 2), 3 * 10**18
_PIECE = 1 << 15  # bodies written at a time


def recognises(source: Source) -> bool:
    """Whether the counts of the header fit the size of the file."""
    return _layout(source) is not None


def _layout(source: Source) -> tuple[bool, int, float, list[int]] | None:
    """Order of bytes, size of the header, time and counts."""
    if source.size < 28:
        return None
    for order in "><":
        time, n, dims, *counts = struct.unpack(order + "d5i", source.head[:28])
        size = 4 * sum(c * max(k, 0) for c, k in zip(_COLUMNS.values(), counts, strict=True))
        if min(counts) < 0 or sum(counts) != n or dims != 3 or not np.isfinite(time):
            continue
        for header in (32, 28):
            if source.size == header + size:
                return order == ">", header, time, counts
    return None


def read(source: Source, _which: int) -> Snapshot:
    """Bodies of all kinds, in the file's order."""
    layout = _layout(source)
    if layout is None:
        raise source.wrong(
            f"it has {source.size} bytes, which is not what the counts of a Tipsy header make, in "
            "either order of bytes"
        )
    swapped, offset, time, counts = layout
    n, at = sum(counts), 0
    ids = None if swapped or source.head[28:offset] != _BONSAI else np.empty(n, np.int64)
    mass, pos, vel = np.empty(n), np.empty((n, 3)), np.empty((n, 3))
    for (name, columns), count in zip(_COLUMNS.items(), counts, strict=True):
        row = np.dtype((of_this_machine("<f4", swapped), columns))
        with np.errstate(invalid="ignore"):  # a signalling NaN, which Snapshot.check finds
            for some, rows in source.pieces(offset, row, count, f"{name} particles"):
                here = slice(at + some.start, at + some.stop)
                copy_columns((mass, pos, vel), here, rows)
                if ids is not None:
                    ids[here] = rows[:, -2:].copy().view("<i8")[:, 0]
        at += count
        offset += row.itemsize * count
    if ids is not None:  # numbers that are no ids of Bonsai's are eps and phi, taken as such
        dark, stars = np.split(ids, [counts[1]])
        if counts[0] or (dark < _DARK).any() or (stars < 0).any() or (stars >= _DARK).any():
            ids = None
    return Snapshot(mass, pos, vel, time=time, ids=ids)


def write(content: Snapshot, _comment: str) -> Iterator[bytes]:
    """A standard file of dark particles."""
    n = len(content.mass)
    yield struct.pack(">d6i", content.time or 0.0, n, 3, 0, n, 0, 0)
    for first in range(0, n, _PIECE):
        some = slice(first, first + _PIECE)
        rows = np.zeros((len(content.mass[some]), _COLUMNS["dark"]), ">f4")
        rows[:, 0] = narrowed(content.mass[some], "<f4", "mass")
        rows[:, 1:4] = narrowed(content.pos[some], "<f4", "pos")
        rows[:, 4:7] = narrowed(content.vel[some], "<f4", "vel")
        yield rows.tobytes()

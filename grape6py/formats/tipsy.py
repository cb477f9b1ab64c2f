"""Tipsy's snapshots: gas, dark and star particles in single precision.

A header of time (double) and five counts, mostly with four bytes behind them; then rows of floats.
"Standard" files, which this writes, are big-endian. Known: Katz and Quinn, TIPSY manual.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from grape6py.formats.bodies import Snapshot, narrowed
from grape6py.formats.source import Source, of_this_machine

_COMMON = [("mass", "<f4"), ("pos", "<f4", 3), ("vel", "<f4", 3)]
_ROWS = {
    "gas": np.dtype([*_COMMON, ("rest", "<f4", 5)]),  # rho, temp, hsmooth, metals, phi
    "dark": np.dtype([*_COMMON, ("rest", "<f4", 2)]),  # eps, phi
    "star": np.dtype([*_COMMON, ("rest", "<f4", 4)]),  # metals, tform, eps, phi
}
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
        size = sum(row.itemsize * max(k, 0) for row, k in zip(_ROWS.values(), counts, strict=True))
        if min(counts) < 0 or sum(counts) != n or dims != 3 or not np.isfinite(time):
            continue
        for header in (32, 28):
            if source.size == header + size:
                return order == ">", header, time, counts
    return None


def read(source: Source, which: int) -> Snapshot:
    """Bodies of all kinds, in the file's order."""
    del which
    layout = _layout(source)
    if layout is None:
        raise source.wrong(
            f"it has {source.size} bytes, which is not what the counts of a Tipsy header make, in "
            "either order of bytes"
        )
    swapped, offset, time, counts = layout
    n, at = sum(counts), 0
    mass, pos, vel = np.empty(n), np.empty((n, 3)), np.empty((n, 3))
    for (name, row), count in zip(_ROWS.items(), counts, strict=True):
        kind: npt.DTypeLike = of_this_machine(row, swapped)
        for some, rows in source.pieces(offset, kind, count, f"{name} particles"):
            here = slice(at + some.start, at + some.stop)
            mass[here], pos[here], vel[here] = rows["mass"], rows["pos"], rows["vel"]
        at += count
        offset += row.itemsize * count
    return Snapshot(mass, pos, vel, time=time)


def write(content: Snapshot, comment: str) -> Iterator[bytes]:
    """A standard file of dark particles."""
    del comment
    n = len(content.mass)
    yield struct.pack(">d6i", content.time or 0.0, n, 3, 0, n, 0, 0)
    for first in range(0, n, _PIECE):
        some = slice(first, first + _PIECE)
        rows = np.zeros(len(content.mass[some]), _ROWS["dark"].newbyteorder(">"))
        for name, array in zip(content._fields, content, strict=True):
            rows[name] = narrowed(array[some], "<f4", name)
        yield rows.tobytes()

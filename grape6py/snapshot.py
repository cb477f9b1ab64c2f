"""Snapshots as plain text, one line a body: m x y z vx vy vz (NBODY6's dat.10).

Blank lines, and everything from a ``#`` to the end of its line, are skipped. Fortran's
numbers are understood: ``1.0D-3``, and ``1.0-103`` for three-digit exponents. Written
with 17 significant digits, so that what is read back has the same bits.
"""

import io
import math
import os
import re
from collections.abc import Iterable
from typing import IO

import numpy as np
from numpy.typing import ArrayLike

from grape6py._arrays import validate
from grape6py._arrays.kinds import PathLike, Untyped
from grape6py._io import atomic_files
from grape6py.errors import ArgumentError, SnapshotError
from grape6py.models import Particles

_COLUMNS = ("m", "x", "y", "z", "vx", "vy", "vz")
_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:[eEdDqQ]?([+-]\d+)|[eEdDqQ](\d+))?", re.ASCII)
_MOST_NAMED = 20
_HDF5 = b"\x89HDF\r\n\x1a\n"


def read_snapshot(source: PathLike | IO[str] | IO[bytes] | io.BufferedIOBase) -> Particles:
    """Read a snapshot.

    Parameters
    ----------
    source : path-like or file object
        Opened in text or binary mode, if a file object; it is not closed. A path may also
        be that of an HDF5 file of a run (``archive.py``), whose last output is read, or of one
        output.

    Returns
    -------
    Particles

    Raises
    ------
    SnapshotError
        A ValueError that names each malformed line (the first 20 in full): file, line
        number, and what is wrong.
    OSError
        If the file cannot be opened.
    """
    if not hasattr(source, "read"):
        with open(source, "rb") as file:
            if file.peek(len(_HDF5)).startswith(_HDF5):
                from grape6py import archive

                return archive.read_particles(source)
            text = io.TextIOWrapper(file, encoding="utf-8", errors="replace")
            return _read(text, os.fspath(source))
    lines: Untyped = source
    return _read(lines, str(getattr(source, "name", "snapshot")))


def write_snapshot(
    target: PathLike | IO[str],
    mass: ArrayLike | Particles,
    pos: ArrayLike | None = None,
    vel: ArrayLike | None = None,
    *,
    comment: str | None = None,
) -> None:
    """Write a snapshot.

    Parameters
    ----------
    target : path-like or file object
        Opened in text mode, if a file object; it is not closed. A file that a path names is
        replaced when the new one is whole.
    mass : array_like, shape (n,), or Particles
        With `Particles`, leave out `pos` and `vel`.
    pos, vel : array_like, shape (n, 3)
        Velocities default to zero.
    comment : str, optional
        Written on top, each line after a ``#``.

    Raises
    ------
    ValueError
        If shapes do not fit, or a value is NaN, infinite or masked. Nothing is written then.
    """
    if pos is None and isinstance(mass, tuple) and len(mass) == 3:
        mass, pos, vel = mass
    mass, pos = validate.reals("mass", mass), validate.reals("pos", pos)
    vel = np.zeros_like(pos) if vel is None else validate.reals("vel", vel)
    n = mass.size
    if mass.shape != (n,) or pos.shape != (n, 3) or vel.shape != (n, 3):
        raise ArgumentError(
            f"a snapshot needs mass (n,), pos (n, 3) and vel (n, 3), "
            f"not {mass.shape}, {pos.shape} and {vel.shape}"
        )
    table = np.column_stack([mass, pos, vel])
    bad = np.argwhere(~np.isfinite(table))
    if len(bad):
        row, column = bad[0]
        raise ArgumentError(f"{_COLUMNS[column]} of body {row} is {table[row, column]}")
    lines = [f"# {line}\n" for line in (comment or "").splitlines()]
    lines += [" ".join(f"{value:23.16e}" for value in row) + "\n" for row in table.tolist()]
    file: Untyped = target
    if hasattr(file, "write"):
        file.writelines(lines)
    else:
        atomic_files.write_whole(file, "".join(lines).encode())


def _read(file: Iterable[str | bytes], name: str) -> Particles:
    rows: list[list[float]] = []
    mistakes: list[str] = []
    for number, line in enumerate(file, 1):
        if isinstance(line, bytes):
            line = line.decode("utf-8", errors="replace")
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            rows.append(_body(words))
        except ValueError as error:
            mistakes.append(f"{name}:{number}: {error}")
    if mistakes:
        more = len(mistakes) - _MOST_NAMED
        shown = mistakes[:_MOST_NAMED] + ([f"... and {more} more such lines"] if more > 0 else [])
        raise SnapshotError("\n".join(shown))
    table = np.array(rows, dtype=np.float64).reshape(-1, len(_COLUMNS))
    return Particles(table[:, 0].copy(), table[:, 1:4].copy(), table[:, 4:7].copy())


def _body(words: list[str]) -> list[float]:
    if len(words) != len(_COLUMNS):
        count = f"{len(words)} column" + "s" * (len(words) != 1)
        raise ValueError(f"{count} instead of {len(_COLUMNS)} ({' '.join(_COLUMNS)})")
    return [_number(column, word) for column, word in zip(_COLUMNS, words, strict=True)]


def _number(column: str, word: str) -> float:
    match = _NUMBER.fullmatch(word)
    if not match:
        shown = word if len(word) <= 40 else word[:37] + "..."
        raise ValueError(f"{column} = {shown!r} is not a finite number")
    digits, signed, unsigned = match.groups()
    value = float(f"{digits}e{signed or unsigned or 0}")
    if not math.isfinite(value):
        raise ValueError(f"{column} = {word} is beyond double precision")
    return value

"""Numbers in columns, a line a body, as text: read quickly, and each mistake named.

Blank lines, and everything from a ``#`` to the end of its line, are skipped. Numbers are separated
by blanks and tabs, or all of a line by commas or semicolons. Fortran's numbers are understood:
``1.0D-3``, and ``1.0-103`` for three-digit exponents.
"""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Iterator, Sequence

import numpy as np

from grape6py._arrays.kinds import Floats
from grape6py.errors import SnapshotError
from grape6py.formats.source import Source

# No two parts of these can take the same digit: the time grows with the length, not its square.
_NUMBER = re.compile(
    r"([+-]?(?:\d+(?:\.\d*)?|\.\d+))(?:[eEdDqQ]?([+-]\d+)|[eEdDqQ](\d+))?", re.ASCII
)
_PLAIN_NUMBER = re.compile(r"[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?", re.ASCII)
_PIECE = 1 << 20  # bytes
_MOST_NAMED = 20
_PLAIN = b"0123456789+-.eEdD,; \t\r\n"
_TO_BLANKS = bytes.maketrans(b"dD,;\t", b"ee   ")
_LONGEST_LINE = 1 << 20


class Table:
    """The lines of a file from one of them on.

    Parameters
    ----------
    columns : sequence of str, optional
        Their names, for messages; by default any number, the same in all lines.
    offset, line : int
        Where the first line begins, and its number.
    """

    def __init__(
        self, source: Source, columns: Sequence[str] | None = None, offset: int = 0, line: int = 1
    ) -> None:
        self._source, self._offset, self._line = source, offset, line
        self._columns = columns
        self._width = len(columns) if columns else 0
        self._mistakes: list[str] = []

    def pieces(self) -> Iterator[Floats]:
        """Arrays of shape (lines, columns); a SnapshotError in the end for all wrong lines."""
        for lines in self._pieces_of_file():
            rows = self._quickly(lines)
            if rows is None:
                rows = self._line_by_line(lines)
            self._line += lines.count(b"\n")
            if len(rows) and not self._mistakes:
                yield rows
        if self._mistakes:
            more = len(self._mistakes) - _MOST_NAMED
            shown = self._mistakes[:_MOST_NAMED]
            raise SnapshotError("\n".join(shown + [f"... and {more} more such lines"] * (more > 0)))

    def _pieces_of_file(self) -> Iterator[bytes]:
        """Whole lines, some at a time."""
        file, rest = self._source.file, b""
        file.seek(self._offset)
        while data := file.read(_PIECE):
            whole, is_line, begun = (rest + data).rpartition(b"\n")
            rest = begun
            if is_line:
                yield whole + is_line
            if len(rest) > _LONGEST_LINE:
                raise self._source.wrong(f"line {self._line} is longer than {_LONGEST_LINE} bytes")
        if rest:
            yield rest + b"\n"

    def _quickly(self, lines: bytes) -> Floats | None:
        """The rows, or None if one of the lines is to be looked at closely."""
        if lines.translate(None, _PLAIN):
            return None
        plain = lines.translate(_TO_BLANKS)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # of lines that are all blank
                rows: Floats = np.loadtxt(io.BytesIO(plain), comments=None, ndmin=2)
        except ValueError:
            return None
        if not rows.size:
            return rows
        between = lines.count(b",") + lines.count(b";")  # all numbers, or none
        if between not in (0, len(rows) * (rows.shape[1] - 1)):
            return None
        if not np.isfinite(rows).all() or self._width not in (0, rows.shape[1]):
            return None
        self._width = rows.shape[1]
        return rows

    def _line_by_line(self, lines: bytes) -> Floats:
        rows: list[list[float]] = []
        for number, line in enumerate(lines.split(b"\n")[:-1], self._line):
            text = line.decode("utf-8", "replace").partition("#")[0].strip()
            if not text:
                continue
            apart = re.split("[,;]", text)
            words = [word.strip() for word in apart] if len(apart) > 1 else text.split()
            try:
                rows.append(self._row(words))
            except ValueError as error:
                self._mistakes.append(f"{self._source.name}:{number}: {error}")
        return np.array(rows, np.float64).reshape(len(rows), self._width)

    def _row(self, words: list[str]) -> list[float]:
        if self._width == 0:
            self._width = len(words)
        if len(words) != self._width:
            count = f"{len(words)} column" + "s" * (len(words) != 1)
            names = f" ({' '.join(self._columns)})" if self._columns else ""
            raise ValueError(f"{count} instead of {self._width}{names}")
        names_of = self._columns or [f"column {k}" for k in range(1, self._width + 1)]
        return [number(*pair) for pair in zip(names_of, words, strict=True)]


def number(name: str, word: str) -> float:
    """A number of Fortran's or C's; a ValueError if it is none, or not finite."""
    if _PLAIN_NUMBER.fullmatch(word) and math.isfinite(value := float(word)):
        return value  # quickly
    match = _NUMBER.fullmatch(word)
    shown = word if len(word) <= 40 else word[:37] + "..."
    if not match:
        raise ValueError(f"{name} = {shown!r} is not a finite number")
    digits, signed, unsigned = match.groups()
    value = float(f"{digits}e{signed or unsigned or 0}")
    if not math.isfinite(value):
        raise ValueError(f"{name} = {shown} is beyond double precision")
    return value


class Rows:
    """Pieces of rows put together, each in its place, when their number is known."""

    def __init__(self) -> None:
        self._pieces: list[tuple[Floats, ...]] = []

    def add(self, *arrays: Floats) -> None:
        """Arrays with one row a body each, of which no other columns are kept."""
        self._pieces.append(tuple(array.copy() for array in arrays))

    def joined(self, *widths: int) -> list[Floats]:
        """All of them; `widths` are the columns of each array, 0 for those of shape (n,)."""
        n = sum(len(piece[0]) for piece in self._pieces)
        found: list[Floats] = [np.empty((n, width) if width else n) for width in widths]
        at = 0
        self._pieces.reverse()
        while self._pieces:  # each piece is given back when it has been copied
            piece = self._pieces.pop()
            end = at + len(piece[0])
            for array, rows in zip(found, piece, strict=True):
                array[at:end] = rows
            at = end
        return found

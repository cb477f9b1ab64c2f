"""Numbers in columns, a line a body, as text: read quickly, and each mistake named.

Blank lines, and everything from a ``#`` to the end of its line, are skipped. Numbers are separated
by blanks and tabs, or all of a line by commas or semicolons. Fortran's numbers are understood:
``1.0D-3``, and ``1.0-103`` for three-digit exponents.
"""

import io
import math
import re
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from grape6py._arrays.kinds import AnyArray, Floats
from grape6py.errors import SnapshotError
from grape6py.files.formats.bodies import Snapshot, joined_ids
from grape6py.files.formats.source import Source

# No two parts of these can take the same digit: the time grows with the length, not its square.
_NUMBER = re.compile(
    r"([+-]?(?:\d+(?:\.\d*)?|\.\d+))(?:[eEdDqQ]?([+-]\d+)|[eEdDqQ](\d+))?", re.ASCII
)
_PLAIN_NUMBER = re.compile(r"[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?", re.ASCII)
_DIGITS = re.compile(r"[+-]?\d{1,20}", re.ASCII)
_EXACT = 2**53  # up to which a double has all whole numbers
_PIECE = 1 << 20  # bytes
_MOST_NAMED = 20
_PLAIN = b"0123456789+-.eEdD,; \t\r\n"
_TO_BLANKS = bytes.maketrans(b"dD,;\t", b"ee   ")
_LONGEST_LINE = 1 << 20
_LINES = 4096  # of bodies written at a time


@dataclass(eq=False)
class Table:
    """The lines of a file from one of them on."""

    source: Source
    # Of columns, for messages, None for one that is not read; without any number of columns, the
    # same in all lines.
    names: Sequence[str | None] | None
    offset: int  # where the first line begins,
    line: int  # and its number
    # Which column has whole numbers of up to 64 bits, or None, if there are so many.
    id_column: Callable[[int], int | None]
    hint: str = ""  # what may be done about lines with too many columns

    def __post_init__(self) -> None:
        self._width = len(self.names or ())
        self._mistakes: list[str] = []

    def columns(self, *read: int | list[int]) -> tuple[list[Floats], AnyArray]:
        """Some columns of all lines, of shapes (n,) or (n, k), and the ids, none without a column;
        a SnapshotError for all wrong lines."""
        pieces = deque[list[Floats]]()
        ids: list[AnyArray] = [np.zeros(0, np.int64)]
        for rows, numbers in self._pieces():
            pieces.append([rows[:, column].copy() for column in read])
            if numbers is not None:
                ids.append(numbers)
        n = sum(len(piece[0]) for piece in pieces)
        found: list[Floats] = [np.empty((n, len(k)) if isinstance(k, list) else n) for k in read]
        end = 0
        while pieces:  # each is given back when it has been copied
            piece = pieces.popleft()
            first, end = end, end + len(piece[0])
            for array, part in zip(found, piece, strict=True):
                array[first:end] = part
        return found, joined_ids(ids, self.source.wrong)

    def _pieces(self) -> Iterator[tuple[Floats, AnyArray | None]]:
        """Rows, 0 where nothing is read, and their ids as integers."""
        for lines in self._pieces_of_file():
            found = self._quickly(lines) or self._line_by_line(lines)
            self.line += lines.count(b"\n")
            if len(found[0]) and not self._mistakes:
                yield found
        if self._mistakes:
            more = len(self._mistakes) - _MOST_NAMED
            shown = self._mistakes[:_MOST_NAMED]
            raise SnapshotError("\n".join(shown + [f"... and {more} more such lines"] * (more > 0)))

    def _pieces_of_file(self) -> Iterator[bytes]:
        """Whole lines, some at a time."""
        file, rest = self.source.file, b""
        file.seek(self.offset)
        while data := file.read(_PIECE):
            whole, is_line, begun = (rest + data).rpartition(b"\n")
            rest = begun
            if is_line:
                yield whole + is_line
            if len(rest) > _LONGEST_LINE:
                raise self.source.wrong(f"line {self.line} is longer than {_LONGEST_LINE} bytes")
        if rest:
            yield rest + b"\n"

    def _quickly(self, lines: bytes) -> tuple[Floats, AnyArray | None] | None:
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
            return rows, None
        between = lines.count(b",") + lines.count(b";")  # all numbers, or none
        if between not in (0, len(rows) * (rows.shape[1] - 1)):
            return None
        if self._width not in (0, rows.shape[1]):
            return None
        read = [k for k, name in enumerate(self.names or ()) if name is not None]
        if not np.isfinite(rows[:, read] if self.names else rows).all():
            return None
        self._width = rows.shape[1]
        column = self.id_column(self._width)
        if column is None:
            return rows, None
        ids = rows[:, column]
        if (ids != np.rint(ids)).any() or (np.abs(ids) >= _EXACT).any():
            return None
        return rows, ids.astype(np.int64)

    def _line_by_line(self, lines: bytes) -> tuple[Floats, AnyArray | None]:
        rows: list[list[float]] = []
        ids: list[int] = []
        for number, line in enumerate(lines.split(b"\n")[:-1], self.line):
            text = line.decode("utf-8", "replace").partition("#")[0].strip()
            if not text:
                continue
            try:
                words = cells(text)
                rows.append(self._row(words))
                column = self.id_column(self._width)
                if column is not None:
                    ids.append(_whole(words[column]))
            except ValueError as error:
                self._mistakes.append(f"{self.source.name}:{number}: {error}")
        found = np.array(rows, np.float64).reshape(len(rows), self._width)
        if len(ids) < len(rows):
            return found, None
        try:
            return found, np.array(ids, np.uint64 if max(ids, default=0) >= 2**63 else np.int64)
        except OverflowError:
            raise self.source.wrong("some ids are below zero, and some above 2^63") from None

    def _row(self, words: list[str]) -> list[float]:
        if self._width == 0:
            self._width = len(words)
        if len(words) != self._width:
            count = f"{len(words)} column" + "s" * (len(words) != 1)
            names = " ".join(name or "-" for name in self.names or ())
            hint = self.hint if len(words) > self._width else ""
            raise ValueError(f"{count} instead of {self._width}{names and f' ({names})'}{hint}")
        names_of = self.names or [f"column {k}" for k in range(1, self._width + 1)]
        pairs = zip(names_of, words, strict=True)
        return [0.0 if name is None else number(name, word) for name, word in pairs]


def cells(text: str) -> list[str]:
    """What stands in the columns of a line."""
    apart = re.split("[,;]", text)
    return [word.strip() for word in apart] if len(apart) > 1 else text.split()


def _whole(word: str) -> int:
    """An id, which is exact whatever its size."""
    value = int(word) if _DIGITS.fullmatch(word) else number("id", word)
    if value != int(value) or (isinstance(value, float) and abs(value) >= _EXACT):
        raise ValueError(f"id = {word} is no whole number, or too large for one with a point")
    if not -(2**63) <= value < 2**64:
        raise ValueError(f"id = {word} is beyond 64 bits")
    return int(value)


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


def lines_of(content: Snapshot, line: Callable[[int, list[float]], str]) -> Iterator[bytes]:
    """To write: what `line` makes of each body's id, or 1, 2, ... if there is none, and of its
    m x y z vx vy vz."""
    n = len(content.mass)
    ids = np.arange(1, n + 1) if content.ids is None else content.ids
    for first in range(0, n, _LINES):
        some = slice(first, first + _LINES)
        table = np.column_stack([array[some] for array in content])
        yield "".join(map(line, ids[some].tolist(), table.tolist())).encode()

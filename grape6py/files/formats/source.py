"""A file that a reader reads: its size is known, and nothing is taken that it has not.

Arrays are filled piece by piece, so that a file needs little more memory than its bodies.
"""

import io
import os
import struct
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import BinaryIO, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

from grape6py._arrays import validate
from grape6py._arrays.kinds import AnyArray, Floats, Int64s, Untyped
from grape6py.errors import ArgumentError, Grape6Warning, SnapshotError
from grape6py.files.formats.bodies import Snapshot

T = TypeVar("T")
_PIECE = 1 << 20  # bytes
_HEAD = 1 << 16
DOUBLE = np.dtype(np.float64)


class Given(NamedTuple):
    """For what a file lacks: a mass, in its units, and "zero" for velocities."""

    mass: float | None = None
    velocities: str | None = None

    @classmethod
    def checked(cls, mass: Untyped, velocities: Untyped) -> Self:
        """Of arguments; an ArgumentError says what is wrong with them."""
        if velocities is not None and (not isinstance(velocities, str) or velocities != "zero"):
            raise ArgumentError(f"velocities = {velocities!r}: there is 'zero' alone")
        return cls(None if mass is None else validate.number("mass", mass, negative=False),
                   velocities)  # fmt: skip


NOTHING = Given()


class Source:
    """A binary file of `size` bytes, whose beginning is `head`.

    Parameters
    ----------
    file : binary file object
        Read into memory if it has no places, as a pipe.
    name : str
        For messages.
    given : Given
    """

    def __init__(self, file: BinaryIO, name: str, given: Given = NOTHING) -> None:
        self.name, self.given = name, given
        try:
            self.size = file.seek(0, os.SEEK_END)
        except OSError:  # a pipe
            file = io.BytesIO(file.read())
            self.size = file.seek(0, os.SEEK_END)
        self.file = file
        if not self.size:
            raise self.wrong("it is empty: it has no bytes at all")
        file.seek(0)
        self.head = file.read(_HEAD)

    def wrong(self, what: str) -> SnapshotError:
        """An error that names the file."""
        return SnapshotError(f"{self.name}: {what}")

    def absent_masses(self, n: int, what: str) -> Floats:
        """The mass given for n bodies without; an error that names what is missing, if none is."""
        if n and self.given.mass is None:
            raise self.wrong(
                f"it has no {what}: --mass M or mass=M gives M to each body without a mass"
            )
        return np.full(n, self.given.mass or 0.0)

    def absent_velocities(self, n: int, what: str) -> Floats:
        """Zeros, if asked for; an error that names what is missing, if not."""
        if n and self.given.velocities is None:
            raise self.wrong(
                f'it has no {what}: --velocities zero or velocities="zero" puts these bodies at '
                "rest"
            )
        return np.zeros((n, 3))

    def check_which(self, which: int, count: int, what: str = "snapshot") -> None:
        """Raise a SnapshotError if the file has no snapshot of a number."""
        if not -count <= which < count:
            raise self.wrong(f"it has {count} {what}{'s' * (count != 1)}, and not number {which}")

    def check(self, offset: int, size: int, what: str) -> None:
        """Raise a SnapshotError if the file ends before some bytes."""
        if size < 0 or offset < 0 or offset + size > self.size:
            raise self.wrong(
                f"{what} should end at byte {offset + size}, and the file has {self.size}"
            )

    def read(self, offset: int, size: int, what: str) -> bytes:
        """Some bytes."""
        self.check(offset, size, what)
        data = bytearray(size)
        self._fill(memoryview(data), offset, what)
        return bytes(data)

    def record(self, offset: int, length: str, kind: str, name: str) -> tuple[int, int]:
        """Size of a record, which stands before and after it as `length`, and where it begins."""
        (size,) = struct.unpack(length, self.read(offset, 4, f"a {kind}"))
        self.check(offset + 4, size + 4, name)
        if struct.unpack(length, self.read(offset + 4 + size, 4, f"a {kind}"))[0] != size:
            raise self.wrong(f"the {kind} at byte {offset} has two different lengths")
        return size, offset + 4

    def values(self, offset: int, dtype: npt.DTypeLike, count: int, what: str) -> AnyArray:
        """A few numbers, for headers."""
        kind = np.dtype(dtype)
        return np.frombuffer(self.read(offset, kind.itemsize * count, what), kind)

    def pieces(
        self, offset: int, dtype: npt.DTypeLike, count: int, what: str
    ) -> Iterator[tuple[slice, AnyArray]]:
        """Rows of a dtype, some at a time, and which they are; the next ones take their place."""
        kind = np.dtype(dtype)
        self.check(offset, kind.itemsize * count, what)
        step = max(_PIECE // kind.itemsize, 1)
        place = memoryview(bytearray(kind.itemsize * min(step, count)))
        for first in range(0, count, step):
            some = slice(first, min(first + step, count))
            part = place[: kind.itemsize * (some.stop - some.start)]
            self._fill(part, offset + kind.itemsize * some.start, what)
            yield some, np.frombuffer(part, kind)

    def floats(
        self, offset: int, dtype: npt.DTypeLike, shape: tuple[int, ...], what: str
    ) -> Floats:
        """Numbers as float64."""
        kind, count = np.dtype(dtype), int(np.prod(shape, dtype=object))
        self.check(offset, kind.itemsize * count, what)
        found: Floats = np.empty(shape)
        flat = found.reshape(-1)
        if kind == DOUBLE:
            self._fill(memoryview(flat.view(np.uint8).data), offset, what)
            return found
        with np.errstate(invalid="ignore"):  # a signalling NaN, which Snapshot.check finds
            for some, values in self.pieces(offset, kind, count, what):
                flat[some] = values
        return found

    def ints(self, offset: int, dtype: npt.DTypeLike, count: int, what: str) -> Int64s:
        """Numbers as int64."""
        self.check(offset, np.dtype(dtype).itemsize * count, what)
        found: Int64s = np.empty(count, np.int64)
        for some, values in self.pieces(offset, dtype, count, what):
            found[some] = values
        return found

    def _fill(self, rest: memoryview, offset: int, what: str) -> None:
        file: io.BufferedIOBase = self.file  # type: ignore[assignment]
        file.seek(offset)
        while rest:
            read = file.readinto(rest)
            if not read:
                raise self.wrong(f"{what}: the file has become shorter while it was read")
            rest = rest[read:]


def chosen(
    source: Source, snapshots: Iterable[T], which: int, read: Callable[[T], Snapshot]
) -> Snapshot:
    """The one of a number among the snapshots of a file, read from what tells where it is.

    Those before the place where a file is cut or damaged are read, with a warning.
    """
    last: deque[T] = deque(maxlen=max(-which, 1))
    count = 0
    try:
        for snapshot in snapshots:
            if which < 0 or count == which:
                last.append(snapshot)
            count += 1
    except SnapshotError as error:
        if not -count <= which < count:
            raise
        warnings.warn(
            f"{error}; the snapshots before that, {count} of them, are whole: number "
            f"{which % count} is read",
            Grape6Warning,
            stacklevel=2,
        )
    source.check_which(which, count)
    made = read(last[0])
    made.moments = count
    return made


def of_this_machine(dtype: npt.DTypeLike, swapped: bool) -> np.dtype[np.void]:
    """A dtype with its bytes in the other order, if that is so."""
    kind: np.dtype[np.void] = np.dtype(dtype)
    return kind.newbyteorder() if swapped else kind


def copy_columns(arrays: Sequence[Floats], some: slice, rows: AnyArray) -> None:
    """The numbers of rows to some rows of arrays, one behind the other, a column at a time: NumPy
    is slow where the last axis is short."""
    into = (column for array in arrays for column in np.atleast_2d(array[some].T))
    for k, column in enumerate(into):
        column[:] = rows[:, k]

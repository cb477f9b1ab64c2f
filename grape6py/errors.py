"""Exceptions and warnings of grape6py.

Every exception is a :class:`Grape6Error` and also what a Python programmer would expect
(ValueError, IndexError, ...), so both ways of catching work.
"""

import difflib
import re
from collections.abc import Iterable

# What a terminal obeys instead of showing it: control characters, and turns of the direction.
_OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def printable(text: object) -> str:
    """A text, names in which may come out of a file, with nothing in it that a terminal obeys."""
    return _OBEYED.sub(lambda found: ascii(found[0])[1:-1], str(text))


def meant(name: str, known: Iterable[str]) -> str:
    """What follows a name that is unknown, if a known one is near it."""
    near = difflib.get_close_matches(name, list(known), 1)
    return f" (did you mean {near[0]}?)" if near else ""


class Grape6Error(Exception):
    """Base of all errors raised by grape6py.

    Attributes
    ----------
    code : int or None
        The library's G6X_E_* code, None if the error was found before it was called.
    printed : bool
        Whether the library has printed the message on stderr, as it does with the first of a code.
    """

    printed = False

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(printable(message))
        self.code = code


class ArgumentError(Grape6Error, ValueError):
    """An argument is of the wrong shape, kind or range."""


class NotFiniteError(ArgumentError):
    """A particle has a NaN or an infinity in it."""


class UnitError(ArgumentError, TypeError):
    """A number without a unit where there are units."""


class ReadOnlyError(Grape6Error, AttributeError):
    """An attribute that is not there, or that only a call can change, was set."""


class AddressError(Grape6Error, IndexError):
    """An address or position is negative or outside what exists."""


class SizeError(Grape6Error, OverflowError):
    """A number is larger than the library can count."""


class RangeError(Grape6Error, OverflowError):
    """A force is too large for a double."""


class OutOfMemoryError(Grape6Error, MemoryError):
    """The host or the device is out of memory; what was stored before is intact."""


class CallOrderError(Grape6Error, RuntimeError):
    """A call came at a time when it makes no sense."""


class NotOpenError(CallOrderError):
    """The session is closed."""


class BackendError(Grape6Error, RuntimeError):
    """The backend asked for is missing, broken, lost, or gave a wrong result."""


class LibraryError(Grape6Error, OSError):
    """libgrape6.so is missing or cannot be opened."""


class MissingPackageError(Grape6Error, ImportError):
    """An optional Python package is not installed."""


class RankError(Grape6Error, RuntimeError):
    """A call that all ranks of MPI make has failed on another rank."""


class FileInUseError(Grape6Error, OSError):
    """Another run is writing to a file."""


class SnapshotError(Grape6Error, ValueError):
    """A snapshot file has lines that are no bodies."""


class NoOutputError(SnapshotError, IndexError):
    """A run has no output of this number."""


class Grape6Warning(UserWarning):
    """Something unusual that does not make a result wrong, if it is of no kind of its own."""

    def __init__(self, message: object = "") -> None:
        super().__init__(printable(message))


class AccuracyWarning(Grape6Warning):
    """An integration does not keep its energy: its result is wrong."""

"""Rows of partial sums, as the library takes them: see docs/reproducibility.md."""

from grape6py._arrays.kinds import CData, Int64s
from grape6py._lib.library import ffi, lib

WORDS: int = lib.G6X_PARTIAL_WORDS  # of a row


def words_pointer(rows: Int64s) -> CData:
    """Rows of shape (ni, WORDS), for a call of the library."""
    return ffi.cast("long long *", rows.ctypes.data)

"""Opens libgrape6.so through cffi, and turns its return codes into exceptions.

``lib`` is made once, when this module is first imported.
"""

import numpy as np

from grape6py import errors, paths
from grape6py._arrays.kinds import AnyArray, CData, Untyped
from grape6py._lib import codes
from grape6py._lib.declarations import built
from grape6py._lib.declarations import ffi as ffi

_TEXT = 1024
_POINTED = {np.ndarray, type(None)}
C_TYPES = {"i": "int", "l": "long long", "f": "float", "d": "double"}  # of arrays' dtype.char
_OPEN_ARRAYS = {  # by dtype.char and ndim
    (char, ndim): ffi.typeof(f"{name}[]{'[3]' * (ndim - 1)}")
    for char, name in C_TYPES.items()
    for ndim in (1, 2, 3)
}


def _open() -> CData:
    library = built(paths.LIBRARY)
    try:
        return ffi.dlopen(str(library))
    except OSError as error:
        raise errors.LibraryError(f"{paths.LIBRARY} cannot be opened: {error}") from error


lib = _open()


def check(code: int, cluster: int = -1) -> int:
    """Raise the exception for `code` of a call on `cluster`, or on none, if it is negative."""
    if code < 0:
        error = codes.from_code(code, text(lib.g6x_last_error, cluster))
        error.printed = bool(lib.g6x_error_printed(cluster))
        lib.g6x_clear_error(cluster)
        raise error
    return code


def text(call: CData, *arguments: object) -> str:
    """Text that `call` writes into its last two arguments (char *buffer, int length)."""
    buffer = ffi.new("char[]", _TEXT)
    call(*arguments, buffer, _TEXT)
    written: bytes = ffi.string(buffer)
    return written.decode("utf-8", errors="replace")


def pointer(array: AnyArray | None) -> CData:
    """C pointer to a contiguous array, as double[], double[][3], int[] ...; NULL for None."""
    if array is None:
        return ffi.NULL
    return ffi.from_buffer(_OPEN_ARRAYS[array.dtype.char, array.ndim], array)


def pointers(*arguments: Untyped) -> list[CData]:
    """Arguments of a C call, with pointers in place of NumPy arrays and of None."""
    return [pointer(value) if type(value) in _POINTED else value for value in arguments]

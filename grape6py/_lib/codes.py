"""Which code of the C library raises which exception."""

import functools
import re

from grape6py import paths
from grape6py.errors import (
    AddressError,
    ArgumentError,
    BackendError,
    CallOrderError,
    Grape6Error,
    NotFiniteError,
    NotOpenError,
    OutOfMemoryError,
    RangeError,
    SizeError,
)

# By the names G6X_E_* of g6lib.h.
_KINDS = {
    OutOfMemoryError: "DEVICE_MEMORY MEMORY",
    BackendError: "DEVICE_LOST NO_DEVICE RUNTIME PYTHON VERIFY",
    NotFiniteError: "J_NAN I_NAN",
    RangeError: "RANGE",
    ArgumentError: "ARGUMENT NULL",
    AddressError: "ADDRESS PIPE",
    CallOrderError: "NO_FIRSTHALF MISMATCH FORK",
    NotOpenError: "NOT_OPEN",
    SizeError: "OVERFLOW",
}


@functools.cache
def codes() -> dict[str, int]:
    """The codes by name, without G6X_E_."""
    text = paths.HEADER.read_text(encoding="ascii")
    return {name: int(number) for name, number in re.findall(r"G6X_E_(\w+) = (-\d+)", text)}


def from_code(code: int | str, message: str) -> Grape6Error:
    """Make the exception for a negative code of the library.

    Parameters
    ----------
    code : int or str
        A G6X_E_* code, or its name without that.
    message : str
        Its text.

    Returns
    -------
    Grape6Error
    """
    code = codes()[code] if isinstance(code, str) else code
    name = next((name for name, number in codes().items() if number == code), None)
    kind = next((kind for kind, names in _KINDS.items() if name in names.split()), Grape6Error)
    return kind(message or f"the library returned code {code} without a text", code)

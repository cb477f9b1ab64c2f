"""Which code of the C library raises which exception."""

import functools
import re

from grape6py import errors, paths

# By the names G6X_E_* of g6lib.h.
_KINDS = {
    errors.OutOfMemoryError: "DEVICE_MEMORY MEMORY",
    errors.BackendError: "DEVICE_LOST NO_DEVICE RUNTIME PYTHON VERIFY",
    errors.NotFiniteError: "J_NAN I_NAN",
    errors.RangeError: "RANGE",
    errors.ArgumentError: "ARGUMENT NULL",
    errors.AddressError: "ADDRESS PIPE",
    errors.CallOrderError: "NO_FIRSTHALF MISMATCH FORK",
    errors.NotOpenError: "NOT_OPEN",
    errors.SizeError: "OVERFLOW",
}


@functools.cache
def codes() -> dict[str, int]:
    """The codes by name, without G6X_E_."""
    text = paths.HEADER.read_text(encoding="ascii")
    return {name: int(number) for name, number in re.findall(r"G6X_E_(\w+) = (-\d+)", text)}


def from_code(code: int | str, message: str) -> errors.Grape6Error:
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
    kinds = (kind for kind, names in _KINDS.items() if name in names.split())
    kind = next(kinds, errors.Grape6Error)
    return kind(message or f"the library returned code {code} without a text", code)

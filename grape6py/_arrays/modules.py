"""Arrays of which one does not care whether they are NumPy's or CuPy's."""

from collections.abc import Callable

import numpy as np

from grape6py._arrays.kinds import AnyArray, ArrayModule, DeviceArray, Untyped


def module_of(array: DeviceArray) -> ArrayModule:
    """NumPy or CuPy."""
    if isinstance(array, np.ndarray):
        return np
    import cupy

    return cupy


def on_host(array: DeviceArray) -> AnyArray:
    """NumPy's array of what may lie on a device."""
    return array if isinstance(array, np.ndarray) else array.get()


def mapped(function: Callable[[DeviceArray], DeviceArray], value: Untyped) -> Untyped:
    """An array, or what else, with the arrays in a tuple of them, in others' place."""
    if isinstance(value, tuple):
        found = [mapped(function, item) for item in value]
        return type(value)._make(found) if hasattr(value, "_make") else tuple(found)
    return function(value) if hasattr(value, "dtype") and value.ndim else value


def lengths(vectors: DeviceArray) -> DeviceArray:
    """Of the rows of an array."""
    return module_of(vectors).sqrt((vectors * vectors).sum(axis=1))

"""Arrays of PyTorch and JAX: what comes in of theirs goes out as theirs.

They come in through NumPy, or on a CUDA device through DLPack (device_place.py). The other library
is imported by its user, never here.
"""

import sys
from collections.abc import Iterable

import numpy as np

from grape6py._arrays.kinds import Untyped

_MODULES = {"torch": "torch", "jax": "jax", "jaxlib": "jax"}  # of a type, and their library


def library_of(values: Iterable[object]) -> str | None:
    """The library, if one of some arguments is an array of PyTorch or JAX."""
    for value in values:
        name = _MODULES.get(type(value).__module__.partition(".")[0])
        if name and hasattr(value, "__dlpack__"):
            return name
    return None


def given_to(library: str | None, array: Untyped) -> Untyped:
    """An array of NumPy or CuPy as one of a library; what is no array, and None, as it is."""
    if library is None or array is None or not hasattr(array, "dtype"):
        return array
    module: Untyped = sys.modules[library]
    if library == "torch":
        if isinstance(array, np.ndarray):
            return module.from_numpy(array if array.flags.writeable else array.copy())
        return module.from_dlpack(array)
    if isinstance(array, np.ndarray):
        return module.numpy.asarray(array)
    return module.dlpack.from_dlpack(array)


def all_given_to(library: str | None, found: Untyped) -> Untyped:
    """A NamedTuple of arrays, each as one of a library."""
    if library is None:
        return found
    return type(found)._make(given_to(library, array) for array in found)

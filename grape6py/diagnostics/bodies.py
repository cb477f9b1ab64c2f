"""Arguments of the functions about clusters."""

import numpy as np

from grape6py._arrays import validate
from grape6py._arrays.kinds import AnyArray, Floats, Untyped
from grape6py._lib import memory_space
from grape6py.errors import ArgumentError

SHAPES = {"mass": (None,), "pos": (None, 3), "vel": (None, 3), "pot": (None,)}


def chosen(where: Untyped, **given: Untyped) -> list[Floats]:
    """Arrays of bodies by their names, as float64 of NumPy, wherever they lie; of the bodies that
    `where` says, a mask or row numbers, if it says any. NaN and infinities pass.

    Raises
    ------
    ArgumentError
        (a ValueError) for arrays of another shape or length, or such a `where`.
    """
    place = memory_space.for_host({**given, "where": where})
    arrays, n = [], None
    for name, array in given.items():
        array = place.any_floats(name, array, (n, *SHAPES[name][1:]))
        n = len(array)
        arrays.append(array)
    if where is None:
        return arrays
    rows = _rows(validate.numbers("where", place.on_host("where", where)), n or 0)
    return [array[rows] for array in arrays]


def _rows(where: AnyArray, n: int) -> AnyArray:
    if where.dtype.kind == "b":
        if where.shape != (n,):
            raise ArgumentError(f"where is a mask of shape {where.shape}, not ({n},)")
        return where
    if where.ndim != 1 or (where.size and where.dtype.kind not in "iu"):
        raise ArgumentError("where is neither a mask of the bodies nor an array of their rows")
    where = where.astype(np.int64)
    if wrong := where[(where < -n) | (where >= n)].tolist():
        raise ArgumentError(f"where has row {wrong[0]}, and there are {n} bodies")
    return where


def plane_of(along: str) -> list[int]:
    """The two axes of the plane that is seen along an axis."""
    return validate.choice("along", along, {"x": [1, 2], "y": [0, 2], "z": [0, 1]})

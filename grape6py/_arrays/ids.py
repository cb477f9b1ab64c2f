"""Numbers of bodies, which stay theirs: from 0 to 2^64 - 1, each once.

Inside they are uint64, whatever they came in, since NumPy compares int64 with uint64 as doubles.
Others see int64, or uint64 where one needs it.
"""

from typing import NamedTuple

import numpy as np

from grape6py._arrays import validate
from grape6py._arrays.kinds import AnyArray, Int8s, Int64s, UInt64s
from grape6py.errors import ArgumentError, Grape6Error

END = 2**64


def of(
    name: str, values: object, n: int | None = None, error: type[Grape6Error] = ArgumentError
) -> UInt64s:
    """`values` as numbers of n bodies, which may repeat; `error` for one that is out of range."""
    if isinstance(values, list | tuple) and all(isinstance(v, int | np.integer) for v in values):
        array = np.array([int(v) for v in values], object)  # NumPy's own choice may be float64
    else:
        array = validate.numbers(name, values)
    if array.ndim != 1 or n not in (None, len(array)):
        raise ArgumentError(f"{name} has shape {array.shape}, not ({'n' if n is None else n},)")
    whole = array.dtype == object and all(isinstance(value, int) for value in array)
    if array.size and array.dtype.kind not in "iu" and not whole:
        raise ArgumentError(f"{name} holds {array.dtype}, not integers")
    if array.dtype.kind != "u":
        outside = (array < 0) | (array >= END if whole else False)
        if outside.any():
            row = int(outside.argmax())
            raise error(
                f"{name}[{row}] = {array[row]}: the numbers of bodies go from 0 to 2^64 - 1; leave "
                "them out (grape6 run: --renumber) for 0, 1, 2, ..."
            )
    return array.astype(np.uint64)


def once(name: str, array: UInt64s) -> UInt64s:
    """Numbers, none of which is there twice."""
    ascending = np.sort(array)
    twice = ascending[1:][ascending[1:] == ascending[:-1]]
    if len(twice):
        raise ArgumentError(
            f"{name}: {twice[0]} is the number of two bodies; leave them out (grape6 run: "
            "--renumber) for 0, 1, 2, ..."
        )
    return array


def shown(array: UInt64s) -> AnyArray:
    """Numbers as others see them, in an array of its own."""
    return array.astype(np.uint64 if array.max(initial=0) >= END // 2 else np.int64)


def rows(present: UInt64s, requested: UInt64s) -> tuple[Int64s, AnyArray]:
    """Where numbers are among those present, and which of them are there at all."""
    order = np.argsort(present, kind="stable")
    if not len(order):
        return np.zeros(len(requested), np.int64), np.zeros(len(requested), bool)
    at = np.searchsorted(present, requested, sorter=order)
    found: Int64s = order[np.minimum(at, len(order) - 1)]
    return found, present[found] == requested


class Labels(NamedTuple):
    """What bodies belong to (:class:`models.Labelled`), by their numbers.

    Attributes
    ----------
    ids : ndarray of uint64, shape (n,)
    component : ndarray of int8, shape (n,)
    """

    ids: UInt64s
    component: Int8s

    def of(self, ids: AnyArray) -> Int8s:
        """Of bodies with some ids; 0 of those that came later."""
        at, known = rows(self.ids, ids.astype(np.uint64))
        found = np.zeros(len(ids), np.int8)
        found[known] = self.component[at[known]]
        return found

"""A process of its own in the place of several ranks, so that one text serves one and many."""

import contextlib
import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Final

import numpy as np

from grape6py._arrays.kinds import AnyArray, DeviceArray, Floats, Int64s, Untyped
from grape6py.ranks.agreement import Agreed, Agreement
from grape6py.ranks.ranks import Ranks


class _OfOne(Agreement):
    """Nobody says anything else."""

    def same(self, what: str, *values: AnyArray | str | float | None) -> None:
        pass

    same_contents = same

    def maximum(self, number: float) -> Agreed:
        return Agreed(float(number))

    minimum = maximum


_AGREEMENT = contextlib.nullcontext(_OfOne())  # for all calls
_NOTHING = contextlib.nullcontext()


class OneRank(Ranks):
    """All there is: what it asks of all ranks, it has itself. Arrays are not copied.

    Attributes
    ----------
    comm : None
    """

    def __init__(self) -> None:
        self.rank, self.size, self.comm = 0, 1, None

    def agreement(self, call: str) -> AbstractContextManager[Agreement]:  # type: ignore[override]
        return _AGREEMENT

    def sharing_errors(self) -> AbstractContextManager[None]:  # type: ignore[override]
        return _NOTHING

    def check(self, *call: str) -> None:
        pass

    def counts(self, n: int) -> Int64s:
        return np.array([n], np.int64)

    def broadcast(self, value: Untyped, rank: int = 0) -> Untyped:
        return value

    def from_each(self, value: Untyped) -> list[Untyped]:
        return [value]

    def summed(self, array: AnyArray) -> AnyArray:
        return array

    largest = to_first = summed

    def total(self, values: Floats | Sequence[float]) -> float:
        return math.fsum(values)

    def gathered(self, rows: DeviceArray, counts: Int64s | None = None) -> list[DeviceArray]:
        return [rows]

    def looked_up(self, rows: AnyArray, number: Int64s) -> AnyArray:
        return rows[number]

    def swapped(self, numbers: Int64s) -> Int64s:
        return numbers

    def exchanged(self, rows: DeviceArray, cuts: Int64s) -> tuple[DeviceArray, Int64s]:
        return rows, cuts

    def connect(self, device: int | None) -> None:
        pass


ONE: Final = OneRank()


def ranks_of(comm: Untyped) -> Ranks:
    """The ranks of a communicator, or ONE without."""
    return ONE if comm is None else Ranks(comm)

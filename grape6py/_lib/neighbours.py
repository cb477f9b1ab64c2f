"""``Neighbours``: the lists of many targets in one array."""

from __future__ import annotations

import collections.abc
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import SupportsIndex, overload

import numpy as np

from grape6py._arrays.kinds import Int32s, Int64s, Untyped

__all__ = ["Neighbours"]


class Neighbours(collections.abc.Sequence[Int32s]):
    """Neighbours of all targets in one array (compressed sparse rows).

    It is a sequence of the targets' lists, too: ``neighbours[i]`` is the array of target i, of
    which ``len(neighbours)`` tells how many there are; ``list(neighbours)`` makes a list of these
    arrays. All are views of `index`.

    Attributes
    ----------
    start : ndarray of int64, shape (ni + 1,)
        Those of target i are ``index[start[i]:start[i + 1]]``.
    index : ndarray of int32, shape (start[-1],)
        Their indices (in a tree: numbers), ascending in each row.
    """

    __slots__ = ("index", "start")

    start: Int64s
    index: Int32s  # type: ignore[assignment]  # a method of other sequences

    def __init__(self, start: Int64s, index: Int32s) -> None:
        self.start, self.index = start, index

    def __len__(self) -> int:
        return len(self.start) - 1

    @overload
    def __getitem__(self, target: SupportsIndex) -> Int32s: ...

    @overload
    def __getitem__(self, target: slice) -> list[Int32s]: ...

    def __getitem__(self, target: SupportsIndex | slice) -> Int32s | list[Int32s]:
        """The array of a target, or a list of those of a slice."""
        if isinstance(target, slice):
            return [self[i] for i in range(*target.indices(len(self)))]
        i = range(len(self))[target]
        return self.index[int(self.start[i]) : int(self.start[i + 1])]

    def __iter__(self) -> Iterator[Int32s]:
        for first, end in itertools.pairwise(self.start.tolist()):
            yield self.index[first:end]

    def on(self, put: Callable[[Untyped], Untyped]) -> Neighbours:
        """The same where `put` puts arrays."""
        return Neighbours(put(self.start), put(self.index))

    def __repr__(self) -> str:
        return f"<Neighbours: {len(self)} lists, {len(self.index)} neighbours>"


def merged(
    n: int, target: Int64s, lengths: Int64s, index: Int32s | Int64s
) -> tuple[Int64s, Int32s | Int64s]:
    """Start and index of n targets' lists, made of pieces: each its target, and how long it is."""
    of = np.repeat(target, lengths)
    start = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(of, minlength=n), out=start[1:])
    return start, index[np.lexsort((index, of))]


def joined(parts: Sequence[tuple[Int64s, Int32s]]) -> Neighbours:
    """The lists of some targets, and of those after them."""
    if len(parts) == 1:
        return Neighbours(*parts[0])
    ends = np.cumsum([0] + [start[-1] for start, _ in parts])
    starts = [start[1:] + end for (start, _), end in zip(parts, ends, strict=False)]
    return Neighbours(
        np.concatenate([np.zeros(1, np.int64), *starts]),
        np.concatenate([np.empty(0, np.int32), *(index for _, index in parts)]),
    )

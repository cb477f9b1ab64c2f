"""The ranks of a communicator, which all make the same calls, and end together."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from grape6py._arrays.kinds import AnyArray, Floats, Int64s, Untyped
from grape6py.errors import ArgumentError, MissingPackageError, RankError

if TYPE_CHECKING:
    from types import ModuleType


_NUMBERS = 8  # of each kind that a step may agree on


def mpi() -> ModuleType:
    """mpi4py's module; a MissingPackageError if it is not installed."""
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise MissingPackageError(
            f"comm= needs mpi4py and an MPI library (pip install grape6py[mpi]): {error}"
        ) from error
    return MPI


def _told(error: Exception) -> Exception:
    """An error that all ranks know."""
    error._is_told = True  # type: ignore[attr-defined]
    return error


def _is_told(error: Exception) -> bool:
    return getattr(error, "_is_told", False)


class Ranks:
    """A communicator of mpi4py's, for calls that all of its ranks make in the same order.

    Attributes
    ----------
    rank, size : int
        Of this process, and how many there are.
    comm, MPI
        mpi4py's communicator and module.
    """

    def __init__(self, comm: Untyped) -> None:
        self.MPI: Untyped = mpi()
        if not isinstance(comm, self.MPI.Intracomm):
            raise ArgumentError(f"comm = {comm!r} is no communicator of mpi4py, as MPI.COMM_WORLD")
        self.comm = comm
        self.rank, self.size = comm.Get_rank(), comm.Get_size()
        self._is_alone = False

    @contextlib.contextmanager
    def step(self, *same: float) -> Iterator[Floats]:
        """Context of what each rank does on its own, before all go on together.

        If it fails on one rank it fails on all: there with its own error, on the others with a
        RankError that tells it. `same` are numbers that must be equal on all ranks. The value is an
        array of numbers, of which all ranks have the maxima in the end.
        """
        found = np.zeros(_NUMBERS)
        try:
            yield found
        except Exception as error:
            if not _is_told(error):
                self._agree(found, same, error)
            raise
        self._agree(found, same, None)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Context of calls on all ranks, in which an error of one ends the next step of the others.

        Within another one it does nothing.
        """
        if self._is_alone:
            yield
            return
        self._is_alone = True
        try:
            yield
        except Exception as error:
            if not _is_told(error):
                self._agree(np.zeros(_NUMBERS), (), error)
            raise
        finally:
            self._is_alone = False

    def come_together(self) -> None:
        """Wait for all; a RankError if one has failed on its way."""
        self._agree(np.zeros(_NUMBERS), (), None)

    def _agree(self, found: Floats, same: tuple[float, ...], error: Exception | None) -> None:
        """One sum over all ranks, of the same length wherever a rank is."""
        numbers = np.zeros(_NUMBERS)
        numbers[: len(same)] = same
        failed = -float(self.rank) if error is not None else -float(self.size)
        sent = np.concatenate([[failed], numbers, -numbers, found])
        got = np.empty_like(sent)
        self.comm.Allreduce(sent, got, self.MPI.MAX)
        first = int(-got[0])
        if first < self.size:
            text = None if error is None else f"{type(error).__name__}: {error}"
            text = self.comm.bcast(text, root=first)
            if error is None:
                raise _told(RankError(f"on rank {first} of {self.size}: {text}"))
            _told(error)
            return
        _, least, most, found[:] = np.split(got, [1, 1 + _NUMBERS, 1 + 2 * _NUMBERS])
        if not np.array_equal(least, -most):
            raise _told(
                ArgumentError(
                    f"the ranks call with different arguments: {list(same)} on rank {self.rank}"
                )
            )

    def counts(self, n: int) -> Int64s:
        """A number of each rank."""
        found = np.empty(self.size, np.int64)
        self.comm.Allgather(np.array([n], np.int64), found)
        return found

    def summed(self, array: AnyArray) -> AnyArray:
        """The sums over the ranks, element by element."""
        found = np.empty_like(array)
        self.comm.Allreduce(array, found, self.MPI.SUM)
        return found

    def largest(self, array: AnyArray) -> AnyArray:
        """The maxima over the ranks, element by element."""
        found = np.empty_like(array)
        self.comm.Allreduce(array, found, self.MPI.MAX)
        return found

    def gathered(self, rows: AnyArray) -> list[AnyArray]:
        """The rows of each rank."""
        counts, width = self.counts(len(rows)), int(np.prod(rows.shape[1:], dtype=np.int64))
        found = np.empty((int(counts.sum()), *rows.shape[1:]), rows.dtype)
        self.comm.Allgatherv(np.ascontiguousarray(rows), [found, width * counts])
        return np.split(found, np.cumsum(counts)[:-1])

    def exchanged(self, rows: AnyArray, cuts: Int64s) -> tuple[AnyArray, Int64s]:
        """Rows ``cuts[r]:cuts[r + 1]`` go to rank r; what came, and where each rank's begin."""
        sent = np.diff(cuts)
        got = np.empty(self.size, np.int64)
        self.comm.Alltoall(np.ascontiguousarray(sent), got)
        width = int(np.prod(rows.shape[1:], dtype=np.int64))
        found = np.empty((int(got.sum()), *rows.shape[1:]), rows.dtype)
        kind = self.MPI._typedict[rows.dtype.char].Create_contiguous(max(width, 1)).Commit()
        begin = np.concatenate([[0], np.cumsum(got)])
        try:
            self.comm.Alltoallv(
                [np.ascontiguousarray(rows), sent, cuts[:-1], kind],
                [found, got, begin[:-1], kind],
            )
        finally:
            kind.Free()
        return found, begin

"""Threads of one process, one for each of several devices, in place of ranks of MPI."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from grape6py._arrays.kinds import AnyArray, CuPy, DeviceArray, Int64s, Untyped
from grape6py._arrays.modules import module_of
from grape6py.ranks.ranks import Ranks, Together

Found = TypeVar("Found")


class ThreadRanks(Ranks):
    """The calls of :class:`Ranks` for a thread of a :class:`Crew`. An error of one ends all."""

    def __init__(self, crew: Crew, rank: int) -> None:
        self._crew, self.rank, self.size = crew, rank, len(crew)
        self._is_alone, self._calls = False, []

    @contextlib.contextmanager
    def step(self, call: str) -> Iterator[Together]:
        said = Together()
        self._calls.append(call)
        try:
            yield said
            self._agree(said, None)
        finally:
            self._calls.pop()

    def _all(self, value: Untyped) -> list[Untyped]:
        """What each rank says."""
        return self._crew.swap(self.rank, value)

    def counts(self, n: int) -> Int64s:
        return np.array(self._all(n), np.int64)

    def broadcast(self, value: Untyped, rank: int = 0) -> Untyped:
        return self._all(value)[rank]

    def summed(self, array: AnyArray) -> AnyArray:
        found: AnyArray = np.sum(self._all(array), axis=0)
        return found

    def largest(self, array: AnyArray) -> AnyArray:
        found: AnyArray = np.max(self._all(array), axis=0)
        return found

    def gathered(self, rows: DeviceArray) -> list[DeviceArray]:
        return self._all(rows) if module_of(rows) is np else self._gathered_by_exchange(rows)

    def swapped(self, numbers: Int64s) -> Int64s:
        return np.array([theirs[self.rank] for theirs in self._all(numbers)], np.int64)

    def exchanged(self, rows: DeviceArray, cuts: Int64s) -> tuple[DeviceArray, Int64s]:
        xp, me = module_of(rows), self.rank
        finish = xp.cuda.get_current_stream().synchronize if xp is not np else _nothing
        finish()
        pieces = [theirs[at[me] : at[me + 1]] for theirs, at in self._all((rows, cuts))]
        begin = np.concatenate([[0], np.cumsum([len(piece) for piece in pieces])])
        found = xp.empty((int(begin[-1]), *rows.shape[1:]), rows.dtype)
        for piece, first in zip(pieces, begin, strict=False):
            if len(piece):
                found[first : first + len(piece)] = xp.asarray(piece)
        finish()
        self._all(None)  # until then the rows are read
        return found, begin

    def connect(self, device: int | None) -> None:
        """Nothing: devices of one process read each other's memory."""


class Crew:
    """A thread for each of some devices, which stays."""

    def __init__(self, cupy: CuPy, devices: tuple[int, ...]) -> None:
        self._barrier = threading.Barrier(len(devices))
        self._said: list[Untyped] = [None] * len(devices)
        self.ranks = [ThreadRanks(self, rank) for rank in range(len(devices))]
        self._threads = [
            ThreadPoolExecutor(1, f"device {device}", cupy.cuda.Device(device).use)
            for device in devices
        ]
        self.call(lambda rank: _reach(cupy, devices[rank], devices))

    def __len__(self) -> int:
        return len(self._said)

    def swap(self, rank: int, value: Untyped) -> list[Untyped]:
        """Say something to all, and hear what they say."""
        self._said[rank] = value
        self._barrier.wait()
        found = list(self._said)
        self._barrier.wait()
        return found

    def call(self, work: Callable[[int], Found]) -> list[Found]:
        """What work(rank) gives in each thread; the first error, after all have ended."""
        futures = [
            thread.submit(self._guarded, work, rank) for rank, thread in enumerate(self._threads)
        ]
        errors = [future.exception() for future in futures]
        self._said = [None] * len(self)
        if any(errors):
            self._barrier.reset()
            own = [e for e in errors if e and not isinstance(e, threading.BrokenBarrierError)]
            try:
                raise own[0]
            finally:  # no circle with the error, which has what its calls had on the devices
                del futures, errors, own
        return [future.result() for future in futures]

    def _guarded(self, work: Callable[[int], Found], rank: int) -> Found:
        try:
            return work(rank)
        except BaseException:
            self._barrier.abort()  # which ends the others where they wait
            raise


def crew_of(cupy: CuPy, devices: tuple[int, ...]) -> Crew:
    """The threads of some devices."""
    return _crew(cupy, devices, os.getpid())


@functools.cache
def _crew(cupy: CuPy, devices: tuple[int, ...], _: int) -> Crew:
    return Crew(cupy, devices)


def _reach(cupy: CuPy, device: int, others: tuple[int, ...]) -> None:
    """Let a device, the current one, read the others' memory; without it copies go by the host."""
    runtime = cupy.cuda.runtime
    for other in others:
        if other != device and runtime.deviceCanAccessPeer(device, other):
            with contextlib.suppress(runtime.CUDARuntimeError):  # it can already
                runtime.deviceEnablePeerAccess(other)


def _nothing() -> None:
    return None

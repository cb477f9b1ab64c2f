"""Threads of one process in place of ranks of MPI."""

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from grape6py._arrays.modules import module_of, on_host
from grape6py.ranks.agreement import Agreement
from grape6py.ranks.ranks import Ranks


class ThreadRanks(Ranks):
    """The calls of :class:`Ranks` for a thread of a :class:`Crew`. An error of one ends all."""

    def __init__(self, crew, rank):
        self._crew, self.rank, self.size = crew, rank, len(crew)
        self.comm, self._shares_errors, self._calls = crew, False, []

    def connect(self, device):
        pass

    @contextlib.contextmanager
    def agreement(self, call):
        agreement = Agreement()
        self._calls.append(call)
        try:
            yield agreement
            self._agree(agreement, None)
        finally:
            self._calls.pop()

    def _all(self, value):
        return self._crew.swap(self.rank, value)

    from_each = _all

    def counts(self, n):
        return np.array(self._all(n), np.int64)

    def broadcast(self, value, rank=0):
        return self._all(value)[rank]

    def summed(self, array):
        return np.sum(self._all(array), axis=0)

    def largest(self, array):
        return np.max(self._all(array), axis=0)

    def gathered(self, rows):
        xp = module_of(rows)
        return [xp.asarray(theirs) for theirs in self._all(on_host(rows))]

    def swapped(self, numbers):
        return np.array([theirs[self.rank] for theirs in self._all(numbers)], np.int64)

    def exchanged(self, rows, cuts):
        me, xp = self.rank, module_of(rows)
        pieces = [theirs[at[me] : at[me + 1]] for theirs, at in self._all((on_host(rows), cuts))]
        return xp.asarray(np.concatenate(pieces)), np.cumsum([0, *map(len, pieces)])


class Crew:
    def __init__(self, size):
        self._barrier = threading.Barrier(size)
        self._said = [None] * size
        self.ranks = [ThreadRanks(self, rank) for rank in range(size)]
        self._threads = [ThreadPoolExecutor(1) for _ in range(size)]

    def __len__(self):
        return len(self._said)

    def swap(self, rank, value):
        self._said[rank] = value
        self._barrier.wait()
        found = list(self._said)
        self._barrier.wait()
        return found

    def call(self, work):
        """What work(rank) gives in each thread; the first error, after all have ended."""
        futures = [one.submit(self._guarded, work, rank) for rank, one in enumerate(self._threads)]
        errors = [future.exception() for future in futures]
        self._said = [None] * len(self)
        if any(errors):
            self._barrier.reset()
            own = [e for e in errors if e and not isinstance(e, threading.BrokenBarrierError)]
            raise own[0]
        return [future.result() for future in futures]

    def _guarded(self, work, rank):
        try:
            return work(rank)
        except BaseException:
            self._barrier.abort()  # which ends the others where they wait
            raise

"""Sums of all ranks' j particles on targets, merged as integers: the bits are those of one rank.

Each rank sums its own particles on all targets. The partial rows (docs/reproducibility.md) of all
ranks are merged by MPI_MAX of the tops and MPI_SUM of the limbs, while the next targets are summed.
"""

from __future__ import annotations

import collections
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from grape6py._arrays.kinds import CData, Floats, Int32s, Int64s, Untyped
from grape6py._lib.cluster import Board, Forces, empty_forces
from grape6py._lib.library import check, ffi, lib, pointers
from grape6py._lib.neighbours import joined, merged
from grape6py._lib.partial_rows import WORDS, words_pointer
from grape6py.errors import ArgumentError
from grape6py.ranks.addresses import Addresses
from grape6py.ranks.ranks import Ranks

_ROWS = 8192  # of targets that are summed, and then merged, at a time
_LIMB, _LIMBS = lib.G6X_PARTIAL_LIMB, lib.G6X_PARTIAL_LIMBS
_MADE = [0, 1, 27]  # words that must be equal on all ranks: kind, scale and origin of each sum
_FAR = np.float32(np.inf)


class Targets(NamedTuple):
    """Targets: positions, velocities, h^2 and labels."""

    pos: Floats
    vel: Floats
    h2: Floats
    label: Int32s


def _raised(ranks: Ranks, words: Int64s) -> Callable[[], None]:
    """Begin to find the tops of rows; the function that ends it gives the rows these."""
    ni = len(words)
    made = words[:, _MADE].reshape(-1)
    tops = np.empty((ni, lib.G6X_PARTIAL_TOPS), np.int32)
    rows = ffi.cast("int (*)[6]", tops.ctypes.data)
    check(lib.g6x_get_tops(ni, words_pointer(words), rows))
    sent = np.concatenate([made, -made, tops.reshape(-1)])
    request = ranks.comm.Iallreduce(ranks.MPI.IN_PLACE, sent, ranks.MPI.MAX)

    def end() -> None:
        request.Wait()
        many = len(made)
        if not np.array_equal(sent[:many], -sent[many : 2 * many]):
            raise ArgumentError(
                "the ranks sum with another backend, instruction set or precision: set "
                "GRAPE6_BACKEND, GRAPE6_ISA and precision alike"
            )
        tops[:] = sent[2 * many :].reshape(tops.shape)
        check(lib.g6x_raise_partial(ni, words_pointer(words), rows))

    return end


def _limbs(words: Int64s, bins: int) -> Int64s:
    """The limbs of rows that are used, as a view."""
    return words[:, _LIMB : _LIMB + _LIMBS].reshape(len(words), _LIMBS // 3, 3)[:, :, :bins]


def _add_limbs(
    ranks: Ranks, words: Int64s, own: slice = slice(None), counts: Int64s | None = None
) -> None:
    """Give all rows, or if each rank has a number of them its own, the sums of all ranks' limbs."""
    # How many rows keep at most: K of docs/reproducibility.md; unused ones are 0.
    bins = int((words[:, 0] // 16 % 16).max(initial=0))
    found = limbs = np.ascontiguousarray(_limbs(words, bins))
    if counts is None:
        ranks.comm.Allreduce(ranks.MPI.IN_PLACE, limbs, ranks.MPI.SUM)
    else:
        found, width = np.empty_like(limbs[own]), limbs.shape[1] * bins
        ranks.comm.Reduce_scatter(limbs, found, width * counts, ranks.MPI.SUM)
    _limbs(words[own], bins)[:] = found


def merge_rows(ranks: Ranks, words: Int64s) -> None:
    """Rows of all ranks, for the same targets, merged into those of each."""
    ranks.check("a sum")  # a RankError if one has failed on its way
    _raised(ranks, words)()
    _add_limbs(ranks, words)


class _Task(NamedTuple):
    """A force call between its halves: its targets, its arrays, and these as C takes them."""

    targets: Targets
    out: Forces
    call: list[CData]
    radii: CData
    sums: list[CData]


def _own_rows(part: slice, mine: slice) -> slice:
    """This rank's targets among those of a part, counted from its first one."""
    first = max(part.start, mine.start)
    return slice(first - mine.start, max(min(part.stop, mine.stop), first) - mine.start)


@dataclass(eq=False)
class Sums:
    """Forces of the particles of all ranks."""

    _ranks: Ranks
    _board: Board  # with this rank's particles, at addresses 0 to nj - 1
    _addresses: Addresses
    has_scale: bool = False  # whether the board has scale and origin of the particles as they are

    def _share_scale(self, nj: int) -> None:
        """Give the board scale and origin of the particles of all ranks."""
        all_, first = self._addresses.n, self._addresses.first
        ranks, cluster, check = self._ranks, self._board.cluster, self._board.check
        sample = np.zeros(lib.G6X_SAMPLE_WORDS, np.int64)
        with ranks.agreement("a sum"):
            check(lib.g6x_get_sample(cluster, nj, all_, first, *pointers(sample)))
        sample = ranks.summed(sample)
        counts = np.zeros(lib.G6X_COUNT_WORDS, np.int64)
        with ranks.agreement("a sum"):
            check(lib.g6x_set_sample(cluster, *pointers(sample)))
            check(lib.g6x_get_counts(cluster, nj, *pointers(counts)))
        counts = ranks.summed(counts)
        with ranks.agreement("a sum"):
            check(lib.g6x_set_counts(cluster, *pointers(counts)))
        self.has_scale = True

    def forces(
        self, nj: int, targets: Targets, eps2: float, *, nn: bool, lists: bool, same: bool
    ) -> Forces:
        """Forces on this rank's targets, or, if they are the `same` on all ranks, on these."""
        ranks = self._ranks
        if not self.has_scale:
            self._share_scale(nj)
        counts = ranks.counts(len(targets.pos))
        begin = np.concatenate([[0], [counts[0]] if same else np.cumsum(counts)])
        mine = slice(0, counts[0]) if same else slice(*begin[ranks.rank : ranks.rank + 2])
        out = empty_forces(len(targets.pos), nn)
        found: list[tuple[Int64s, Int32s]] = []
        pending: collections.deque[Callable[[], None]] = collections.deque()
        end = int(begin[-1])
        parts = [slice(first, min(first + _ROWS, end)) for first in range(0, end, _ROWS)]
        tasks = (self._begun(nj, targets, part, begin, mine, eps2, same) for part in parts)
        task = next(tasks, None)
        for part in parts:
            assert task is not None
            cuts = np.clip(begin, part.start, part.stop) - part.start
            rows, all_ = _own_rows(part, mine), task.targets
            words, near, listed = self._summed(task, eps2, nn, lists)
            task = next(tasks, None)  # which a GPU sums while this part is merged
            into = Forces._make([*(None if a is None else a[rows] for a in out[:5]), None])
            own = slice(None) if same else slice(*cuts[ranks.rank : ranks.rank + 2])
            pending.append(self._merging(words, own, None if same else np.diff(cuts), into))
            if nn:
                self._merge_nearest(near, all_, own, into)
            if lists:
                found.append(self._merged_lists(listed, cuts, same))
            if len(pending) > 1:
                pending.popleft()()
        while pending:
            pending.popleft()()
        return out._replace(neighbours=joined(found)) if lists else out

    def _begun(
        self, nj: int, targets: Targets, part: slice, begin: Int64s, mine: slice, eps2: float,
        same: bool,
    ) -> _Task:  # fmt: skip
        """The first half of the sum on a part of all ranks' targets."""
        all_ = Targets._make(array[_own_rows(part, mine)] for array in targets)
        if not same:
            counts = np.asarray(np.diff(np.clip(begin, part.start, part.stop)), np.int64)
            rows = np.concatenate(self._ranks.gathered(np.column_stack(all_), counts))
            all_ = Targets(rows[:, :3], rows[:, 3:6], rows[:, 6], rows[:, 7].astype(np.int32))
        all_ = Targets._make(map(np.ascontiguousarray, all_))
        board, ni = self._board, len(all_.pos)
        out = empty_forces(ni, nn=True)
        fine = np.zeros(ni, np.uint8)  # targets that mode auto sums in double, on all ranks alike
        bytes_ = ffi.cast("unsigned char *", fine.ctypes.data)
        with self._ranks.agreement("a sum"):
            board.check(lib.g6x_get_fine_rows(*pointers(board.cluster, nj, ni, all_.label), bytes_))
        self._ranks.comm.Allreduce(self._ranks.MPI.IN_PLACE, fine, self._ranks.MPI.MAX)
        with self._ranks.agreement("a sum"):
            board.check(lib.g6x_set_fine_rows(board.cluster, ni, bytes_))
            call = pointers(board.cluster, nj, ni, all_.label, all_.pos, all_.vel)
            radii, *sums = pointers(all_.h2, *out[:3])
            board.check(lib.g6calc_firsthalf(*call, *sums, eps2, radii))
        return _Task(all_, out, call, radii, sums)

    def _summed(
        self, task: _Task, eps2: float, nn: bool, lists: bool
    ) -> tuple[Int64s, Forces, Untyped]:
        """Partial rows of this rank's particles, and its nearest neighbours and lists."""
        board, out, ni = self._board, task.out, len(task.targets.pos)
        words, listed = np.zeros((ni, WORDS), np.int64), None
        with self._ranks.agreement("a sum"):
            board.check(lib.g6x_get_partial(board.cluster, ni, words_pointer(words)))
            if nn:
                near = pointers(out.nearest, out.distance)
                board.check(lib.g6calc_lasthalf2p(*task.call, eps2, task.radii, *task.sums, *near))
            if lists:
                listed = board.lists(ni)
        return words, out, listed

    def _merging(
        self, words: Int64s, own: slice, counts: Int64s | None, into: Forces
    ) -> Callable[[], None]:
        """Begin to merge rows; the function that ends it writes this rank's forces."""
        merged = _raised(self._ranks, words)

        def end() -> None:
            merged()
            _add_limbs(self._ranks, words, own, counts)
            sums = pointers(into.acc, into.jerk, into.pot)
            rows = words_pointer(words[own])
            self._board.check(lib.g6x_from_partial(len(words[own]), rows, *sums))

        return end

    def _merge_nearest(self, near: Forces, targets: Targets, own: slice, into: Forces) -> None:
        """The nearest of the ranks' nearest neighbours; at equal distances of the lowest rank."""
        ranks, MPI = self._ranks, self._ranks.MPI
        nearest, distance = near.nearest, near.distance
        assert nearest is not None
        assert distance is not None
        none = (nearest == targets.label) & (distance == 0)
        found = np.empty(len(nearest), np.dtype([("distance", "f4"), ("rank", "i4")]))
        found["distance"], found["rank"] = np.where(none, _FAR, distance), ranks.rank
        best = np.empty_like(found)
        ranks.comm.Allreduce([found, MPI.FLOAT_INT], [best, MPI.FLOAT_INT], MPI.MINLOC)
        label = np.where(best["rank"] == ranks.rank, nearest, 0).astype(np.int32)
        ranks.comm.Allreduce(MPI.IN_PLACE, label, MPI.SUM)
        is_none = np.isinf(best["distance"])
        label = np.where(is_none, targets.label, label)
        far = np.where(is_none, np.float32(0), best["distance"])
        into.nearest[:], into.distance[:] = label[own], far[own]  # type: ignore[index]

    def _merged_lists(
        self, listed: tuple[Int64s, Int32s], cuts: Int64s, same: bool
    ) -> tuple[Int64s, Int32s]:
        """The lists of this rank's targets: what each rank has found, ascending."""
        ranks, (start, index) = self._ranks, listed
        if same:
            n = len(start) - 1
            each = np.array(ranks.gathered(np.diff(start), np.full(ranks.size, n)))
            got = np.concatenate(ranks.gathered(index, each.sum(axis=1)))
            lengths = each.reshape(-1)
        else:
            n = int(cuts[ranks.rank + 1] - cuts[ranks.rank])
            lengths, _ = ranks.exchanged(np.diff(start), cuts)
            got, _ = ranks.exchanged(index, start[cuts])
        first, rows = merged(n, np.tile(np.arange(n), ranks.size), lengths, got)
        return first, rows.astype(np.int32, copy=False)

"""Block steps of bodies that all ranks have, whose forces each rank sums over a share of them.

The bodies and their derivatives are the same everywhere, to the last bit, and so is all that is
decided by them; what is shared out is the sum over the j particles, which is nearly all of the work
(Harfst and others 2007, New Astronomy 12, 357: the copy algorithm). The loop is the library's,
which returns where the rows of a block are to be merged.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import numpy as np

from grape6py._lib.library import check, ffi, lib, pointer
from grape6py._lib.partial_rows import WORDS, words_pointer
from grape6py.integrators.blocks import Blocks, Moment, Setup
from grape6py.integrators.hermite_device import DeviceBlocks
from grape6py.integrators.hermite_steps import HostBlocks
from grape6py.ranks.share import BLOCK, Share
from grape6py.ranks.sums import merge_rows

if TYPE_CHECKING:
    from grape6py._arrays.kinds import CData

_MOST = 32  # blocks between two looks at whether somebody wants to stop
# Fewest pairs of a block whose sum devices share (0.9 ms on an H200): smaller ones gain nothing, as
# ranks wait for each other, besides for the parts.
_PAIRS = 1 << 29
_ROWS = 1 << 17  # of a block that are summed, and their parts brought together, at a time


def blocks_of_ranks(setup: Setup) -> SharedBlocks | SharedDeviceBlocks:
    """Blocks of bodies that all ranks have, on the host or on the device of each."""
    assert setup.ranks is not None
    device = setup.board.option("DEVICE") if _has_cupy() else -1
    with setup.ranks.step("the bodies") as said:
        said.alike("the precisions", setup.precision)
        said.most[0] = device < 0
    if said.most[0]:
        return SharedBlocks(setup)
    return SharedDeviceBlocks(setup)


def _has_cupy() -> bool:
    with contextlib.suppress(ImportError):
        import cupy  # noqa: F401

        return True
    return False


class _InStep(Blocks):
    """Blocks that all ranks move at the same time, and of which all move as many."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        assert setup.ranks is not None
        self._ranks, self._most = setup.ranks, _MOST

    def advance(self, target: float, stop: CData | None, *, most: int = 0) -> int | None:
        """As of one rank; no clock ends it, which would be another one on each rank."""
        del stop  # see OnRanks._is_stopping
        self._most = most or _MOST
        return super().advance(target, None, most=self._most)

    @staticmethod
    def _is_over(e: CData, most: int, stop: CData | None, began: float) -> bool:
        del stop, began
        return bool(e.blocks) and 0 < most <= e.blocks

    def _evolve(self, evolution: CData) -> int:
        evolution.seconds = 0.0
        evolution.most_blocks = max(self._most - evolution.blocks, 1)
        with self._ranks.alone():  # an error here is told to those who wait
            return super()._evolve(evolution)

    def _call_function(self, time: float, ni: int) -> None:
        with self._ranks.step("a field"):  # before any rank moves a body
            super()._call_function(time, ni)


class _OnHost(_InStep, HostBlocks):
    """The bodies of SharedDeviceBlocks in NumPy's arrays."""


class SharedDeviceBlocks(_InStep, DeviceBlocks):
    """Bodies on the device of each rank, the same on all, which share the sums of large blocks.

    Each sums the forces of a share of the j particles, as rows of partial sums. These parts go to
    all ranks, which merge them on their devices: the bits are those of one rank.
    """

    HOST = _OnHost

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        ranks, at = self._ranks, self._at
        ranks.connect(self._board.option("DEVICE"))
        self._most_rows = rows = max(min(self.n, _ROWS), 64)
        with self._device:
            self._part = self._cupy.empty(rows * lib.G6X_PART_BYTES, np.uint8)
            self._parts = self._cupy.empty(ranks.size * len(self._part), np.uint8)
        at.part, at.parts = (ffi.cast("void *", a.data.ptr) for a in (self._part, self._parts))
        at.part_rows, at.share, at.shares = rows, ranks.rank, ranks.size
        at.share_pairs = _PAIRS

    def _evolve(self, evolution: CData) -> int:
        with self._ranks.alone():
            while (code := super()._evolve(evolution)) == lib.G6X_HERMITE_MERGE:
                self._gather(evolution.part_bytes)
        return code

    def _gather(self, size: int) -> None:
        """The parts of all ranks, on each."""
        with self._device:
            self._ranks.gather(self._part[:size], self._parts[: size * self._ranks.size], "a sum")

    def _force_rows(self, rows: slice) -> None:
        none = ffi.NULL
        ranks, at, k, ni = self._ranks, self._at_everybody, rows.start, rows.stop - rows.start
        is_large = self.acting * ni >= _PAIRS and self.acting >= BLOCK * ranks.size
        if not is_large or ranks.size == 1:
            super()._force_rows(rows)
            return
        size = ffi.new("long long *")
        targets = self.acting, ni, at.address + k, at.xi + k, at.vi + k, self._eps2
        self._call(lib.g6x_force_part_device, *targets, 0, ranks.rank, ranks.size,
                   self._at.part, size)  # fmt: skip
        self._gather(size[0])
        self._call(lib.g6x_merge_parts_device, ni, self._at.parts, ranks.size,
                   at.acc + k, at.jerk + k, at.pot + k, none, none)  # fmt: skip

    def at(self, time: float) -> Moment:
        with self._ranks.alone():
            return super().at(time)


class SharedBlocks(_InStep, HostBlocks):
    """Bodies in NumPy arrays, the same on all ranks, each of which sums the forces of a share."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        share = Share(self.acting, self._ranks.size).first
        self._first, self._end = (int(a) for a in share[self._ranks.rank : self._ranks.rank + 2])
        self._words = np.zeros((self.n, WORDS), np.int64)
        self._hermite.words = words_pointer(self._words)
        self._hermite.share_first, self._hermite.share_end = self._first, self._end
        self._looked: tuple[float, int, Moment] | None = None

    def _evolve(self, evolution: CData) -> int:
        with self._ranks.alone():
            while (code := super()._evolve(evolution)) == lib.G6X_HERMITE_MERGE:
                self._merge(evolution.ni)
                if evolution.closer:
                    self._merge_nearest(evolution.ni, evolution.next)
        return code

    def _merge(self, ni: int) -> None:
        """The rows of all ranks, to acc, jerk and pot of the block."""
        b, words = self._block, self._words[:ni]
        merge_rows(self._ranks, words)
        sums = (pointer(array) for array in (b.acc, b.jerk, b.pot))
        check(lib.g6x_from_partial(ni, words_pointer(words), *sums))

    def _merge_nearest(self, ni: int, time: float) -> None:
        """The nearest of those that the ranks have found; at equal distances the first one."""
        b, h = self._block, self._hermite
        found = np.empty((self._ranks.size, ni), np.int32)
        self._ranks.comm.Allgather(np.ascontiguousarray(b.nearest[:ni]), found)
        best = np.full(ni, np.inf)
        pos, vel = np.empty((ni, 3)), np.empty((ni, 3))
        state = h.t, h.x, h.v, h.a, h.j
        for near in found:
            check(lib.g6x_hermite_predict(ni, pointer(near), time, *state, pointer(pos),
                                          pointer(vel)))  # fmt: skip
            r2 = ((pos - b.xi[:ni]) ** 2).sum(axis=1)
            r2[near == b.address[:ni]] = np.inf  # nobody else is there
            nearer = r2 < best
            best[nearer], b.nearest[:ni][nearer] = r2[nearer], near[nearer]

    def _sums(self, ni: int, time: float) -> None:
        h, board = self._hermite, self._board
        nj = self._end - self._first
        board.set_time(time)
        with self._ranks.alone():
            for rows in board.chunks(ni, nj):
                k, radii = rows.start, pointer(self._radii[rows])
                call = board.cluster, nj, rows.stop - k, h.address + k, h.xi + k, h.vi + k
                sums = h.acc + k, h.jerk + k, h.pot + k
                board.check(lib.g6calc_firsthalf(*call, *sums, self._eps2, radii))
                words = words_pointer(self._words[rows])
                board.check(lib.g6x_get_partial(board.cluster, rows.stop - k, words))
            self._merge(ni)

    def _send(self) -> None:
        self._evolution.ni = self._evolution.stage = 0
        nj, board = self.acting, self._board
        arrays = (self.t[:nj], self._mass[:nj], self.jerk[:nj] / 6, self.acc[:nj] / 2,
                  self.vel[:nj], self.pos[:nj])  # fmt: skip
        given = (pointer(np.ascontiguousarray(array)) for array in arrays)
        share = board.cluster, nj, self._first, self._end
        board.check(lib.g6x_share_particles(*share, *(ffi.NULL if nj == 0 else a for a in given)))

    def at(self, time: float) -> Moment:
        """All bodies at a time; who looks there once more needs the others no more."""
        looked = self._looked
        if looked is None or looked[:2] != (time, self.blocks) or self._evolution.ni:
            with self._ranks.alone():
                self._looked = looked = time, self.blocks, super().at(time)
        return looked[2]

"""Who has which particles of a tree of all ranks: ranges of keys along a Hilbert curve.

The ranges are cut so that each has the same share of the work of the sum before (as Bonsai does,
Bedorf, Gaburov & Portegies Zwart 2014, SC '14, 54), or of the particles if there was none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grape6py._arrays.kinds import AnyArray, ArrayModule, DeviceArray, Floats, Int64s, UInt64s

if TYPE_CHECKING:
    from grape6py.ranks.ranks import Ranks

_SAMPLES = 1 << 16  # of keys of all ranks, by which ranges are cut; of a rank
_LEAST_SAMPLES = 1024


def module_of(array: DeviceArray) -> ArrayModule:
    """NumPy or CuPy."""
    if isinstance(array, np.ndarray):
        return np
    import cupy

    return cupy


def on_host(array: DeviceArray) -> AnyArray:
    """NumPy's array of what may lie on a device."""
    found: AnyArray = array if isinstance(array, np.ndarray) else array.get()
    return found


class Way:
    """The way of rows to other ranks, and back.

    Parameters
    ----------
    order : array of int, shape (n,)
        Own rows in the order of the ranks that they go to.
    cuts : ndarray of int64, shape (ranks + 1,)
        Where those of each rank begin in that order.

    Attributes
    ----------
    begin : ndarray of int64, shape (ranks + 1,)
        Where the rows of each rank begin among those that came.
    """

    def __init__(self, ranks: Ranks, order: DeviceArray, cuts: Int64s) -> None:
        self._ranks, self._order, self._cuts = ranks, order, cuts
        counts = np.empty(ranks.size, np.int64)
        ranks.comm.Alltoall(np.diff(cuts), counts)
        self.begin: Int64s = np.concatenate([[0], np.cumsum(counts)])

    @classmethod
    def to(cls, ranks: Ranks, rank: DeviceArray) -> Way:
        """The way of rows to the rank that each has."""
        xp = module_of(rank)
        order = xp.argsort(rank, kind="stable")
        cuts = xp.searchsorted(rank[order], xp.arange(ranks.size + 1))
        return cls(ranks, order, on_host(cuts).astype(np.int64))

    def there(self, rows: DeviceArray) -> DeviceArray:
        """What came: one rank's rows behind the other's."""
        return self._moved(rows[self._order], self._cuts)

    def back(self, rows: DeviceArray) -> DeviceArray:
        """Rows for those that came, at the ranks and in the order of those that went."""
        got = self._moved(rows, self.begin)
        found = module_of(got).empty_like(got)
        found[self._order] = got
        return found

    def _moved(self, rows: DeviceArray, cuts: Int64s) -> DeviceArray:
        got, _ = self._ranks.exchanged(on_host(rows), cuts)
        return module_of(rows).asarray(got)

    def places(self) -> tuple[DeviceArray, DeviceArray]:
        """The rank that each own row goes to, and its place among those that came there."""
        first = np.empty(self._ranks.size, np.int64)
        self._ranks.comm.Alltoall(self.begin[:-1].copy(), first)
        xp, n = module_of(self._order), len(self._order)
        rank, place = np.empty(n, np.int64), np.empty(n, np.int64)
        for r in range(self._ranks.size):
            rows = slice(self._cuts[r], self._cuts[r + 1])
            rank[rows], place[rows] = r, first[r] + np.arange(rows.stop - rows.start)
        found = xp.empty((2, n), np.int64)
        found[:, self._order] = xp.asarray(np.stack([rank, place]))
        return found[0], found[1]


def cut_keys(ranks: Ranks, keys: DeviceArray, work: DeviceArray | None) -> UInt64s:
    """The first key of each rank's range but the first one's.

    Parameters
    ----------
    keys : array of uint64, shape (n,)
        Of own particles, ascending.
    work : array, shape (n,), optional
        Of each of them.
    """
    n = len(keys)
    count = min(n, max(_SAMPLES // ranks.size, _LEAST_SAMPLES))
    places = np.arange(count + 1) * n // max(count, 1)
    weight = np.diff(places).astype(np.float64)
    if work is not None and n:
        sums = np.concatenate([[0.0], on_host(work.cumsum()[places[1:] - 1])])
        weight = np.diff(sums)
    mine = on_host(keys[places[:-1]])
    all_keys, all_weights = (np.concatenate(ranks.gathered(a)) for a in (mine, weight))
    order = np.argsort(all_keys, kind="stable")
    before = np.cumsum(all_weights[order]) - all_weights[order]
    shares = np.arange(1, ranks.size) * all_weights.sum() / ranks.size
    at = np.minimum(np.searchsorted(before, shares), max(len(order) - 1, 0))
    return all_keys[order][at] if len(order) else np.zeros(ranks.size - 1, np.uint64)


def owners(cut: UInt64s, keys: DeviceArray) -> DeviceArray:
    """The ranks whose ranges have some keys."""
    xp = module_of(keys)
    return xp.searchsorted(xp.asarray(cut), keys, side="right")


def whole_of(
    ranks: Ranks, pos: DeviceArray, mass: DeviceArray, vel: DeviceArray | None
) -> Floats | None:
    """What describes the particles of all ranks (g6lib.h); None: there are none."""
    xp, n = module_of(pos), len(pos)
    most, sums = np.full(8, -np.inf), np.zeros(5)
    if n:
        most[:3], most[3:6] = on_host(-pos.min(axis=0)), on_host(pos.max(axis=0))
        weight = xp.abs(mass)
        most[6], most[7] = float(weight.max()), -1.0
        sums[:2] = n, float(weight.sum())
        if vel is not None:
            most[7] = float(xp.abs(vel).max())
            sums[2:] = on_host((weight[:, None] * vel).sum(axis=0))
    most, sums = ranks.largest(most), ranks.summed(sums)
    if not sums[0]:
        return None
    mean = sums[2:] / sums[1] if sums[1] > 0 else np.zeros(3)
    return np.concatenate([-most[:3], most[3:6], [most[6], sums[0], most[7]], mean])

"""Who has which particles of a tree of all ranks: ranges of keys along a Hilbert curve.

The ranges are cut so that each has the same share of the work of the sum before (as Bonsai does,
Bedorf, Gaburov & Portegies Zwart 2014, SC '14, 54), or of the particles if there was none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grape6py._arrays.kinds import DeviceArray, Floats, Int64s, UInt64s
from grape6py.ranks.carriers import module_of, on_host

if TYPE_CHECKING:
    from grape6py.ranks.ranks import Ranks

_SAMPLES = 1 << 16  # of keys of all ranks, by which ranges are cut; of a rank
_LEAST_SAMPLES = 1024
_SORTED = 1 << 21  # keys of a rank, of which those are the quantiles


class Way:
    """The way of rows to other ranks, and back.

    Parameters
    ----------
    rank : array of int, shape (n,)
        To which each row goes.

    Attributes
    ----------
    begin : ndarray of int64, shape (ranks + 1,)
        Where the rows of each rank begin among those that came.
    """

    def __init__(self, ranks: Ranks, rank: DeviceArray) -> None:
        xp = module_of(rank)
        self._ranks = ranks
        rank = rank.astype(np.uint16 if ranks.size < 1 << 16 else np.uint32)  # soon sorted
        self._order = rank.argsort(kind="stable")
        ends = xp.arange(ranks.size + 1)
        self._cuts = on_host(xp.searchsorted(rank[self._order], ends)).astype(np.int64)
        counts = ranks.swapped(np.diff(self._cuts))
        self.begin: Int64s = np.concatenate([[0], np.cumsum(counts)])

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
        return self._ranks.exchanged(rows, cuts)[0]

    def places(self) -> tuple[DeviceArray, DeviceArray]:
        """The rank that each own row goes to, and its place among those that came there."""
        ranks, xp, n = self._ranks.size, module_of(self._order), len(self._order)
        first = self._ranks.swapped(self.begin[:-1])
        rank = np.repeat(np.arange(ranks), np.diff(self._cuts))
        place = np.arange(n) + np.repeat(first - self._cuts[:-1], np.diff(self._cuts))
        found = xp.empty((2, n), np.int64)
        found[:, self._order] = xp.asarray(np.stack([rank, place]))
        return found[0], found[1]


def cut_keys(ranks: Ranks, keys: DeviceArray, work: DeviceArray | None) -> UInt64s:
    """The first key of each rank's range but the first one's.

    Parameters
    ----------
    keys : array of uint64, shape (n,)
        Of own particles.
    work : array, shape (n,), optional
        Of each of them.
    """
    xp, n, share = module_of(keys), len(keys), 1.0
    if n > _SORTED:  # one of each run of them
        share = n / _SORTED
        drawn = (np.arange(_SORTED) + np.random.default_rng(1).random(_SORTED)) * share
        which = xp.asarray(np.minimum(drawn.astype(np.int64), n - 1))
        keys, work, n = keys[which], None if work is None else work[which], _SORTED
    order = None if work is None else keys.argsort()
    keys = xp.sort(keys) if order is None else keys[order]
    count = min(n, max(_SAMPLES // ranks.size, _LEAST_SAMPLES))
    places = np.arange(count + 1) * n // max(count, 1)
    weight = np.diff(places) * share
    if work is not None and n:
        sums = on_host(work[order].cumsum()[xp.asarray(places[1:] - 1)])
        weight = np.diff(np.concatenate([[0.0], sums])) * share
    mine = on_host(keys[xp.asarray(places[:-1])])
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

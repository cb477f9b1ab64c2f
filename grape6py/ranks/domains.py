"""Who has which particles of a tree of all ranks: ranges of keys along a Hilbert curve.

The ranges are cut so that each has the same share of the work of the sum before (as Bonsai does,
Bedorf, Gaburov & Portegies Zwart 2014, SC '14, 54), or of the particles if there was none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grape6py._arrays.kinds import ArrayModule, DeviceArray, Floats, UInt64s
from grape6py._arrays.modules import module_of, on_host

if TYPE_CHECKING:
    from grape6py.ranks.ranks import Ranks

_SAMPLE = 1 << 18  # of a rank's particles, by whose keys ranges are cut,
_QUANTILES = 1 << 14  # and how many quantiles of these all ranks know, or each rank's at least
_LEAST_QUANTILES = 1024


class Moves:
    """The way of rows to the ranks where they belong, on which many are already: there they are in
    the order of the ranks that they came from, and in that of each, so that their numbers among
    the rows of all ranks ascend.

    Parameters
    ----------
    rank : array of int, shape (n,)
        To which each row belongs.

    Attributes
    ----------
    count : int
        How many rows there are afterwards.
    begin : ndarray of int64, shape (ranks + 1,)
        Where those of each rank begin among them.
    """

    def __init__(self, ranks: Ranks, rank: DeviceArray) -> None:
        xp = module_of(rank)
        self._ranks, self._rank = ranks, rank
        self._stays = xp.flatnonzero(rank == ranks.rank)
        left = xp.flatnonzero(rank != ranks.rank)
        to = rank[left].astype(np.uint16 if ranks.size < 1 << 16 else np.uint32)  # soon sorted
        order = to.argsort(kind="stable")
        cuts = on_host(xp.searchsorted(to[order], xp.arange(ranks.size + 1)))
        self._gone, self._cuts = left[order], cuts.astype(np.int64)
        came = ranks.swapped(np.diff(self._cuts))
        self._begin = np.concatenate([[0], np.cumsum(came)])  # without those that stay
        self._first = int(self._begin[ranks.rank])  # place of the first that stays
        self._after = self._first + len(self._stays)
        self.begin = self._begin + (np.arange(ranks.size + 1) > ranks.rank) * len(self._stays)
        self.count = int(self.begin[-1])
        self._is_still = len(self._stays) == self.count == len(rank)

    def there(self, rows: DeviceArray) -> DeviceArray:
        """The rows that belong here; None of None, on all ranks."""
        if rows is None:
            return None
        got, _ = self._ranks.exchanged(rows[self._gone], self._cuts)
        if self._is_still:
            return rows
        first = self._first
        return module_of(rows).concatenate([got[:first], rows[self._stays], got[first:]])

    def back(self, rows: DeviceArray) -> DeviceArray:
        """Rows for those that belong here, where these came from; None of None, on all ranks."""
        if rows is None:
            return None
        came = module_of(rows).concatenate([rows[: self._first], rows[self._after :]])
        got, _ = self._ranks.exchanged(came, self._begin)
        if self._is_still:
            return rows
        found = module_of(rows).empty((len(self._rank), *rows.shape[1:]), rows.dtype)
        found[self._stays] = rows[self._first : self._after]
        found[self._gone] = got
        return found

    def places(self) -> tuple[DeviceArray, DeviceArray]:
        """The rank that each own row is on afterwards, and its place there."""
        return self._rank, self.back(module_of(self._rank).arange(self.count))


def sample_of(n: int, xp: ArrayModule) -> DeviceArray | slice:
    """Particles of a rank, by whose keys ranges are cut: one of each run of them."""
    if n <= _SAMPLE:
        return slice(None)
    run = xp.arange(_SAMPLE)  # some place in each
    return ((run + (run * 2654435761 & 0xFFFFFFFF) / 2**32) * (n / _SAMPLE)).astype(np.int64)


def cut_keys(ranks: Ranks, keys: DeviceArray, work: DeviceArray | None, share: float) -> UInt64s:
    """The first key of each rank's range but the first one's.

    Parameters
    ----------
    keys : array of uint64, shape (n,)
        Of a sample of own particles.
    work : array, shape (n,), optional
        Of each of them.
    share : float
        How many particles each of them stands for.
    """
    xp, n = module_of(keys), len(keys)
    order = None if work is None else keys.argsort()
    keys = xp.sort(keys) if order is None else keys[order]
    count = min(n, max(_QUANTILES // ranks.size, _LEAST_QUANTILES))
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


def whole_of(
    ranks: Ranks, extent: Floats, mass: DeviceArray, vel: DeviceArray | None
) -> Floats | None:
    """What describes the particles of all ranks (g6lib.h); None: there are none.

    `extent` are the corners of the box of own particles, and their largest mass.
    """
    xp, n = module_of(mass), len(mass)
    most, sums = np.full(8, -np.inf), np.zeros(5)
    sums[0] = n
    if n:
        most[:7] = [*-extent[:3], *extent[3:]]
        most[7] = -1.0 if vel is None else float(xp.abs(vel).max())
    most = ranks.largest(most)
    largest = most[6]
    if n and largest > 0:  # sums of shares of it, and of the largest speed: none is out of range
        weight = xp.abs(mass) / largest
        sums[1] = float(weight.sum())
        if vel is not None and most[7] > 0:
            sums[2:] = on_host((weight[:, None] * (vel / most[7])).sum(axis=0))
    sums = ranks.summed(sums)
    if not sums[0]:
        return None
    mean = sums[2:] / sums[1] * most[7] if sums[1] > 0 else np.zeros(3)
    total = min(float(sums[1]) * float(largest), np.finfo(float).max)
    return np.concatenate([-most[:3], most[3:6], [largest, sums[0], most[7]], mean, [total]])

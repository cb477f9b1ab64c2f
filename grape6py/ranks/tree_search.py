"""Neighbours among the particles of all ranks: a target asks the domains that its sphere meets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grape6py._arrays.kinds import Bools, DeviceArray, Floats, Int32s, Int64s
from grape6py._arrays.modules import module_of, on_host
from grape6py._lib.neighbours import merged
from grape6py._lib.tree_setting import Targets
from grape6py.ranks.domains import Way

if TYPE_CHECKING:
    from grape6py.ranks.domain_tree import DomainTree

_BOXES = 64  # of runs of a domain's particles along the curve
_AT_ONCE = 1 << 14  # targets, whose distances from boxes are found


class Searches:
    """Searches in the domains of all ranks.

    Parameters
    ----------
    first, count : int
        The number of this rank's first particle among those of all ranks, and how many it has.
    """

    def __init__(self, domain: DomainTree, first: int, count: int) -> None:
        self._domain, self._ranks, self._first = domain, domain.ranks, first
        self._xp = module_of(domain.pos)
        self._numbers = on_host(domain.way.there(first + self._xp.arange(count)))
        self._boxes = self._ranks.gathered(_boxes(on_host(domain.pos[domain.order])))

    def within(self, targets: Targets, h2: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
        """Neighbours of targets: where rows start, and the rows, ascending."""
        at, radii = on_host(targets.pos), on_host(h2)
        is_wanted, placed = ~np.isnan(radii) & (radii >= 0), self._placed(targets)
        asked, way, there = self._asked(at, placed, radii, is_wanted)
        start, index = map(on_host, self._domain.inner.within(*self._given(there)))
        lengths = way.back(np.diff(start))
        got, _ = self._ranks.exchanged(self._numbers[index], start[way.begin])
        first, rows = merged(len(at), asked[1], lengths, got)
        return self._xp.asarray(first), self._xp.asarray(rows.astype(np.int32))

    def nearest(self, targets: Targets, k: int) -> tuple[DeviceArray, DeviceArray]:
        """The k nearest particles of targets, those in their own domains first."""
        at, first = on_host(targets.pos), on_host(self._domain.owners(targets.pos))
        n, placed = len(at), self._placed(targets)
        number, distance = np.full((n, k), -1, np.int64), np.full((n, k), np.inf)
        if k == 0:
            return self._as_given(number, distance)
        everybody = np.ones(n, bool)
        for is_home in (True, False):  # then where there may be nearer ones
            radii = (distance[:, -1] * (1 + 2**-40)) ** 2
            where = (np.arange(self._ranks.size)[:, None] == first) == is_home
            asked, way, there = self._asked(at, placed, radii, everybody, where)
            found = self._domain.inner.nearest(self._given(there)[0], k)
            index, far = map(on_host, found)
            numbers = np.where(index < 0, -1, self._numbers[np.maximum(index, 0)])
            got = way.back(numbers), way.back(far)
            for r in range(self._ranks.size):
                rows = asked[1][asked[0] == r]
                more, more_far = (a[asked[0] == r] for a in got)
                number[rows], distance[rows] = _nearer(
                    number[rows], distance[rows], more, more_far, k
                )
        return self._as_given(number, distance)

    def _as_given(self, number: Int64s, far: Floats) -> tuple[Int32s, Floats]:
        return self._xp.asarray(number.astype(np.int32)), self._xp.asarray(far)

    def _placed(self, targets: Targets) -> tuple[Int64s, Int64s] | None:
        """The ranks that have the particles that targets are, and the places there."""
        if (number := targets.number) is None:
            return None
        own = self._xp.where(number >= 0, number - self._first, -1)
        rank, place = map(on_host, self._domain.places(own))
        return rank, place

    def _asked(
        self,
        at: Floats,
        placed: tuple[Int64s, Int64s] | None,
        radii: Floats,
        wanted: Bools,
        where: Bools | None = None,
    ) -> tuple[tuple[Int64s, Int64s], Way, Floats]:
        """Who is asked by whom: ranks, ascending, and own targets; their way, and what came."""
        reached = np.stack([_reaches(at, radii, boxes) for boxes in self._boxes]) & wanted
        rank, target = np.nonzero(reached if where is None else reached & where)
        place = np.full(len(rank), -1.0)
        if placed is not None:
            own = placed[0][target] == rank
            place[own] = placed[1][target[own]]
        way = Way(self._ranks, rank)
        rows = np.column_stack([at[target], radii[target], place])
        return (rank, target), way, way.there(rows)

    def _given(self, rows: Floats) -> tuple[Targets, DeviceArray]:
        """Arguments of a search in the domain's own tree: targets, and squared radii."""
        columns = rows[:, :3], rows[:, 4].astype(np.int32), rows[:, 3]
        pos, number, h2 = (self._xp.asarray(np.ascontiguousarray(a)) for a in columns)
        return Targets(pos, number=number), h2


def _boxes(pos: Floats) -> Floats:
    """Corners of the boxes of runs of particles: shape (m, 6)."""
    n, count = len(pos), min(_BOXES, len(pos))
    first = np.arange(count) * n // max(count, 1)
    if not n:
        return np.zeros((0, 6))
    return np.hstack([np.minimum.reduceat(pos, first), np.maximum.reduceat(pos, first)])


def _reaches(at: Floats, radii: Floats, boxes: Floats) -> Bools:
    """Whether a sphere about each target meets one of the boxes."""
    found = np.zeros(len(at), bool)
    for k in range(0, len(at), _AT_ONCE):
        x = at[k : k + _AT_ONCE, None]
        outside = np.maximum(np.maximum(boxes[:, :3] - x, x - boxes[:, 3:]), 0)
        # A little less than it is: what is left out must be outside in any rounding.
        r2 = (outside * outside).sum(axis=2) * (1 - 2**-40)
        found[k : k + _AT_ONCE] = (r2 <= radii[k : k + _AT_ONCE, None]).any(axis=1)
    return found


def _nearer(
    number: Int64s, far: Floats, more: Int64s, more_far: Floats, k: int
) -> tuple[Int64s, Floats]:
    """The k nearest of both, ties to the lowest number."""
    number, far = np.hstack([number, more]), np.hstack([far, more_far])
    order = np.lexsort((np.where(number < 0, np.iinfo(np.int64).max, number), far))[:, :k]
    return np.take_along_axis(number, order, 1), np.take_along_axis(far, order, 1)

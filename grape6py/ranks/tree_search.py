"""Neighbours among the particles of all ranks: a target asks the domains that its sphere meets."""

import numpy as np

from grape6py._arrays.kinds import Bools, DeviceArray, Floats, Int32s, Int64s
from grape6py._arrays.modules import module_of, on_host
from grape6py._lib.neighbours import merged
from grape6py._lib.tree_setting import Targets
from grape6py.ranks.domain_tree import DomainTree
from grape6py.ranks.domains import Moves

_BOXES = 64  # of runs of a domain's particles along the curve
_AT_ONCE = 1 << 14  # targets, whose distances from boxes are found


class Searches:
    """Searches in the domains of all ranks, to which this one has given `count` particles."""

    def __init__(self, domain: DomainTree, count: int) -> None:
        self._domain, self._ranks, self._xp = domain, domain.ranks, module_of(domain.pos)
        self._numbers = on_host(domain.way.there(domain.first + self._xp.arange(count)))
        self._pos = on_host(domain.pos)
        self._boxes = self._ranks.gathered(_boxes(self._pos[on_host(domain.inner.order)]))

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
        number, r2 = np.full((n, k), -1, np.int64), np.full((n, k), np.inf)
        if k == 0:
            return self._as_given(number, r2)
        for is_home in (True, False):  # then where there may be nearer ones
            where = (np.arange(self._ranks.size)[:, None] == first) == is_home
            asked, way, there = self._asked(at, placed, r2[:, -1], where)
            index, _ = self._domain.inner.nearest(self._given(there)[0], k)
            got = [way.back(a) for a in self._named(there[:, :3], on_host(index))]
            for r in range(self._ranks.size):
                rows = asked[1][asked[0] == r]
                more, more_r2 = (a[asked[0] == r] for a in got)
                both, far = np.hstack([number[rows], more]), np.hstack([r2[rows], more_r2])
                last = np.where(both < 0, np.iinfo(np.int64).max, both)
                order = np.lexsort((last, far))[:, :k]  # ties to the lowest number
                number[rows] = np.take_along_axis(both, order, 1)
                r2[rows] = np.take_along_axis(far, order, 1)
        return self._as_given(number, np.sqrt(r2, out=r2))

    def _named(self, at: Floats, index: Int32s) -> tuple[Int64s, Floats]:
        """Numbers among the particles of all ranks, and r^2, as tree_square() in csrc has it, by
        which one tree orders them: distances are equal where these are not."""
        is_one = index >= 0
        number, r2 = np.full(index.shape, -1, np.int64), np.full(index.shape, np.inf)
        number[is_one] = self._numbers[index[is_one]]
        with np.errstate(over="ignore"):
            dx, dy, dz = (self._pos[index[is_one]] - at[np.nonzero(is_one)[0]]).T
            r2[is_one] = dx * dx + dy * dy + dz * dz
        return number, r2

    def _as_given(self, number: Int64s, far: Floats) -> tuple[Int32s, Floats]:
        return self._xp.asarray(number.astype(np.int32)), self._xp.asarray(far)

    def _placed(self, targets: Targets) -> tuple[Int64s, Int64s] | None:
        """The ranks that have the particles that targets are, and the places there."""
        if targets.number is None:
            return None
        rank, place = map(on_host, self._domain.places(targets.number))
        return rank, place

    def _asked(
        self, at: Floats, placed: tuple[Int64s, Int64s] | None, radii: Floats, where: Bools
    ) -> tuple[tuple[Int64s, Int64s], Moves, Floats]:
        """Who is asked by whom: ranks, ascending, and own targets; their way, and what came.

        `where` says of targets, shape (n,), or of those of each rank, (ranks, n), if they ask.
        """
        reached = np.stack([_reaches(at, radii, boxes) for boxes in self._boxes])
        rank, target = np.nonzero(reached & where)
        place = np.full(len(rank), -1.0)
        if placed is not None:
            own = placed[0][target] == rank
            place[own] = placed[1][target[own]]
        way = Moves(self._ranks, rank)
        return (rank, target), way, way.there(np.column_stack([at[target], radii[target], place]))

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
        # A little less than it is: what is left out must be outside in any rounding.
        with np.errstate(over="ignore"):
            outside = np.maximum(np.maximum(boxes[:, :3] - x, x - boxes[:, 3:]), 0)
            r2 = (outside * outside).sum(axis=2) * (1 - 2**-40)
        found[k : k + _AT_ONCE] = (r2 <= radii[k : k + _AT_ONCE, None]).any(axis=1)
    return found

"""The bound on the errors of terms that gives a wanted median error, for a tree on a GPU.

The same as csrc/tree/accuracy.c, which says why: a coarse sum estimates the accelerations, and
errors are measured on a sample of groups of the tree's own particles, beside sums with a far lower
bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from grape6py._arrays.kinds import DeviceArray
from grape6py._arrays.modules import lengths
from grape6py.cuda.tree.build import numbers
from grape6py.cuda.tree.settings import LEAST_ACC, WIDEST, Setting, usual_bound

if TYPE_CHECKING:
    from grape6py.cuda.tree.octree import Octree

STRIDE, SAMPLE_GROUPS, MOST_TAKES = 32, 64, 4
MIDDLE, SAMPLE_LEVEL1 = 32768, 8
LARGE, PER_LEVEL2, MOST_LEVEL2 = 262144, 131072, 8
COARSE_THETA, COARSE_ORDER = 1.0, 2
MOST_REFERENCES, TOO_LARGE, LEAST = 3, 1.5, 2.0**-100
MORE_ACCURATE, LOW_MORE_ACCURATE, MOST_ACCURATE, GOOD, MOST_BOUND = 10.0, 20.0, 2e-7, 1.08, 1e6
TAIL, MOST_FOR_TAIL, HOPELESS = 7.0, 1.25, 2.5


class Sample:
    """Accelerations of a tree's particles on some of them, and their errors.

    `gathered` puts together what each rank of a program has found; alone, a tree has all.
    """

    def __init__(
        self,
        tree: Octree,
        pos: DeviceArray,
        setting: Setting,
        gathered: Callable[[DeviceArray], DeviceArray] = lambda found: found,
    ) -> None:
        self._tree, self._pos, self._setting = tree, pos, setting
        self._gathered = gathered

    def last_acc(self, targets: DeviceArray, self_index: DeviceArray) -> DeviceArray:
        """Estimates of all targets' accelerations; targets None: the particles."""
        if targets is not None:
            return self._estimate(targets, self_index)
        order, xp = self._tree.order, self._tree.xp
        rows = order[self._middles(len(order))].astype(np.int32)
        by_run = self._estimate(self._pos[rows], rows)
        found = xp.empty(len(order))
        found[order] = xp.repeat(by_run, STRIDE)[: len(order)]
        return found

    def _middles(self, n: int) -> DeviceArray:
        """Of STRIDE targets that follow, the one by which all are estimated."""
        xp = self._tree.xp
        return xp.minimum(xp.arange(STRIDE // 2, n + STRIDE // 2, STRIDE), n - 1)

    def bound(self, accuracy: float, estimated: bool, own: DeviceArray = None) -> float:
        """The bound for a median error; `estimated`: accelerations are those of last_acc, else
        `own` are the particles', if they are known."""
        n, order = len(self._tree.order), self._setting.order
        if n < MIDDLE:
            places = self._runs(SAMPLE_GROUPS, numbers.TREE_GROUP)
        elif n < LARGE:
            places = self._runs(SAMPLE_LEVEL1, numbers.IN_LEVEL1)
        else:
            places = self._runs(min(n // PER_LEVEL2, MOST_LEVEL2), numbers.IN_LEVEL2)
        measured = self._every(len(places))
        rows = self._tree.order[places].astype(np.int32)
        some = rows[measured]
        last = self._estimate(self._pos[rows], rows) if own is None else self._at_least(own[rows])
        reference = self._reference(accuracy, some, last[measured])
        length = lengths(reference)
        if estimated:
            by_run = last[self._middles(len(last))]
            last = self._tree.xp.repeat(by_run, STRIDE)[: len(last)]

        def error(bound: float) -> float:
            found = self._sum(bound, rows, last, n < MIDDLE)[measured]
            off = lengths(found - reference)
            off = self._sorted(off / self._tree.xp.where(length > 0, length, np.inf))
            middle, tail = float(off[len(off) // 2]), float(off[-1 - len(off) // 100]) / TAIL
            reachable = tail < HOPELESS * middle
            return max(middle, min(tail, MOST_FOR_TAIL * middle)) if reachable else middle

        return _find(error, accuracy, usual_bound(order, accuracy), order)

    def _reference(self, accuracy: float, rows: DeviceArray, last: DeviceArray) -> DeviceArray:
        more = MORE_ACCURATE if self._setting.order not in (2, 3) else LOW_MORE_ACCURATE
        better = max(accuracy / more, MOST_ACCURATE)
        bound = usual_bound(self._setting.order, better)
        for _ in range(MOST_REFERENCES):
            found = self._sum(bound, rows, last)
            length = self._tree.xp.maximum(lengths(found), LEAST)
            if self._median(last / length) < TOO_LARGE:
                break
            last = self._tree.xp.minimum(last, length)
        return found

    def _sum(
        self, bound: float, rows: DeviceArray, last: DeviceArray, alone: bool = True
    ) -> DeviceArray:
        setting = Setting(WIDEST, self._setting.order, self._setting.eps2, bound)
        return self._tree.forces(setting, self._pos[rows], rows, last, few=alone)[0]

    def _runs(self, most: int, size: int) -> DeviceArray:
        """Places of runs of particles, evenly along the curve."""
        xp, n = self._tree.xp, len(self._tree.order)
        runs = -(-n // size)
        count = min(runs, most)
        first = (2 * xp.arange(count) + 1) * runs // (2 * count) * size
        places = (first[:, None] + xp.arange(size)).ravel()
        return places[places < n]

    def _every(self, n: int) -> DeviceArray:
        """Particles of SAMPLE_GROUPS groups among n particles of a sample."""
        xp, size = self._tree.xp, numbers.TREE_GROUP
        groups = -(-n // size)
        step = max(1, groups // SAMPLE_GROUPS)
        which = xp.arange(0, groups, step)[:SAMPLE_GROUPS]
        places = (size * which[:, None] + xp.arange(size)).ravel()
        return places[places < n]

    def _estimate(self, pos: DeviceArray, numbers_of: DeviceArray) -> DeviceArray:
        coarse = Setting(COARSE_THETA, COARSE_ORDER, self._setting.eps2, coarse=True)
        found = lengths(self._tree.forces(coarse, pos, numbers_of)[0])
        return self._at_least(found)

    def _at_least(self, found: DeviceArray) -> DeviceArray:
        """Accelerations, none of which is zero."""
        all_ = self._sorted(found)
        if not len(all_):
            return found
        usual = float(all_[len(all_) // 2])
        usual = usual if usual > 0 else float(all_[-1])
        return self._tree.xp.fmax(
            LEAST_ACC * usual if usual > 0 else 1.0, found
        )  # of NaN, the other

    def _median(self, found: DeviceArray) -> DeviceArray:
        all_ = self._sorted(found)
        return all_[len(all_) // 2]

    def _sorted(self, found: DeviceArray) -> DeviceArray:
        all_ = self._gathered(found).copy()
        all_.sort()
        return all_


def _find(measure: Callable[[float], float], accuracy: float, bound: float, order: int) -> float:
    power = 0.42 if order > 3 else 0.55 if order else 0.34
    before, error_before, bound = 0.0, 0.0, _on_grid(bound)
    for _ in range(MOST_TAKES):
        error = measure(bound)
        if not 0 < error < math.inf or (error < GOOD * accuracy and accuracy < GOOD * error):
            break
        if before > 0 and error != error_before:
            found = math.log(error / error_before) / math.log(bound / before)
            power = found if 0.2 < found < 1.2 else power
        before, error_before = bound, error
        bound = _on_grid(min(MOST_BOUND, bound * (accuracy / error) ** (1 / power)))
    return bound


def _on_grid(bound: float) -> float:
    """Sixteen bounds an octave, so that the rounding of errors changes none."""
    return math.exp2(round(16 * math.log2(bound)) / 16)

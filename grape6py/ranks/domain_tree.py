"""The tree of one rank's domain, and its sums with the parts of the other ranks' trees.

All trees have one box, that of the particles of all ranks. Each rank says where its targets are,
and gets of each other rank's tree what these may look at (the locally essential tree: Warren &
Salmon 1992, Supercomputing '92, 570); the walks then begin at the roots of all. So the pairs of
bodies and cells are those of one tree, but where a domain's border cuts a cell.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from grape6py._arrays.kinds import DeviceArray, Floats
from grape6py.cuda.tree.accuracy import Sample
from grape6py.cuda.tree.settings import WIDEST, Setting
from grape6py.ranks.carriers import module_of, on_host

if TYPE_CHECKING:
    from grape6py._arrays.kinds import ArrayModule
    from grape6py._lib.tree import HostTree
    from grape6py.cuda.tree.device_tree import DeviceTree
    from grape6py.ranks.ranks import Ranks

STAGES = ("regions", "parts", "exchange", "sum")
_REGION = 512  # targets: a level-1 group of a tree's walk
_ROW = 16  # bytes, of which parts are multiples
_ORDERS = {"bh": 0}


class Found(NamedTuple):
    """Forces on targets, and what has to be said of them."""

    acc: DeviceArray
    pot: DeviceArray
    jerk: DeviceArray
    warning: str | None


class Walk(NamedTuple):
    """How far cells stand for their particles, as :meth:`Tree.forces` has it."""

    eps2: float
    method: str
    theta: float
    order: int
    bound: float


class DomainTree:
    """The tree of a domain. All its calls are made by all ranks.

    Parameters
    ----------
    inner : HostTree or DeviceTree
        Made of `pos`, `mass` and `vel` in the box of `whole`.

    Attributes
    ----------
    done : tuple of int
        Pairs, cells on targets and cells on groups in the last sum.
    seconds : dict of str to float
        Of each of STAGES, since it was made.
    """

    def __init__(
        self,
        ranks: Ranks,
        inner: HostTree | DeviceTree,
        whole: Floats,
        pos: DeviceArray,
        mass: DeviceArray,
    ) -> None:
        self.ranks, self._whole = ranks, whole
        self.inner, self.pos, self.mass = inner, pos, mass
        self.order = inner.order if len(pos) else self.xp.zeros(0, np.int32)
        self.done, self.bytes = (0, 0, 0), 0
        self.seconds: dict[str, float] = dict.fromkeys(STAGES, 0.0)

    @property
    def xp(self) -> ArrayModule:
        """Of its arrays."""
        return module_of(self.pos)

    @contextlib.contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.seconds[stage] += time.perf_counter() - began

    def sum(
        self,
        walk: Walk,
        pos: DeviceArray | None = None,
        vel: DeviceArray | None = None,
        number: DeviceArray | None = None,
        last_acc: DeviceArray | None = None,
    ) -> Found:
        """Forces of the particles of all ranks on some targets, or on the domain's particles.

        `number` are those of the domain's particles that targets are, or -1.
        """
        if pos is None:
            return self._sum(walk, self.pos[self.order], (None, None, None), last_acc, self.order)
        by_key = self.inner.keys(pos, self._whole).argsort(kind="stable")
        targets = (None if a is None else a[by_key] for a in (pos, vel, number))
        last = None if last_acc is None else last_acc[by_key]
        found = self._sum(walk, pos[by_key], tuple(targets), last, slice(None))
        back = module_of(pos).empty_like(by_key)
        back[by_key] = module_of(pos).arange(len(by_key))
        acc, pot, jerk, warning = found
        return Found(acc[back], pot[back], None if jerk is None else jerk[back], warning)

    def _sum(
        self,
        walk: Walk,
        in_order: DeviceArray,
        targets: tuple[DeviceArray, ...],
        last_acc: DeviceArray | None,
        order: DeviceArray | slice,
    ) -> Found:
        ranks, bound = self.ranks, walk.bound
        last_acc = last_acc if bound else None
        with self._timed("regions"):
            least = None if last_acc is None else last_acc[order]
            regions = ranks.gathered(_regions(in_order, least))
        with self._timed("parts"), ranks.step("a sum"):
            regions[ranks.rank] = regions[ranks.rank][:0]
            method, theta, order = walk.method, walk.theta, walk.order
            parts = self.inner.parts(regions, method=method, order=order, theta=theta, bound=bound)
        with self._timed("exchange"):
            theirs = self._exchanged(parts)
        with self._timed("sum"), ranks.step("a sum"):
            ni = len(in_order)
            call = theirs, ni, *targets, last_acc
            *arrays, warning, self.done = self.inner.forces_with(*call, **walk._asdict())
        acc, pot, jerk = arrays
        return Found(acc, pot, jerk, warning)

    def _exchanged(self, parts: Sequence[DeviceArray]) -> list[DeviceArray]:
        """The parts that are for this rank, of what each has made for all."""
        lengths = [len(part) // _ROW for part in parts]
        sent = self.xp.concatenate(parts).reshape(-1, _ROW)
        got, begin = self.ranks.exchanged(sent, np.concatenate([[0], np.cumsum(lengths)]))
        pieces = [got[a:b].reshape(-1) for a, b in itertools.pairwise(begin)]
        del pieces[self.ranks.rank]
        self.bytes = sum(map(len, pieces))
        return [piece for piece in pieces if len(piece)]

    # ---- a wanted accuracy: what Sample asks of a tree -------------------------------------------

    def bound(
        self, accuracy: float, walk: Walk, last_acc: DeviceArray | None
    ) -> tuple[float, DeviceArray]:
        """The bound that gives a median error, and last accelerations for it, of the particles."""
        setting = Setting(WIDEST, _ORDERS.get(walk.method, walk.order), walk.eps2)
        sample = Sample(self, self.pos, setting, self._gathered)  # type: ignore[arg-type]
        estimated = last_acc is None
        last = sample.last_acc(None, None) if last_acc is None else last_acc
        return sample.bound(accuracy, estimated, None if estimated else last), last

    def _gathered(self, found: DeviceArray) -> DeviceArray:
        return module_of(found).asarray(np.concatenate(self.ranks.gathered(on_host(found))))

    def forces(
        self,
        setting: Setting,
        targets: DeviceArray,
        self_index: DeviceArray,
        last_acc: DeviceArray = None,
        few: bool | None = None,
    ) -> tuple[DeviceArray, ...]:
        """As the tree of a GPU has it, for samples."""
        del few
        method = "fmm" if setting.order else "bh"
        bound = setting.bound if last_acc is not None else 0.0
        walk = Walk(setting.eps2, method, setting.theta, setting.order or 5, bound)
        return self.sum(walk, targets, None, self_index, last_acc)[:3]


def _regions(pos: DeviceArray, last_acc: DeviceArray | None) -> Floats:
    """Regions of targets in the order of their keys: shape (m, 7), see g6lib.h."""
    xp, n = module_of(pos), len(pos)
    m = -(-n // _REGION)
    if not n:
        return np.zeros((0, 7))

    def runs(column: DeviceArray) -> DeviceArray:
        last = xp.repeat(column[-1:], m * _REGION - n)
        return xp.concatenate([column, last]).reshape(m, _REGION)

    found = xp.zeros((m, 7))
    for c in range(3):
        column = runs(pos[:, c])
        found[:, c], found[:, 3 + c] = column.min(axis=1), column.max(axis=1)
    if last_acc is not None:
        least = runs(last_acc).min(axis=1)
        found[:, 6] = xp.maximum(least, np.finfo(np.float64).tiny)  # 0 is that none are known
    return on_host(found)

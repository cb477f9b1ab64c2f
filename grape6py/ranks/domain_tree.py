"""The tree of one rank's domain, and its sums with the parts of the other ranks' trees.

All trees have one box, that of the particles of all ranks. Each rank says where its targets are,
and gets of each other rank's tree what these may look at (the locally essential tree: Warren &
Salmon 1992, Supercomputing '92, 570); the walks then begin at the roots of all. So the pairs of
bodies and cells are those of one tree, but where a domain's border cuts a cell.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from grape6py._arrays.kinds import DeviceArray, Floats
from grape6py._arrays.modules import module_of
from grape6py._arrays.regions import regions_of

if TYPE_CHECKING:
    from grape6py._arrays.kinds import ArrayModule
    from grape6py._lib.tree import HostTree
    from grape6py.cuda.tree.device_tree import DeviceTree
    from grape6py.ranks.ranks import Ranks
    from grape6py.ranks.stages import Stages

_ROW = 16  # bytes, of which parts are multiples


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
    """

    def __init__(
        self,
        ranks: Ranks,
        inner: HostTree | DeviceTree,
        whole: Floats,
        pos: DeviceArray,
        mass: DeviceArray,
        stages: Stages,
    ) -> None:
        self.ranks, self._whole = ranks, whole
        self.inner, self.pos, self.mass = inner, pos, mass
        self.done, self.bytes = (0, 0, 0), 0
        self._stages = stages

    @property
    def xp(self) -> ArrayModule:
        """Of its arrays."""
        return module_of(self.pos)

    @property
    def order(self) -> DeviceArray:
        """Numbers of its particles in the order of their keys."""
        return self.inner.order if len(self.pos) else self.xp.zeros(0, np.int32)

    def sum(
        self,
        walk: Walk,
        pos: DeviceArray | None = None,
        vel: DeviceArray | None = None,
        number: DeviceArray | None = None,
        last_acc: DeviceArray | None = None,
        few: bool | None = None,
    ) -> Found:
        """Forces of the particles of all ranks on some targets, or on the domain's particles.

        `number` are those of the domain's particles that targets are, or -1. `few`: as in Octree.
        """
        if pos is None:
            return self._sum(walk, len(self.pos), (None, None, None), last_acc)
        xp = module_of(pos)
        by_key = self.inner.keys(pos, self._whole).argsort(kind="stable")
        targets = tuple(None if a is None else a[by_key] for a in (pos, vel, number))
        last = None if last_acc is None else last_acc[by_key]
        found = self._sum(walk, len(pos), targets, last, few)
        back = xp.empty_like(by_key)
        back[by_key] = xp.arange(len(by_key))
        acc, pot, jerk, warning = found
        return Found(acc[back], pot[back], None if jerk is None else jerk[back], warning)

    def _sum(
        self,
        walk: Walk,
        ni: int,
        targets: tuple[DeviceArray, ...],
        last_acc: DeviceArray | None,
        few: bool | None = None,
    ) -> Found:
        """Forces on targets in the order of their keys, or on the domain's particles."""
        ranks, bound = self.ranks, walk.bound
        last_acc = last_acc if bound else None
        timed, like = self._stages.timed, self.pos
        with timed("regions", like), ranks.agreement("a sum"):
            if targets[0] is not None:
                found = regions_of(targets[0], last_acc)
            else:
                found = self.inner.regions(self.pos, last_acc)
        with timed("exchange", like, meets=True):
            regions = ranks.gathered(found)
        with timed("parts", like), ranks.agreement("a sum"):
            regions[ranks.rank] = regions[ranks.rank][:0]
            parts = self.inner.parts(regions, **walk._asdict())
        with timed("exchange", like, meets=True):
            theirs = self._exchanged(parts)
        with timed("sum", like), ranks.agreement("a sum"):
            call = theirs, ni, *targets, last_acc
            *arrays, warning, self.done = self.inner.forces_with(*call, **walk._asdict(), few=few)
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

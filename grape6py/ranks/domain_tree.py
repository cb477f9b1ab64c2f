"""The tree of one rank's domain, and its sums with the parts of the other ranks' trees.

All trees have one box, that of the particles of all ranks. Each rank says where its targets are,
and gets of each other rank's tree what these may look at (the locally essential tree: Warren &
Salmon 1992, Supercomputing '92, 570); the walks then begin at the roots of all. So the pairs of
bodies and cells are those of one tree, but where a domain's border cuts a cell.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from grape6py._arrays.kinds import DeviceArray, Floats, UInt64s
from grape6py._arrays.modules import mapped, module_of
from grape6py._lib.regions import regions_of
from grape6py._lib.tree_setting import Found, Setting, Targets

if TYPE_CHECKING:
    from grape6py._lib.tree import HostTree
    from grape6py.cuda.tree.device_tree import DeviceTree
    from grape6py.ranks.domains import Moves
    from grape6py.ranks.ranks import Ranks
    from grape6py.ranks.stages import Stages

_ROW = 16  # bytes, of which parts are multiples


@dataclass(eq=False, repr=False)
class DomainTree:
    """The tree of a domain. All its calls are made by all ranks."""

    ranks: Ranks
    first: int  # number of this rank's first particle among those of all ranks
    inner: HostTree | DeviceTree  # made of the particles at `pos`, in the box of `_whole`
    _whole: Floats
    _cut: UInt64s  # the first keys of all ranks but the first
    way: Moves  # of the particles to their domains
    pos: DeviceArray
    _stages: Stages
    bytes: int = 0  # of the parts of the last sum that others have made

    def owners(self, pos: DeviceArray) -> DeviceArray:
        """The ranks that have positions."""
        return self.inner.owners(pos, self._whole, self._cut)

    def places(self, number: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
        """The ranks that have some of the particles that this rank has given, by their numbers
        among those of all ranks, and their places on these; -1 of none."""
        xp, known = module_of(number), number >= 0
        rank, place = xp.full(len(number), -1), xp.full(len(number), -1)
        own, (ranks, places) = number[known] - self.first, self.way.places()
        rank[known], place[known] = ranks[own], places[own]
        return rank, place

    def sum(self, setting: Setting, targets: Targets) -> Found:
        """Forces of the particles of all ranks on some targets, or on the domain's particles.

        Numbers of targets are those of the domain's particles that they are, or -1.
        """
        if targets.pos is None:
            return self._sum(setting, targets)
        xp = module_of(targets.pos)
        by_key = self.inner.keys(targets.pos, self._whole).argsort(kind="stable")
        found = self._sum(setting, mapped(lambda rows: rows[by_key], targets))
        back = xp.empty_like(by_key)
        back[by_key] = xp.arange(len(by_key))
        return Found(*mapped(lambda rows: rows[back], tuple(found)))

    def _sum(self, setting: Setting, targets: Targets) -> Found:
        """Forces on targets in the order of their keys, or on the domain's particles."""
        ranks, timed, like = self.ranks, self._stages.timed, self.pos
        if not setting.bound:
            targets = targets._replace(last_acc=None)
        with timed("regions", like), ranks.agreement("a sum"):
            if targets.pos is not None:
                found = regions_of(targets.pos, targets.last_acc)
            else:
                found = self.inner.regions(self.pos, targets.last_acc)
        with timed("exchange", like, meets=True):
            regions = ranks.gathered(found)
        with timed("parts", like), ranks.agreement("a sum"):
            regions[ranks.rank] = regions[ranks.rank][:0]
            parts = self.inner.parts(setting, regions)
        with timed("exchange", like, meets=True):
            lengths = [len(part) // _ROW for part in parts]
            sent = module_of(self.pos).concatenate(parts).reshape(-1, _ROW)
            got, begin = ranks.exchanged(sent, np.concatenate([[0], np.cumsum(lengths)]))
            pieces = [got[a:b].reshape(-1) for a, b in itertools.pairwise(begin)]
            del pieces[ranks.rank]
            self.bytes = sum(map(len, pieces))
            theirs = [piece for piece in pieces if len(piece)]  # of the parts that others have made
        with timed("sum", like), ranks.agreement("a sum"):
            return self.inner.forces(setting, targets, theirs)

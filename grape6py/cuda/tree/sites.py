"""Very many particles at one place, their site: in an octree they are one. None of them acts on
another but through softening: with the potential, and with the jerk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from grape6py._arrays.kinds import DeviceArray
from grape6py._lib.tree_setting import Setting, Targets
from grape6py.cuda.job import Job, declared
from grape6py.cuda.tree import kernels

if TYPE_CHECKING:
    from grape6py.cuda.tree.build import TreeCells
    from grape6py.cuda.tree.settings import Counts

Sum = Callable[[Setting, Targets], tuple[DeviceArray, DeviceArray, DeviceArray, "Counts"]]


class Sites(Job):
    """Those of a tree whose particles are sorted, and whose cells are not made yet.

    The first particle of each gets the mass and mean velocity of all; the others, how many is
    `merged`, go to the end of the tree's order. `near`: particles without the distant.
    """

    def __init__(self, cells: TreeCells, sorted_keys: DeviceArray, near: int) -> None:
        n, gpu = cells.n, cells.gpu
        super().__init__(gpu, declared("tree/sites.cu")[0], "tree_sites_job", n=n, near=near)
        gpu.prepare(kernels.SITES)
        self.set(**{name: cells.arrays[name] for name in "xmv"})
        self.set(leader=self._new(n), others=self._new(n), mass=self._new(n, np.float64))
        if self.arrays["v"] is not None:
            self.set(velocity=self._new((n, 3), np.float64), momentum=self._new((n, 3), np.float64))
        self.set(
            sorted=sorted_keys, **{k: cells.arrays[k] for k in ("box", "order", "high", "low")}
        )
        kept, has_several = self._merge()
        if has_several:  # in order of their places, more of them are neighbours
            self.set(order=self._by_place(near))
            cells.set(order=self.arrays["order"])
            cells.launch("tree_gather", n, 256)
            kept, _ = self._merge()
        self.merged = n - kept
        moved = {name: self.arrays[f"new_{name}"] for name in ("sorted", "order", "high", "low")}
        cells.set(m=self.arrays["mass"], v=self.arrays.get("velocity"), **moved)
        self.drop("sorted order high low stays kept found box")
        self.drop(" ".join(f"new_{name}" for name in moved))

    def _new(self, shape: int | tuple[int, ...], dtype: type = np.int32) -> DeviceArray:
        return self.xp.empty(shape, dtype)

    def _merge(self) -> tuple[int, bool]:
        """How many particles are left, and whether a smallest cell has several places."""
        n = self.fields.n
        self.set(stays=self._new(n), found=self.xp.zeros(2, np.int32))
        self.set(new_sorted=self._new(n, np.uint64), new_order=self._new(n, np.int64))
        self.set(new_high=self._new((n, 4), np.float32), new_low=self._new((n, 4), np.float32))
        self.launch("tree_site_marks", n, 256)
        self.set(kept=self.xp.cumsum(self.arrays["stays"], dtype=np.int32))
        self.launch("tree_site_moves", n, 256)
        self.launch("tree_site_sums", n, 256)
        kept, has_several = self.gpu.take(self.arrays["found"]).tolist()
        return kept, bool(has_several)

    def _by_place(self, near: int) -> DeviceArray:
        """The order, with particles of equal keys by their places."""
        xp, order = self.xp, self.arrays["order"].copy()
        changes = xp.ones(near + 1, bool)
        changes[1:near] = self.arrays["sorted"][1:near] != self.arrays["sorted"][: near - 1]
        places = xp.flatnonzero(~(changes[:-1] & changes[1:]))
        members, run = order[places], xp.cumsum(changes[:-1])[places]
        at = self.arrays["x"][members] + 0.0  # of zeros, one sign
        keys = [members.astype(np.float64), at[:, 0], at[:, 1], at[:, 2], run.astype(np.float64)]
        order[places] = members[xp.lexsort(xp.stack(keys))]
        return order

    def forces(
        self, of_tree: Sum, setting: Setting, targets: Targets
    ) -> tuple[DeviceArray, DeviceArray, DeviceArray, Counts]:
        """What `of_tree` finds for the sites, and what the others of its site do to a particle."""
        xp, number, leader = self.xp, targets.number, self.arrays["leader"]
        is_own = targets.pos is None
        if is_own and self.arrays["v"] is not None:
            targets = targets._replace(pos=self.arrays["x"], vel=self.arrays["v"], number=leader)
        elif number is not None:
            of_site = leader[xp.where(number >= 0, number, 0)]
            targets = targets._replace(number=xp.where(number >= 0, of_site, -1).astype(np.int32))
        acc, pot, jerk, counts = of_tree(setting, targets)
        left_out = xp.zeros(1, np.uint64)
        self.fields.eps, self.fields.rows = setting.eps2**0.5, len(pot)
        self.set(acc=acc, pot=pot, jerk=jerk, target_v=targets.vel, zero_distances=left_out)
        if targets.pos is None:
            self.launch("tree_site_results", len(pot), 256)
        if is_own or number is not None:
            self.set(number=number)
            self.launch("tree_site_own", len(pot), 256)
            if not setting.eps2:
                counts.zero_distances += int(left_out[0])
        self.drop("acc pot jerk target_v zero_distances number")
        return acc, pot, jerk, counts

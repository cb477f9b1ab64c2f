"""Searches in an octree on a GPU: their memory, and the order of their kernels
(tree/search.cu). Nothing is computed here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grape6py._arrays.kinds import DeviceArray
from grape6py.cuda.job import Job
from grape6py.cuda.tree import kernels
from grape6py.cuda.tree.build import ffi, numbers

if TYPE_CHECKING:
    from grape6py.cuda.tree.build import TreeCells

_WARP = 32


class Search(Job):
    """Neighbours of some targets, or of the particles themselves, in the order they were given.

    Targets are contiguous and finite; `self_index` are the numbers of the particles that they are,
    which are left out, or -1.
    """

    def __init__(
        self, tree: TreeCells, targets: DeviceArray = None, self_index: DeviceArray = None
    ) -> None:
        self._ni = ni = tree.n if targets is None else len(targets)
        known = "x order box cell moments low n".split()
        given = {name: getattr(tree.fields, name) for name in known}
        super().__init__(tree.gpu, ffi, "tree_search_job", **given, target_count=ni)
        self._tree = tree
        if not ni:
            return
        tree.gpu.prepare(kernels.SEARCH)
        self.set(targets=targets, self=self_index)
        if targets is not None:
            self.set(key=self._keys())
            self.set(target_order=self.gpu.sort(self.arrays["key"]))
        self.fields.cells = tree.cells
        self.set(
            at=self.xp.empty((3, tree.n), np.float64),
            search=tree.structures("tree_search_cell", tree.cells),
        )
        self.launch("tree_search_places", tree.n)
        self.launch("tree_search_cells", tree.cells)

    def _keys(self) -> DeviceArray:
        """Keys of the targets, as for forces."""
        job = Job(self.gpu, ffi, "tree_device_job")
        job.fields[0] = self._tree.fields[0]
        job.fields.target_count = self._ni
        keys = self.xp.empty(self._ni, np.uint64)
        job.set(targets=self.arrays["targets"], key=keys)
        job.launch("tree_target_keys", self._ni, 256)
        return keys

    def _search(self, name: str) -> None:
        """Start a kernel with a warp for each target."""
        self.launch(name, self._ni * _WARP, numbers.SEARCH_THREADS)

    def count(self, h2: DeviceArray) -> DeviceArray:
        """How many particles have r^2 <= h2[i]."""
        count = self.xp.empty(self._ni, np.int32)
        if self._ni:
            self.set(h2=h2, count=count, start=None)
            self._search("tree_search_within")
        return count

    def within(self, h2: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
        """Numbers of the particles with r^2 <= h2[i], ascending, as start and index: row i is
        ``index[start[i]:start[i + 1]]``."""
        start = self.xp.zeros(self._ni + 1, np.int64)
        start[1:] = self.xp.cumsum(self.count(h2), dtype=np.int64)
        index = self.xp.empty(int(start[-1]), np.int32)
        if self._ni:
            self.set(start=start, found=index)
            self._search("tree_search_within")
            self._search("tree_sort_rows")
        return start, index

    def nearest(self, k: int) -> tuple[DeviceArray, DeviceArray]:
        """Numbers and r^2, shape (ni, k), of the k nearest particles, nearest first, of equally
        near ones the lowest number; -1 and infinite where there are fewer."""
        number = self.xp.empty((self._ni, k), np.int32)
        r2 = self.xp.empty((self._ni, k), np.float64)
        if number.size:
            self.set(number=number, r2=r2)
            self.fields.k = k
            kinds = ("", numbers.NEAREST_CHUNK), ("_more", numbers.NEAREST_MORE), ("_many", k)
            self._search("tree_search_nearest" + next(kind for kind, most in kinds if k <= most))
        return number, r2

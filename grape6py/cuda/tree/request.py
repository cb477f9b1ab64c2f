"""The octree of a session's j particles on its GPU, whose arrays are the host's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grape6py._arrays.kinds import AnyArray, ArrayOf, CData, DeviceArray
from grape6py._lib.tree_setting import Setting, Targets
from grape6py.cuda.tree.build import Unresolved
from grape6py.cuda.tree.octree import Octree
from grape6py.cuda.tree.search import Search

if TYPE_CHECKING:
    from grape6py.cuda.launcher import TreeLauncher


class SessionTree:
    """Forces and neighbours of particles and targets that lie in the host's memory."""

    def __init__(self, gpu: TreeLauncher) -> None:
        self._gpu = gpu
        self._tree: Octree | None = None

    def forget(self) -> None:
        """Give the memory of the tree back."""
        self._tree = None

    def answer(self, job: CData, array: ArrayOf) -> None:
        """Do what a struct tree_request (csrc/core/device.h) asks for, or mark it as unresolved.

        array(pointer, n, ...) is a view of so many numbers that a field points to, None of NULL.
        """
        job.zero_distances = job.unresolved = 0
        if job.changed:
            self.forget()
        try:
            call = self._sum if job.acc else self._search
            call(self._tree_of(job, array), job, array)
        except Unresolved:
            job.unresolved = 1

    def _sum(self, tree: Octree, job: CData, array: ArrayOf) -> None:
        """Write the forces on targets, of which those of one softening are summed at once."""
        n, eps2 = job.targets, array(job.eps2, job.targets)
        targets = array(job.at, n, 3), array(job.velocity, n, 3), array(job.self, n)
        out = array(job.acc, n, 3), array(job.pot, n), array(job.jerk, n, 3)
        for softening in np.unique(eps2):
            is_equal = eps2 == softening
            of_equal_eps2 = slice(None) if is_equal.all() else np.flatnonzero(is_equal)
            some = Targets(*(self._put(None if a is None else a[of_equal_eps2]) for a in targets))
            setting = Setting(job.theta, job.order, float(softening))
            *found, counts = tree.forces(setting, some)
            for to, values in zip(out, found, strict=True):
                if to is not None:
                    to[of_equal_eps2] = self._gpu.take(values)
            job.zero_distances += counts.zero_distances

    def _search(self, tree: Octree, job: CData, array: ArrayOf) -> None:
        if not tree.is_whole:
            raise Unresolved
        at, number = array(job.at, job.targets, 3), array(job.self, job.targets)
        search = Search(tree, self._put(at), self._put(number))
        if job.nearest:
            found, _ = search.nearest(1)
            array(job.nearest, job.targets)[:] = self._gpu.take(found)[:, 0]
        if job.length:
            count = search.count(self._put(array(job.h2, job.targets)))
            array(job.length, job.targets)[:] = self._gpu.take(count)
        if job.list:
            _, found = search.within(self._put(array(job.h2, job.targets)))
            array(job.list, len(found))[:] = self._gpu.take(found)

    def _tree_of(self, job: CData, array: ArrayOf) -> Octree:
        """The tree of the job's particles."""
        if self._tree is None:
            n = job.sources
            given = array(job.x, n, 3), array(job.m, n), array(job.v, n, 3)
            self._tree = Octree(self._gpu, *map(self._put, given))
        return self._tree

    def _put(self, host: AnyArray | None) -> DeviceArray:
        """A copy on the device; None of None."""
        return None if host is None else self._gpu.put(np.ascontiguousarray(host))

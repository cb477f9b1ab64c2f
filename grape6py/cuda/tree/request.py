"""The octree of a session's j particles on a GPU, whose arrays are the host's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grape6py._arrays.kinds import AnyArray, ArrayOf, CData, DeviceArray
from grape6py.cuda.tree.build import Unresolved
from grape6py.cuda.tree.octree import Octree
from grape6py.cuda.tree.search import Search
from grape6py.cuda.tree.settings import Setting

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
        if job.changed or self._tree is None:
            self._tree = self._built(job, array)
        job.zero_distances = job.unresolved = 0
        try:
            if job.acc:
                self._sum(self._tree, job, array)
            elif self._tree.unresolved:
                raise Unresolved
            else:
                self._search(self._tree, job, array)
        except Unresolved:
            job.unresolved = 1

    def _sum(self, tree: Octree, job: CData, array: ArrayOf) -> None:
        at = array(job.at, job.targets, 3)
        velocity = array(job.velocity, job.targets, 3)
        self_index, eps2 = array(job.self, job.targets), array(job.eps2, job.targets)
        out = [array(field, job.targets, 3) for field in (job.acc, job.jerk)]
        out.append(array(job.pot, job.targets))
        for softening in np.unique(eps2):
            alike = slice(None) if (eps2 == softening).all() else np.flatnonzero(eps2 == softening)
            setting = Setting(job.theta, job.order, float(softening))
            wanted = [
                None if a is None else self._put(a[alike]) for a in (at, self_index, velocity)
            ]
            targets, numbers, moving = wanted
            *found, counts = tree.forces(setting, targets, numbers, vel=moving)
            acc, pot, jerk = found
            for to, values in zip(out, (acc, jerk, pot), strict=True):
                if to is not None:
                    to[alike] = self._gpu.take(values)
            job.zero_distances += counts.zero_distances

    def _search(self, tree: Octree, job: CData, array: ArrayOf) -> None:
        at, number = array(job.at, job.targets, 3), array(job.self, job.targets)
        search = Search(tree, self._put(at), None if number is None else self._put(number))
        if job.nearest:
            found, _ = search.nearest(1)
            array(job.nearest, job.targets)[:] = self._gpu.take(found)[:, 0]
        if job.length:
            count = search.count(self._put(array(job.h2, job.targets)))
            array(job.length, job.targets)[:] = self._gpu.take(count)
        if job.list:
            _, found = search.within(self._put(array(job.h2, job.targets)))
            array(job.list, len(found))[:] = self._gpu.take(found)

    def _built(self, job: CData, array: ArrayOf) -> Octree:
        """A tree of the job's particles; the memory of the old one is given back first."""
        self.forget()
        sources = (
            array(job.x, job.sources, 3),
            array(job.m, job.sources),
            array(job.v, job.sources, 3),
        )
        pos, mass, vel = (None if a is None else self._put(a) for a in sources)
        return Octree(self._gpu, pos, mass, vel)

    def _put(self, host: AnyArray) -> DeviceArray:
        return self._gpu.put(np.ascontiguousarray(host))

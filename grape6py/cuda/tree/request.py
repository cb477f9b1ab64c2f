"""The octree of a session's j particles on its GPU, whose arrays are the host's."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from grape6py._arrays.kinds import AnyArray, ArrayOf, CData, DeviceArray, Untyped
from grape6py.cuda.tree.build import Unresolved
from grape6py.cuda.tree.octree import Octree
from grape6py.cuda.tree.search import Search
from grape6py.cuda.tree.settings import Setting

if TYPE_CHECKING:
    from grape6py.cuda.launcher import TreeLauncher

# Arrays of the host or None, of targets: positions, numbers, velocities; of sources: positions,
# masses, velocities.
Given: TypeAlias = "list[Untyped]"
# Acc, pot and jerk on the host, and how many zero-distance pairs were left out.
Sums: TypeAlias = "tuple[AnyArray | None, AnyArray | None, AnyArray | None, int]"


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
            if not job.acc:
                self._search(job, array)
            else:
                self._sum(job, array)
        except Unresolved:
            job.unresolved = 1

    # ---- forces ----------------------------------------------------------------------------------

    def _sum(self, job: CData, array: ArrayOf) -> None:
        tree = self._tree_of(job, array)

        def forces(setting: Setting, targets: Given) -> Sums:
            at, number, velocity = (None if a is None else self._put(a) for a in targets)
            *found, counts = tree.forces(setting, at, number, vel=velocity)
            acc, pot, jerk = (None if a is None else self._gpu.take(a) for a in found)
            return acc, pot, jerk, counts.zero_distances

        _by_softening(forces, job, array)

    # ---- searches --------------------------------------------------------------------------------

    def _search(self, job: CData, array: ArrayOf) -> None:
        tree = self._tree_of(job, array)
        if tree.unresolved:
            raise Unresolved
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

    # ---- trees -----------------------------------------------------------------------------------

    def _tree_of(self, job: CData, array: ArrayOf) -> Octree:
        """The tree of the job's particles."""
        if self._tree is None:
            pos, mass, vel = (None if a is None else self._put(a) for a in _sources(job, array))
            self._tree = Octree(self._gpu, pos, mass, vel)
        return self._tree

    def _put(self, host: AnyArray) -> DeviceArray:
        return self._gpu.put(np.ascontiguousarray(host))


def _sources(job: CData, array: ArrayOf) -> Given:
    """Positions, masses, and velocities or None."""
    n = job.sources
    return [array(job.x, n, 3), array(job.m, n), array(job.v, n, 3)]


def _by_softening(forces: Callable[[Setting, Given], Sums], job: CData, array: ArrayOf) -> None:
    """Write the forces on a job's targets, of which those of one softening are summed at once."""
    n, eps2 = job.targets, array(job.eps2, job.targets)
    targets = array(job.at, n, 3), array(job.self, n), array(job.velocity, n, 3)
    out = array(job.acc, n, 3), array(job.pot, n), array(job.jerk, n, 3)
    for softening in np.unique(eps2):
        alike = slice(None) if (eps2 == softening).all() else np.flatnonzero(eps2 == softening)
        some = [None if a is None else a[alike] for a in targets]
        *found, zero_distances = forces(Setting(job.theta, job.order, float(softening)), some)
        for to, values in zip(out, found, strict=True):
            if to is not None:
                to[alike] = values
        job.zero_distances += zero_distances

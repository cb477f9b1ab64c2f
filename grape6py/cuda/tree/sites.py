"""An octree of a set of which very many particles stand at one place, their site: in the tree they
are one. None of them acts on another but through softening: with the potential, and with the jerk.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from grape6py._arrays.kinds import AnyArray, DeviceArray
from grape6py._lib.tree_setting import Targets
from grape6py.cuda.job import Job, declared
from grape6py.cuda.tree.build import Unresolved
from grape6py.cuda.tree.octree import OWN, Octree

if TYPE_CHECKING:
    from grape6py._lib.tree_setting import Setting
    from grape6py.cuda.tree.settings import Counts


class Sites:
    """In the shape of :class:`Octree`, as sums take it, of one that has crowds.

    Raises Unresolved if no two particles of these are at one place.
    """

    def __init__(self, crowded: Octree) -> None:
        self._gpu, self._xp = crowded.gpu, crowded.xp
        self._pos, self._mass, self._vel = (crowded.arrays[name] for name in "xmv")
        members, start = self._sorted(crowded)
        if len(start) == len(members):
            raise Unresolved
        self._merge(members, start)

    def _job(self, **numbers: int) -> Job:
        return Job(self._gpu, declared("tree/sites.cu")[0], "tree_sites_job", **numbers)

    def _sorted(self, crowded: Octree) -> tuple[DeviceArray, list[int]]:
        """Numbers of the crowds' particles, site by site, and where these begin."""
        xp, size = self._xp, [end - first for first, end in crowded.crowds]
        members = xp.concatenate([crowded.order[first:end] for first, end in crowded.crowds])
        start = np.cumsum([0, *size[:-1]]).tolist()
        job = self._job(sites=len(start), members=len(members))
        others = xp.zeros(1, np.int32)
        job.set(x=self._pos, member=members, start=xp.asarray(start), others=others)
        job.launch("tree_site_check", 256 * len(start), 256)
        if not int(others[0]):  # each crowd is one site
            return members, start
        at = self._pos[members] + 0.0  # of zeros, one sign
        keys = xp.stack([members.astype(np.float64), at[:, 0], at[:, 1], at[:, 2]])
        order = xp.lexsort(keys)
        members, at = members[order], at[order]
        begins = xp.ones(len(members), bool)
        begins[1:] = (at[1:] != at[:-1]).any(axis=1)
        return members, self._gpu.take(xp.flatnonzero(begins)).tolist()

    def _merge(self, members: DeviceArray, start: list[int]) -> None:
        """The sites' tree, and where each particle is among them."""
        xp, n, sites = self._xp, len(self._mass), len(start)
        job = self._job(sites=sites, members=len(members))
        mass, momentum = xp.empty(sites, np.float64), xp.zeros((sites, 3), np.float64)
        begins = xp.asarray(start)
        job.set(m=self._mass, v=self._vel, member=members, start=begins)
        job.set(mass=mass, momentum=momentum)
        job.launch("tree_site_sums", 256 * sites, 256)
        size = np.diff([*start, len(members)])
        count = xp.asarray(size.astype(np.float64))
        first = members[begins]  # the lowest number of each site
        stays = xp.ones(n, bool)
        stays[members] = False
        stays[first] = True
        self._kept = kept = xp.flatnonzero(stays)
        self._place = xp.cumsum(stays, dtype=np.int32) - np.int32(1)
        merged = self._place[first]
        self._place[members] = merged[xp.asarray(np.repeat(np.arange(sites), size))]
        self._all = [mass, momentum, count]
        self._site = xp.full(len(kept), -1, np.int32)
        self._site[merged] = xp.arange(sites, dtype=np.int32)
        of_sites, vel = self._mass[kept], None
        of_sites[merged] = mass
        if self._vel is not None:
            vel = self._vel[kept]
            heavy = (mass != 0.0)[:, None]
            mean = momentum / xp.where(heavy, mass[:, None], 1.0)
            vel[merged] = xp.where(heavy & (count > 1)[:, None], mean, vel[merged])
        self._tree = Octree(self._gpu, self._pos[kept], of_sites, vel)

    def forces(
        self, setting: Setting, targets: Targets = OWN, imports: Sequence[AnyArray] = ()
    ) -> tuple[DeviceArray, DeviceArray, DeviceArray, Counts]:
        """As an octree's."""
        del imports  # of ranks, which have one box
        number = targets.number
        if targets.pos is None and self._vel is None:
            number, last_acc = slice(None), targets.last_acc
            last_acc = None if last_acc is None else last_acc[self._kept]
            acc, pot, _, counts = self._tree.forces(setting, Targets(last_acc=last_acc))
            acc, pot, jerk = acc[self._place], pot[self._place], None
        else:
            if setting.momentum:
                raise Unresolved
            if targets.pos is None:
                number = slice(None)
                targets = targets._replace(pos=self._pos, vel=self._vel, number=self._place)
            elif number is not None:
                is_one = number >= 0
                safe = self._xp.where(is_one, number, 0)
                of_tree = self._xp.where(is_one, self._place[safe], -1).astype(np.int32)
                targets = targets._replace(number=of_tree)
            acc, pot, jerk, counts = self._tree.forces(setting, targets)
        if number is not None:
            self._add_own(setting, number, pot, jerk, counts, targets.vel)
        return acc, pot, jerk, counts

    def _add_own(
        self,
        setting: Setting,
        number: DeviceArray | slice,
        pot: DeviceArray,
        jerk: DeviceArray,
        counts: Counts,
        vel: DeviceArray,
    ) -> None:
        """What the others of its site do to a target that is a particle of one."""
        xp = self._xp
        of_all = xp.arange(len(self._mass)) if isinstance(number, slice) else number
        site = xp.where(of_all >= 0, self._site[self._place[xp.where(of_all >= 0, of_all, 0)]], -1)
        rows = xp.flatnonzero(site >= 0)
        which, site = of_all[rows], site[rows]
        mass, momentum, count = (array[site] for array in self._all)
        if not setting.eps2:
            counts.zero_distances += int((count - 1.0).sum())
            return
        eps = np.sqrt(setting.eps2)
        pot[rows] -= (mass - self._mass[which]) / eps
        if jerk is None:
            return
        own = self._vel[which]
        rate = momentum - self._mass[which][:, None] * own
        if vel is not None:  # else targets are at rest
            rate -= (mass - self._mass[which])[:, None] * vel[rows]
        jerk[rows] += rate / (setting.eps2 * eps)

"""Direct sums on a GPU in double precision, of particles with their own softening, or splines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from grape6py._arrays.kinds import Untyped
from grape6py._lib import memory_space
from grape6py._lib.declarations import constants
from grape6py._lib.tree_setting import Setting
from grape6py.cuda.job import Job, declared

if TYPE_CHECKING:
    from grape6py.cuda.launcher import TreeLauncher
    from grape6py.cuda.tree.octree import Octree

# Of a box, in which a double holds the factors of all pairs but of some very close ones.
LEAST_EXTENT, MOST_EXTENT = 1e-60, 1e60


def term_of(setting: Setting) -> int:
    """What pairs with softening of their own, or splines, add (csrc/shared/pair_terms.h)."""
    return int(constants.PAIR_SPLINE if setting.spline else constants.PAIR_OWN)


def _job(gpu: TreeLauncher, **numbers: float) -> Job:
    return Job(gpu, declared("tree/softened.cu")[0], "tree_softened_job", **numbers)


def softened_rows(tree: Octree, count: int) -> None:
    """Sums the targets of a tree that its list of close pairs names, in place of what they have."""
    of, given = tree.arrays, tree.fields
    jerk = int(constants.PAIR_JERK) if given.jerk else 0
    job = _job(tree.gpu, n=tree.n, term=given.term | jerk, given_eps=np.sqrt(given.eps2_given))
    job.set(x=of["x"], m=of["m"], v=of["v"], eps=of["own_eps"], at=of["targets"])
    job.set(at_v=of["target_v"], self=of["self"], acc=of["acc"], pot=of["pot"], jerk=of["jerk"])
    job.set(order=of["target_order"] if given.targets else of["order"])
    job.fields.close = given.close
    job.launch("tree_softened_rows", 256 * count, 256)


def direct_sums(
    device: int, targets: Sequence[Untyped], sources: Sequence[Untyped], *, spline: bool
) -> tuple[Untyped, Untyped, Untyped, int]:
    """acc, jerk and pot, in arrays of the kind that the targets are, and how many pairs without
    distance or softening were left out.

    Sources are pos, vel, mass and eps, or None; targets are pos, vel, eps and the number of the
    source that each is, or -1.
    """
    from grape6py.cuda.tree import device_tree  # which needs CuPy

    cupy = memory_space.import_cupy("pos")
    with device_tree.lock, cupy.cuda.Device(device), device_tree.explained(cupy):
        gpu = device_tree.gpu_of(device)
        is_host = isinstance(targets[0], np.ndarray) and cupy.ndarray is not np.ndarray
        given: list[Untyped] = [
            None if a is None else cupy.ascontiguousarray(cupy.asarray(a))
            for a in (*sources, *targets)
        ]
        x, v, m, eps, at, at_v, at_eps, number = given
        out = [cupy.empty((len(at), 3)), cupy.empty((len(at), 3)), cupy.empty(len(at))]
        kind = constants.PAIR_SPLINE if spline else constants.PAIR_OWN
        job = _job(gpu, n=len(x), term=int(kind | constants.PAIR_JERK))
        job.set(x=x, v=v, m=m, eps=eps, at=at, at_v=at_v, at_eps=at_eps, self=number)
        left_out = cupy.zeros(1, np.uint64)
        job.set(acc=out[0], jerk=out[1], pot=out[2], zero_distances=left_out)
        job.launch("tree_softened_rows", 256 * len(at), 256)
        acc, jerk, pot = (cupy.asnumpy(array) if is_host else array for array in out)
        return acc, jerk, pot, int(left_out[0])

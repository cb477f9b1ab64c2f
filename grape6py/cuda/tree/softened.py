"""Direct sums on a GPU in double precision, of particles with their own softening, or splines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

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


def softened_job(gpu: TreeLauncher, **numbers: float) -> Job:
    return Job(gpu, declared("tree/softened.cu")[0], "tree_softened_job", **numbers)


def softened_rows(tree: Octree, count: int) -> None:
    """Sums the targets of a tree that its list of close pairs names, in place of what they have."""
    of, given = tree.arrays, tree.fields
    term = given.term | (int(constants.PAIR_JERK) if given.jerk else 0)
    job = softened_job(tree.gpu, n=tree.n, term=term, given_eps=np.sqrt(given.eps2_given))
    job.set(x=of["x"], m=of["m"], v=of["v"], eps=of["own_eps"], at=of["targets"])
    job.set(at_v=of["target_v"], self=of["self"], acc=of["acc"], pot=of["pot"], jerk=of["jerk"])
    job.set(order=of["target_order"] if given.targets else of["order"])
    job.fields.close = given.close
    job.launch("tree_softened_rows", 256 * count, 256)

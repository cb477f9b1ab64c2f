"""Sums of a set of which few particles are very far from all others, beyond the tree's box."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from grape6py._arrays.kinds import DeviceArray
from grape6py._lib.tree_setting import Setting, Targets
from grape6py.cuda.tree import kernels
from grape6py.cuda.tree.build import numbers

if TYPE_CHECKING:
    from grape6py.cuda.tree.octree import Octree
    from grape6py.cuda.tree.settings import Counts


def forces(
    tree: Octree, setting: Setting, targets: Targets
) -> tuple[DeviceArray, DeviceArray, DeviceArray, Counts]:
    """As an octree's, with what the distant particles do, and what is done to them."""
    on_distant = None
    if targets.pos is None and tree.fields.closer:
        which = tree.order[tree.near : tree.near + tree.fields.closer]
        given = tree.arrays["x"], tree.arrays["v"], None, targets.last_acc
        of_distant = Targets(*(None if array is None else array[which] for array in given))
        on_distant = tree.near_forces(setting, of_distant)[:3]
    return tree.near_forces(setting, targets, (), lambda: _add(tree, on_distant))


def _add(tree: Octree, on_distant: Sequence[DeviceArray] | None) -> None:
    """What distant particles do to all targets; `on_distant`: results of the closer of them as
    targets of the others."""
    job, are_many = tree.fields, tree.distant > numbers.DISTANT_FEW
    names = "near_acc near_pot near_jerk"
    tree.set(**dict(zip(names.split(), on_distant or (None,) * 3, strict=True)))
    tree.set(momenta=tree.xp.empty(numbers.DISTANT_TERMS, np.float64))
    tree.set(listed=tree.xp.empty(job.rows, np.int32))
    tree.set(source=tree.structures("distant_source", tree.distant))
    tree.gpu.prepare(kernels.DISTANT)
    tree.launch("tree_distant_sources", tree.distant)
    if are_many:
        tree.launch("tree_distant_terms", 256, 256)
    tree.launch("tree_distant_on_targets", job.rows, 256)
    if are_many:
        tree.launch("tree_distant_pairs", 128 * numbers.DISTANT_BLOCKS)
    tree.drop(f"momenta source listed {names}")

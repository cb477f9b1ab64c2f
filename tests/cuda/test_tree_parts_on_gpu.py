"""Parts of other ranks' trees on the stand-in for a GPU. Forces of ranks are in tests/tree."""

import numpy as np
import pytest

from grape6py import errors, plummer
from grape6py._lib.tree_setting import Setting
from grape6py.cuda.tree.device_tree import DeviceTree
from grape6py.cuda.tree.octree import Octree
from octrees import whole_of

EPS2 = 1e-6
FMM, BH = Setting(0.6, 5, EPS2), Setting(0.6, 0, EPS2)
MASS, POS, VEL = plummer(2500, seed=5)


def halves(gpu, vel):
    """Trees of two ranks, and what the second needs of the first for targets anywhere."""
    whole = whole_of(MASS, POS, vel)
    trees = [Octree(gpu, POS[r].copy(), MASS[r].copy(), None if vel is None else vel[r].copy(),
                    whole) for r in (slice(500), slice(500, None))]  # fmt: skip
    anywhere = np.array([[*POS.min(axis=0), *POS.max(axis=0), 0.0]])
    return trees, trees[1].parts(FMM, [anywhere])[0]


def test_what_has_no_targets_needs_nothing_and_what_is_no_part_is_refused(tree_gpu):
    (tree, _), part = halves(tree_gpu, VEL)
    still, none = halves(tree_gpu, None)[1], np.empty((0, 7))
    assert [len(nothing) for nothing in tree.parts(FMM, [none, none])] == [0, 0]
    with_nothing = tree.forces(FMM, imports=[np.empty(0, np.uint8)])
    assert with_nothing[0].tobytes() == tree.forces(FMM)[0].tobytes()
    for wrong in (part[:-16], part[:20], still, np.zeros(64, np.uint8)):
        with pytest.raises(errors.ArgumentError, match="part 1 is none of a tree like this one"):
            tree.forces(FMM, imports=[part, wrong])


def test_a_box_of_all_ranks_that_does_not_resolve_a_rank(put, cupy):
    """Is found when the tree is made: 40 bodies close together, beside the size of the others."""
    pos = np.vstack([1e-12 * POS[:40], POS[:60]])
    whole = whole_of(np.ones(100), pos)
    tree = DeviceTree(cupy, 0, of_host=False)
    with (
        pytest.raises(errors.RangeError, match="does not resolve"),
        tree.using({"pos": put(pos)}) as place,
    ):
        tree.build(place, put(pos), put(np.ones(100)), None, whole)

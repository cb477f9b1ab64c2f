"""Where targets of a tree are, as other ranks are told (csrc/shared/tree_share.h)."""

import numpy as np

from grape6py._arrays.kinds import DeviceArray
from grape6py._arrays.modules import module_of
from grape6py._lib.declarations import constants

REGION = constants.TREE_GROUP * constants.TREE_LEVEL1  # targets: a level-1 group


def regions_of(pos: DeviceArray, last_acc: DeviceArray | None) -> DeviceArray:
    """Regions of targets in the order of their keys: shape (m, 7), see g6lib.h."""
    xp, n = module_of(pos), len(pos)
    m = -(-n // REGION)
    if not n:
        return xp.zeros((0, 7))

    def runs(column: DeviceArray) -> DeviceArray:
        return xp.concatenate([column, xp.repeat(column[-1:], m * REGION - n)]).reshape(m, REGION)

    found = xp.zeros((m, 7))
    for c in range(3):
        column = runs(pos[:, c])
        found[:, c], found[:, 3 + c] = column.min(axis=1), column.max(axis=1)
    if last_acc is not None:
        least = runs(last_acc).min(axis=1)
        found[:, 6] = xp.maximum(least, np.finfo(np.float64).tiny)  # 0 is that none are known
    return found

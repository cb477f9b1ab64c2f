"""Which of N j particles each rank has: whole blocks of 1024 addresses, as even as they go."""

import numpy as np

from grape6py._arrays.kinds import AnyArray, Int64s
from grape6py._lib.declarations import constants

BLOCK: int = constants.BLOCK


class Share:
    """Consecutive addresses for each rank.

    Attributes
    ----------
    first : ndarray of int64, shape (ranks + 1,)
        Rank r has the addresses from ``first[r]`` to before ``first[r + 1]``.
    """

    def __init__(self, n: int, ranks: int) -> None:
        blocks = -(-n // BLOCK)
        self.first: Int64s = np.minimum(BLOCK * (np.arange(ranks + 1) * blocks // ranks), n)

    def of(self, rank: int) -> tuple[int, int]:
        """The first address of a rank, and the one behind its last."""
        return int(self.first[rank]), int(self.first[rank + 1])

    def owner(self, address: AnyArray) -> Int64s:
        """The ranks that have some addresses."""
        return np.searchsorted(self.first, address, side="right") - 1

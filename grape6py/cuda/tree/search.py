"""Searches in an octree on a graphics card: their memory, and the order of their kernels
(tree/search.cu). Nothing is computed here.
"""

import ctypes

import numpy as np

_THREADS = 128  # SEARCH_THREADS
_WARP = 32

_POINTERS = """x order box cell moments targets self target_order h2 start count found number
    r2""".split()


class Job(ctypes.Structure):
    """As struct tree_search_job."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in _POINTERS),
        *((name, ctypes.c_int32) for name in ("target_count", "k")),
    )


class CardSearch:
    """Neighbours of some targets, or of the particles themselves, in the order they were given.

    Parameters
    ----------
    tree : CardTree
    targets : array of float64, shape (ni, 3), optional
        Contiguous and finite.
    self_index : array of int32, shape (ni,), optional
        Number of the particle that each target is, which is left out, or -1.
    """

    def __init__(self, tree, targets=None, self_index=None):
        self._tree, self._card, self._xp = tree, tree._card, tree._card.xp
        self._ni = ni = tree.n if targets is None else len(targets)
        known = {name: getattr(tree._job, name) for name in "x order box cell moments".split()}
        self._job, self._kept = Job(**known, target_count=ni), {}
        self._set(targets=targets, self=self_index)
        if targets is not None and ni:
            self._set(target_order=self._card.sort(self._keys(tree._job)))

    def _set(self, /, **arrays):
        """Point fields of the job to arrays, which are kept."""
        for name, array in arrays.items():
            setattr(self._job, name, None if array is None else self._card.address(array))
            self._kept[name] = array

    def _keys(self, tree_job):
        """Keys of the targets, as for forces."""
        keys = self._xp.empty(self._ni, np.uint64)
        job = type(tree_job).from_buffer_copy(tree_job)
        job.target_count, job.targets = self._ni, self._job.targets
        job.key = self._card.address(keys)
        self._card.launch("tree_target_keys", -(-self._ni // 256), 256, job)
        return keys

    def _launch(self, name, threads=1):
        """Start a kernel with as many threads a target."""
        blocks = -(-self._ni * threads // _THREADS)
        self._card.launch(name, blocks, _THREADS, self._job)

    def within(self, h2):
        """Numbers of the particles with r^2 <= h2[i], ascending.

        Parameters
        ----------
        h2 : array of float64, shape (ni,)

        Returns
        -------
        start : array of int64, shape (ni + 1,)
            Row i is ``index[start[i]:start[i + 1]]``.
        index : array of int32
        """
        start = self._xp.zeros(self._ni + 1, np.int64)
        if not self._ni:
            return start, self._xp.empty(0, np.int32)
        self._set(h2=h2, count=self._xp.empty(self._ni, np.int32))
        self._launch("tree_search_within")
        start[1:] = self._xp.cumsum(self._kept["count"], dtype=np.int64)
        index = self._xp.empty(int(start[-1]), np.int32)
        self._set(start=start, found=index)
        self._launch("tree_search_within")
        self._launch("tree_sort_rows", _WARP)
        return start, index

    def nearest(self, k):
        """The k nearest particles, nearest first, of equally near ones the lowest number.

        Parameters
        ----------
        k : int

        Returns
        -------
        number : array of int32, shape (ni, k)
            -1 where there are fewer than k.
        r2 : array of float64, shape (ni, k)
            Squared distances; infinite where there are fewer.
        """
        number = self._xp.empty((self._ni, k), np.int32)
        r2 = self._xp.empty((self._ni, k), np.float64)
        if number.size:
            self._set(number=number, r2=r2)
            self._job.k = k
            self._launch("tree_search_nearest")
        return number, r2

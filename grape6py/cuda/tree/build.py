"""The octree's cells on a graphics card, and the particles in the order of its keys: their memory,
and the order of their kernels (tree/build.cu, tree/motion.cu).
"""

import struct

import numpy as np

from grape6py import errors
from grape6py.cuda.tree.job import (
    BOX,
    CELL,
    CELL_BLOCK,
    CELL_LEVELS,
    FAR,
    FLOW,
    FLOW_PIECES,
    LEAF_SPAN,
    MOMENTS,
    MOTION,
    OPENING,
    PLACE,
    RATES,
    Job,
    Status,
)
from grape6py.cuda.workspace import Scratch

BARE_EPS = 1e-10  # of the particles' extent: a smaller softening keeps no pairs apart in single
NOT_FINITE = -6
CROWD = 2048  # particles of one smallest cell, summed pair by pair: with more that takes long


class Unresolved(Exception):
    """No one box resolves the particles: the host's tree, which divides them, is to be taken."""


def pieces(n, size):
    """How many of a size n are, the last perhaps not whole."""
    return -(-n // size)


def _double_of(bits):
    """The number whose bits a kernel has put in order."""
    bits = bits & ~(1 << 63) if bits >> 63 else ~bits & (1 << 64) - 1
    return struct.unpack("d", struct.pack("Q", bits))[0]


class TreeCells:
    """An octree of particles in a card's memory: what :class:`~.octree.CardTree` sums.

    Parameters
    ----------
    card, pos, mass, vel
        As there.
    scratch : int
        Bytes that are asked for at once, for what the tree's making and its sums need for a while.
    """

    def __init__(self, card, pos, mass, vel, scratch):
        self._card, self._xp = card, card.xp
        self.n = len(mass)
        self.unresolved = False
        self._kept = {}
        self._scratch = Scratch(card, scratch)
        self._job = Job(n=self.n, blocks=self.n // CELL_BLOCK + 1)
        self._set(x=pos, m=mass, v=vel)
        self._sort()
        if vel is not None:
            self._find_frame()
        self._make_cells()

    def _new(self, shape, dtype=np.uint8):
        return self._xp.empty(shape, dtype)

    def _set(self, /, **arrays):
        """Point fields of the job to arrays, which are kept."""
        for name, array in arrays.items():
            setattr(self._job, name, None if array is None else self._card.address(array))
            self._kept[name] = array

    def _point(self, to, **sizes):
        """Point fields to pieces of scratch memory."""
        for name, address in self._scratch.cut(**sizes).items():
            setattr(to, name, address)

    def _drop(self, names):
        self._set(**dict.fromkeys(names.split()))

    def _launch(self, name, count, threads=128):
        """Start a kernel with as many threads, at least."""
        self._card.launch(name, pieces(count, threads), threads, self._job)

    def _read_status(self):
        return Status.from_buffer_copy(self._card.read(self._kept["status"]))

    @property
    def order(self):
        """Numbers of the particles in the order of their keys, by which groups take them."""
        return self._kept["order"]

    def _sort(self):
        """Box, and points in the order of their keys."""
        n, job = self.n, self._job
        self._set(
            status=self._xp.array(np.frombuffer(bytes(Status(low=(2**64 - 1,) * 3)), np.uint8)),
            box=self._new(BOX),
            eps2=self._new(1, np.float32),
            opening=self._new(OPENING),
            high=self._new((n, 4), np.float32),
            low=self._new((n, 4), np.float32),
        )
        self._point(
            job, key=8 * n, sorted=8 * n, packed=32 * n, levels=2 * n, leaf_at=4 * n,
            counts=4 * CELL_LEVELS * job.blocks,
        )  # fmt: skip
        job.theta = 1.0
        self._launch("tree_extent", min(n, 1 << 18), 256)
        self._launch("tree_begin", 1, 32)
        self._launch("tree_keys", n, 256)
        self._set(order=self._card.sort(self._scratch.view("key", np.uint64)))
        self._launch("tree_gather", n, 256)

    def _make_cells(self):
        n, job = self.n, self._job
        self._launch("tree_count", n + 1, CELL_BLOCK)
        self._set(summed=self._xp.cumsum(self._scratch.view("counts", np.int32), dtype=np.int32))
        self._launch("tree_levels", 1, 32)
        status = self._read_status()
        if status.bad:
            raise errors.from_code(NOT_FINITE, f"particle {n - status.bad} is not finite")
        self.cells = status.cells
        high, low = (map(_double_of, bits) for bits in (status.high, status.low))
        least = BARE_EPS * max(a - b for a, b in zip(high, low, strict=True))
        self._least_eps2 = least * least  # infinite if need be, where ** would be an error
        self._set(
            cell=self._new((self.cells, CELL)),
            above=self._new(self.cells, np.int32),
            complete=self._xp.zeros(self.cells, np.int32),
            moments=self._new((self.cells, MOMENTS)),
            far=self._new((self.cells, FAR)),
            place=self._new((self.cells, PLACE)),
        )
        self._launch("tree_cells", n + 1, CELL_BLOCK)
        self.unresolved = self._is_crowded(status)
        if self.unresolved:
            return
        self._card.launch("tree_leaf_moments", pieces(n, LEAF_SPAN), 128, job)
        self._launch("tree_inner_moments", self.cells)
        if job.v:
            self._find_rates()
        self._drop("summed above complete")

    def _is_crowded(self, status):
        """Whether a cell of the deepest level has very many particles."""
        cells = self._kept["cell"][status.level_first[CELL_LEVELS - 1] :]
        if not len(cells):
            return False
        first, end = np.frombuffer(self._card.read(cells), np.int32).reshape(-1, 4)[:, :2].T
        return bool((end - first).max() > CROWD)

    def _find_frame(self):
        """Unit and frame of the velocities, and these in the order of the keys."""
        n = self.n
        self._set(
            flow=self._xp.zeros(FLOW, np.uint8),
            momenta=self._new((FLOW_PIECES, 4), np.float64),
            velocity=self._new((n, 4), np.float32),
        )
        self._launch("tree_speeds", min(n, 1 << 18), 256)
        self._launch("tree_momenta", 256 * FLOW_PIECES, 256)
        self._launch("tree_frame", 1, 32)
        self._launch("tree_gather_velocities", n, 256)
        self._drop("momenta")

    def _find_rates(self):
        """How cells move and change."""
        self._set(rates=self._new((self.cells, RATES)), motion=self._new((self.cells, MOTION)))
        self._kept["complete"][:] = 0
        self._launch("tree_leaf_rates", self.cells)
        self._launch("tree_inner_rates", self.cells)
        self._drop("rates")

"""The octree's cells on a GPU, and the particles in the order of its keys: their memory,
and the order of their kernels (tree/build.cu, tree/motion.cu).
"""

from __future__ import annotations

import functools
import struct
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike

from grape6py._arrays.kinds import CData, DeviceArray, Floats
from grape6py._lib import codes
from grape6py._lib.declarations import DEFINED
from grape6py.cuda.job import Job, declared, pieces
from grape6py.cuda.tree import kernels
from grape6py.cuda.tree.sites import Sites
from grape6py.cuda.workspace import Workspace

if TYPE_CHECKING:
    from grape6py.cuda.launcher import TreeLauncher

_SHARED = "numbers box hilbert moments opening share softening".split()
_TREE = "job.h tree.cuh build.cu motion.cu rate.cu distant.cu search.cu".split()
ffi, numbers = declared(
    *(f"shared/tree_{name}.h" for name in _SHARED), *(f"tree/{name}" for name in _TREE)
)
BARE_EPS = 1e-10  # of the particles' extent: a smaller softening keeps no pairs apart in single


LEAST_CORE = 256  # particles, of which nearly all may stand in a tiny share of the box of all;
DISTANT_SHARE = 64  # all others are one of so many, at most


class Unresolved(Exception):
    """No one box resolves the particles: the host's tree, which divides them, is to be taken."""


def double_of(bits: int) -> float:
    """The number whose bits a kernel has put in order."""
    bits = bits & ~(1 << 63) if bits >> 63 else ~bits & (1 << 64) - 1
    number: float = struct.unpack("d", struct.pack("Q", bits))[0]
    return number


class TreeCells(Job):
    """An octree of particles in a GPU's memory: what :class:`~.octree.Octree` sums.

    If few are very far from all others, cells are those of these, the `near` ones, alone.

    `scratch` bytes are asked for at once, for what the tree's making and its sums need for a while.
    `whole`, the numbers of a struct tree_whole, describes the particles of all ranks, whose box and
    frame the tree then has; there may be none here.
    """

    def __init__(
        self,
        gpu: TreeLauncher,
        pos: DeviceArray,
        mass: DeviceArray,
        vel: DeviceArray,
        scratch: int,
        whole: Floats | None = None,
    ) -> None:
        n = len(mass)
        blocks = n // numbers.CELL_BLOCK + 1
        super().__init__(gpu, ffi, "tree_device_job", n=n, blocks=blocks)
        self.n = n
        self._workspace = Workspace(gpu, scratch)
        gpu.prepare(kernels.BUILD if vel is None else kernels.MOVING)
        if vel is not None and not n:
            vel = self.xp.zeros((1, 3))  # an empty array has no address: there would be no jerks
        self._whole = whole
        self.set(x=pos, m=mass, v=vel)
        self.set(whole=None if whole is None else gpu.put(np.array(whole, np.float64)))
        for seeks_core in (whole is None and n >= LEAST_CORE, False):
            self._sort(seeks_core)
            if vel is not None:
                self._find_frame()
            status = self._count_cells()
            self.distant = int(status.distant)
            if self.distant <= n // DISTANT_SHARE:
                break
        self.sites: Sites | None = None
        self.unresolved = bool(status.crowds)
        if status.crowds and whole is None:
            status = self._merge_sites(status)
        merged = self.fields.merged
        self.near = self.fields.n = n - self.distant - merged  # which are in the box, and in cells
        self.fields.distant, self.fields.closer = self.distant, status.closer
        self._make_cells(status)

    def _merge_sites(self, status: CData) -> CData:
        """The particles of very many at one place become one; the status then."""
        self.sites = Sites(self, self._workspace.view("sorted", np.uint64), self.n - self.distant)
        if self.arrays["v"] is not None:
            self._find_frame()
        self.fields.merged = self.sites.merged
        self.fields.n = self.n - self.sites.merged
        before, status = status.crowds, self._count_cells()
        self.unresolved = status.crowds > before
        return status

    def _new(self, shape: int | tuple[int, ...], dtype: DTypeLike = np.uint8) -> DeviceArray:
        return self.xp.empty(shape, dtype)

    def structures(self, name: str, count: int) -> DeviceArray:
        """Memory for so many structures."""
        return self._new((count, ffi.sizeof(f"struct {name}")))

    def _read_status(self) -> CData:
        status = self.gpu.read(self.arrays["status"])
        return ffi.from_buffer("struct tree_status *", status)

    @property
    def order(self) -> DeviceArray:
        """Numbers of the particles in the order of their keys, by which groups take them."""
        return self.arrays["order"]

    def _sort(self, seeks_core: bool) -> None:
        """Box, of nearly all if few are very far off, and points in the order of their keys."""
        n, job = self.n, self.fields
        job.seeks_core = seeks_core
        status = ffi.new("struct tree_status *", {"low": [2**64 - 1] * 3})
        self.set(
            status=self.xp.array(np.frombuffer(ffi.buffer(status), np.uint8)),
            box=self.structures("tree_box", 1),
            eps2=self._new(1, np.float32),
            opening=self.structures("tree_opening", 1),
            high=self._new((n, 4), np.float32),
            low=self._new((n, 4), np.float32),
        )
        self.point(job, **self._workspace.cut(
            key=8 * n, sorted=8 * n, packed=32 * n, levels=2 * n, leaf_at=4 * n,
            counts=4 * numbers.CELL_LEVELS * job.blocks,
        ))  # fmt: skip
        job.theta = 1.0
        self.launch("tree_extent", min(n, 1 << 18), 256)
        self.launch("tree_begin", 1, 32)
        job.seeks_core = False
        self.launch("tree_keys", n, 256)
        keys = self._workspace.view("key", np.uint64)
        self.set(order=self.gpu.sort(keys) if n else self._new(0, np.int64))
        self.launch("tree_gather", n, 256)

    def _count_cells(self) -> CData:
        """The status, which says how many there are."""
        n = self.n
        self.launch("tree_count", n + 1, numbers.CELL_BLOCK)
        self.set(summed=self.xp.cumsum(self._workspace.view("counts", np.int32), dtype=np.int32))
        self.launch("tree_levels", 1, 32)
        status = self._read_status()
        if status.bad:
            raise codes.from_code("J_NAN", f"particle {n - status.bad} is not finite")
        return status

    def _make_cells(self, status: CData) -> None:
        n, job = self.near, self.fields
        self.cells = status.cells
        corners = (map(double_of, bits) for bits in (status.high, status.low))
        if self._whole is not None:
            corners = (map(float, self._whole[at : at + 3]) for at in (3, 0))
        extent = max(a - b for a, b in zip(*corners, strict=True))
        least = BARE_EPS * extent
        self._least_eps2 = least * least  # infinite if need be, where ** would be an error
        self._extent, self._level_first = extent, list(status.level_first)
        self.set(
            cell=self.structures("tree_cell", self.cells),
            above=self._new(self.cells, np.int32),
            complete=self.xp.zeros(self.cells, np.int32),
            moments=self.structures("tree_moments", self.cells),
            far=self.structures("tree_cell_multipole", self.cells),
            place=self.structures("tree_cell_centre", self.cells),
        )
        self.launch("tree_cells", n + 1, numbers.CELL_BLOCK)
        if self.unresolved:
            return
        self.launch("tree_leaf_moments", 128 * pieces(n, numbers.LEAF_SPAN))
        self.launch("tree_inner_moments", self.cells)
        if job.v:
            self._find_rates()
        self.drop("summed above complete sorted")
        if self._whole is not None:  # other ranks want to know before any sums
            self.unresolved = bool(self._read_status().unresolved)

    @property
    def is_whole(self) -> bool:
        """Whether one box resolves all particles."""
        return not (self.unresolved or self.distant or self.sites)

    @functools.cached_property
    def smallest_side(self) -> float:
        """Of cells, but for a few that are deeper."""
        left = DEFINED["TREE_SOFT_LEFT"] * self.cells
        levels = range(numbers.CELL_LEVELS)
        deepest = max((k for k in levels if self.cells - self._level_first[k] >= left), default=0)
        return float(self._extent / 2**deepest)

    def _find_frame(self) -> None:
        """Unit and frame of the velocities, and these in the order of the keys."""
        n = self.n
        self.set(
            flow=self.xp.zeros(ffi.sizeof("struct tree_flow"), np.uint8),
            momenta=self._new((numbers.FLOW_PIECES, 4), np.float64),
            velocity=self._new((n, 4), np.float32),
        )
        self.launch("tree_speeds", min(n, 1 << 18), 256)
        if self._whole is None:  # else the box has them
            self.launch("tree_momenta", 256 * numbers.FLOW_PIECES, 256)
            self.launch("tree_frame", 1, 32)
        self.launch("tree_gather_velocities", n, 256)
        self.drop("momenta")

    def _find_rates(self) -> None:
        """How cells move and change."""
        self.set(
            rates=self.structures("tree_rates", self.cells),
            motion=self.structures("tree_motion", self.cells),
        )
        self.arrays["complete"][:] = 0
        self.launch("tree_leaf_rates", self.cells)
        self.launch("tree_inner_rates", self.cells)
        self.drop("rates")

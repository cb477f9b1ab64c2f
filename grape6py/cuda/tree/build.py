"""The octree's cells on a GPU, and the particles in the order of its keys: their memory,
and the order of their kernels (tree/build.cu, tree/motion.cu).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike

from grape6py import errors
from grape6py._arrays.kinds import CData, CuPy, DeviceArray
from grape6py.cuda.job import Job, declared, pieces
from grape6py.cuda.workspace import Workspace

if TYPE_CHECKING:
    from grape6py.cuda.launcher import TreeLauncher

ffi, numbers = declared(
    *(f"shared/tree_{name}.h" for name in ("box", "hilbert", "moments", "opening")),
    *(f"tree/{name}" for name in ("job.h", "tree.cuh", "build.cu", "motion.cu", "rate.cu")),
    "tree/search.cu",
)
BARE_EPS = 1e-10  # of the particles' extent: a smaller softening keeps no pairs apart in single
CROWD = 2048  # particles of one smallest cell, summed pair by pair: with more that takes long


class Unresolved(Exception):
    """No one box resolves the particles: the host's tree, which divides them, is to be taken."""


def _double_of(bits: int) -> float:
    """The number whose bits a kernel has put in order."""
    bits = bits & ~(1 << 63) if bits >> 63 else ~bits & (1 << 64) - 1
    number: float = struct.unpack("d", struct.pack("Q", bits))[0]
    return number


class TreeCells(Job):
    """An octree of particles in a GPU's memory: what :class:`~.octree.Octree` sums.

    `scratch` bytes are asked for at once, for what the tree's making and its sums need for a while.
    """

    def __init__(
        self, gpu: TreeLauncher, pos: DeviceArray, mass: DeviceArray, vel: DeviceArray, scratch: int
    ) -> None:
        n = len(mass)
        blocks = n // numbers.CELL_BLOCK + 1
        super().__init__(gpu, ffi, "tree_device_job", n=n, blocks=blocks)
        self._gpu, self._xp, self.n = gpu, gpu.xp, n
        self.unresolved = False
        self._workspace = Workspace(gpu, scratch)
        self.set(x=pos, m=mass, v=vel)
        self._sort()
        if vel is not None:
            self._find_frame()
        self._make_cells()

    def _new(self, shape: int | tuple[int, ...], dtype: DTypeLike = np.uint8) -> DeviceArray:
        return self._xp.empty(shape, dtype)

    def structures(self, name: str, count: int) -> DeviceArray:
        """Memory for so many structures."""
        return self._new((count, ffi.sizeof(f"struct {name}")))

    def _read_status(self) -> CData:
        status = self._gpu.read(self.arrays["status"])
        return ffi.from_buffer("struct tree_status *", status)

    @property
    def xp(self) -> CuPy:
        """CuPy, or NumPy in tests."""
        return self._xp

    @property
    def order(self) -> DeviceArray:
        """Numbers of the particles in the order of their keys, by which groups take them."""
        return self.arrays["order"]

    def _sort(self) -> None:
        """Box, and points in the order of their keys."""
        n, job = self.n, self.fields
        status = ffi.new("struct tree_status *", {"low": [2**64 - 1] * 3})
        self.set(
            status=self._xp.array(np.frombuffer(ffi.buffer(status), np.uint8)),
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
        self.launch("tree_keys", n, 256)
        self.set(order=self._gpu.sort(self._workspace.view("key", np.uint64)))
        self.launch("tree_gather", n, 256)

    def _make_cells(self) -> None:
        n, job = self.n, self.fields
        self.launch("tree_count", n + 1, numbers.CELL_BLOCK)
        self.set(summed=self._xp.cumsum(self._workspace.view("counts", np.int32), dtype=np.int32))
        self.launch("tree_levels", 1, 32)
        status = self._read_status()
        if status.bad:
            raise errors.from_code("J_NAN", f"particle {n - status.bad} is not finite")
        self.cells = status.cells
        high, low = (map(_double_of, bits) for bits in (status.high, status.low))
        least = BARE_EPS * max(a - b for a, b in zip(high, low, strict=True))
        self._least_eps2 = least * least  # infinite if need be, where ** would be an error
        self.set(
            cell=self.structures("tree_cell", self.cells),
            above=self._new(self.cells, np.int32),
            complete=self._xp.zeros(self.cells, np.int32),
            moments=self.structures("tree_moments", self.cells),
            far=self.structures("tree_cell_multipole", self.cells),
            place=self.structures("tree_cell_centre", self.cells),
        )
        self.launch("tree_cells", n + 1, numbers.CELL_BLOCK)
        self.unresolved = self._is_crowded(status)
        if self.unresolved:
            return
        self.launch("tree_leaf_moments", 128 * pieces(n, numbers.LEAF_SPAN))
        self.launch("tree_inner_moments", self.cells)
        if job.v:
            self._find_rates()
        self.drop("summed above complete")

    def _is_crowded(self, status: CData) -> bool:
        """Whether a cell of the deepest level has very many particles."""
        cells = self.arrays["cell"][status.level_first[numbers.CELL_LEVELS - 1] :]
        if not len(cells):
            return False
        first, end = np.frombuffer(self._gpu.read(cells), np.int32).reshape(-1, 4)[:, :2].T
        return bool((end - first).max() > CROWD)

    def _find_frame(self) -> None:
        """Unit and frame of the velocities, and these in the order of the keys."""
        n = self.n
        self.set(
            flow=self._xp.zeros(ffi.sizeof("struct tree_flow"), np.uint8),
            momenta=self._new((numbers.FLOW_PIECES, 4), np.float64),
            velocity=self._new((n, 4), np.float32),
        )
        self.launch("tree_speeds", min(n, 1 << 18), 256)
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

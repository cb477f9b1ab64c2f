"""A Hermite integration's arrays on a CUDA device, and what a block step does with them.

The loop over blocks is the library's ``g6x_hermite_evolve_device`` (csrc/session/hermite_device.c,
kernels/direct/hermite.cu): per block a few numbers come to the host, and what the session keeps
there of the bodies that have moved.

All ranks have the same bodies, each on its device, and share the sums of large blocks: each sums
the forces of a share of the j particles, as rows of partial sums. These parts go to all ranks,
which merge them on their devices: the bits are those of one rank.
"""

from collections.abc import Mapping

import numpy as np

from grape6py._arrays.kinds import AnyArray, CData, DeviceArray, Floats, Untyped
from grape6py._lib.cluster import chunks
from grape6py._lib.device_place import cuda_pointer
from grape6py._lib.library import ffi, lib
from grape6py.errors import BackendError
from grape6py.integrators.hermite_arrays import HostArrays, Setup
from grape6py.ranks.share import BLOCK

# A force call of the device takes part of a second at most: then Ctrl-C works.
_CHUNK_PAIRS, _CHUNK_ROWS = 2**37, 2**20
# Fewest pairs of a block whose sum devices share (0.9 ms on an H200): smaller ones gain nothing, as
# ranks wait for each other, besides for the parts.
_PAIRS = 1 << 29
_ROWS = 1 << 17  # of a block that are summed, and their parts brought together, at a time


class DeviceArrays(HostArrays):
    """CuPy's arrays on the device of a session. First steps, and work, are found on the host."""

    corrector_adds_field = True

    def __init__(self, setup: Setup, mass: Floats, acting: int) -> None:
        import cupy

        self.xp, self._device = cupy, cupy.cuda.Device(setup.board.option("DEVICE"))
        self._latest, self._most_rows = 0.0, _CHUNK_ROWS
        super().__init__(setup, mass, acting)

    def _share(self) -> None:
        """Have memory for the parts of this rank and of all."""
        ranks, h = self._ranks, self.struct
        if ranks.size == 1:
            return
        ranks.connect(self._board.option("DEVICE"))
        self._most_rows = rows = max(min(self.n, _ROWS), 64)
        with self._device:
            self._part = self.xp.empty(rows * lib.G6X_PART_BYTES, np.uint8)
            self._parts = self.xp.empty(ranks.size * len(self._part), np.uint8)
        h.part, h.parts = (ffi.cast("void *", a.data.ptr) for a in (self._part, self._parts))
        h.part_rows, h.share, h.shares = rows, ranks.rank, ranks.size
        h.share_pairs = _PAIRS

    def using(self) -> Untyped:
        return self._device

    def _pointer(self, array: DeviceArray) -> CData:
        return cuda_pointer(array)

    def fetch(self, array: DeviceArray) -> AnyArray:
        """NumPy's copy of an array; a BackendError if nothing can be read."""
        try:
            with self._device:
                host: AnyArray = self.xp.asnumpy(array)
                return host
        except RuntimeError as why:  # CuPy's
            raise BackendError(
                f"the bodies are in the memory of a device that cannot be read any more ({why}): "
                "go on from the last file saved"
            ) from why

    def put(self, state: Mapping[str, AnyArray]) -> None:
        super().put(state)
        self._latest = float(self.fetch(self.own["t"]).max(initial=0.0))

    @property
    def latest(self) -> float:
        return self._latest

    def evolve(self, evolution: CData) -> int:
        try:
            return self._call(lib.g6x_hermite_evolve_device, self.struct, evolution)
        finally:
            self._latest = max(self._latest, evolution.time)

    def merge(self, e: CData) -> None:
        self.gather(e.part_bytes)

    def gather(self, size: int) -> None:
        """The parts of all ranks, on each."""
        with self._device:
            self._ranks.gather(self._part[:size], self._parts[: size * self._ranks.size], "a sum")

    def predict(self, ni: int, time: float) -> None:
        self._call(lib.g6x_hermite_predict_device, self.struct, ni, time)

    def sums(self, ni: int, time: float) -> None:
        self._board.set_time(time)
        for rows in chunks(ni, self.acting, _CHUNK_PAIRS, self._most_rows):
            self._force_rows(rows)

    def _force_rows(self, rows: slice) -> None:
        ranks, h, k, none = self._ranks, self.struct, rows.start, ffi.NULL
        ni = rows.stop - k
        targets = self.acting, ni, h.address + k, h.xi + k, h.vi + k, self._eps2
        sums = h.acc + k, h.jerk + k, h.pot + k, none, none
        is_large = self.acting * ni >= _PAIRS and self.acting >= BLOCK * ranks.size
        if ranks.size == 1 or not is_large:
            self._call(lib.g6x_forces_device, *targets, none, *sums)
            return
        size = ffi.new("long long *")
        self._call(lib.g6x_force_part_device, *targets, 0, ranks.rank, ranks.size, h.part, size)
        self.gather(size[0])
        self._call(lib.g6x_merge_parts_device, ni, h.parts, ranks.size, *sums)

    def add_field(self, ni: int, time: float) -> None:
        """Add what a function gave; the corrector adds a field of the library by itself."""
        external, block = self._setup.external, self.block
        if external is not None and external.function is not None:
            with self._device:
                for name in ("acc", "jerk"):
                    block[name][:ni] = block[name][:ni] + block[f"field_{name}"][:ni]

    def correct(self, ni: int, time: float) -> None:
        self._call(lib.g6x_hermite_correct_device, self.struct, ni, time, 0)

    def send(self) -> None:
        own, h, none = self.own, self.struct, ffi.NULL
        with self._device:
            a2, j6 = own["acc"] / 2, own["jerk"] / 6
            derivatives = cuda_pointer(j6), cuda_pointer(a2), h.v, h.x
            given = self.acting, none, none, h.t, h.mass, none, *derivatives
            self._call(lib.g6x_set_j_particles_device, *given)

    def _call(self, function: CData, *arguments: object) -> int:
        """Make a call of the library on the current stream."""
        stream = ffi.cast("void *", self.xp.cuda.get_current_stream().ptr)
        return self._board.check(function(self._board.cluster, *arguments, stream))

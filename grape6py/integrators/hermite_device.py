"""Block steps of bodies that live on a CUDA device, in CuPy's arrays.

The loop over blocks is the library's ``g6x_hermite_evolve_device`` (csrc/session/hermite_device.c,
kernels/direct/hermite.cu): per block a few numbers come to the host, and what the session keeps
there of the bodies that have moved.

All ranks have the same bodies, each on its device, and share the sums of large blocks: each sums
the forces of a share of the j particles, as rows of partial sums. These parts go to all ranks,
which merge them on their devices: the bits are those of one rank.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from grape6py import _clock
from grape6py._arrays.kinds import AnyArray, Bools, CData, DeviceArray, Floats, Int32s, State
from grape6py._lib.cluster import chunks
from grape6py._lib.device_place import cuda_pointer
from grape6py._lib.library import ffi, lib
from grape6py.errors import BackendError
from grape6py.integrators.blocks import KEPT, NAMES, Blocks, Moment, Setup
from grape6py.integrators.hermite_steps import HostBlocks
from grape6py.ranks.one_rank import ONE
from grape6py.ranks.share import BLOCK

if TYPE_CHECKING:
    from grape6py._arrays.kinds import CuPy
    from grape6py.integrators.external import External

# A force call of the device takes part of a second at most: then Ctrl-C works.
_CHUNK_PAIRS, _CHUNK_ROWS = 2**37, 2**20
# Fewest pairs of a block whose sum devices share (0.9 ms on an H200): smaller ones gain nothing, as
# ranks wait for each other, besides for the parts.
_PAIRS = 1 << 29
_ROWS = 1 << 17  # of a block that are summed, and their parts brought together, at a time


class DeviceBlocks(Blocks):
    """Bodies on the device of a session."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        import cupy

        self._cupy: CuPy = cupy
        self._device = cupy.cuda.Device(self._board.option("DEVICE"))
        n, (eta, smallest, largest) = self.n, self.rule
        with self._device:
            self._own = {name: cupy.full((n, *shape), 0.0) for name, shape in self.arrays.items()}
            block = {n_: cupy.full((n, *shape), 0.0) for n_, shape in self.block_arrays.items()}
            numbers = [cupy.asarray(np.arange(n, dtype=np.int32)) for _ in range(3)]
            self._block = block | {"address": numbers[0], "nearest": numbers[1]}
            self._everybody = numbers[2]
            self._given = {
                "mass": cupy.asarray(self._mass),
                "rounding": cupy.asarray(self._rounding),
            }
        arrays = {NAMES.get(name, name): array for name, array in self._own.items()}
        arrays |= self._given | self._block
        rule = {"n": n, "eta": eta, "dtmin": smallest, "dtmax": largest}
        rule["massless"], rule["noise"], rule["place"] = n - self.acting, *self._noise
        if self.external is not None:
            rule["field"] = self.external.c
        pointers = {name: cuda_pointer(array) for name, array in arrays.items()}
        self._at = ffi.new("struct g6x_hermite *", rule | pointers)
        pointers["address"] = cuda_pointer(self._everybody)
        self._at_everybody = ffi.new("struct g6x_hermite *", rule | pointers)
        self._latest, self._most_rows = 0.0, _CHUNK_ROWS
        if setup.ranks.size > 1:
            self._share_sums()

    def _share_sums(self) -> None:
        """Have memory for the parts of this rank and of all."""
        ranks, at = self._ranks, self._at
        ranks.connect(self._board.option("DEVICE"))
        self._most_rows = rows = max(min(self.n, _ROWS), 64)
        with self._device:
            self._part = self._cupy.empty(rows * lib.G6X_PART_BYTES, np.uint8)
            self._parts = self._cupy.empty(ranks.size * len(self._part), np.uint8)
        at.part, at.parts = (ffi.cast("void *", a.data.ptr) for a in (self._part, self._parts))
        at.part_rows, at.share, at.shares = rows, ranks.rank, ranks.size
        at.share_pairs = _PAIRS

    def state(self) -> State:
        """Copies of the arrays, by name, for NumPy; a BackendError if nothing can be read."""
        found = {name: self._out(self._fetch(array)) for name, array in self._own.items()}
        return found | ({"work_done": np.array(self.work_done)} if self.work_done else {})

    def _fetch(self, array: DeviceArray) -> AnyArray:
        try:
            with self._device:
                host: AnyArray = self._cupy.asnumpy(array)
                return host
        except RuntimeError as why:  # CuPy's
            raise BackendError(
                f"the bodies are in the memory of a device that cannot be read any more ({why}): "
                "go on from the last file saved"
            ) from why

    def put(self, state: Mapping[str, Floats]) -> None:
        """Take NumPy's arrays over, by name."""
        with self._device:
            for name, own in self._own.items():
                if name in state:
                    array = np.ascontiguousarray(self._in(np.asarray(state[name], float)))
                    own[...] = self._cupy.asarray(array)
        self.work_done = float(state.get("work_done", self.work_done))
        self._sent, self._looked = False, None
        self._latest = float(self._fetch(self._own["t"]).max(initial=0.0))

    def _latest_of_all(self) -> float:
        return self._latest

    def on_host(self) -> HostBlocks:
        """The same integration in NumPy's arrays, whose sums are not shared."""
        host = HostBlocks(self.setup._replace(ranks=ONE))
        host.put(self.state())
        for name in KEPT:
            setattr(host, name, getattr(self, name))
        return host

    def _restart(self, anew: Bools, before: Moment | None, eta_start: float) -> None:
        host = self.on_host()
        host._restart(anew, before, eta_start)
        self.force_seconds = host.force_seconds
        self.put(host.state())

    def _restart_rows(self, bodies: Int32s, eta_start: float) -> None:
        host = self.on_host()
        host._restart_rows(bodies, eta_start)
        self.force_seconds = host.force_seconds
        self.put(host.state())

    def _found_at(self, time: float) -> Moment:
        if "work" in self.arrays:  # which is summed there
            host, self._sent = self.on_host(), False
            moment = host.at(time)
            self._work, self.force_seconds = host._work, host.force_seconds
            return moment
        time = self._since_epoch(time)
        state = self.state()
        if (state["t"] == time).all():
            return Moment(*(state[name] for name in Moment._fields))
        if self._evolution.ni:  # of a block that was left half way
            self._sent = False
        self._ready()
        n, all_of_them, block = self.n, self._at_everybody, self._block
        if self.external is not None:
            self.external.reach(self.epoch + time)
            self.external.epoch = self.epoch
        self._call(lib.g6x_hermite_predict_device, all_of_them, n, time)
        self._force_all(time)
        external = self.external
        if external is not None and external.function is not None:
            self._call_function(self.epoch + time, n)
            with self._device:
                for name in ("acc", "jerk"):
                    block[name][...] = block[name] + block[f"field_{name}"]
        pos, vel, acc, jerk = (self._fetch(block[name]) for name in ("xi", "vi", "acc", "jerk"))
        if external is not None and external.function is None:  # the corrector adds it by itself
            external.add(self.epoch + time, pos, vel, acc, jerk)
        self._call(lib.g6x_hermite_correct_device, all_of_them, n, time, 0)
        found = self._fetch(block["xi"]), self._fetch(block["vi"]), acc, jerk
        return Moment(*(self._out(array) for array in found))

    def _evolve(self, evolution: CData) -> int:
        if self.external is not None:
            self.external.epoch = self.epoch
        try:
            return self._call(lib.g6x_hermite_evolve_device, self._at, evolution)
        finally:
            self._latest = max(self._latest, evolution.time)

    def _merge(self) -> None:
        self._gather(self._evolution.part_bytes)

    def _gather(self, size: int) -> None:
        """The parts of all ranks, on each."""
        with self._device:
            self._ranks.gather(self._part[:size], self._parts[: size * self._ranks.size], "a sum")

    def _add_field(self, external: External, time: float, ni: int) -> None:
        with self._device:
            names = "xi", "vi", "field_acc", "field_jerk"
            pos, vel, acc, jerk = (self._block[name][:ni] for name in names)
            acc[...], jerk[...] = 0.0, 0.0
            external.add(time, pos, vel, acc, jerk, self._cupy)

    def _block_rows(self, name: str, ni: int) -> AnyArray:
        return self._fetch(self._block[name][:ni])

    def _force_all(self, time: float) -> None:
        began, n = _clock.seconds(), self.n
        self._board.set_time(time)
        for rows in chunks(n, self.acting, _CHUNK_PAIRS, self._most_rows):
            self._force_rows(rows)
        self.force_seconds += _clock.seconds() - began

    def _force_rows(self, rows: slice) -> None:
        ranks, at, k, none = self._ranks, self._at_everybody, rows.start, ffi.NULL
        ni = rows.stop - k
        targets = self.acting, ni, at.address + k, at.xi + k, at.vi + k, self._eps2
        sums = at.acc + k, at.jerk + k, at.pot + k, none, none
        is_large = self.acting * ni >= _PAIRS and self.acting >= BLOCK * ranks.size
        if ranks.size == 1 or not is_large:
            self._call(lib.g6x_forces_device, *targets, none, *sums)
            return
        part, size = self._at.part, ffi.new("long long *")
        self._call(lib.g6x_force_part_device, *targets, 0, ranks.rank, ranks.size, part, size)
        self._gather(size[0])
        self._call(lib.g6x_merge_parts_device, ni, self._at.parts, ranks.size, *sums)

    def _send(self) -> None:
        own, at, nj = self._own, self._at, self.acting
        self._evolution.ni = self._evolution.stage = 0
        with self._device:
            a2, j6 = own["acc"] / 2, own["jerk"] / 6
            derivatives = cuda_pointer(j6), cuda_pointer(a2)
            none = ffi.NULL
            self._call(
                lib.g6x_set_j_particles_device,
                *(nj, none, none, at.t, at.mass, none, *derivatives, at.v, at.x),
            )

    def _call(self, function: CData, *arguments: object) -> int:
        """Make a call of the library on the current stream."""
        stream = ffi.cast("void *", self._cupy.cuda.get_current_stream().ptr)
        return self._board.check(function(self._board.cluster, *arguments, stream))

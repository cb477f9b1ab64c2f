"""Block steps of bodies that live on a CUDA device, in CuPy's arrays.

The loop over blocks is the library's ``g6x_hermite_evolve_device`` (csrc/session/hermite_device.c,
kernels/direct/hermite.cu): per block a few numbers come to the host, and what the session keeps
there of the bodies that have moved.
"""

from __future__ import annotations

import time as clock
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from grape6py._arrays.device_place import cuda_pointer
from grape6py._arrays.kinds import CData, CuPy, DeviceArray, Floats, State
from grape6py._lib.cluster import chunks
from grape6py._lib.library import ffi, lib
from grape6py.errors import BackendError
from grape6py.integrators.hermite_steps import BLOCK, NAMES, STATE, Blocks, HostBlocks

if TYPE_CHECKING:
    from grape6py._lib.cluster import Board

# A force call of the device takes part of a second at most: then Ctrl-C works.
_CHUNK_PAIRS = 2**37
_CHUNK_ROWS = 2**20


class DeviceBlocks(Blocks):
    """Bodies on the device of a session."""

    def __init__(
        self,
        board: Board,
        precision: str,
        mass: Floats,
        rule: tuple[float, float, float],
        passes: int,
        eps: float,
        cupy: CuPy,
    ) -> None:
        super().__init__(board, precision, mass, rule, passes, eps)
        self._cupy, self._device = cupy, cupy.cuda.Device(board.option("DEVICE"))
        self._host = board, precision, mass, rule, passes, eps
        n, (eta, smallest, largest) = len(mass), rule
        with self._device:
            self._own = {name: cupy.full((n, *shape), 0.0) for name, shape in STATE.items()}
            block = {name: cupy.full((n, *shape), 0.0) for name, shape in BLOCK.items()}
            self._block = block | {"address": cupy.asarray(np.arange(n, dtype=np.int32))}
            self._everybody = cupy.asarray(np.arange(n, dtype=np.int32))
            self._given = {"mass": cupy.asarray(mass), "rounding": cupy.asarray(self._rounding)}
        arrays = {NAMES[name]: array for name, array in self._own.items()}
        arrays |= self._given | self._block
        numbers = {"n": n, "eta": eta, "dtmin": smallest, "dtmax": largest}
        pointers = {name: cuda_pointer(array) for name, array in arrays.items()}
        self._at = ffi.new("struct g6x_hermite *", numbers | pointers)
        pointers["address"] = cuda_pointer(self._everybody)
        self._at_everybody = ffi.new("struct g6x_hermite *", numbers | pointers)
        self._latest = 0.0

    def state(self) -> State:
        """Copies of the arrays, by name, for NumPy; a BackendError if nothing can be read."""
        return {name: self._fetch(array) for name, array in self._own.items()}

    def _fetch(self, array: DeviceArray) -> Floats:
        try:
            with self._device:
                host: Floats = self._cupy.asnumpy(array)
                return host
        except RuntimeError as why:  # CuPy's
            raise BackendError(
                f"the bodies are in the memory of a device that cannot be read any more ({why}): "
                "go on from the last file saved"
            ) from why

    def put(self, state: Mapping[str, ArrayLike]) -> None:
        """Take NumPy's arrays over, by name."""
        with self._device:
            for name, values in state.items():
                self._own[name][...] = self._cupy.asarray(np.ascontiguousarray(values, float))
        self._sent = False
        self._latest = float(self._fetch(self._own["t"]).max(initial=0.0))

    def latest(self) -> float:
        """The latest of the bodies' times, at least 0."""
        return self._latest

    def on_host(self) -> HostBlocks:
        """The same integration in NumPy's arrays."""
        host = HostBlocks(*self._host)
        host.put(self.state())
        for name in ("steps", "blocks", "clamped", "force_seconds"):
            setattr(host, name, getattr(self, name))
        return host

    def start(self, eta_start: float) -> None:
        """As :meth:`HostBlocks.start`."""
        host = self.on_host()
        host.start(eta_start)
        self.put(host.state())

    def at(self, time: float) -> tuple[Floats, Floats]:
        """As :meth:`HostBlocks.at`."""
        state = self.state()
        if (state["t"] == time).all():
            return state["pos"], state["vel"]
        if self._evolution.ni:  # of a block that was left half way
            self._sent = False
        self._ready()
        n, all_of_them = len(self.mass), self._at_everybody
        self._call(lib.g6x_hermite_predict_device, all_of_them, n, time)
        self._force_all(time)
        self._call(lib.g6x_hermite_correct_device, all_of_them, n, time, 0)
        return self._fetch(self._block["xi"]), self._fetch(self._block["vi"])

    def _evolve(self, evolution: CData) -> int:
        try:
            return self._call(lib.g6x_hermite_evolve_device, self._at, evolution)
        finally:
            self._latest = max(self._latest, evolution.time)

    def _force_all(self, time: float) -> None:
        began, n, at = clock.perf_counter(), len(self.mass), self._at_everybody
        self._board.set_time(time)
        for rows in chunks(n, n, _CHUNK_PAIRS, _CHUNK_ROWS):
            k, none = rows.start, ffi.NULL
            targets = n, rows.stop - k, at.address + k, at.xi + k, at.vi + k
            sums = at.acc + k, at.jerk + k, at.pot + k
            self._call(lib.g6x_forces_device, *targets, self._eps2, none, *sums, none, none)
        self.force_seconds += clock.perf_counter() - began

    def _send(self) -> None:
        own, at, n = self._own, self._at, len(self.mass)
        self._evolution.ni = 0
        with self._device:
            a2, j6 = own["acc"] / 2, own["jerk"] / 6
            derivatives = cuda_pointer(j6), cuda_pointer(a2)
            none = ffi.NULL
            self._call(
                lib.g6x_set_j_particles_device,
                *(n, none, none, at.t, at.mass, none, *derivatives, at.v, at.x),
            )

    def _call(self, function: CData, *arguments: object) -> int:
        """Make a call of the library on the current stream."""
        stream = ffi.cast("void *", self._cupy.cuda.get_current_stream().ptr)
        return self._board.check(function(self._board.cluster, *arguments, stream))

"""Block steps of bodies that live on a CUDA device, in CuPy's arrays.

Which bodies are next, predictor, corrector and the rule of the steps are the library's
``g6x_hermite_*_device`` (kernels/direct/hermite.cu), the forces ``g6x_forces_device``: per block a
few numbers come to the host, and what the session keeps there of the bodies that have moved.
"""

import time as clock

import numpy as np

from grape6py._arrays.device_place import cuda_pointer
from grape6py._lib.cluster import chunks
from grape6py._lib.library import ffi, lib
from grape6py.errors import BackendError
from grape6py.integrators.hermite_steps import BLOCK, NAMES, STATE, Blocks, HostBlocks

# A force call of the device takes part of a second at most: then Ctrl-C works.
_CHUNK_PAIRS = 2**37
_CHUNK_ROWS = 2**20


class DeviceBlocks(Blocks):
    """Bodies on the device of a session."""

    def __init__(self, board, precision, mass, rule, passes, eps, cupy):
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
        self._next = None  # time and size of the next block
        self._latest = 0.0
        self._time = ffi.new("double *")

    def state(self):
        """Copies of the arrays, by name, for NumPy; a BackendError if nothing can be read."""
        return {name: self._fetch(array) for name, array in self._own.items()}

    def _fetch(self, array):
        try:
            with self._device:
                return self._cupy.asnumpy(array)
        except RuntimeError as why:  # CuPy's
            raise BackendError(
                f"the bodies are in the memory of a device that cannot be read any more ({why}): "
                "go on from the last file saved"
            ) from why

    def put(self, state):
        """Take NumPy's arrays over, by name."""
        with self._device:
            for name, values in state.items():
                self._own[name][...] = self._cupy.asarray(np.ascontiguousarray(values, float))
        self._sent, self._next = False, None
        self._latest = float(self._fetch(self._own["t"]).max(initial=0.0))

    def latest(self):
        """The latest of the bodies' times, at least 0."""
        return self._latest

    def on_host(self):
        """The same integration in NumPy's arrays."""
        host = HostBlocks(*self._host)
        host.put(self.state())
        for name in ("steps", "blocks", "held", "force_seconds"):
            setattr(host, name, getattr(self, name))
        return host

    def start(self, eta_start):
        """As :meth:`HostBlocks.start`."""
        host = self.on_host()
        host.start(eta_start)
        self.put(host.state())

    def next_time(self):
        """Time of the next block; infinite without bodies."""
        if self._next is None:
            n = self._call(lib.g6x_hermite_next_device, self._at, self._time)
            self._next = self._time[0], n
        return self._next[0]

    def at(self, time):
        """As :meth:`HostBlocks.at`."""
        state = self.state()
        if (state["t"] == time).all():
            return state["pos"], state["vel"]
        self._ready()
        n, all_of_them = len(self.mass), self._at_everybody
        self._predict(n, time, all_of_them)
        self._force(n, time, all_of_them)
        self._call(lib.g6x_hermite_correct_device, all_of_them, n, time, 0)
        return self._fetch(self._block["xi"]), self._fetch(self._block["vi"])

    def advance(self, target, _, *, one):
        """As :meth:`HostBlocks.advance`: always one block.

        Whatever stops it half way, Ctrl-C or an error, leaves every body as it was before it
        or after it.
        """
        time = self.next_time()
        if time > target:
            return None
        self._ready()
        self._sent = False
        (_, n), self._next = self._next, None
        self._predict(n, time)
        for left in reversed(range(self.passes)):
            self._force(n, time)
            self._advance(n, time, move=left == 0)
        self._sent = True
        self.steps += n
        self.blocks += 1
        return 1

    def _predict(self, n, time, at=None):
        self._call(lib.g6x_hermite_predict_device, at or self._at, n, time)

    def _force(self, n, time, at=None):
        began, nj = clock.perf_counter(), len(self.mass)
        at = at or self._at
        self._board.set_time(time)
        for rows in chunks(n, nj, _CHUNK_PAIRS, _CHUNK_ROWS):
            k = rows.start
            targets = nj, rows.stop - k, at.address + k, at.xi + k, at.vi + k
            sums = at.acc + k, at.jerk + k, at.pot + k
            none = ffi.NULL
            self._call(lib.g6x_forces_device, *targets, self._eps2, none, *sums, none, none)
        self.force_seconds += clock.perf_counter() - began

    def _advance(self, n, time, *, move):
        what = lib.G6X_HERMITE_WRITE | (lib.G6X_HERMITE_MOVE if move else 0)
        if move:  # beforehand: it may be interrupted
            self._latest = time
        self.held += self._call(lib.g6x_hermite_correct_device, self._at, n, time, what)

    def _send(self):
        own, at, n = self._own, self._at, len(self.mass)
        with self._device:
            a2, j6 = own["acc"] / 2, own["jerk"] / 6
            derivatives = cuda_pointer(j6), cuda_pointer(a2)
            none = ffi.NULL
            self._call(
                lib.g6x_set_j_particles_device,
                *(n, none, none, at.t, at.mass, none, *derivatives, at.v, at.x),
            )

    def _call(self, function, *arguments):
        """Make a call of the library on the current stream."""
        stream = ffi.cast("void *", self._cupy.cuda.get_current_stream().ptr)
        return self._board.check(function(self._board.cluster, *arguments, stream))

"""A GPU as the octree uses it: arrays of CuPy, kernels launched by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grape6py._arrays.kinds import AnyArray, CData, CuPy, DeviceArray
from grape6py.cuda import cache, compiler

if TYPE_CHECKING:
    from grape6py.cuda.tree.settings import Capacities


class TreeLauncher:
    """CuPy on the current device."""

    def __init__(self) -> None:
        with cache.for_import():
            import cupy

        self.xp = cupy
        device = cupy.cuda.Device()
        self._capability = int(device.compute_capability)
        self._kernels: dict[str, CuPy] = {}
        self._prepared: set[tuple[str, ...]] = set()
        # Of trees' lists, by setting and size.
        self.capacities: dict[tuple[float, int, bool, bool, bool, int], Capacities] = {}

    def prepare(self, names: tuple[str, ...]) -> None:
        """Have kernels ready, compiled side by side if they have never been."""
        if names in self._prepared:
            return
        missing = [name for name in names if name not in self._kernels]
        for precision in sorted({compiler.precision_of(name) for name in missing}):
            some = [name for name in missing if compiler.precision_of(name) == precision]
            from grape6py.cuda import gpu  # which needs CuPy

            self._kernels |= gpu.loaded(some, precision, self._capability, self._loaded)
        self._prepared.add(names)

    def _loaded(self, name: str, code: bytes) -> CuPy:
        module = self.xp.cuda.function.Module()
        module.load(code)
        return module.get_function(name)

    def launch(self, name: str, blocks: int, threads: int, job: CData) -> None:
        """Start a kernel on CuPy's current stream, with a copy of the buffer `job`."""
        if name not in self._kernels:
            self.prepare((name,))
        by_value = np.frombuffer(job, np.dtype((np.void, len(job))))
        self._kernels[name]((blocks,), (threads,), (by_value,))

    def address(self, array: DeviceArray) -> int:
        """Where an array's data are."""
        return int(array.data.ptr)

    def sort(self, keys: DeviceArray) -> DeviceArray:
        """Numbers of the keys in ascending order, equal ones in their own."""
        return self.xp.argsort(keys)

    def read(self, array: DeviceArray) -> bytes:
        """Bytes of an array, once they are there."""
        return self.take(array).tobytes()

    def put(self, host: AnyArray) -> DeviceArray:
        """A copy of an array of the host."""
        return self.xp.asarray(host)

    def take(self, array: DeviceArray) -> AnyArray:
        """The host's copy of an array."""
        host: AnyArray = array.get()
        return host

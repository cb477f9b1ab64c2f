"""A GPU as the octree uses it: arrays of CuPy, kernels launched by name."""

from __future__ import annotations

from collections.abc import Sequence
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
        self._kernels: dict[str, CuPy] = {}
        self._modules: dict[str | None, CuPy] = {}
        # Of trees' lists, by setting and size.
        self.capacities: dict[tuple[float, int, bool, bool, int], Capacities] = {}

    def _module(self, order: str | None) -> CuPy:
        """Kernels of an order of expansions, or (None) all others: compiled at first use."""
        if order not in self._modules:
            only = (f"-DTREE_ORDER={order}",) if order else ()
            options = (*compiler.options("single"), *only)
            self._modules[order] = self._compiled("tree/tree.cu", options)
        return self._modules[order]

    def _compiled(self, file: str, options: tuple[str, ...]) -> CuPy:
        """The module of a file: from CuPy's cache, or compiled now and put there."""
        cupy, text = self.xp, compiler.read(file)
        try:
            return cupy.RawModule(code=text, options=options).module
        except OSError:  # the cache's folder, or that for temporary files, cannot be written
            options = (*options, compiler.FLUSH)  # as CuPy adds on the way above
            cubin, _ = cupy.cuda.compiler.compile_using_nvrtc(text, options, cache_in_memory=True)
            module = cupy.cuda.function.Module()
            module.load(cubin)
            return module

    def add(self, file: str, precision: str, names: Sequence[str]) -> None:
        """Make kernels of another file known to `launch`."""
        if names[0] not in self._kernels:
            module = self._compiled(file, compiler.options(precision))
            self._kernels |= {name: module.get_function(name) for name in names}

    def launch(self, name: str, blocks: int, threads: int, job: CData) -> None:
        """Start a kernel on CuPy's current stream, with a copy of the buffer `job`."""
        if name not in self._kernels:
            order = name.rpartition("_")[2]
            module = self._module(order if order.isdigit() else None)
            self._kernels[name] = module.get_function(name)
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

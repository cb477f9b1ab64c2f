"""Memory of a GPU that is used for one thing after another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike

from grape6py._arrays.kinds import DeviceArray

if TYPE_CHECKING:
    from grape6py.cuda.launcher import TreeLauncher


class Workspace:
    """One piece of memory that each phase of the work cuts up anew: what a memory pool gets back in
    small pieces does not serve where a large one is asked for. It has `size` bytes at least."""

    def __init__(self, gpu: TreeLauncher, size: int) -> None:
        self._gpu, self._least = gpu, size
        self._memory = gpu.xp.empty(0, np.uint8)
        self._pieces: dict[str, tuple[int, int]] = {}

    def cut(self, **sizes: int) -> dict[str, int]:
        """Forget what was there; the addresses of pieces of so many bytes, by their names."""
        start = {}
        end = 0
        for name, size in sizes.items():
            start[name] = end
            end += -(-size // 256) * 256
        if end > len(self._memory):
            self._memory = self._gpu.xp.empty(0, np.uint8)  # gives back the old one first
            self._memory = self._gpu.xp.empty(max(end, self._least), np.uint8)
        self._pieces = {name: (at, at + sizes[name]) for name, at in start.items()}
        address = self._gpu.address(self._memory)
        return {name: address + at for name, at in start.items()}

    def view(self, name: str, dtype: DTypeLike) -> DeviceArray:
        """The array that a piece is."""
        first, end = self._pieces[name]
        return self._memory[first:end].view(dtype)

"""Memory of one GPU and pinned memory of the host, through CuPy's binding of the CUDA runtime.

What is released is kept for whoever wants as much again, since sessions that are opened one after
another want the same pieces and to pin memory is slow; but not too much, nor large device memory.
"""

from __future__ import annotations

import ctypes
import sys
import threading

from cupy_backends.cuda.api import runtime

from grape6py._lib import codes
from grape6py.cuda import errors as cuda_errors

TYPE_CHECKING = False  # typing is not imported: that would lengthen the start
if TYPE_CHECKING:
    from grape6py._arrays.kinds import CuPy

GRANULE = 512  # sizes are multiples of this
SMALL = 1 << 20  # bytes of a block of the device that is kept at most
MOST = 1 << 28  # bytes of all that are kept, at most


class Memory:
    """Blocks of one device, which has to be the current one; `name` is what messages call it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._used: dict[int, tuple[bool, int]] = {}  # (pinned, size) by address
        self._kept: dict[tuple[bool, int], list[int]] = {}  # addresses by (pinned, size)
        self._lock = threading.Lock()

    def allocate(self, pinned: bool, size: int, stream: int) -> int:
        """Address of zeroed memory, of the host if pinned."""
        kind = bool(pinned), -(-max(size, 1) // GRANULE) * GRANULE
        with self._lock:
            kept = self._kept.get(kind)
            address = kept.pop() if kept else self._get(*kind)
            self._used[address] = kind
        if pinned:
            ctypes.memset(address, 0, size)
        else:
            runtime.memsetAsync(address, 0, size, stream)
            runtime.streamSynchronize(stream)
        return address

    def release(self, address: int) -> None:
        """Keep a block for later, or free it; nothing may be at work on it."""
        with self._lock:
            pinned, size = kind = self._used.pop(address)
            if size > SMALL and not pinned:
                runtime.free(address)
                return
            self._kept.setdefault(kind, []).append(address)
            if sum(n * len(addresses) for (_, n), addresses in self._kept.items()) > MOST:
                self._free_kept()

    def _free_kept(self) -> None:
        while self._kept:
            (pinned, _), addresses = self._kept.popitem()
            for address in addresses:
                (runtime.freeHost if pinned else runtime.free)(address)

    def _get(self, pinned: bool, size: int) -> int:
        for last in (False, True):
            try:
                if pinned:
                    return int(runtime.hostAlloc(size, runtime.hostAllocPortable))
                return int(runtime.malloc(size))
            except Exception as error:
                if not cuda_errors.is_out_of_memory(error):
                    raise
                if last:
                    text = self._too_little(pinned, size)
                    raise codes.from_code("DEVICE_MEMORY", text) from error
            self._free_kept()
            free_cupys_blocks()
        raise AssertionError

    def _too_little(self, pinned: bool, size: int) -> str:
        if pinned:
            return f"the host has too little memory to pin: {size / 1e9:.2f} GB were requested"
        free, total = runtime.memGetInfo()
        return (
            f"the device is out of memory: {size / 1e9:.2f} GB were requested, "
            f"{free / 1e9:.2f} of {total / 1e9:.2f} GB are free on {self._name}"
        )


def free_cupys_blocks() -> None:
    """Free what CuPy keeps for trees and for arrays of the user's, if it has been imported."""
    cupy: CuPy = sys.modules.get("cupy")
    if hasattr(cupy, "get_default_memory_pool"):  # and no thread is still importing it
        cupy.get_default_memory_pool().free_all_blocks()
        cupy.get_default_pinned_memory_pool().free_all_blocks()

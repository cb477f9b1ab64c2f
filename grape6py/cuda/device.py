"""An open CUDA device, as the core drives it: streams and memory of one session.

What sessions share is in ``gpu``. Trees, whose arrays are CuPy's, are imported at first use.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence

import cupy_backends
from cupy_backends.cuda.api import runtime

from grape6py._lib import codes
from grape6py.cuda import errors as cuda_errors
from grape6py.cuda import usable
from grape6py.cuda.gpu import cuda_version, gpu
from grape6py.cuda.memory import free_cupys_blocks

TYPE_CHECKING = False  # typing is not imported: that would lengthen the start
if TYPE_CHECKING:
    from grape6py._arrays.kinds import ArrayOf, CData
    from grape6py.cuda.launcher import TreeLauncher
    from grape6py.cuda.tree.request import SessionTree

# Trees of lost devices: to free their memory would call CUDA again.
_abandoned: list[SessionTree | None] = []


def open_device(words: str, choice: int) -> Device:
    """Open one of those that GRAPE6_DEVICES names: see usable.chosen."""
    if cuda_errors.two_wheels(os.path.dirname(os.path.dirname(cupy_backends.__file__))):
        raise codes.from_code("RUNTIME", cuda_errors.TWO_WHEELS)
    numbers = usable.numbers_of(words, runtime.getDeviceCount())
    return Device(usable.chosen(numbers, choice), len(numbers))


def explain(error: BaseException) -> tuple[int, str] | None:
    """Code and text of an exception of CuPy, or None."""
    return cuda_errors.explain(error, cuda_version())


class Device:
    """An open device, with the members of struct device; `driver` are those of struct driver."""

    def __init__(self, number: int, count: int = 1) -> None:
        self.number, self.usable = number, count
        self._gpu = gpu(number)
        self.driver, self.context = self._gpu.driver, self._gpu.context
        self.name, self.capability = self._gpu.name, self._gpu.capability
        self.multiprocessors = self._gpu.multiprocessors
        self.shared_bytes = self._gpu.shared_bytes
        self._addresses: set[int] = set()
        self._tree: SessionTree | None = None  # not asked for yet
        with self._gpu.current():
            self.streams, self.event = self._gpu.begin()

    def kernels(self, precision: str, names: Sequence[str]) -> list[int]:
        """Handles of kernels of a precision, compiled if they have never been."""
        with self._gpu.current():
            return self._gpu.functions(precision, names)

    def allocate(self, pinned: bool, size: int) -> int:
        """Address of zeroed memory, of the host if pinned."""
        with self._gpu.current():
            address = self._gpu.memory.allocate(pinned, size, self.streams[0])
        self._addresses.add(address)
        return address

    def release(self, address: int) -> None:
        """Give memory back, once the streams are done with it."""
        with self._gpu.current():
            self._synchronize()
            self._addresses.remove(address)
            self._gpu.memory.release(address)

    def tree(self, job: CData, array: ArrayOf) -> None:
        """What an octree is asked for: see struct tree_request of csrc/core/device.h."""
        from grape6py.cuda.tree.request import SessionTree  # reads headers: only when needed

        work = tree_gpu(self.number)
        with work.xp.cuda.Device(self.number), work.xp.cuda.ExternalStream(self.streams[0]):
            tree = self._tree = self._tree or SessionTree(work)
            try:
                return tree.answer(job, array)
            except Exception as error:
                if not cuda_errors.is_out_of_memory(error):
                    raise
            self._free(tree)  # when the error, and with it what its calls had, is gone
            tree.answer(job, array)

    def _synchronize(self) -> None:
        for stream in self.streams:
            runtime.streamSynchronize(stream)

    def _free(self, tree: SessionTree) -> None:
        """Give the memory of a tree back, and what CuPy keeps."""
        tree.forget()
        with tree_gpu(self.number).xp.cuda.Device(self.number):
            free_cupys_blocks()

    def close(self, lost: bool) -> None:
        """Release everything; of a lost device nothing, since that would call CUDA."""
        tree, self._tree = self._tree, None
        if lost:
            _abandoned.append(tree)
            return
        with self._gpu.current():
            self._synchronize()
            for address in self._addresses:
                self._gpu.memory.release(address)
            self._addresses.clear()
            if tree:
                self._free(tree)
            self._gpu.end(self.streams, self.event)


@functools.cache  # its kernels are compiled once
def tree_gpu(number: int) -> TreeLauncher:
    """What trees work on: the device of this number, which is the current one."""
    from grape6py.cuda import launcher

    return launcher.TreeLauncher()

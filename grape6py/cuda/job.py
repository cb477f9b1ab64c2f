"""What kernels are given: structures of their headers, as cffi reads them, filled by name."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import cffi

from grape6py._lib import declarations
from grape6py.cuda import compiler

if TYPE_CHECKING:
    from grape6py._arrays.kinds import CData, DeviceArray
    from grape6py.cuda.launcher import TreeLauncher


def pieces(n: int, size: int) -> int:
    """How many of a size n are, the last perhaps not whole."""
    return -(-n // size)


@functools.cache
def declared(*files: str) -> tuple[CData, CData]:
    """The FFI of the structures of some files of kernels, without those included; their numbers."""
    ffi = cffi.FFI()
    ffi.cdef("typedef float vec; typedef struct { float x, y, z, w; } float4;")
    for file in files:
        text = (compiler.KERNELS / file).read_text(encoding="ascii")
        ffi.cdef(declarations.structures(text))
    return ffi, ffi.dlopen(None)


class Job:
    """One structure (`fields`), the arrays that it points to, and the kernels that are given it.

    `ffi` is as :func:`declared` gives it, `name` that of the structure, `numbers` are the first
    values of some fields.
    """

    def __init__(self, gpu: TreeLauncher, ffi: CData, name: str, **numbers: float) -> None:
        self.gpu, self.xp, self._ffi = gpu, gpu.xp, ffi  # xp: CuPy, or NumPy in tests
        self.fields = ffi.new(f"struct {name} *", numbers)
        self.arrays: dict[str, DeviceArray] = {}

    def set(self, /, **arrays: DeviceArray) -> None:
        """Point fields to arrays, which are kept; None: to nothing."""
        addresses = {n: None if a is None else self.gpu.address(a) for n, a in arrays.items()}
        self.point(self.fields, **addresses)
        self.arrays |= arrays

    def drop(self, names: str) -> None:
        """Point fields to nothing."""
        self.set(**dict.fromkeys(names.split()))

    def point(self, to: CData, /, **addresses: int | None) -> None:
        """Point fields of a structure to addresses."""
        for name, address in addresses.items():
            setattr(to, name, self._ffi.cast("void *", address or 0))

    def launch(self, name: str, count: int, threads: int = 128) -> None:
        """Start a kernel with as many threads, at least; of none, nothing."""
        if not count:
            return
        job = self._ffi.buffer(self.fields)
        self.gpu.launch(name, pieces(count, threads), threads, job)

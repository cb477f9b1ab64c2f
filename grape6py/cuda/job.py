"""What kernels are given: structures of their headers, as cffi reads them, filled by name."""

import functools

import cffi

from grape6py._lib import declarations
from grape6py.cuda import compiler


def pieces(n, size):
    """How many of a size n are, the last perhaps not whole."""
    return -(-n // size)


@functools.cache
def declared(*files):
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

    def __init__(self, gpu, ffi, name, **numbers):
        self._gpu, self._ffi = gpu, ffi
        self.fields, self.arrays = ffi.new(f"struct {name} *", numbers), {}

    def set(self, /, **arrays):
        """Point fields to arrays, which are kept; None: to nothing."""
        addresses = {n: None if a is None else self._gpu.address(a) for n, a in arrays.items()}
        self.point(self.fields, **addresses)
        self.arrays |= arrays

    def drop(self, names):
        """Point fields to nothing."""
        self.set(**dict.fromkeys(names.split()))

    def point(self, to, /, **addresses):
        """Point fields of a structure to addresses."""
        for name, address in addresses.items():
            setattr(to, name, self._ffi.cast("void *", address or 0))

    def launch(self, name, count, threads=128):
        """Start a kernel with as many threads, at least."""
        job = self._ffi.buffer(self.fields)
        self._gpu.launch(name, pieces(count, threads), threads, job)

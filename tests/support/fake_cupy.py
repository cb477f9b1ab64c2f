"""A CuPy in which the tests decide what goes wrong: as much of it as grape6py.cuda.device uses.

`install(monkeypatch)` puts it in CuPy's place and gives the module `device` made with it. Memory is
that of the host; `Fake.limit` bytes of it there are, and `Fake.pooled` more are set free by
free_all_blocks. What was called stands in `Fake.calls`.
"""

import ctypes
import importlib
import sys
from types import SimpleNamespace


class OutOfMemoryError(MemoryError):
    """CuPy's of that name."""


class CUDARuntimeError(RuntimeError):
    """CuPy's of that name: `status` is the runtime's number."""

    def __init__(self, status, words):
        super().__init__(words)
        self.status = status


class CompileException(Exception):
    """CuPy's of that name."""


class Memory:
    """MemoryPointer and PinnedMemoryPointer."""

    def __init__(self, fake, size):
        self._fake, self._size = fake, size
        self._bytes = ctypes.create_string_buffer(b"\xff" * size, size)
        self.ptr = ctypes.addressof(self._bytes)
        fake.used += size

    def memset_async(self, value, size, stream):
        self._fake.calls.append(("memset", stream))
        ctypes.memset(self.ptr, value, size)

    def __del__(self):
        self._fake.used -= self._size


class Stream:
    """A stream, which may be made the current one."""

    ptr = 7

    def __init__(self, fake):
        self._fake = fake

    def __enter__(self):
        self._fake.current = self.ptr

    def __exit__(self, *error):
        self._fake.current = 0

    def synchronize(self):
        self._fake._touch("synchronize")


class Fake:
    """The module."""

    def __init__(self):
        self.calls, self.used, self.limit, self.pooled = [], 0, 1000, 0
        self.broken = None  # raised by whatever touches the device
        self.cache_error = None  # raised by RawModule
        self.devices, self.current = 2, 0
        self.cuda = SimpleNamespace(
            Device=self._device,
            Stream=lambda non_blocking: Stream(self),
            Event=lambda disable_timing: SimpleNamespace(ptr=9),
            alloc=self._allocate,
            alloc_pinned_memory=self._allocate,
            compiler=SimpleNamespace(compile_using_nvrtc=self._compile),
            function=SimpleNamespace(Module=lambda: self._module("memory")),
            runtime=SimpleNamespace(
                free=lambda pointer: self._touch("context"),
                getDeviceCount=lambda: self.devices,
                getDeviceProperties=lambda n: {"name": b"Fake %d" % n},
                runtimeGetVersion=lambda: 13020,
            ),
            driver=SimpleNamespace(
                ctxGetCurrent=lambda: 5,
                funcGetAttribute=lambda kind, function: 1024,
                funcSetAttribute=lambda *what: self.calls.append(("shared", *what)),
                CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES="static",
                CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES="dynamic",
            ),
        )

    def _touch(self, name):
        self.calls.append(name)
        if self.broken:
            raise self.broken

    def _device(self, number):
        fake = self

        class Device:
            id, compute_capability, mem_info = number, "90", (250_000_000, 2_000_000_000)
            attributes = {"MultiProcessorCount": 132, "MaxSharedMemoryPerBlockOptin": 232448}  # noqa: RUF012

            def __enter__(self):
                fake._touch(f"use {number}")

            def __exit__(self, *error):
                return None

        return Device()

    def _allocate(self, size):
        self._touch("allocate")
        assert self.current == Stream.ptr
        if self.used + size > self.limit:
            raise OutOfMemoryError("too much")
        return Memory(self, size)

    def _free(self):
        self._touch("free_all_blocks")
        self.limit += self.pooled
        self.pooled = 0

    def get_default_memory_pool(self):
        return SimpleNamespace(free_all_blocks=self._free)

    get_default_pinned_memory_pool = get_default_memory_pool

    def _module(self, how):
        return SimpleNamespace(
            get_function=lambda name: SimpleNamespace(ptr=hash((how, name))),
            load=lambda cubin: self.calls.append(("load", cubin)),
        )

    def RawModule(self, code, options):
        self.calls.append(("RawModule", options))
        if self.cache_error:
            raise self.cache_error
        return SimpleNamespace(module=self._module("disk"))

    def _compile(self, code, options, cache_in_memory):
        self.calls.append(("compile", options, cache_in_memory))
        return b"cubin", None


def install(monkeypatch):
    """The fake and the module grape6py.cuda.device that uses it."""
    fake = Fake()
    monkeypatch.setitem(sys.modules, "cupy", fake)
    monkeypatch.delitem(sys.modules, "grape6py.cuda.device", raising=False)
    module = importlib.import_module("grape6py.cuda.device")
    monkeypatch.delitem(sys.modules, "grape6py.cuda.device")  # other tests make their own
    library = {name: ctypes.CFUNCTYPE(None)() for name in module.DRIVER}
    monkeypatch.setattr(module.ctypes, "CDLL", lambda name: library)
    return fake, module

"""A CUDA device as all sessions on it share it: its context, streams, memory and kernels.

Most of it comes from ``cupy_backends``, CuPy's binding of CUDA. CuPy itself and NumPy, which take
longer to import than everything else takes, are imported for trees alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from cupy_backends.cuda.api import runtime

from grape6py.cuda import driver, machine_code
from grape6py.cuda.memory import Memory

# In the order of struct driver.
DRIVER = """cuCtxPushCurrent_v2 cuCtxPopCurrent_v2 cuLaunchKernel cuMemcpyHtoDAsync_v2
    cuMemcpyDtoHAsync_v2 cuMemsetD8Async cuStreamQuery cuEventRecord
    cuStreamWaitEvent cuGetErrorString""".split()
STREAMS = 4  # DEVICE_STREAMS

_MULTIPROCESSORS, _SHARED_BYTES, _MAJOR, _MINOR = 16, 97, 75, 76  # cudaDevAttr...
_NO_CODE = {200, 209, 218, 222, 223, 300}  # CUDA_ERROR_INVALID_IMAGE and its like

_Function = TypeVar("_Function")

_gpus: dict[int, SharedDevice] = {}
_lock = threading.Lock()


def cuda_version() -> int:
    """Major version of CUDA that CuPy was built for."""
    return int(runtime.runtimeGetVersion()) // 1000


def loaded(
    names: Sequence[str], precision: str, capability: int, load: Callable[[str, bytes], _Function]
) -> dict[str, _Function]:
    """{kernel: what `load` makes of its name and machine code}, compiled if it never has been."""
    what, known = (precision, capability, cuda_version()), {}
    for name, code in machine_code.find(names, *what).items():
        try:
            known[name] = load(name, code)
        except driver.CUDADriverError as error:
            if error.status not in _NO_CODE:
                raise  # else it is compiled again: this driver may not take another's
    missing = [name for name in names if name not in known]
    made = machine_code.make(missing, *what) if missing else {}
    return known | {name: load(name, code) for name, code in made.items()}


class SharedDevice:
    """What all open devices of one number share; it lives as long as the process.

    The context is the primary one, which CuPy and others in the process use, too.
    """

    def __init__(self, number: int) -> None:
        library = ctypes.CDLL("libcuda.so.1")
        self.driver = [ctypes.cast(library[name], ctypes.c_void_p).value for name in DRIVER]
        context, name = ctypes.c_void_p(), ctypes.create_string_buffer(256)
        driver.check_status(library["cuDevicePrimaryCtxRetain"](ctypes.byref(context), number))
        driver.check_status(library["cuDeviceGetName"](name, len(name), number))
        self.context, self.name = context.value, name.value.decode("utf-8", "replace")
        facts = [runtime.deviceGetAttribute(kind, number)
                 for kind in (_MULTIPROCESSORS, _SHARED_BYTES, _MAJOR, _MINOR)]  # fmt: skip
        self.multiprocessors, self.shared_bytes = facts[:2]
        self.capability = 10 * facts[2] + facts[3]
        self.memory = Memory(self.name)
        # Streams and events of devices that were closed.
        self._idle: list[tuple[list[int], int]] = []
        self._functions: dict[str, dict[str, int]] = {}  # by precision and name
        self._loading = threading.Lock()

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """Have this device for a while. What the thread had before is not touched by that."""
        before = driver.ctxGetCurrent()
        driver.ctxSetCurrent(self.context)
        try:
            yield
        finally:
            driver.ctxSetCurrent(before)

    def begin(self) -> tuple[list[int], int]:
        """Streams and an event for one device."""
        with contextlib.suppress(IndexError):
            return self._idle.pop()
        streams = [runtime.streamCreateWithFlags(runtime.streamNonBlocking) for _ in range(STREAMS)]
        return streams, runtime.eventCreateWithFlags(runtime.eventDisableTiming)

    def end(self, streams: list[int], event: int) -> None:
        """Keep them for the next."""
        self._idle.append((streams, event))

    def functions(self, precision: str, names: Sequence[str]) -> list[int]:
        """Handles of kernels, which may use all shared memory of a block."""
        with self._loading:
            known = self._functions.setdefault(precision, {})
            wanted = [name for name in names if name not in known]
            known |= loaded(wanted, precision, self.capability, self._load)
            return [known[name] for name in names]

    def _load(self, name: str, code: bytes) -> int:
        function = driver.moduleGetFunction(driver.moduleLoadData(code), name)
        used = driver.funcGetAttribute(driver.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function)
        most = driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        driver.funcSetAttribute(function, most, self.shared_bytes - used)
        return function


def gpu(number: int) -> SharedDevice:
    """The one of this number."""
    with _lock:
        if number not in _gpus:
            _gpus[number] = SharedDevice(number)
        return _gpus[number]

"""A CUDA device: context, streams, memory, compiled kernels, the driver's functions.

All of it comes from ``cupy_backends``, CuPy's binding of CUDA. CuPy itself and NumPy, which take
longer to import than everything else takes, are imported for trees alone.
"""

import contextlib
import ctypes
import functools
import os
import threading

import cupy_backends
from cupy_backends.cuda.api import driver, runtime

from grape6py import errors
from grape6py.cuda import errors as cuda_errors
from grape6py.cuda import machine_code
from grape6py.cuda.memory import Memory, free_cupys_blocks

# In the order of struct driver.
DRIVER = """cuCtxPushCurrent_v2 cuCtxPopCurrent_v2 cuLaunchKernel cuMemcpyHtoDAsync_v2
    cuMemcpyDtoHAsync_v2 cuMemsetD8Async cuStreamSynchronize cuStreamQuery cuEventRecord
    cuStreamWaitEvent cuGetErrorString""".split()
STREAMS = 4  # DEVICE_STREAMS

_MULTIPROCESSORS, _SHARED_BYTES, _MAJOR, _MINOR = 16, 97, 75, 76  # cudaDevAttr...
_NO_CODE = {200, 209, 218, 222, 223, 300}  # CUDA_ERROR_INVALID_IMAGE and its like

_gpus, _lock = {}, threading.Lock()
_abandoned = []  # trees of lost devices: to free their memory would call CUDA again


def open_device(usable, choice):
    """Open one of the usable devices: number `choice` of them, modulo how many there are."""
    if cuda_errors.two_wheels(os.path.dirname(os.path.dirname(cupy_backends.__file__))):
        raise errors.from_code("RUNTIME", cuda_errors.TWO_WHEELS)
    numbers = _usable(usable, runtime.getDeviceCount())
    return Device(numbers[choice % len(numbers)], len(numbers))


def explain(error):
    """Code and text of an exception of CuPy, or None."""
    return cuda_errors.explain(error, _cuda())


def _cuda():
    """Major version of CUDA that CuPy was built for."""
    return runtime.runtimeGetVersion() // 1000


def _usable(words, count):
    try:
        all_of_them = words in ("", "all")
        numbers = list(range(count)) if all_of_them else [int(word) for word in words.split(",")]
    except ValueError:
        numbers = [-1]
    if not count or not all(0 <= number < count for number in numbers):
        raise errors.from_code(
            "NO_DEVICE",
            f"GRAPE6_DEVICES={words}: the devices here are 0 to {count - 1}"
            if count
            else "CUDA sees no device",
        )
    return numbers


class GPU:
    """What all open devices of one number share; it lives as long as the process.

    The context is the primary one, which CuPy and others in the process use, too.
    """

    def __init__(self, number):
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
        self._idle = []  # streams and events of devices that were closed
        self._functions, self._loading = {}, threading.Lock()  # by precision and name

    @contextlib.contextmanager
    def current(self):
        """Have this device for a while. What the thread had before is not touched by that."""
        before = driver.ctxGetCurrent()
        driver.ctxSetCurrent(self.context)
        try:
            yield
        finally:
            driver.ctxSetCurrent(before)

    def begin(self):
        """Streams and an event for one device."""
        with contextlib.suppress(IndexError):
            return self._idle.pop()
        streams = [runtime.streamCreateWithFlags(runtime.streamNonBlocking) for _ in range(STREAMS)]
        return streams, runtime.eventCreateWithFlags(runtime.eventDisableTiming)

    def end(self, streams, event):
        """Keep them for the next."""
        self._idle.append((streams, event))

    def functions(self, precision, names):
        """Handles of kernels, which may use all shared memory of a block."""
        with self._loading:
            known = self._functions.setdefault(precision, {})
            what = precision, self.capability, _cuda()
            found = machine_code.find([name for name in names if name not in known], *what)
            for name, code in found.items():
                with _if_no_code():
                    known[name] = self._load(name, code)
            missing = [name for name in names if name not in known]
            made = machine_code.make(missing, *what) if missing else {}
            for name, code in made.items():
                known[name] = self._load(name, code)
            return [known[name] for name in names]

    def _load(self, name, code):
        function = driver.moduleGetFunction(driver.moduleLoadData(code), name)
        used = driver.funcGetAttribute(driver.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function)
        driver.funcSetAttribute(
            function,
            driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
            self.shared_bytes - used,
        )
        return function


def gpu(number):
    """The one of this number."""
    with _lock:
        if number not in _gpus:
            _gpus[number] = GPU(number)
        return _gpus[number]


@contextlib.contextmanager
def _if_no_code():
    """The driver may not take what another one took: then it is compiled again."""
    try:
        yield
    except driver.CUDADriverError as error:
        if error.status not in _NO_CODE:
            raise


class Device:
    """An open device, with the members of struct device; `driver` are those of struct driver."""

    def __init__(self, number, usable=1):
        self.number, self.usable = number, usable
        self._gpu = gpu(number)
        self.driver, self.context = self._gpu.driver, self._gpu.context
        self.name, self.capability = self._gpu.name, self._gpu.capability
        self.multiprocessors = self._gpu.multiprocessors
        self.shared_bytes = self._gpu.shared_bytes
        self._addresses = set()
        self._tree = None  # not asked for yet
        with self._gpu.current():
            self.streams, self.event = self._gpu.begin()

    def kernels(self, precision, names):
        """Handles of kernels of a precision, compiled if they have never been."""
        with self._gpu.current():
            return self._gpu.functions(precision, names)

    def allocate(self, pinned, size):
        """Address of zeroed memory, of the host if pinned."""
        with self._gpu.current():
            address = self._gpu.memory.allocate(pinned, size, self.streams[0])
        self._addresses.add(address)
        return address

    def release(self, address):
        """Give memory back, once the streams are done with it."""
        with self._gpu.current():
            self._synchronize()
            self._addresses.remove(address)
            self._gpu.memory.release(address)

    def tree(self, job, array):
        """Forces of an octree: see struct tree_errand of csrc/core/device.h."""
        from grape6py.cuda.tree.request import SessionTree  # reads headers: only when needed

        work = tree_gpu(self.number)
        with work.xp.cuda.Device(self.number), work.xp.cuda.ExternalStream(self.streams[0]):
            self._tree = self._tree or SessionTree(work)
            try:
                self._tree.sum(job, array)
            except Exception as error:
                if not cuda_errors.is_out_of_memory(error):
                    raise
                self._tree.forget()
                free_cupys_blocks()
                self._tree.sum(job, array)

    def _synchronize(self):
        for stream in self.streams:
            runtime.streamSynchronize(stream)

    def close(self, lost):
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
                tree.forget()
                free_cupys_blocks()
            self._gpu.end(self.streams, self.event)


@functools.cache  # its kernels are compiled once
def tree_gpu(number):
    """What trees work on: the device of this number, which is the current one."""
    from grape6py.cuda import launcher

    return launcher.GPU()

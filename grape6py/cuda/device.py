"""A CUDA device through CuPy: context, stream, memory, compiled kernels, the driver's functions."""

import ctypes
import functools
import warnings

from grape6py.cuda import cache

# CuPy warns where two of its wheels are.
with warnings.catch_warnings(record=True) as _said, cache.for_import():
    warnings.simplefilter("always")
    import cupy

from grape6py import errors
from grape6py.cuda import compiler
from grape6py.cuda import errors as cuda_errors
from grape6py.cuda.launcher import GPU

# In the order of struct driver.
DRIVER = """cuCtxPushCurrent_v2 cuCtxPopCurrent_v2 cuLaunchKernel cuMemcpyHtoDAsync_v2
    cuMemcpyDtoHAsync_v2 cuMemsetD8Async cuStreamSynchronize cuStreamQuery cuEventRecord
    cuStreamWaitEvent cuGetErrorString""".split()
STREAMS = 4  # DEVICE_STREAMS

_abandoned = []  # of lost devices: to free their memory would call CUDA again
_modules = {}  # compiled kernels by device and precision
_open = set()  # devices in use


def open_device(usable, choice):
    """Open one of the usable devices: number `choice` of them, modulo how many there are."""
    for warning in _said:
        if "multiple CuPy packages" in str(warning.message):
            raise errors.from_code("RUNTIME", cuda_errors.TWO_WHEELS)
    numbers = _usable(usable, cupy.cuda.runtime.getDeviceCount())
    return Device(numbers[choice % len(numbers)], len(numbers))


def explain(error):
    """Code and text of an exception of CuPy, or None."""
    return cuda_errors.explain(error, cupy.cuda.runtime.runtimeGetVersion() // 1000)


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


class Device:
    """An open device, with the members of struct device; `driver` are those of struct driver."""

    def __init__(self, number, usable=1):
        self.usable = usable
        self.number = number
        self._device = cupy.cuda.Device(number)
        with self._device:
            cupy.cuda.runtime.free(0)  # makes the primary context
            self._streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(STREAMS)]
            self._event = cupy.cuda.Event(disable_timing=True)
            self.context = cupy.cuda.driver.ctxGetCurrent()
        self.streams = [stream.ptr for stream in self._streams]
        self.event = self._event.ptr
        self.name, self.multiprocessors, self.shared_bytes = _facts(number)
        self.capability = int(self._device.compute_capability)
        library = ctypes.CDLL("libcuda.so.1")
        self.driver = [ctypes.cast(library[name], ctypes.c_void_p).value for name in DRIVER]
        self._memory = {}
        self._tree = None  # not asked for yet
        _open.add(self)

    def kernels(self, precision, names):
        """Handles of the kernels of a precision, which may use all shared memory of a block."""
        with self._device:
            key = self._device.id, precision
            if key not in _modules:
                _modules[key] = compiled(compiler.read(), compiler.options(precision))
            return [self._function(_modules[key], name) for name in names]

    def _function(self, module, name):
        driver = cupy.cuda.driver
        function = module.get_function(name).ptr
        used = driver.funcGetAttribute(driver.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function)
        driver.funcSetAttribute(
            function,
            driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
            self.shared_bytes - used,
        )
        return function

    def allocate(self, pinned, size):
        """Address of zeroed memory, of the host if pinned."""
        # CuPy gives what was freed on a stream to that stream alone: nothing is still at work on it
        stream = self._streams[0]
        with self._device, stream:
            memory = self._allocate(pinned, max(size, 1))
            if pinned:
                ctypes.memset(memory.ptr, 0, size)
            else:
                memory.memset_async(0, size, stream)
                stream.synchronize()
        self._memory[memory.ptr] = memory
        return memory.ptr

    def _allocate(self, pinned, size):
        allocate = cupy.cuda.alloc_pinned_memory if pinned else cupy.cuda.alloc
        for last in (False, True):
            try:
                return allocate(size)
            except Exception as error:
                if not cuda_errors.is_out_of_memory(error):
                    raise
                if last:
                    text = self._too_little(pinned, size)
                    raise errors.from_code("DEVICE_MEMORY", text) from error
            cupy.get_default_memory_pool().free_all_blocks()
            cupy.get_default_pinned_memory_pool().free_all_blocks()

    def _too_little(self, pinned, size):
        if pinned:
            return f"the host has too little memory to pin: {size / 1e9:.2f} GB were wanted"
        free, total = self._device.mem_info
        return (
            f"the device is out of memory: {size / 1e9:.2f} GB were wanted, "
            f"{free / 1e9:.2f} of {total / 1e9:.2f} GB are free on {self.name}"
        )

    def release(self, address):
        """Give memory back to CuPy's pools, once the streams are done with it."""
        with self._device:
            self._synchronize()
            del self._memory[address]

    def tree(self, job, array):
        """Forces of an octree: see struct tree_errand of csrc/core/device.h."""
        from grape6py.cuda.tree.request import SessionTree  # reads headers: only when needed

        with self._device, self._streams[0]:
            self._tree = self._tree or SessionTree(tree_gpu(self.number))
            try:
                self._tree.sum(job, array)
            except Exception as error:
                if not cuda_errors.is_out_of_memory(error):
                    raise
                self._tree.forget()
                cupy.get_default_memory_pool().free_all_blocks()
                self._tree.sum(job, array)

    def _synchronize(self):
        for stream in self._streams:
            stream.synchronize()

    def close(self, lost):
        """Release everything; of a lost device nothing, since that would call CUDA."""
        _open.discard(self)
        if lost:
            _abandoned.append(self)
            return
        with self._device:
            self._synchronize()
            self._memory.clear()
            self._tree = None
            if not _open:  # pinned memory is slow to get, and little
                cupy.get_default_memory_pool().free_all_blocks()


@functools.cache  # its kernels are compiled once
def tree_gpu(number):
    """What trees work on: the device of this number, which is the current one."""
    return GPU()


@functools.cache  # the driver takes a millisecond to tell them
def _facts(number):
    """Name, multiprocessors, and shared memory that a block may have at most."""
    attributes = cupy.cuda.Device(number).attributes
    name = cupy.cuda.runtime.getDeviceProperties(number)["name"].decode()
    return name, attributes["MultiProcessorCount"], attributes["MaxSharedMemoryPerBlockOptin"]


def compiled(text, options):
    """The module of a text: from CuPy's cache, or compiled now and put there."""
    try:
        return cupy.RawModule(code=text, options=options).module
    except OSError:  # the cache's folder, or that for temporary files, cannot be written
        options = (*options, "-ftz=true")  # as CuPy adds on the way above
        cubin, _ = cupy.cuda.compiler.compile_using_nvrtc(text, options, cache_in_memory=True)
        module = cupy.cuda.function.Module()
        module.load(cubin)
        return module

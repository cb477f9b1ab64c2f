"""CuPy's binding of CUDA, in which the tests decide what goes wrong: as much of ``cupy_backends``
as grape6py.cuda uses for direct sums.

`install(monkeypatch, folder)` puts it in its place and gives the module `device` made with it, with
its cache of machine code in the folder. Memory is that of the host; there are `Fake.limit` bytes of
it, and `Fake.pooled` more once CuPy's pools are freed. `Fake.calls` lists what was called.
"""

import ctypes
import importlib
import sys
from types import ModuleType, SimpleNamespace

OWN = tuple(
    f"grape6py.cuda.{name}" for name in ("device", "gpu", "memory")
)  # made anew for each test


class CUDARuntimeError(RuntimeError):
    """CuPy's of that name: `status` is the runtime's number."""

    def __init__(self, status, words):
        super().__init__(words)
        self.status = status


class CUDADriverError(CUDARuntimeError):
    """CuPy's of that name, of the driver."""


class NVRTCError(RuntimeError):
    """CuPy's of that name."""


class CompileException(Exception):
    """CuPy's of that name."""


class Fake:
    """The state of the device, and the functions of the modules by their names there."""

    def __init__(self):
        self.calls, self.limit, self.pooled = [], 10000, 0
        self.broken = None  # raised by whatever touches the device
        self.refused = {}  # what the driver says to machine code: number of the error by code
        self.compile_error = None  # the compiler's words
        self.devices, self.context = 2, 0
        self.contexts = []  # numbers of devices that have got one
        self._memory, self._program = {}, iter(range(1, 1000))
        self._options = {}

    @property
    def used(self):
        """Bytes."""
        return sum(map(len, self._memory.values()))

    def touch(self, *call):
        """Note a call that reaches the device."""
        self.calls.append(call[0] if len(call) == 1 else call)
        if self.broken:
            raise self.broken

    # ---- runtime ----

    def malloc(self, size):
        self.touch("allocate")
        assert self.context
        if self.used + size > self.limit:
            raise CUDARuntimeError(2, "cudaErrorMemoryAllocation: out of memory")
        memory = ctypes.create_string_buffer(b"\xff" * size, size)
        self._memory[ctypes.addressof(memory)] = memory
        return ctypes.addressof(memory)

    def hostAlloc(self, size, flags):
        return self.malloc(size)

    def free(self, address):
        self.touch("free")
        del self._memory[address]

    freeHost = free

    def memsetAsync(self, address, value, size, stream):
        self.touch("memset", stream)
        ctypes.memset(address, value, size)

    def streamSynchronize(self, stream):
        self.touch("synchronize")

    def streamCreateWithFlags(self, flags):
        self.touch("stream")
        return 7

    def eventCreateWithFlags(self, flags):
        return 9

    def getDeviceCount(self):
        return self.devices

    def deviceGetAttribute(self, kind, number):
        return {16: 132, 97: 232448, 75: 9, 76: 0}[kind]

    def memGetInfo(self):
        return 250_000_000, 2_000_000_000

    def runtimeGetVersion(self):
        return 13020

    # ---- driver ----

    def ctxGetCurrent(self):
        return self.context

    def ctxSetCurrent(self, context):
        self.touch("context")
        self.context = context

    def moduleLoadData(self, code):
        self.calls.append(("load", code))
        if code in self.refused:
            raise CUDADriverError(self.refused[code], "CUDA_ERROR_OF_THAT_NUMBER")
        return code

    def moduleGetFunction(self, module, name):
        return hash((module, name))

    def funcGetAttribute(self, kind, function):
        return 1024

    def funcSetAttribute(self, *what):
        self.calls.append(("shared", *what))

    def check_status(self, status):
        if status:
            raise CUDADriverError(status, "CUDA_ERROR_OF_THAT_NUMBER")

    # ---- NVRTC ----

    def getSupportedArchs(self):
        return (75, 80, 90, 100)

    def createProgram(self, text, name, headers, names):
        program = next(self._program)
        self.calls.append(("text", text))
        return program

    def compileProgram(self, program, options):
        self.calls.append(("compile", options))
        self._options[program] = options
        if self.compile_error:
            raise NVRTCError("NVRTC_ERROR_COMPILATION")

    def getCUBIN(self, program):
        return b"code of " + " ".join(self._options[program]).encode()

    def getPTX(self, program):
        return b"PTX"

    def getProgramLog(self, program):
        return self.compile_error

    def destroyProgram(self, program):
        pass


class Driver(dict):
    """libcuda.so.1."""

    def __init__(self, fake, names):
        super().__init__({name: ctypes.CFUNCTYPE(None)() for name in names})

        def retain(context, number):
            fake.contexts.append(number)
            context._obj.value = 100 + number
            return 0

        def name_of(name, size, number):
            name.value = b"Fake %d" % number
            return 0

        self |= {"cuDevicePrimaryCtxRetain": retain, "cuDeviceGetName": name_of}


def _module(fake, name, **more):
    module = ModuleType(name)
    module.__file__ = "/nowhere/cupy_backends/__init__.py"
    module.__getattr__ = lambda wanted: getattr(fake, wanted)
    module.__dict__.update(more)
    return module


def install(monkeypatch, folder):
    """The fake and the module grape6py.cuda.device that uses it."""
    fake = Fake()
    runtime = _module(fake, "runtime", hostAllocPortable=1, streamNonBlocking=1,
                      eventDisableTiming=2, CUDARuntimeError=CUDARuntimeError)  # fmt: skip
    driver = _module(fake, "driver", CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES="static",
                     CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES="dynamic",
                     CUDADriverError=CUDADriverError)  # fmt: skip
    fake.driver = driver  # also in place of our own
    nvrtc = _module(fake, "nvrtc", NVRTCError=NVRTCError)
    base = "cupy_backends"
    api = _module(fake, f"{base}.cuda.api", runtime=runtime, driver=driver)
    libs = _module(fake, f"{base}.cuda.libs", nvrtc=nvrtc)
    modules = {base: _module(fake, base), f"{base}.cuda": _module(fake, f"{base}.cuda"),
               api.__name__: api, libs.__name__: libs, f"{base}.cuda.api.runtime": runtime,
               f"{base}.cuda.api.driver": driver, f"{base}.cuda.libs.nvrtc": nvrtc,
               "cupy": _cupy(fake)}  # fmt: skip
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setenv("CUPY_CACHE_DIR", str(folder))
    return fake, _fresh(monkeypatch, fake)


def _cupy(fake):
    def free_all():
        fake.touch("free_all_blocks")
        fake.limit += fake.pooled
        fake.pooled = 0

    pool = SimpleNamespace(free_all_blocks=free_all)
    return SimpleNamespace(get_default_memory_pool=lambda: pool,
                           get_default_pinned_memory_pool=lambda: pool)  # fmt: skip


def _fresh(monkeypatch, fake):
    for name in OWN:
        monkeypatch.delitem(sys.modules, name, raising=False)
    device, gpu, _ = map(importlib.import_module, OWN)
    for name in OWN:
        monkeypatch.delitem(sys.modules, name)  # other tests make their own
    library = Driver(fake, gpu.DRIVER)
    used = {n: getattr(ctypes, n) for n in "c_void_p cast byref create_string_buffer".split()}
    monkeypatch.setattr(gpu, "driver", fake.driver)
    monkeypatch.setattr(gpu, "ctypes", SimpleNamespace(CDLL=lambda name: library, **used))
    return device

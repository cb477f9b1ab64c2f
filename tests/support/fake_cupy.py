"""CuPy's binding of CUDA, in which the tests decide what goes wrong: as much of ``cupy_backends``
as grape6py.cuda uses for direct sums.

`install(monkeypatch, folder)` puts it in its place and gives the module `device` made with it, with
its cache of machine code in the folder. Memory is that of the host; there are `Fake.limit` bytes of
it, and `Fake.pooled` more once CuPy's pools are freed. `Fake.calls` lists what was called."""

import ctypes
import importlib
import sys
from types import ModuleType, SimpleNamespace

# Made anew for each test.
OWN = tuple(f"grape6py.cuda.{name}" for name in ("device", "gpu", "memory"))
MODULES = """cupy_backends cupy_backends.cuda cupy_backends.cuda.api cupy_backends.cuda.api.runtime
    cupy_backends.cuda.api.driver cupy_backends.cuda.libs cupy_backends.cuda.libs.nvrtc""".split()
# What the other functions give, and constants.
ANSWERS = {
    "eventCreateWithFlags": 9, "memGetInfo": (250_000_000, 2_000_000_000),
    "runtimeGetVersion": 13020, "funcGetAttribute": 1024, "getSupportedArchs": (75, 80, 90, 100),
    "getPTX": b"PTX", "destroyProgram": None,
}  # fmt: skip


class CUDARuntimeError(RuntimeError):
    """CuPy's of that name: `status` is the runtime's number."""

    def __init__(self, status, words="CUDA_ERROR_OF_THAT_NUMBER"):
        super().__init__(words)
        self.status = status


class CUDADriverError(CUDARuntimeError):
    """CuPy's of that name."""


class NVRTCError(RuntimeError):
    """CuPy's of that name."""


class CompileException(Exception):
    """CuPy's of that name."""


class Fake:
    """The state of the device, and the functions of the modules by their names there."""

    hostAllocPortable = streamNonBlocking = 1
    eventDisableTiming = 2
    CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = "static"
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = "dynamic"
    CUDARuntimeError, CUDADriverError, NVRTCError = CUDARuntimeError, CUDADriverError, NVRTCError

    def __init__(self):
        self.calls, self.limit, self.pooled = [], 10000, 0
        self.broken = None  # raised by whatever touches the device
        self.refused = {}  # what the driver says to machine code: number of the error by code
        self.compile_error = None  # the compiler's words
        self.devices, self.context = 2, 0
        self._memory, self._options = {}, []

    def __getattr__(self, name):
        if name not in ANSWERS:
            raise AttributeError(name)
        return lambda *_: ANSWERS[name]

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
    def malloc(self, size, flags=0):
        self.touch("allocate")
        assert self.context
        if self.used + size > self.limit:
            raise CUDARuntimeError(2, "cudaErrorMemoryAllocation: out of memory")
        memory = ctypes.create_string_buffer(b"\xff" * size, size)
        self._memory[ctypes.addressof(memory)] = memory
        return ctypes.addressof(memory)

    hostAlloc = malloc

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

    def getDeviceCount(self):
        return self.devices

    def deviceGetAttribute(self, kind, number):
        return {16: 132, 97: 232448, 75: 9, 76: 0}[kind]

    # ---- driver ----
    def ctxGetCurrent(self):
        return self.context

    def ctxSetCurrent(self, context):
        self.touch("context")
        self.context = context

    def moduleLoadData(self, code):
        self.calls.append(("load", code))
        self.check_status(self.refused.get(code))
        return code

    def moduleGetFunction(self, module, name):
        return hash((module, name))

    def funcSetAttribute(self, *what):
        self.calls.append(("shared", *what))

    def check_status(self, status):
        if status:
            raise CUDADriverError(status)

    # ---- NVRTC ----
    def createProgram(self, text, name, headers, names):
        self._options.append(None)
        return len(self._options) - 1

    def compileProgram(self, program, options):
        self.calls.append(("compile", options))
        self._options[program] = options
        if self.compile_error:
            raise NVRTCError("NVRTC_ERROR_COMPILATION")

    def getCUBIN(self, program):
        return b"code of " + " ".join(self._options[program]).encode()

    def getProgramLog(self, program):
        return self.compile_error

    # ---- CuPy's pools ----
    def free_all_blocks(self):
        self.touch("free_all_blocks")
        self.limit, self.pooled = self.limit + self.pooled, 0


def driver(fake, names):
    """libcuda.so.1."""

    def retain(context, number):
        context._obj.value = 100 + number

    def name_of(name, size, number):
        name.value = b"Fake %d" % number

    others = {name: ctypes.CFUNCTYPE(None)() for name in names}
    return others | {"cuDevicePrimaryCtxRetain": retain, "cuDeviceGetName": name_of}


def install(monkeypatch, folder):
    """The fake and the module grape6py.cuda.device that uses it."""
    fake = Fake()
    for name in MODULES:
        module = ModuleType(name)
        module.__file__ = "/nowhere/cupy_backends/__init__.py"
        module.__getattr__ = lambda wanted: getattr(fake, wanted)
        monkeypatch.setitem(sys.modules, name, module)
    cupy = SimpleNamespace(get_default_memory_pool=lambda: fake)
    cupy.get_default_pinned_memory_pool = cupy.get_default_memory_pool
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setenv("CUPY_CACHE_DIR", str(folder))
    for name in OWN:
        monkeypatch.delitem(sys.modules, name, raising=False)
    device, gpu, _ = map(importlib.import_module, OWN)
    for name in OWN:
        monkeypatch.delitem(sys.modules, name)  # other tests make their own
    library = driver(fake, gpu.DRIVER)
    used = {n: getattr(ctypes, n) for n in "c_void_p cast byref create_string_buffer".split()}
    monkeypatch.setattr(gpu, "driver", fake)
    monkeypatch.setattr(gpu, "ctypes", SimpleNamespace(CDLL=lambda name: library, **used))
    return fake, device

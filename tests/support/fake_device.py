"""A CUDA device for tests, in the place of grape6py.cuda.device: memory from NumPy, the driver and
the kernels from a C library (tests/c/fake_gpu.cc, or that of embedding.py)."""

import contextlib
import ctypes
import sys
import threading

import numpy as np

from grape6py.cuda.tree.request import SessionTree
from grape6py.cuda.usable import chosen

DRIVER = """push_context pop_context launch copy_in copy_out fill query record follow
    error_text""".split()
library = "libcuda.so.1"


def install(path):
    """Has the libraries of this process find the driver in this C library, and this device."""
    global library
    import grape6py.cuda

    library = str(path)
    driver().fake_gpu_present(1)  # its name is libcuda.so.1 to everybody in the process
    grape6py.cuda.device = sys.modules["grape6py.cuda.device"] = sys.modules[__name__]


@contextlib.contextmanager
def present(path):
    """For a while; then the driver sees no device."""
    install(path)
    yield
    driver().fake_gpu_present(0)


def driver():
    """The C library, which has some calls for tests."""
    loaded = ctypes.CDLL(library)
    loaded.fake_gpu_calls.restype = ctypes.c_char_p
    return loaded


def fail(n, code=719, for_ever=True):
    """The n-th call of the driver from now on fails, and if for ever those after it; 0: none."""
    driver().fake_gpu_fail(ctypes.c_long(n), code, int(for_ever))


def open_device(usable, choice):
    """One of as many devices as are named."""
    count = len(usable.split(","))
    return Device(chosen(list(range(count)), choice), count)


def explain(error):
    """Nothing goes wrong here that is not a Python exception."""
    return None


class Device:
    """See device.Device, whose shape this is."""

    multiprocessors, capability, shared_bytes = 4, 90, 232448
    context = event = 1
    streams = (1, 1, 1, 1)
    name = "stand-in for a GPU"

    def __init__(self, number=0, usable=1):
        self.number, self.usable = number, usable
        self._gpu = ctypes.CDLL(library)
        self.driver = [self._address(f"fake_gpu_{name}") for name in DRIVER]
        self._memory = {}
        self._tree = SessionTree(FakeGpu(self._gpu))

    def _address(self, name):
        return ctypes.cast(getattr(self._gpu, name), ctypes.c_void_p).value

    def kernels(self, precision, names):
        """Addresses of the kernels of a precision."""
        return [self._address(f"{name}_{precision}") for name in names]

    def allocate(self, pinned, size):
        """Address of zeroed memory."""
        memory = np.zeros(max(size, 1), np.uint8)
        self._memory[memory.ctypes.data] = memory
        return memory.ctypes.data

    def release(self, address):
        """Forget memory."""
        del self._memory[address]

    def tree(self, job, array):
        """Forces of an octree."""
        self._tree.answer(job, array)

    def close(self, lost):
        """Forget all of it."""
        self._memory.clear()
        self._tree.forget()


_turn = threading.Lock()  # of threads that launch: the stand-in knows one kernel at a time


class FakeGpu:
    """In the shape of launcher.TreeLauncher: kernels are those of the library, and arrays NumPy's
    or of fake_arrays.py."""

    def __init__(self, library, xp=np):
        self._library, self.xp, self.capacities = library, xp, {}
        self.launched = []  # names of kernels

    def prepare(self, names):
        """The library has them all."""

    def launch(self, name, blocks, threads, job):
        """Run a kernel of the tree."""
        self.launched.append(name)
        kernel = ctypes.cast(getattr(self._library, f"{name}_tree"), ctypes.c_void_p)
        arguments = (ctypes.c_void_p * 1)(ctypes.addressof(ctypes.c_char.from_buffer(job)))
        with _turn:
            given = kernel, blocks, 1, 1, threads, 1, 1, 0, None, arguments, None
            failed = self._library.fake_gpu_launch(*given)
        if failed:
            raise RuntimeError(f"kernel {name}: error {failed}")

    def address(self, array):
        """Where an array's data are."""
        return array.ctypes.data

    def sort(self, keys):
        """Numbers of the keys in ascending order, equal ones in their own."""
        return self.xp.argsort(keys, kind="stable")

    def read(self, array):
        """Bytes of an array."""
        return array.tobytes()

    def put(self, host):
        """A copy of an array of the host."""
        return self.xp.array(host)

    def take(self, array):
        """The host's array."""
        return getattr(array, "memory", array)

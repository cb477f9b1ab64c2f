"""Arrays of a CuPy whose device is the GPU of tests/c/fake_gpu.h, and so in the host's memory.

Like CuPy's, these arrays are none of NumPy's and do not turn into them by themselves; functions and
methods are NumPy's. `install(monkeypatch)` puts the module in CuPy's place."""

import ctypes
import sys
import threading
from types import SimpleNamespace

import numpy as np


def _memory(value):
    if isinstance(value, np.ndarray) and value.ndim:
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")
    if isinstance(value, (list, tuple)):
        return type(value)(map(_memory, value))
    return value.memory if isinstance(value, Array) else value


class Array(np.lib.mixins.NDArrayOperatorsMixin):
    """cupy.ndarray"""

    def __init__(self, memory, device):
        self.memory, self.device = memory, SimpleNamespace(id=device)

    data = property(lambda self: SimpleNamespace(ptr=self.memory.ctypes.data))

    @property
    def __cuda_array_interface__(self):
        return self.memory.__array_interface__ | {"version": 3, "stream": None}

    def __dlpack_device__(self):
        return 2, self.device.id

    def __dlpack__(self, **_):
        return self

    def __array__(self, *_):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def __array_ufunc__(self, ufunc, method, *inputs, out=None):
        found = ufunc(*map(_memory, inputs))
        if out is None:
            return self._like(found)
        out[0].memory[...] = found
        return out[0]

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        found = getattr(self.memory, name)
        return (lambda *a, **more: self._like(found(*a, **more))) if callable(found) else found

    def _like(self, value):
        is_array = isinstance(value, (np.ndarray, np.generic))
        return Array(np.asarray(value), self.device.id) if is_array else value

    def get(self, out=None):
        if out is None:
            return self.memory.copy()
        out[...] = self.memory
        return out

    def set(self, values):
        self.memory[...] = values

    def __len__(self):
        return len(self.memory)

    def __getitem__(self, key):
        return self._like(self.memory[_memory(key)])

    def __setitem__(self, key, values):
        self.memory[_memory(key)] = _memory(values)

    def __str__(self):
        return str(self.memory)

    def __format__(self, how):
        return format(self.memory, how)


for _name in ("bool", "int", "float"):
    setattr(Array, f"__{_name}__", lambda self, kind=_name: getattr(self.memory, f"__{kind}__")())


class Foreign:
    """Another library's array: with __cuda_array_interface__ ("interface"), DLPack, or "both".

    `stream` is what the interface says of the stream that writes to it."""

    def __init__(self, array, how, stream=None):
        self.array, self.stream = array, stream
        if how != "dlpack":
            self.__cuda_array_interface__ = array.__cuda_array_interface__ | {"stream": stream}
        if how != "interface":
            self.__dlpack_device__ = array.__dlpack_device__
            self.__dlpack__ = self._exported

    def _exported(self, **how):
        return self.array.__dlpack__(**how)


class Late(Foreign):
    """One that a stream of its library is still writing to: NaN, until that is waited for."""

    def __init__(self, module, values, how, stream=None):
        self._values, self._module = np.array(values), module
        array = module.on(0, self._values)
        array.memory.reshape(-1).view(np.uint8)[:] = 255
        super().__init__(array, how, stream)
        module.late.append(self)

    def _exported(self, *, stream):
        assert stream != 0, "ambiguous: the legacy default stream is 1"
        if stream == (self._module.stream or 1):  # which waits for its own from now on
            self.write()
        return self.array

    def write(self):
        self.array.memory[...] = self._values


class Module:
    """The module cupy."""

    ndarray = Array

    def __init__(self):
        self.stream, self._devices = 0, threading.local()  # whose current one is each thread's
        self.copies = 0  # of arrays to the host
        self.late, self.waits = [], []  # arrays, and what was waited for
        self.cuda = SimpleNamespace(
            Device=self._device,
            runtime=SimpleNamespace(
                getDeviceCount=lambda: 2,
                runtimeGetVersion=lambda: 13020,
                getDeviceProperties=lambda number: {"name": b"stand-in"},
                streamSynchronize=self._wait_for_stream,
            ),
            get_current_stream=lambda: SimpleNamespace(
                ptr=self.stream,
                synchronize=lambda: None,
                record=lambda: self.stream,
                wait_event=lambda stream: self.waits.append(("event", stream)),
            ),
        )

    current = property(lambda self: getattr(self._devices, "number", 0),
                       lambda self, number: setattr(self._devices, "number", number))  # fmt: skip

    def ElementwiseKernel(self, *_):
        """The one that there is: whether some number is not finite (_lib/device_place.py)."""
        return lambda array, bad: bad.set(not np.isfinite(array.memory).all())

    def _device(self, number):
        module = self

        class Device:
            pci_bus_id = f"stand-in {number}"

            def __enter__(self):
                self._before, module.current = module.current, number

            def __exit__(self, *error):
                module.current = self._before

            def synchronize(self):
                module.waits.append(("device", number))
                for array in module.late:
                    array.write()

        return Device()

    def _wait_for_stream(self, stream):
        self.waits.append(("stream", stream))
        for array in self.late:
            if array.stream == stream:
                array.write()

    def on(self, device, values, dtype=None):
        """An array on a device."""
        return Array(np.array(values, dtype), device)

    def asarray(self, values):
        if isinstance(values, Array):
            here = values.device.id == self.current
            return values if here else self.on(self.current, values.memory)
        if not hasattr(values, "__cuda_array_interface__"):
            return self.on(self.current, values)
        told = values.__cuda_array_interface__
        size = np.dtype(told["typestr"]).itemsize * int(np.prod(told["shape"]))
        memory = (ctypes.c_char * size).from_address(told["data"][0])
        return Array(np.ndarray(told["shape"], told["typestr"], memory, 0, told["strides"]), 0)

    def from_dlpack(self, values):
        return values.__dlpack__(stream=self.stream or 1)  # as CuPy: 1 is the legacy default stream

    def asnumpy(self, array):
        assert isinstance(array, Array)
        self.copies += 1
        return array.memory.copy()

    def empty(self, shape, dtype=float):
        """Not zero, but for what only large ones have, which takes long."""
        array = np.empty(shape, dtype)
        array.reshape(-1)[:10000] = 77
        return Array(array, self.current)

    def array(self, values):
        return self.on(self.current, values)

    def __getattr__(self, name):
        """A function of NumPy's of this name."""
        if name.startswith("_"):
            raise AttributeError(name)

        def computed(*given, **more):
            arrays = given[0] if given and isinstance(given[0], list) else given
            device = next((a.device.id for a in arrays if isinstance(a, Array)), self.current)
            return Array(np.asarray(getattr(np, name)(*map(_memory, given), **more)), device)

        return computed


def install(monkeypatch):
    """The module, in CuPy's place."""
    module = Module()
    monkeypatch.setitem(sys.modules, "cupy", module)
    monkeypatch.setitem(sys.modules, "cupyx", SimpleNamespace(empty_pinned=np.empty))
    return module

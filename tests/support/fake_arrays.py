"""Arrays of a CuPy whose device is the card of tests/c/card.h, and so in the host's memory.

As much of CuPy as grape6py._arrays.foreign, memory_space, device_tree and leapfrog_device use.
Like CuPy's, these arrays are none of NumPy's and do not turn into them by themselves.
`install(monkeypatch)` puts the module in CuPy's place.
"""

import ctypes
import operator
import sys
from types import SimpleNamespace

import numpy as np

DEFAULT_STREAM = 0


class Array:
    """cupy.ndarray"""

    def __init__(self, memory, device):
        self.memory, self.device = memory, SimpleNamespace(id=device)

    shape = property(lambda self: self.memory.shape)
    ndim = property(lambda self: self.memory.ndim)
    size = property(lambda self: self.memory.size)
    dtype = property(lambda self: self.memory.dtype)
    data = property(lambda self: SimpleNamespace(ptr=self.memory.ctypes.data))

    @property
    def __cuda_array_interface__(self):
        return self.memory.__array_interface__ | {"version": 3, "stream": None}

    def __dlpack_device__(self):
        return 2, self.device.id

    def __array__(self, *_):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def _like(self, value):
        return Array(np.asarray(value), self.device.id)

    def __len__(self):
        return len(self.memory)

    def __getitem__(self, key):
        return self._like(self.memory[key.memory if isinstance(key, Array) else key])

    def __setitem__(self, key, values):
        self.memory[key] = _memory(values)

    def tolist(self):
        return self.memory.tolist()

    def __truediv__(self, number):
        return self._like(self.memory / number)

    def __str__(self):
        return str(self.memory)

    def __format__(self, how):
        return format(self.memory, how)


for _name in ("bool", "int", "float"):
    setattr(Array, f"__{_name}__", lambda self, kind=_name: getattr(self.memory, f"__{kind}__")())
for _name in ("eq", "lt", "le", "ge", "or", "and", "add", "mul", "invert"):
    setattr(Array, f"__{_name}__", lambda self, *others, name=_name: self._like(
        getattr(operator, f"__{name}__")(self.memory, *map(_memory, others))))  # fmt: skip
for _name in ("all", "any", "argmax", "copy", "min", "max", "reshape", "astype", "sum", "view"):
    setattr(Array, _name, lambda self, *how, name=_name, **more: self._like(
        getattr(self.memory, name)(*how, **more)))  # fmt: skip


def _memory(value):
    return value.memory if isinstance(value, Array) else value


class Foreign:
    """Another library's array: with __cuda_array_interface__ ("interface"), DLPack, or "both".

    `stream` is what the interface says of the stream that writes to it.
    """

    def __init__(self, array, how, stream=None):
        self.array, self.stream = array, stream
        if how != "dlpack":
            self.__cuda_array_interface__ = array.__cuda_array_interface__ | {"stream": stream}
        if how != "interface":
            self.__dlpack_device__ = array.__dlpack_device__
            self.__dlpack__ = self._exported

    def _exported(self, *, stream):
        return self.array


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
        self.stream = self.current = 0
        self.copies = 0  # of arrays to the host
        self.late, self.waits = [], []  # arrays, and what was waited for
        self.cuda = SimpleNamespace(
            Device=self._device,
            runtime=SimpleNamespace(
                getDeviceProperties=lambda number: {"name": b"stand-in"},
                streamSynchronize=self._wait_for_stream,
            ),
            get_current_stream=lambda: SimpleNamespace(ptr=self.stream, synchronize=lambda: None),
        )

    def _device(self, number):
        module = self

        class Device:
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
            return values
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

    def ascontiguousarray(self, array, dtype):
        return Array(np.ascontiguousarray(array.memory, dtype), array.device.id)

    def full(self, shape, value, dtype=float):
        value = value.memory if isinstance(value, Array) else value
        return self.on(self.current, np.full(shape, value, dtype))

    def empty(self, shape, dtype=float):
        return self.full(shape, 77, dtype)

    def array(self, values):
        return self.on(self.current, values)

    def zeros(self, shape, dtype=float):
        return self.full(shape, 0, dtype)

    def isfinite(self, array):
        return array._like(np.isfinite(array.memory))

    def sqrt(self, array):
        return array._like(np.sqrt(array.memory))

    def cumsum(self, array, dtype):
        return array._like(np.cumsum(array.memory, dtype=dtype))

    def flatnonzero(self, which):
        return which._like(np.flatnonzero(which.memory))

    def where(self, which, yes, no):
        return which._like(np.where(which.memory, _memory(yes), _memory(no)))

    def argmin(self, array):
        return array._like(operator.methodcaller("argmin")(array.memory))


def install(monkeypatch):
    """The module, in CuPy's place."""
    module = Module()
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module

"""The calls of struct bridge (csrc/core/device.h), as the C core makes them.

Each returns a positive number, or minus an error's row with device.text; no exception leaves.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable

from grape6py import errors
from grape6py._lib import codes
from grape6py.cuda import compiler

TYPE_CHECKING = False  # typing is not imported: that would lengthen the start
if TYPE_CHECKING:
    from grape6py._arrays.kinds import AnyArray, CData
    from grape6py.cuda.device import Device


def register(module: CData, usable: str) -> None:
    """Put a Bridge behind the callbacks of the module ``grape6py._bridge``.

    `usable` is GRAPE6_DEVICES: numbers of CUDA devices with commas; empty or "all" for all.
    """
    compiler.text_of()  # is read while the driver starts
    try:
        from grape6py.cuda import device
    except (ImportError, OSError) as error:
        raise codes.from_code("RUNTIME", f"CuPy cannot be imported: {error}") from error
    bridge = Bridge(module, functools.partial(device.open_device, usable), device.explain)

    def define(name: str, function: Callable[..., int]) -> None:
        module.ffi.def_extern(name=f"grape6_{name}")(function)

    define("open", lambda choice, device: bridge.answer(bridge.open, device, choice))
    for call in (bridge.kernels, bridge.allocate, bridge.release, bridge.tree, bridge.close):
        define(call.__name__, functools.partial(bridge.answer, call))


# By cookie; a device and its memory live as long as it is here. All libraries of the process that
# start the bridge share them.
_devices: dict[int, Device] = {}
_cookies = itertools.count(1)


class Bridge:
    """The calls; a device is made from the number that the core chose, by open_device(number).

    `explain` gives code and text of an exception of CuPy, or None if it is another's.
    """

    def __init__(
        self,
        module: CData,
        open_device: Callable[[int], Device],
        explain: Callable[[BaseException], tuple[int, str] | None],
    ) -> None:
        self._ffi, self._numbers = module.ffi, module.lib  # of csrc/core/device.h
        self._open_device = open_device
        self._explain = explain

    def answer(self, call: Callable[..., int], device: CData, *arguments: object) -> int:
        """Make a call for C: its number, or a negative code with the text in the device."""
        try:
            return call(device, *arguments)
        except BaseException as error:  # a signal's, too: the host is no Python
            code, text = self._code_and_text(error)
            line = text.encode("utf-8", "replace")[: len(device.text) - 1]
            self._ffi.memmove(device.text, line + b"\0", len(line) + 1)
            return code

    def _code_and_text(self, error: BaseException) -> tuple[int, str]:
        if isinstance(error, errors.Grape6Error) and error.code:
            return error.code, str(error)
        known = self._explain(error)
        if known:
            return known
        if isinstance(error, MemoryError):
            return codes.codes()["MEMORY"], "Python is out of the host's memory"
        return codes.codes()["PYTHON"], f"the Python side failed: {type(error).__name__}: {error}"

    def open(self, device: CData, choice: int) -> int:
        """Open a device and write what the core needs of it."""
        opened = self._open_device(choice)
        ffi, driver = self._ffi, self._ffi.typeof("struct driver")
        for (name, field), address in zip(driver.fields, opened.driver, strict=True):
            setattr(device.driver, name, ffi.cast(field.type, address))
        device.context = ffi.cast("void *", opened.context)
        device.event = ffi.cast("void *", opened.event)
        for k, stream in enumerate(opened.streams):
            device.stream[k] = ffi.cast("void *", stream)
        for name in ("multiprocessors", "capability", "shared_bytes", "number", "usable"):
            setattr(device, name, getattr(opened, name))
        device.name = opened.name.encode("ascii", "replace")[: len(device.name) - 1]
        device.cookie = next(_cookies)
        _devices[device.cookie] = opened
        return int(device.cookie)

    def _of(self, device: CData) -> Device:
        if device.cookie not in _devices:
            raise codes.from_code("PYTHON", "the device is not open")
        return _devices[device.cookie]

    def kernels(self, device: CData, mode: int, count: int, names: CData, functions: CData) -> int:
        """Find compiled kernels by their names."""
        requested = [self._ffi.string(names[k]).decode("ascii") for k in range(count)]
        found = self._of(device).kernels(compiler.PRECISIONS[mode], requested)
        for k, function in enumerate(found):
            functions[k] = self._ffi.cast("void *", function)
        return 1

    def allocate(self, device: CData, kind: int, size: int, address: CData) -> int:
        """Allocate zeroed memory."""
        address[0] = self._of(device).allocate(kind == self._numbers.MEMORY_PINNED, size)
        return 1

    def release(self, device: CData, address: int) -> int:
        """Release what `allocate` gave."""
        self._of(device).release(address)
        return 1

    def tree(self, device: CData, job: CData) -> int:
        """What an octree is asked for: see struct tree_request."""
        self._of(device).tree(job, self._array)
        return 1

    def _array(self, pointer: CData, *shape: int) -> AnyArray | None:
        """What a C pointer points to, as an array; None of a null pointer."""
        if not pointer:
            return None
        import numpy as np  # a start without a tree does not wait for it

        kind = self._ffi.typeof(pointer).item
        size = self._ffi.sizeof(kind) * math.prod(shape)
        dtypes = {"double": np.float64, "int32_t": np.int32, "int64_t": np.int64}
        return np.frombuffer(self._ffi.buffer(pointer, size), dtypes[kind.cname]).reshape(shape)

    def close(self, device: CData, lost: int) -> int:
        """Close a device with all that it has allocated. It is fine if it is closed already."""
        opened = _devices.pop(device.cookie, None)
        if opened:
            opened.close(bool(lost))
        device.cookie = 0
        return 1

"""The few calls of the CUDA driver that a start needs, with the names of CuPy's binding of it.

The first call through that binding takes half a second, more than all else. Its exception is used.
"""

from __future__ import annotations

import ctypes
import functools

TYPE_CHECKING = False  # typing is not imported: that would lengthen the start
if TYPE_CHECKING:
    from grape6py._arrays.kinds import CuPy

CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1
CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8


def __getattr__(name: str) -> CuPy:
    if name != "CUDADriverError":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from cupy_backends.cuda.api import driver

    return driver.CUDADriverError


@functools.cache
def library() -> ctypes.CDLL:
    """libcuda.so.1, which is loaded already."""
    return ctypes.CDLL("libcuda.so.1")


def check_status(status: int) -> None:
    """Raise the exception for the number of an error."""
    if status:
        raise __getattr__("CUDADriverError")(status)


def _made(call: str, kind: type[ctypes.c_void_p] | type[ctypes.c_int], *arguments: object) -> int:
    """The value that a call writes to its first argument."""
    value = kind()
    check_status(library()[call](ctypes.byref(value), *arguments))
    return value.value or 0


def ctxGetCurrent() -> int:
    return _made("cuCtxGetCurrent", ctypes.c_void_p)


def ctxSetCurrent(context: int | None) -> None:
    check_status(library()["cuCtxSetCurrent"](ctypes.c_void_p(context)))


def moduleLoadData(code: bytes) -> int:
    return _made("cuModuleLoadData", ctypes.c_void_p, code)


def moduleGetFunction(module: int, name: str) -> int:
    arguments = ctypes.c_void_p(module), name.encode("ascii")
    return _made("cuModuleGetFunction", ctypes.c_void_p, *arguments)


def funcGetAttribute(kind: int, function: int) -> int:
    return _made("cuFuncGetAttribute", ctypes.c_int, kind, ctypes.c_void_p(function))


def funcSetAttribute(function: int, kind: int, value: int) -> None:
    check_status(library()["cuFuncSetAttribute"](ctypes.c_void_p(function), kind, value))

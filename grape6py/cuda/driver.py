"""The few calls of the CUDA driver that a start needs, with the names of CuPy's binding of it.

The first call through that binding takes half a second, more than all else. Its exception is used.
"""

import ctypes
import functools

CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1
CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8


def __getattr__(name):
    if name != "CUDADriverError":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from cupy_backends.cuda.api import driver

    return driver.CUDADriverError


@functools.cache
def library():
    """libcuda.so.1, which is loaded already."""
    return ctypes.CDLL("libcuda.so.1")


def check_status(status):
    """Raise the exception for the number of an error."""
    if status:
        raise __getattr__("CUDADriverError")(status)


def _made(call, kind, *arguments):
    """The value that a call writes to its first argument."""
    value = kind()
    check_status(library()[call](ctypes.byref(value), *arguments))
    return value.value or 0


def ctxGetCurrent():
    return _made("cuCtxGetCurrent", ctypes.c_void_p)


def ctxSetCurrent(context):
    check_status(library()["cuCtxSetCurrent"](ctypes.c_void_p(context)))


def moduleLoadData(code):
    return _made("cuModuleLoadData", ctypes.c_void_p, code)


def moduleGetFunction(module, name):
    arguments = ctypes.c_void_p(module), name.encode("ascii")
    return _made("cuModuleGetFunction", ctypes.c_void_p, *arguments)


def funcGetAttribute(kind, function):
    return _made("cuFuncGetAttribute", ctypes.c_int, kind, ctypes.c_void_p(function))


def funcSetAttribute(function, kind, value):
    check_status(library()["cuFuncSetAttribute"](ctypes.c_void_p(function), kind, value))

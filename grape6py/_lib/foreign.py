"""Arrays of a CUDA device, of any library: recognised, and taken as CuPy's.

CuPy's own arrays belong to its current stream. Those of another library may still be written to, on
a stream of that library: nothing may be read before. CuPy is imported when the first array of a
device is seen, and not before.
"""

from collections.abc import Mapping
from typing import TypeGuard

import numpy as np

from grape6py._arrays.kinds import CuPy, DeviceArray
from grape6py._lib import codes
from grape6py.errors import ArgumentError

_OF_HOST = (type(None), np.ndarray, np.generic, int, float, list, tuple)
_CUDA, _CUDA_MANAGED = 2, 13  # DLPack's kinds of devices


def is_on_device(value: object) -> TypeGuard[DeviceArray]:
    """Whether a value is an array in the memory of a CUDA device."""
    if isinstance(value, _OF_HOST):
        return False
    if hasattr(value, "__dlpack_device__"):
        return value.__dlpack_device__()[0] in (_CUDA, _CUDA_MANAGED)
    return hasattr(value, "__cuda_array_interface__")


def first_on_device(values: Mapping[str, object]) -> tuple[str, DeviceArray] | None:
    """The first of some arguments that lies on a CUDA device: its name and itself, or None."""
    return next(((name, v) for name, v in values.items() if is_on_device(v)), None)


def import_cupy(name: str) -> CuPy:
    """The module, on whose need an argument of this name has insisted."""
    try:
        import cupy
    except ImportError as error:
        raise codes.from_code(
            "RUNTIME",
            f"{name} lies on a CUDA device, and CuPy, which is needed for it, cannot be imported: "
            f"{error}",
        ) from error
    return cupy


def take(cupy: CuPy, name: str, value: DeviceArray) -> DeviceArray:
    """A device's array as one of CuPy, in the same memory, which its current stream may read.

    DLPack comes first: the other library then lets CuPy's current stream wait for its own. PyTorch
    has both interfaces, and names no stream in the other one.
    """
    if isinstance(value, cupy.ndarray):
        return value
    try:
        if hasattr(value, "__dlpack_device__"):
            return cupy.from_dlpack(value)
        return _waited_for(cupy, value)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise ArgumentError(f"{name} cannot be taken from its device: {error}") from error


def _waited_for(cupy: CuPy, value: DeviceArray) -> DeviceArray:
    """An array with __cuda_array_interface__ alone, when its stream has done its work.

    If it names no stream, any may be writing to it.
    """
    array, stream = cupy.asarray(value), value.__cuda_array_interface__.get("stream")
    device = cupy.cuda.Device(array.device.id)
    with device:  # the streams 1 and 2 are those of the current device
        if stream is None:
            device.synchronize()
        else:
            cupy.cuda.runtime.streamSynchronize(stream)
    return array

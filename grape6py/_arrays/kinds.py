"""Types that annotations name: what callers may hand in, arrays, and what has no types at all."""

import os
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

# cffi and h5py have no types, and CuPy need not be installed: what is theirs may be anything.
Untyped: TypeAlias = Any
CData: TypeAlias = Untyped  # of cffi: a pointer, structure, function, library or FFI
CuPy: TypeAlias = Untyped  # the module, or one of those in it
DeviceArray: TypeAlias = Untyped  # an array of CuPy, or of NumPy in the same place; or None
HDF5: TypeAlias = Untyped  # a file or a group of h5py

ArrayOf: TypeAlias = Callable[..., Untyped]  # (pointer, n, ...): so many numbers that it points to

# Arrays that are given out. On a CUDA device they are CuPy's, which are used alike.
AnyArray: TypeAlias = NDArray[Any]
Floats: TypeAlias = NDArray[np.float64]
Singles: TypeAlias = NDArray[np.float32]
Reals: TypeAlias = NDArray[np.floating]  # float64 or longdouble
Int8s: TypeAlias = NDArray[np.int8]
UInt8s: TypeAlias = NDArray[np.uint8]
UInt64s: TypeAlias = NDArray[np.uint64]
Int32s: TypeAlias = NDArray[np.int32]
Int64s: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
State: TypeAlias = dict[str, Floats]  # of an integration, by name
Shapes: TypeAlias = dict[str, tuple[int, ...]]  # of its arrays, without the number of bodies

ArrayModule: TypeAlias = ModuleType | CuPy  # NumPy or CuPy
Shape: TypeAlias = tuple[int | None, ...]  # None: any length
PathLike: TypeAlias = str | os.PathLike[str]
Attributes: TypeAlias = dict[str, Any]  # by name: settings, attributes of a file, an object of JSON
Seed: TypeAlias = "int | Sequence[int] | np.random.SeedSequence | None"  # imported when used


class CudaArray(Protocol):
    """An array of a CUDA device, of any library but with no stream of its own to wait for."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...


class DLPackArray(Protocol):
    """An array that can be exchanged by DLPack."""

    def __dlpack__(self) -> object: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...


Numbers: TypeAlias = ArrayLike | CudaArray | DLPackArray  # where arrays of a device are taken, too

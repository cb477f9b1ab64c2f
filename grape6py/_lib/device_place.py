"""Arrays of a CUDA device, of any library: recognised, taken as CuPy's, checked, and used in calls.

CuPy's own arrays belong to its current stream. Those of another library may still be written to, on
a stream of that library: nothing may be read before. CuPy is imported when the first array of a
device is seen, and not before.

:class:`DevicePlace` takes those of the device that a session or a tree computes on as they are;
:class:`ThroughDevice` is for NumPy's where only the tree lies on a device. See memory_space.py.
"""

import functools
from collections.abc import Mapping
from typing import Self, TypeGuard

import numpy as np
from numpy.typing import DTypeLike

from grape6py._arrays import kinds, transfer, validate
from grape6py._arrays.kinds import AnyArray, CData, CuPy, DeviceArray, Numbers, Shape, Untyped
from grape6py._lib import codes
from grape6py._lib.address_table import AddressTable
from grape6py._lib.cluster import Board, Forces, chunks, empty_forces
from grape6py._lib.library import C_TYPES, check, ffi, lib
from grape6py._lib.neighbours import joined
from grape6py.errors import ArgumentError, NotFiniteError

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


@functools.cache
def _find_bad(cupy: CuPy) -> CuPy:
    """A kernel that sets bad[0] for NaN and infinities: those of all() take seconds to compile."""
    text = "if (!isfinite(a)) bad[0] = 1;"
    return cupy.ElementwiseKernel("float64 a", "raw int32 bad", text, "grape6_find_bad")


class DevicePlace:
    """CuPy arrays on the device of a session or a tree, used on the current stream.

    Its calls are those of :class:`~.memory_space.HostPlace`. The library looks for NaN and
    infinities itself. Only if it finds some are the arrays gone through for the first one, so that
    the error is the same as for NumPy's.
    """

    def __init__(
        self, board: Board | None, cupy: CuPy, device: int, what: str = "the session computes on"
    ) -> None:
        self._board: Untyped = board  # None where no call is made
        self._cupy, self.device, self._what = cupy, device, what
        self._context = cupy.cuda.Device(device)
        self._unchecked: list[tuple[str, DeviceArray, AnyArray | None]] = []
        self._staged: list[AnyArray | None] = []  # which copies to the device may still read

    def __enter__(self) -> Self:
        self._context.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        if any(memory is not None for memory in self._staged):  # else others might get it too soon
            self._cupy.cuda.get_current_stream().synchronize()
        self._context.__exit__(*error)

    def _take(self, name: str, value: object) -> DeviceArray:
        array = take(self._cupy, name, value)
        if array.device.id != self.device:
            raise ArgumentError(
                f"{name} lies on CUDA device {array.device.id}, but {self._what} device "
                f"{self.device}: copy it there, by cupy.asarray in `with cupy.cuda.Device"
                f"({self.device})`, or give NumPy's arrays"
            )
        return array

    def on_host(self, name: str, value: Numbers) -> Untyped:
        return self._cupy.asnumpy(self._take(name, value)) if is_on_device(value) else value

    def any_floats(self, name: str, values: Numbers, shape: Shape) -> DeviceArray:
        if is_on_device(values):
            return validate.any_floats(name, self._take(name, values), shape, self._cupy)
        array, staged = transfer.to_device(self._cupy, validate.any_floats(name, values, shape))
        self._staged.append(staged)
        return array

    def floats(
        self, name: str, values: Untyped, shape: Shape, labels: AnyArray | None = None
    ) -> DeviceArray:
        """As ``validate.floats``; arrays are checked later, on the device."""
        if not is_on_device(values) and np.ndim(values) == 0 and len(shape) == 1 and shape[0]:
            return self.full(shape, validate.floats(name, values, (1,), labels)[0])
        array = self.any_floats(name, values, shape)
        self._unchecked.append((name, array, labels))
        return array

    def ints(self, name: str, values: Numbers, n: int) -> DeviceArray:
        if is_on_device(values):
            return validate.ints(name, self._take(name, values), n, self._cupy)
        return self._cupy.asarray(validate.ints(name, values, n))

    def squared_radii(self, name: str, values: Numbers, n: int) -> DeviceArray:
        return validate.squares(self.any_floats(name, values, (n,)), self._cupy)

    def full(self, shape: int | Shape, value: float, dtype: DTypeLike = float) -> DeviceArray:
        return self._cupy.full(shape, value, dtype)

    def give(self, array: DeviceArray) -> DeviceArray:
        return array

    def check(self) -> None:
        """Raise what was not checked yet."""
        for name, array, labels in self._unchecked:
            bad = self._cupy.zeros(1, np.int32)
            _find_bad(self._cupy)(array, bad)
            if int(bad[0]):
                validate.check_finite(name, array, labels, self._cupy)

    def _call(self, function: CData, *arguments: object) -> None:
        """Make a call of the library on the current stream."""
        stream = ffi.cast("void *", self._cupy.cuda.get_current_stream().ptr)
        arrays = self._cupy.ndarray, type(None)
        given = [cuda_pointer(a) if isinstance(a, arrays) else a for a in arguments]
        try:
            check(function(self._board.cluster, *given, stream), self._board.cluster)
        except NotFiniteError:
            self.check()
            raise

    def write(
        self, address: kinds.Int32s | None, index: kinds.Int32s | None, *arrays: DeviceArray
    ) -> None:
        """See ``Board.write``; address and index are NumPy's."""
        _, mass, *_ = arrays
        given = self._put(address), self._put(index), *arrays
        self._board.has_particles = True
        self._call(lib.g6x_set_j_particles_device, len(mass), *given)

    def _put(self, array: AnyArray | None) -> DeviceArray:
        return None if array is None else self._cupy.asarray(array)

    def particles(self, table: AddressTable) -> tuple[DeviceArray, ...]:
        """Positions, velocities and labels of the particles at the time set."""
        nj = len(table)
        pos, vel = self._cupy.empty((nj, 3)), self._cupy.empty((nj, 3))
        self._call(lib.g6x_get_predicted_j_particles_device, nj, pos, vel)
        return table.present(pos, vel, self._put(table.labels), put=self._put)

    def forces(self, nj: int, *call: Untyped) -> Forces:
        """See ``Board.forces``; h2 is NumPy's."""
        index, pos, vel, eps2, h2, nn, lists = call
        ni = len(pos)
        out, found = empty_forces(ni, nn, self._cupy), []
        radii = self._put(h2) if lists else None
        for rows in chunks(ni, nj):
            count, targets = rows.stop - rows.start, (index[rows], pos[rows], vel[rows])
            outputs = (None if array is None else array[rows] for array in (radii, *out[:5]))
            self._call(lib.g6x_forces_device, nj, count, *targets, eps2, *outputs)
            if lists:
                found.append(self._board.lists(count))
        return out._replace(neighbours=joined(found).on(self._put)) if lists else out


class ThroughDevice(DevicePlace):
    """NumPy arrays where the device computes: copied there, and the results back."""

    def give(self, array: DeviceArray) -> DeviceArray:
        return None if array is None else transfer.to_host(self._cupy, array)


def cuda_pointer(array: DeviceArray) -> CData:
    """C pointer to an array of a device, as double *, double (*)[3], int * ...; NULL for None."""
    if array is None:
        return ffi.NULL
    kind = C_TYPES[array.dtype.char] + (" (*)[3]" if array.ndim == 2 else " *")
    return ffi.cast(kind, array.data.ptr)

"""Where the arrays of a call lie: with NumPy, or on a CUDA device.

A place checks what is handed in and makes the calls of the library; ``Grape6`` need not know which
one it is, nor need ``Tree``, for which a place has no board and makes no calls.
:class:`HostPlace` is NumPy's; :class:`~.device_place.DevicePlace` takes arrays of the session's
device as they are; :class:`ThroughHost` is for such arrays where the session computes on the CPU.
"""

import numpy as np

from grape6py._arrays import validate
from grape6py._arrays.device_place import DevicePlace
from grape6py._arrays.foreign import first_on_device, import_cupy, is_on_device, take
from grape6py._lib.cluster import Forces


def choose(board, values, last=None):
    """The place for the arguments of a call: a device, if any of them lies on one.

    `values` are arguments by name, `last` is the device where the particles came from, if that
    decides. A place is a context in which arrays may be made; its `device` is the number of the
    CUDA device that has them, None for the host.
    """
    found = first_on_device(values)
    if found is None and last is None:
        return HostPlace(board)
    cupy = import_cupy(found[0] if found else "the particles' array")
    board.prepare_for(0, 0)  # which is theirs, if there is a choice
    device = board.option("DEVICE")
    if device >= 0:
        return DevicePlace(board, cupy, device)
    return ThroughHost(board, cupy, take(cupy, *found).device.id if found else last)


def for_host(values):
    """The place that makes NumPy arrays of some arguments by name, wherever they lie."""
    found = first_on_device(values)
    if found is None:
        return HostPlace(None)
    cupy = import_cupy(found[0])
    return ThroughHost(None, cupy, take(cupy, *found).device.id)


class HostPlace:
    """NumPy arrays, and whatever NumPy makes one of: checks of ``validate``, calls of a Board."""

    device = None

    def __init__(self, board):
        self._board = board

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def on_host(self, name, value):
        """A value that NumPy understands."""
        return value

    def any_floats(self, name, values, shape):
        return validate.any_floats(name, self.on_host(name, values), shape)

    def floats(self, name, values, shape, labels=None):
        return validate.floats(name, self.on_host(name, values), shape, labels)

    def ints(self, name, values, n):
        return validate.ints(name, self.on_host(name, values), n)

    def squared_radii(self, name, values, n):
        return validate.squares(self.any_floats(name, values, (n,)))

    def full(self, shape, value, dtype=float):
        return np.full(shape, value, dtype)

    def give(self, array):
        """A result, where the caller wants it."""
        return array

    def check(self):
        """Raise what was not checked yet."""

    def write(self, *arrays):
        self._board.write(*arrays)

    def particles(self, table):
        """Positions, velocities and labels of the particles at the time set."""
        return table.present(*self._board.predicted(len(table)), table.labels)

    def forces(self, *call):
        return self._board.forces(*call)


class ThroughHost(HostPlace):
    """CuPy arrays of a session on the CPU: copied to the host, and the forces back."""

    def __init__(self, board, cupy, device):
        super().__init__(board)
        self._cupy, self.device = cupy, device

    def on_host(self, name, value):
        if not is_on_device(value):
            return value
        return self._cupy.asnumpy(take(self._cupy, name, value))

    def give(self, array):
        if array is None:
            return None
        with self._cupy.cuda.Device(self.device):
            return self._cupy.asarray(array)

    def forces(self, *call):
        *arrays, lists = super().forces(*call)
        arrays = map(self.give, arrays)
        return Forces(*arrays, None if lists is None else lists.on(self.give))

"""Where the arrays of a call lie: with NumPy, or on a CUDA device.

A place checks what is handed in and makes the calls of the library; ``Grape6`` need not know which
one it is, nor need ``Tree``, for which a place has no board and makes no calls.
:class:`HostPlace` is NumPy's, and for arrays of a device where the session computes on the CPU;
:class:`~.device_place.DevicePlace` takes arrays of the session's device as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from grape6py._arrays import kinds, validate
from grape6py._arrays.kinds import AnyArray, CuPy, DeviceArray, Floats, Numbers, Shape, Untyped
from grape6py._lib.address_table import AddressTable
from grape6py._lib.cluster import Board, Forces
from grape6py._lib.device_place import DevicePlace, is_on_device
from grape6py._lib.device_place import first_on_device as first_on_device
from grape6py._lib.device_place import import_cupy as import_cupy
from grape6py._lib.device_place import take as take

Place: TypeAlias = "HostPlace | DevicePlace"


def choose(
    board: Board | None,
    values: Mapping[str, object],
    last: int | None = None,
    on_host: bool = False,
) -> Place:
    """The place for the arguments of a call: a device, if any of them lies on one.

    `values` are arguments by name, `last` is the device where the particles came from, if that
    decides; `on_host`: it makes NumPy arrays, wherever they lie. A place is a context in which
    arrays may be made; its `device` is the number of the CUDA device that has them, None for the
    host.
    """
    found = first_on_device(values)
    if found is None and last is None:
        return HostPlace(board)
    cupy = import_cupy(found[0] if found else "the particles' array")
    if board is not None and not on_host:
        board.prepare_for(0, 0)  # which is theirs, if there is a choice
        device = board.move_to(take(cupy, *found).device.id) if found else board.option("DEVICE")
        if device >= 0:
            return DevicePlace(board, cupy, device)
    return HostPlace(board, cupy, take(cupy, *found).device.id if found else last)


def for_host(values: Mapping[str, object]) -> HostPlace:
    """The place that makes NumPy arrays of some arguments by name, wherever they lie."""
    place: Untyped = choose(None, values)  # on the host, for there is no session
    return place  # type: ignore[no-any-return]


class HostPlace:
    """NumPy arrays, and whatever NumPy makes one of: checks of ``validate``, calls of a Board.

    With CuPy, arrays of a device too: they are copied to the host, and the results back.
    """

    def __init__(self, board: Board | None, cupy: CuPy = None, device: int | None = None) -> None:
        self._board: Untyped = board  # None where no call is made
        self._cupy, self.device = cupy, device

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def on_host(self, name: str, value: Numbers) -> Untyped:
        """A value that NumPy understands."""
        if self._cupy is None or not is_on_device(value):
            return value
        return self._cupy.asnumpy(take(self._cupy, name, value))

    def any_floats(self, name: str, values: Numbers, shape: Shape) -> Floats:
        return validate.any_floats(name, self.on_host(name, values), shape)

    def floats(
        self, name: str, values: Numbers, shape: Shape, labels: AnyArray | None = None
    ) -> Floats:
        return validate.floats(name, self.on_host(name, values), shape, labels)

    def ints(self, name: str, values: Numbers, n: int) -> kinds.Int32s:
        return validate.ints(name, self.on_host(name, values), n)

    def squared_radii(self, name: str, values: Numbers, n: int) -> Floats:
        return validate.squares(self.any_floats(name, values, (n,)))

    def full(
        self, shape: int | tuple[int, ...], value: float, dtype: DTypeLike = float
    ) -> AnyArray:
        return np.full(shape, value, dtype)

    def give(self, array: AnyArray | None) -> DeviceArray:
        """A result, where the caller wants it."""
        if array is None or self._cupy is None:
            return array
        with self._cupy.cuda.Device(self.device):
            return self._cupy.asarray(array)

    def check(self) -> None:
        """Raise what was not checked yet."""

    def write(self, *arrays: Untyped) -> None:
        self._board.write(*arrays)

    def particles(self, table: AddressTable) -> tuple[AnyArray, ...]:
        """Positions, velocities and labels of the particles at the time set."""
        return table.present(*self._board.predicted(len(table)), table.labels)

    def forces(self, *call: Untyped) -> Forces:
        return self.give_all(self._board.forces(*call))

    def give_all(self, forces: Forces) -> Forces:
        """Results, where the caller wants them."""
        *arrays, lists = forces
        on_device = None if lists is None else lists.on(self.give)
        return Forces._make([*map(self.give, arrays), on_device])

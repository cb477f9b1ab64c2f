"""The tree of ``Tree`` for arrays on a CUDA device: its kernels are in grape6py/cuda."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from grape6py import errors
from grape6py._arrays.kinds import AnyArray, CuPy, DeviceArray, Floats, UInt64s, Untyped
from grape6py._lib import memory_space
from grape6py._lib.device_place import DevicePlace, ThroughDevice
from grape6py._lib.tree import PAIR_BY_PAIR, HostTree, are_few
from grape6py.cuda import errors as cuda_errors
from grape6py.cuda.tree.build import Unresolved
from grape6py.cuda.tree.octree import Octree
from grape6py.cuda.tree.search import Search
from grape6py.cuda.tree.settings import WIDEST, Setting, bound_of
from grape6py.cuda.tree.share import extent_of, keys_of, owners_of, regions_in
from grape6py.errors import ArgumentError, NotFiniteError

if TYPE_CHECKING:
    from grape6py._lib.memory_space import Place
    from grape6py.cuda.launcher import TreeLauncher

# Of whoever uses trees: the state of a call lies in its tree, that of compilation and the lengths
# of lists in the GPU.
turn = threading.RLock()


class DeviceTree:
    """A tree on a `device`, which gives NumPy's arrays if it was made `of_host` arrays.

    `counts` are the pairs, cells on targets and cells on groups of the last forces.
    """

    def __init__(self, cupy: CuPy, device: int, of_host: bool) -> None:
        self._tree: Octree | None = None
        self._divided: HostTree | None = None
        self._copies: list[DeviceArray] = []
        self._cupy, self.device, self.of_host = cupy, device, of_host
        self._made: CuPy = None  # an event
        self._of_ranks = False
        self.counts = 0, 0, 0
        self.is_open = True

    @contextlib.contextmanager
    def using(self, given: Mapping[str, object]) -> Iterator[DevicePlace]:
        """The place for arguments of these names: their checks, and where results go.

        When it is left the results are there, and no kernel reads the tree any more: any stream
        may go on. A tree that was made of CuPy's arrays need not be there yet: later calls wait.
        """
        of_tree = given.get("targets") is None and not self.of_host
        there = of_tree or memory_space.first_on_device(given)
        kind = DevicePlace if there else ThroughDevice
        place = kind(None, self._cupy, self.device, "the tree lies on")
        makes = not self._copies and self.is_open
        with turn, place, explained(self._cupy):
            stream = self._cupy.cuda.get_current_stream()
            if self._made:
                stream.wait_event(self._made)
            yield place
            cupys = (self._cupy.ndarray, int, float, type(None))
            if makes and all(isinstance(array, cupys) for array in given.values()):
                self._made = stream.record()
            else:
                stream.synchronize()

    def build(
        self,
        place: Place,
        pos: DeviceArray,
        mass: DeviceArray,
        vel: DeviceArray,
        whole: Floats | None = None,
    ) -> None:
        """Make the tree. Arrays here and below are contiguous, and checked if `place` is.

        `whole`: as in Octree; arrays are then kept as they are. Raises RangeError if that box does
        not resolve the particles.
        """
        self._n, self._moving = len(pos), vel is not None
        self._of_ranks = whole is not None
        is_own = self.of_host or self._of_ranks
        self._copies = [
            array if array is None or is_own else array.copy() for array in (pos, mass, vel)
        ]
        try:
            if self._n or self._of_ranks:
                pos, mass, vel = self._copies
                self._tree = Octree(gpu_of(self.device), pos, mass, vel, whole)
        except NotFiniteError:
            place.check()  # which has the same words for all arrays
            raise
        if self._tree is not None and self._tree.unresolved and self._of_ranks:
            self._tree = None
            raise _of_no_use()

    @property
    def order(self) -> DeviceArray:
        """Numbers of the particles in the order of their keys."""
        return self._cupy.empty(0, np.int64) if self._tree is None else self._tree.order

    def keys(self, pos: DeviceArray, whole: Floats) -> DeviceArray:
        """Hilbert keys, uint64, of positions in the box of all ranks' particles."""
        return keys_of(gpu_of(self.device), pos, whole)

    def owners(
        self, pos: DeviceArray, whole: Floats, cut: UInt64s, rank: int
    ) -> tuple[DeviceArray, DeviceArray]:
        """The ranks that have positions, and which of these are not on this one, ascending."""
        return owners_of(gpu_of(self.device), pos, whole, cut, rank)

    def extent(self, pos: DeviceArray, mass: DeviceArray) -> Floats:
        """Corners of the box of some particles, and their largest |mass|: shape (7,)."""
        return extent_of(gpu_of(self.device), pos, mass)

    def regions(self, _: DeviceArray, last_acc: DeviceArray) -> DeviceArray:
        """Where the tree's own particles are, and their least last accelerations: shape (m, 7)."""
        if self._tree is None or not self._n:
            return self._cupy.zeros((0, 7))
        return regions_in(self._tree, last_acc)

    def parts(
        self,
        regions: Sequence[DeviceArray],
        *,
        eps2: float,
        method: str,
        theta: float,
        order: int,
        bound: float,
    ) -> list[DeviceArray]:
        """What other ranks need of this tree: as in Octree."""
        if self._tree is None:
            return [self._cupy.empty(0, np.uint8) for _ in regions]
        setting = Setting(theta, order if method == "fmm" else 0, eps2, bound)
        return self._tree.parts(setting, regions)

    def particles(self) -> list[DeviceArray]:
        """Positions, masses, and velocities or None, as they were given."""
        with turn, self._cupy.cuda.Device(self.device):
            return [
                self._cupy.asnumpy(array) if self.of_host and array is not None else array
                for array in self._copies
            ]

    def close(self) -> None:
        with turn:
            self.is_open, self._tree, self._copies, self._divided = False, None, [], None

    def forces(
        self,
        ni: int,
        pos: DeviceArray,
        vel: DeviceArray,
        number: DeviceArray,
        last_acc: DeviceArray,
        *,
        eps2: float,
        method: str,
        theta: float,
        order: int,
        bound: float,
        momentum: bool,
        imports: Sequence[AnyArray] = (),
        few: bool | None = None,
    ) -> tuple[DeviceArray, DeviceArray, DeviceArray, str | None]:
        """Acceleration, potential, jerk or None, and a warning or None.

        `imports`: parts of other ranks' trees; then there is a theta or a bound, no wanted error.
        `few`: as in Octree.
        """
        check_numbers(number, self._n)
        self.counts = 0, 0, 0
        if bound > 0:
            check_last_acc(last_acc)
        if self._tree is None or not (self._n or len(imports)):
            acc, pot = self._cupy.zeros((ni, 3)), self._cupy.zeros(ni)
            return acc, pot, self._cupy.zeros((ni, 3)) if self._moving else None, None
        setting = Setting(theta, order if method == "fmm" else 0, eps2, bound)
        last_acc = last_acc if bound else None
        try:
            if theta == 0.0 and are_few(self._n, ni, on_device=True):
                setting, last_acc = Setting(PAIR_BY_PAIR, 0, eps2), None
            elif theta == 0.0:  # bound is the wanted error
                setting = Setting(WIDEST, setting.order, eps2, bound_of(setting.order, bound))
            acc, pot, jerk, counts = self._tree.forces(
                setting, pos, number, last_acc, vel, few, momentum, imports
            )
        except Unresolved:
            if self._of_ranks:
                raise _of_no_use() from None
            walk = {"eps2": eps2, "method": method, "theta": theta, "order": order, "bound": bound}
            walk["momentum"] = momentum
            return self._on_host("forces", ni, pos, vel, number, last_acc, **walk)
        self.counts = counts.pairs, counts.points, counts.locals
        if counts.too_large is not None:
            text = f"the force on target {counts.too_large} of a tree does not fit a double"
            raise errors.from_code("RANGE", text)
        warning = (
            f"{counts.zero_distances} pairs of a tree at one place with eps = 0: they add nothing"
        )
        return acc, pot, jerk, warning if counts.zero_distances else None

    def forces_with(
        self, parts: Sequence[AnyArray], *targets: Untyped, **walk: Untyped
    ) -> tuple[DeviceArray, DeviceArray, DeviceArray, str | None, tuple[int, int, int]]:
        """As `forces`, with parts of other ranks' trees; and `counts`."""
        return *self.forces(*targets, **walk, momentum=False, imports=parts), self.counts

    def bound(
        self, last_acc: DeviceArray, *, eps2: float, method: str, order: int, accuracy: float
    ) -> float:
        """The bound that gives an accuracy."""
        check_last_acc(last_acc)
        return bound_of(order if method == "fmm" else 0, accuracy)

    def within(
        self, ni: int, pos: DeviceArray, number: DeviceArray, h2: DeviceArray
    ) -> tuple[DeviceArray, DeviceArray]:
        """Neighbours: where rows start, and the rows."""
        check_numbers(number, self._n)
        if self._tree is None or not self._n:
            return self._cupy.zeros(ni + 1, np.int64), self._cupy.empty(0, np.int32)
        if self._tree.unresolved:
            return self._on_host("within", ni, pos, number, h2)
        return Search(self._tree, pos, number).within(h2)

    def nearest(
        self, ni: int, pos: DeviceArray, number: DeviceArray, k: int
    ) -> tuple[DeviceArray, DeviceArray]:
        """Numbers of the k nearest, and how far they are."""
        check_numbers(number, self._n)
        if self._tree is None or not self._n:
            full = self._cupy.full
            return full((ni, k), -1, np.int32), full((ni, k), np.inf)
        if self._tree.unresolved:
            return self._on_host("nearest", ni, pos, number, k)
        number, r2 = Search(self._tree, pos, number).nearest(k)
        return number, self._cupy.sqrt(r2)

    def _in_parts(self) -> HostTree:
        """A tree of the library's, which divides particles that no one box resolves."""
        if self._divided is None:
            self._divided = HostTree({})
            self._divided.build(None, *map(self._taken, self._copies))
        return self._divided

    def _on_host(self, call: str, *arguments: object, **setting: object) -> tuple[DeviceArray, ...]:
        found = getattr(self._in_parts(), call)(*map(self._taken, arguments), **setting)
        return tuple(self._cupy.asarray(a) if isinstance(a, np.ndarray) else a for a in found)

    def _taken(self, argument: DeviceArray) -> DeviceArray:
        is_array = isinstance(argument, self._cupy.ndarray)
        return self._cupy.asnumpy(argument) if is_array else argument


def _of_no_use() -> errors.Grape6Error:
    return errors.from_code(
        "RANGE",
        "the box of all ranks' particles does not resolve those of this tree: some stand too close "
        "together",
    )


def check_numbers(number: DeviceArray, n: int) -> None:
    """Of the particles that targets are, among n."""
    if number is None or (i := _first((number < -1) | (number >= n))) is None:
        return
    text = f"self[{i}] = {number[i]}: the tree has {n} particles"
    raise errors.from_code("ADDRESS", text)


def check_last_acc(last_acc: DeviceArray) -> None:
    if last_acc is not None and (i := _first(last_acc < 0)) is not None:
        raise ArgumentError(f"last_acc[{i}] = {last_acc[i]} is negative")


def gpu_of(device: int) -> TreeLauncher:
    from grape6py.cuda.device import tree_gpu  # which needs CuPy

    return tree_gpu(device)


def _first(which: DeviceArray) -> int | None:
    """The first row that is true, or None."""
    return int(which.argmax()) if len(which) and which.any() else None


@contextlib.contextmanager
def explained(cupy: CuPy) -> Iterator[None]:
    """Turns CuPy's exceptions into those of the table of cuda_errors."""
    try:
        yield
    except errors.Grape6Error:
        raise
    except Exception as error:
        if cuda_errors.is_out_of_memory(error):
            text = f"out of memory for a tree on a GPU: {error}"
            raise errors.from_code("DEVICE_MEMORY", text) from error
        known = cuda_errors.explain(error, cupy.cuda.runtime.runtimeGetVersion() // 1000)
        if known is None:
            raise
        raise errors.from_code(*known) from error

"""The tree of ``Tree`` on several devices of one process: as over ranks, with a thread for each."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np

from grape6py._arrays import memory_space, transfer
from grape6py._arrays.device_place import DevicePlace
from grape6py._arrays.kinds import ArrayModule, CuPy, DeviceArray, Int64s, Untyped
from grape6py._arrays.modules import module_of, on_host
from grape6py._lib.neighbours import joined, reordered
from grape6py.cuda.tree import device_tree
from grape6py.ranks.domain_tree import Found
from grape6py.ranks.threads import crew_of
from grape6py.ranks.tree import SharedTree

if TYPE_CHECKING:
    from grape6py._arrays.memory_space import Place

Answer = TypeVar("Answer")
Rows: TypeAlias = "slice | DeviceArray"


class DevicesTree:
    """A tree of which each device has a domain; its calls are those of a DeviceTree.

    Parameters
    ----------
    cupy : module
    devices : sequence of int
        CUDA's numbers.
    of_host : bool
        Whether arrays are NumPy's; else they are on the first device.
    """

    def __init__(self, cupy: CuPy, devices: Sequence[int], of_host: bool) -> None:
        self._cupy, self._of_host, self._device = cupy, of_host, devices[0]
        self._crew = crew_of(cupy, tuple(devices))
        inner = [device_tree.DeviceTree(cupy, device, of_host=True) for device in devices]
        self._inner = inner
        pairs = zip(self._crew.ranks, inner, strict=True)
        self._trees = [SharedTree(ranks, tree, {}) for ranks, tree in pairs]
        self._work_before: DeviceArray | None = None
        self._xp: ArrayModule = np  # of a call's arrays
        self.is_open = True

    @contextlib.contextmanager
    def using(self, given: Mapping[str, object]) -> Iterator[Place]:
        """The place for arguments of these names: their checks, and where results go."""
        place: Place = memory_space.for_host({})
        if not self._of_host or memory_space.first_on_device(given):
            place = DevicePlace(None, self._cupy, self._device, "the tree's arrays lie on")
        with device_tree.turn, place, device_tree.explained(self._cupy):
            self._xp = np if place.device is None else self._cupy
            yield place

    def work_before(self, work: DeviceArray) -> None:
        """What each particle's forces cost, before the tree is built."""
        self._work_before = work

    def build(
        self, place: Place, pos: DeviceArray, mass: DeviceArray, vel: DeviceArray | None
    ) -> None:
        """Share out the particles, and make the trees."""
        place.check()
        checked = memory_space.for_host({})
        n, count = len(pos), len(self._trees)
        self._first: Int64s = np.arange(count + 1) * n // count
        work, self._work_before = self._work_before, None

        def build(rank: int, rows: Rows) -> None:
            tree = self._trees[rank]
            if work is not None:
                tree.work_before(self._there(work, rows))
            tree.build(checked, *(self._there(array, rows) for array in (pos, mass, vel)))

        self._run(build, self._own())

    def particles(self) -> tuple[DeviceArray | None, ...]:
        """Positions, masses, and velocities or None, as they were given."""
        parts = self._run(lambda rank, _: self._trees[rank].particles(), self._own())
        return tuple(self._together(arrays, self._own()) for arrays in zip(*parts, strict=True))

    def work(self) -> DeviceArray:
        """What the last sum cost each particle, in pairs."""
        parts = self._run(lambda rank, _: self._trees[rank].work(), self._own())
        return self._together(parts, self._own())

    @property
    def is_resolved(self) -> bool:
        """Whether one box resolves the particles, so that they are on the devices."""
        return self._trees[0].is_resolved

    @property
    def zero_distances(self) -> int:
        """Pairs at one place that the last forces were without, if the tree is resolved."""
        return sum(tree.zero_distances for tree in self._inner)

    def close(self) -> None:
        self.is_open = False
        for tree in self._trees:
            tree.close()

    # ---- answers ---------------------------------------------------------------------------------

    def forces(
        self,
        ni: int,
        pos: DeviceArray | None,
        vel: DeviceArray | None,
        number: DeviceArray | None,
        last_acc: DeviceArray | None,
        **setting: Untyped,
    ) -> Found:
        """Acceleration, potential, jerk or None, and a warning or None."""
        if setting["bound"] > 0:
            device_tree.check_last_acc(last_acc)
        split = self._split(ni, pos, number)

        def forces(rank: int, rows: Rows) -> Found:
            there = [self._there(array, rows) for array in (pos, vel, number, last_acc)]
            count = len(there[0]) if pos is not None else int(np.diff(self._first)[rank])
            return self._trees[rank].forces(count, *there, **setting)

        found = self._run(forces, split)
        acc, pot, jerk = (self._together([answer[k] for answer in found], split) for k in range(3))
        warning = next((answer.warning for answer in found if answer.warning), None)
        return Found(acc, pot, jerk, warning)

    def bound(self, last_acc: DeviceArray | None, **setting: Untyped) -> float:
        """The bound that gives a median error; accelerations are those of the particles."""
        device_tree.check_last_acc(last_acc)

        def bound(rank: int, rows: Rows) -> float:
            return self._trees[rank].bound(self._there(last_acc, rows), **setting)

        return self._run(bound, self._own())[0]

    def within(
        self, ni: int, pos: DeviceArray | None, number: DeviceArray | None, h2: DeviceArray
    ) -> tuple[DeviceArray, DeviceArray]:
        """Neighbours: where rows start, and the rows."""
        split = self._split(ni, pos, number)

        def within(rank: int, rows: Rows) -> tuple[DeviceArray, DeviceArray]:
            at, own, radii = (self._there(array, rows) for array in (pos, number, h2))
            start, index = self._trees[rank].within(len(radii), at, own, radii)
            return on_host(start), on_host(index)

        numbers = np.arange(ni)
        order = np.concatenate([numbers[_on_host(rows)] for rows in split])
        found = joined(self._run(within, split))
        start, index = reordered(found.start, found.index, order)
        return self._xp.asarray(start), self._xp.asarray(index)

    def nearest(
        self, ni: int, pos: DeviceArray | None, number: DeviceArray | None, k: int
    ) -> tuple[DeviceArray, DeviceArray]:
        """Numbers of the k nearest, and how far they are."""
        split = self._split(ni, pos, number)

        def nearest(rank: int, rows: Rows) -> tuple[DeviceArray, DeviceArray]:
            at, own = (self._there(array, rows) for array in (pos, number))
            return self._trees[rank].nearest(0 if at is None else len(at), at, own, k)

        numbers, far = zip(*self._run(nearest, split), strict=True)
        return self._together(numbers, split), self._together(far, split)

    # ---- arrays here and there -------------------------------------------------------------------

    def _own(self) -> list[Rows]:
        """Rows of the particles that each thread gives."""
        return [slice(*self._first[rank : rank + 2]) for rank in range(len(self._trees))]

    def _split(self, ni: int, pos: DeviceArray | None, number: DeviceArray | None) -> list[Rows]:
        """Rows of the targets that each thread gives: of particles, its own."""
        if pos is None:
            return self._own()
        count = len(self._trees)
        if number is None:
            return [slice(k * ni // count, (k + 1) * ni // count) for k in range(count)]
        device_tree.check_numbers(number, int(self._first[-1]))
        xp = module_of(number)
        owner = xp.searchsorted(xp.asarray(self._first[1:-1]), number, side="right")
        return [xp.flatnonzero(owner == rank) for rank in range(count)]

    def _run(self, work: Callable[[int, Rows], Answer], split: list[Rows]) -> list[Answer]:
        """work(rank, rows) on each device, once what this thread has begun is done."""
        if self._xp is not np:
            self._cupy.cuda.get_current_stream().synchronize()

        def on_device(rank: int) -> Answer:
            found = work(rank, split[rank])
            self._cupy.cuda.get_current_stream().synchronize()
            return found

        return self._crew.call(on_device)

    def _there(self, array: DeviceArray, rows: Rows) -> DeviceArray:
        """A copy of some rows on the thread's device; None of None."""
        if array is None:
            return None
        if not isinstance(array, np.ndarray):
            with self._cupy.cuda.Device(self._device):
                piece = array[rows]
                self._cupy.cuda.get_current_stream().synchronize()
            return piece.copy()
        copy, staged = transfer.to_device(self._cupy, np.ascontiguousarray(array[rows]))
        if staged is not None:
            self._cupy.cuda.get_current_stream().synchronize()
        return copy

    def _together(self, parts: Sequence[DeviceArray], split: list[Rows]) -> Untyped:
        """Rows of all threads where the caller's arrays are; None of None."""
        if parts[0] is None:
            return None
        n = sum(map(len, parts))
        found = self._xp.empty((n, *parts[0].shape[1:]), parts[0].dtype)
        for part, rows in zip(parts, split, strict=True):
            found[rows] = on_host(part) if self._xp is np else self._cupy.asarray(part)
        return found


def _on_host(rows: Rows) -> Untyped:
    return rows if isinstance(rows, slice) else on_host(rows)

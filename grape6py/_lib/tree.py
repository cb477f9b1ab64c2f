"""The tree of ``Tree`` for NumPy arrays: one of libgrape6.so."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from grape6py._arrays.kinds import CData, Floats, Int32s, Int64s, UInt8s, UInt64s
from grape6py._arrays.regions import regions_of
from grape6py._lib import memory_space
from grape6py._lib.interruptible import wait_for
from grape6py._lib.library import check, ffi, lib, pointer, pointers, text

if TYPE_CHECKING:
    from grape6py._lib.memory_space import HostPlace

_METHODS = {"fmm": lib.G6X_TREE_FMM, "bh": lib.G6X_TREE_BARNES_HUT}


# Opening angle at which no cell stands for its particles: csrc/shared/tree_few.h.
PAIR_BY_PAIR = 2.0**-20


def are_few(particles: int, targets: int | None = None, *, on_device: bool = False) -> bool:
    """Whether a sum with a wanted accuracy takes pairs one by one; where its bound is known, if
    `targets` (by default the particles) are not given."""
    given = particles, particles if targets is None else targets
    return bool(lib.g6x_tree_few(*given, int(on_device)))


class HostTree:
    """A tree of the library, with options by G6X_THREADS and G6X_ISA."""

    _closing: weakref.finalize[..., HostTree] | None = None

    def __init__(self, options: dict[int, int]) -> None:
        self._options = options

    def using(self, given: Mapping[str, object]) -> HostPlace:
        """The place for arguments of these names: their checks, and where results go."""
        return memory_space.for_host(given)

    def build(
        self,
        place: object,
        pos: Floats,
        mass: Floats,
        vel: Floats | None,
        whole: Floats | None = None,
    ) -> None:
        """Make the tree. Arrays here and below are contiguous and checked.

        `whole` describes the particles of all ranks, of which these are some: see g6lib.h.
        """
        self._moving = vel is not None
        self._vel = None if vel is None else vel.copy()  # the library keeps the others
        self._n = n = len(pos)
        given = pointers(n, pos, vel if n else None, mass)
        call = lib.g6x_tree_open
        if whole is not None:
            call, given = lib.g6x_tree_open_in, [*pointers(whole), *given]
        self.handle = check(wait_for(call, *given, size=n, undo=lib.g6x_tree_close))
        self._closing = weakref.finalize(self, lib.g6x_tree_close, self.handle)
        for key, value in self._options.items():
            check(lib.g6x_tree_set_int(self.handle, key, value))

    @property
    def is_open(self) -> bool:
        return self._closing is not None and self._closing.alive

    def particles(self) -> tuple[Floats, Floats, Floats | None]:
        """Positions, masses, and velocities or None, as they were given."""
        pos, mass = np.empty((self._n, 3)), np.empty(self._n)
        check(lib.g6x_tree_particles(self.handle, *pointers(pos, mass)))
        return pos, mass, self._vel

    def close(self) -> None:
        if self._closing is not None:  # else it was not built: of ranks without particles
            self._closing()

    def forces(
        self,
        ni: int,
        pos: Floats | None,
        vel: Floats | None,
        number: Int32s | None,
        last_acc: Floats | None,
        *,
        eps2: float,
        method: str,
        theta: float,
        order: int,
        bound: float,
        momentum: bool,
    ) -> tuple[Floats, Floats, Floats | None, str | None]:
        """Acceleration, potential, jerk or None, and a warning or None."""
        acc, jerk, pot = self._out(ni)
        warnings_before = _warnings()
        kind = _METHODS[method] + (lib.G6X_TREE_MOMENTUM if momentum else 0)
        walk = eps2, kind, order, theta, last_acc, bound
        self._call(lib.g6x_tree_forces, ni, pos, vel, number, *walk, acc, jerk, pot)
        new = _warnings() > warnings_before
        return acc, pot, jerk, text(lib.g6x_last_warning, -1) if new else None

    @staticmethod
    def keys(pos: Floats, whole: Floats) -> UInt64s:
        """Keys of positions along the curve, in the box of all ranks' particles."""
        found = np.empty(len(pos), np.uint64)
        to = ffi.cast("unsigned long long *", found.ctypes.data)
        check(lib.g6x_tree_keys(*pointers(whole), len(pos), pointer(pos), to))
        return found

    @classmethod
    def owners(cls, pos: Floats, whole: Floats, cut: UInt64s, rank: int) -> tuple[Int64s, Int64s]:
        """The ranks that have positions, and which of these are not on this one, ascending.

        `cut`: the first keys of all ranks but the first.
        """
        found = cut.searchsorted(cls.keys(pos, whole), side="right")
        return found, np.flatnonzero(found != rank)

    @staticmethod
    def extent(pos: Floats, mass: Floats) -> Floats:
        """Corners of the box of some particles, and their largest |mass|: shape (7,)."""
        if not len(pos):
            return np.zeros(7)
        return np.array([*pos.min(axis=0), *pos.max(axis=0), np.abs(mass).max()])

    def regions(self, pos: Floats, last_acc: Floats | None) -> Floats:
        """Where the tree's own particles are, and their least last accelerations: shape (m, 7)."""
        order = self.order if self._n else slice(0)
        found: Floats = regions_of(pos[order], None if last_acc is None else last_acc[order])
        return found

    @property
    def order(self) -> Int32s:
        """Numbers of the particles in the order of their keys."""
        found = np.empty(self._n, np.int32)
        check(lib.g6x_tree_by_key(self.handle, *pointers(found)))
        return found

    def parts(
        self,
        regions: Sequence[Floats],
        *,
        eps2: float,
        method: str,
        order: int,
        theta: float,
        bound: float,
    ) -> list[UInt8s]:
        """For each rank what targets in its regions, of shape (m, 7), may look at."""
        walk = eps2, _METHODS[method], order, theta, bound
        found, capacity, bytes_ = [], 1 << 16, ffi.new("long long *")
        for some in regions:
            region = ffi.cast("double (*)[7]", some.ctypes.data)
            while True:
                part = np.empty(capacity, np.uint8)
                to = ffi.from_buffer(part), capacity, bytes_
                check(lib.g6x_tree_part(self.handle, *walk, len(some), region, *to))
                if (size := bytes_[0]) <= capacity:
                    break
                capacity = size + size // 4  # also for those that follow
            found.append(part[:size])
        return found

    def forces_with(
        self,
        parts: Sequence[UInt8s],
        ni: int,
        pos: Floats | None,
        vel: Floats | None,
        number: Int32s | None,
        last_acc: Floats | None,
        *,
        eps2: float,
        method: str,
        theta: float,
        order: int,
        bound: float,
        few: bool | None = None,
    ) -> tuple[Floats, Floats, Floats | None, str | None, tuple[int, int, int]]:
        """As `forces`, with parts of other ranks' trees; and what was summed."""
        del few  # of GPUs
        out = self._out(ni)
        warnings_before = _warnings()
        buffers = [ffi.from_buffer(part) for part in parts]
        given = len(parts), ffi.new("const void *[]", [*buffers, ffi.NULL])
        done = ffi.new("long long[3]")
        targets = pointers(ni, pos, vel, number)
        walk = pointers(eps2, _METHODS[method], order, theta, last_acc, bound, *out)
        call = lib.g6x_tree_forces_with, self.handle, *given, *targets, *walk, done
        check(wait_for(*call, size=self._n + ni))
        acc, jerk, pot = out
        new = _warnings() > warnings_before
        warning = text(lib.g6x_last_warning, -1) if new else None
        return acc, pot, jerk, warning, (done[0], done[1], done[2])

    def bound(
        self,
        last_acc: Floats | None,
        *,
        eps2: float,
        method: str,
        order: int,
        accuracy: float,
    ) -> float:
        """The bound that gives an accuracy."""
        found = ffi.new("double *")
        walk = eps2, _METHODS[method], order, accuracy, *pointers(last_acc), found
        check(wait_for(lib.g6x_tree_bound, self.handle, *walk, size=self._n))
        return float(found[0])

    def within(
        self, ni: int, pos: Floats | None, number: Int32s | None, h2: Floats
    ) -> tuple[Int64s, Int32s]:
        """Neighbours: where rows start, and the rows."""
        count, start = np.empty(ni, np.int32), np.zeros(ni + 1, np.int64)
        self._call(lib.g6x_tree_within, ni, pos, number, h2, None, count, None)
        np.cumsum(count, out=start[1:])
        index = np.empty(start[-1], np.int32)
        self._call(lib.g6x_tree_within, ni, pos, number, h2, start, count, index)
        return start, index

    def nearest(
        self, ni: int, pos: Floats | None, number: Int32s | None, k: int
    ) -> tuple[Int32s, Floats]:
        """Numbers of the k nearest, and how far they are."""
        index, r2 = np.empty((ni, k), np.int32), np.empty((ni, k))
        out = index.reshape(-1), r2.reshape(-1)
        self._call(lib.g6x_tree_nearest, ni, pos, number, k, *out)
        return index, np.sqrt(r2, out=r2)

    def _out(self, ni: int) -> tuple[Floats, Floats | None, Floats]:
        jerk = np.empty((ni, 3)) if self._moving else None
        return np.empty((ni, 3)), jerk, np.empty(ni)

    def _call(self, call: CData, ni: int, *arguments: object) -> None:
        given = pointers(self.handle, ni, *arguments)
        check(wait_for(call, *given, size=self._n + ni))


def _warnings() -> int:
    return int(lib.g6x_last_warning(-1, ffi.NULL, 0))

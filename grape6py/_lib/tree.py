"""The tree of ``Tree`` for NumPy arrays: one of libgrape6.so."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from grape6py._arrays import kinds
from grape6py._arrays.kinds import DeviceArray, Floats, Int32s, Int64s, UInt8s, UInt64s, Untyped
from grape6py._arrays.modules import mapped, module_of, on_host
from grape6py._lib import codes, memory_space
from grape6py._lib.interruptible import wait_for
from grape6py._lib.library import check, ffi, lib, pointer, pointers, text
from grape6py._lib.regions import regions_of
from grape6py._lib.tree_setting import WIDEST_BY_BOUND, Found, Setting, Targets
from grape6py.errors import ArgumentError


def are_few(particles: int, targets: int | None = None, *, on_device: bool = False) -> bool:
    """Whether a sum with a wanted accuracy takes pairs one by one; where its bound is known, if
    `targets` (by default the particles) are not given."""
    given = particles, particles if targets is None else targets
    return bool(lib.g6x_tree_few(*given, int(on_device)))


def bound_of(order: int, accuracy: float) -> float:
    """The bound that gives an accuracy."""
    return float(lib.g6x_tree_bound_of(order, accuracy))


def by_bound(setting: Setting) -> Setting:
    """A setting with the bound that gives its accuracy, if it has one."""
    if not setting.accuracy:
        return setting
    bound = bound_of(setting.order, setting.accuracy)
    return setting.replaced(theta=WIDEST_BY_BOUND, bound=bound, accuracy=0.0)


class OwnTree:
    """What trees of one process share."""

    ranks: Untyped = None
    device: int | None = None
    of_host = False  # whether it is a device's, of NumPy's arrays
    first = 0

    if TYPE_CHECKING:

        def __len__(self) -> int: ...
        def keys(self, pos: DeviceArray, whole: Floats) -> DeviceArray: ...

    def owners(self, pos: DeviceArray, whole: Floats, cut: UInt64s) -> DeviceArray:
        """The ranks that have positions; `cut`: the first keys of all ranks but the first."""
        xp = module_of(pos)
        return xp.searchsorted(xp.asarray(cut), self.keys(pos, whole), side="right")

    def check(self, targets: Targets) -> None:
        """Numbers of the particles that targets are, and their last accelerations."""
        number, n = targets.number, len(self)
        if number is not None and (i := _first((number < -1) | (number >= n))) is not None:
            raise codes.from_code("ADDRESS", f"self[{i}] = {number[i]}: the tree has {n} particles")
        check_last_acc(targets.last_acc)

    def check_bound(self, setting: Setting, last_acc: DeviceArray) -> None:
        """What :meth:`Tree.bound` is given."""
        check_last_acc(last_acc)


def check_last_acc(last_acc: DeviceArray) -> None:
    """Raises an error if one is negative."""
    if last_acc is not None and (i := _first(last_acc < 0)) is not None:
        raise ArgumentError(f"last_acc[{i}] = {float(last_acc[i]):g} is negative")


def _first(which: DeviceArray) -> int | None:
    """The first row that is true, or None."""
    return int(which.argmax()) if len(which) and which.any() else None


class HostTree(OwnTree):
    """A tree of the library, with options by G6X_THREADS and G6X_ISA."""

    _closing: weakref.finalize[..., HostTree] | None = None
    _n = 0

    def __init__(self, options: dict[int, int]) -> None:
        self._options = options

    def __len__(self) -> int:
        return self._n

    def using(self, given: Mapping[str, object]) -> memory_space.HostPlace:
        """The place for arguments of these names: their checks, and where results go."""
        return memory_space.for_host(given)

    def build(
        self,
        place: object,
        pos: Floats,
        mass: Floats,
        vel: Floats | None,
        whole: Floats | None = None,
        eps: Floats | None = None,
    ) -> None:
        """Make the tree. Arrays here and below are contiguous and checked.

        `whole` describes the particles of all ranks, of which these are some: see g6lib.h; `eps`
        is each particle's own softening.
        """
        self._vel = None if vel is None else vel.copy()  # the library keeps the others
        self._n = n = len(pos)
        given = pointers(n, pos, vel, mass)
        call = lib.g6x_tree_open
        if whole is not None:
            call, given = lib.g6x_tree_open_in, [*pointers(whole), *given]
        self.handle = check(wait_for(call, *given, size=n, undo=lib.g6x_tree_close))
        self._closing = weakref.finalize(self, lib.g6x_tree_close, self.handle)
        for key, value in self._options.items():
            check(lib.g6x_tree_set_int(self.handle, key, value))
        if eps is not None:
            check(lib.g6x_tree_soften(self.handle, *pointers(eps)))

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

    @staticmethod
    def keys(pos: Floats, whole: Floats) -> UInt64s:
        """Keys of positions along the curve, in the box of all ranks' particles."""
        found = np.empty(len(pos), np.uint64)
        to = ffi.cast("unsigned long long *", found.ctypes.data)
        check(lib.g6x_tree_keys(*pointers(whole), len(pos), pointer(pos), to))
        return found

    @staticmethod
    def extent(pos: Floats, mass: Floats) -> Floats:
        """Corners of the box of some particles, and their largest |mass|: shape (7,)."""
        if not len(pos):
            return np.zeros(7)
        return np.array([*pos.min(axis=0), *pos.max(axis=0), np.abs(mass).max()])

    def regions(self, pos: Floats, last_acc: Floats | None) -> Floats:
        """Where the tree's own particles are, and their least last accelerations: shape (m, 7)."""
        order = self.order
        found: Floats = regions_of(pos[order], None if last_acc is None else last_acc[order])
        return found

    @property
    def order(self) -> Int32s:
        """Numbers of the particles in the order of their keys."""
        found = np.empty(self._n, np.int32)
        check(lib.g6x_tree_by_key(self.handle, *pointers(found)))
        return found

    def parts(self, setting: Setting, regions: Sequence[Floats]) -> list[UInt8s]:
        """For each rank what targets in its regions, of shape (m, 7), may look at."""
        walk = setting.eps2, setting.method, setting.order, setting.theta, setting.bound
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

    def forces(
        self, setting: Setting, targets: Targets, parts: Sequence[UInt8s] | None = None
    ) -> Found:
        """Forces on targets; `parts`: of other ranks' trees, without an accuracy."""
        ni = self._count(targets)
        acc, pot = np.empty((ni, 3)), np.empty(ni)
        jerk = None if self._vel is None else np.empty((ni, 3))
        warnings_before, done = _warnings(), ffi.new("long long[3]")
        error = setting.accuracy or setting.bound
        walk = setting.eps2, setting.method, setting.order, setting.theta, targets.last_acc, error
        arguments = ni, *targets[:3], *walk, acc, jerk, pot
        if parts is None:
            self._call(lib.g6x_tree_forces, *arguments)
        else:
            buffers = [*map(ffi.from_buffer, parts), ffi.NULL]
            given = len(parts), ffi.new("const void *[]", buffers)
            self._call(lib.g6x_tree_forces_with, *arguments, done, before=given)
        warning = text(lib.g6x_last_warning, -1) if _warnings() > warnings_before else None
        return Found(acc, pot, jerk, warning, (done[0], done[1], done[2]))

    def within(self, targets: Targets, h2: Floats) -> tuple[Int64s, Int32s]:
        """Neighbours: where rows start, and the rows."""
        ni = self._count(targets)
        count, start = np.empty(ni, np.int32), np.zeros(ni + 1, np.int64)
        given = ni, targets.pos, targets.number, h2
        self._call(lib.g6x_tree_within, *given, None, count, None)
        np.cumsum(count, out=start[1:])
        index = np.empty(start[-1], np.int32)
        self._call(lib.g6x_tree_within, *given, start, count, index)
        return start, index

    def nearest(self, targets: Targets, k: int) -> tuple[Int32s, Floats]:
        """Numbers of the k nearest, and how far they are."""
        ni = self._count(targets)
        index, r2 = np.empty((ni, k), np.int32), np.empty((ni, k))
        out = index.reshape(-1), r2.reshape(-1)
        self._call(lib.g6x_tree_nearest, ni, targets.pos, targets.number, k, *out)
        return index, np.sqrt(r2, out=r2)

    def _count(self, targets: Targets) -> int:
        return self._n if targets.pos is None else len(targets.pos)

    def _call(
        self, call: kinds.CData, ni: int, *arguments: object, before: tuple[object, ...] = ()
    ) -> None:
        check(wait_for(call, *pointers(self.handle, *before, ni, *arguments), size=self._n + ni))


class Replica:
    """A tree of the library, of particles that may lie on a device: arguments of its calls come to
    the host, and results go back."""

    def __init__(
        self,
        xp: kinds.ArrayModule,
        options: dict[int, int],
        *particles: DeviceArray,
        eps: DeviceArray = None,
    ) -> None:
        self._xp, self._tree = xp, HostTree(options)
        pos, mass, vel, own = mapped(on_host, (*particles, eps))
        self._tree.build(None, pos, mass, vel, eps=own)

    def close(self) -> None:
        self._tree.close()

    def ask(self, call: str, *arguments: Untyped) -> Untyped:
        """What a method of the tree gives."""
        return mapped(self._xp.asarray, getattr(self._tree, call)(*mapped(on_host, arguments)))


def _warnings() -> int:
    return int(lib.g6x_last_warning(-1, ffi.NULL, 0))

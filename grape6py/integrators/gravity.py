"""Forces for bodies that move: a tree made anew each time, on the host or a GPU, or the direct sum.

Each of the `ranks` gives bodies of its own and gets their forces.

Each kind has `arrays`, where the bodies are (:class:`~.leapfrog_arrays.HostArrays` or
:class:`~.leapfrog_device.DeviceArrays`); `backend` and `precision`, as :class:`Grape6`;
`is_open`, :meth:`close`; and `forces(of, rows=None)`: accelerations of and potentials at all bodies
of Sources, or those of some rows. A tree's forces on all bodies add up to zero, so that these do
not drift. With ranks all of them make each call, with rows or without.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

import numpy as np

from grape6py._arrays.kinds import Attributes, CuPy, DeviceArray, Floats
from grape6py._arrays.modules import lengths
from grape6py._lib import memory_space
from grape6py._lib.tree import Replica, are_few, by_bound
from grape6py._lib.tree_setting import Found, Setting, Targets
from grape6py.cuda.tree import device_tree
from grape6py.cuda.tree.build import Unresolved
from grape6py.cuda.tree.device_tree import DeviceTree
from grape6py.errors import ArgumentError, Grape6Warning, NotOpenError
from grape6py.forces import tree_backends
from grape6py.forces.grape6 import Grape6
from grape6py.forces.tree import Tree
from grape6py.integrators.leapfrog_arrays import HostArrays
from grape6py.integrators.leapfrog_device import DeviceArrays
from grape6py.ranks.one_rank import ONE
from grape6py.ranks.ranks import Ranks

Gravity: TypeAlias = "DirectGravity | Trees"
Device: TypeAlias = tuple[CuPy, int]  # and its number

_ANY_ACCURACY = 1e-3  # of pairs, which are summed one by one
# A GPU, which one waits for, is worth it from the number of bodies on of which pairs are summed one
# by one, over this.
_THERE_AND_BACK = 2
_TREES_OF_DEVICES = ("tree", "cuda-tree")


def find(
    given: Mapping[str, object],
    n: int,
    eps: float,
    walk: Attributes | None,
    *,
    backend: str,
    precision: str | None,
    threads: int | None,
    ranks: Ranks = ONE,
) -> Gravity:
    """Gravity of the bodies of all ranks, of which this one has n: where a backend computes, or
    where the given arguments, by name, lie.

    `walk` is the setting of a tree (:func:`grape6py._lib.tree_setting.checked`), None for
    the direct sum.
    """
    found = memory_space.first_on_device(given)
    _, n = ranks.numbered(n)
    with ranks.agreement("a session"):
        if found is not None and walk is not None and backend in _TREES_OF_DEVICES:
            return _trees(ranks, _device_under(*found), threads, eps, walk)
        options: Attributes = {"backend": backend, "precision": precision, "threads": threads}
        options["comm"] = ranks.comm if walk is None else None
        session = Grape6(**options, jerk=False)
        session._board.prepare_for(0 if found or walk else max(n, 1), n)
        device = _device_of(session)
        if walk is None and ranks.comm is not None:
            if found is not None:
                raise ArgumentError(
                    f"{found[0]} lies on a CUDA device, but direct sums of several ranks take "
                    "bodies from the host: give NumPy's arrays, or a tree for a backend"
                )
            device = None
        if walk is None and found is not None and device is not None:
            session._board.move_to(_device_under(*found)[1])
            device = _device_of(session)
        if found is not None and device is None:
            raise ArgumentError(
                f"{found[0]} lies on a CUDA device, but {session.backend} computes on the CPU: "
                "give NumPy's arrays, or another backend"
            )
        if walk is None:
            arrays = HostArrays() if device is None else DeviceArrays(*device)
            return DirectGravity(session, eps, arrays, ranks)
        session.close()
        is_small = n > 0 and _are_few(walk, _THERE_AND_BACK * n)
        is_on_host = ranks.comm is None and is_small and backend != "cuda-tree"
        return _trees(ranks, None if is_on_host else device, threads, eps, walk)


def _trees(
    ranks: Ranks, device: Device | None, threads: int | None, eps: float, walk: Attributes
) -> Trees:
    """Trees on a device, or on the host."""
    given = device, threads, eps, walk
    return Trees(*given) if ranks.comm is None else SharedTrees(ranks, *given)


def _device_under(name: str, array: DeviceArray) -> Device:
    """CuPy and the number of the device that an argument of this name lies on."""
    cupy = memory_space.import_cupy(name)
    return cupy, memory_space.take(cupy, name, array).device.id


def _device_of(session: Grape6) -> Device | None:
    """CuPy and the number of a session's device; None on the CPU, and without CuPy."""
    if session.backend.startswith("cuda-tree"):  # which takes no arrays of its device
        with Grape6(backend="cuda") as direct:
            return _device_of(direct)
    device = session._board.option("DEVICE")
    if device >= 0:
        with contextlib.suppress(ImportError):
            import cupy

            return cupy, device
    return None


def is_tree(backend: str) -> bool:
    """Whether a backend is an octree; "auto" is what the environment says."""
    if backend != "auto":
        return "tree" in str(backend)
    with Grape6() as session:
        return "tree" in session.backend


class Sources(NamedTuple):
    """Bodies of this rank, the first of which is number `first` among those of all.

    A tree that is to have some accuracy goes by `last`, their last accelerations, if known. `eps`:
    each body's own softening.
    """

    mass: DeviceArray
    pos: DeviceArray
    first: int = 0
    last: DeviceArray = None
    eps: DeviceArray = None


class _Gravity:
    """What all kinds share."""

    is_open = True
    ranks: Ranks = ONE
    _threads: int | None = None

    @property
    def threads(self) -> int:
        """Threads of a sum on the CPU."""
        with Grape6(backend="cpu", threads=self._threads) as session:
            return session.threads

    def close(self) -> None:
        """Make no more forces."""
        self.is_open = False

    def _check_open(self) -> None:
        if not self.is_open:
            raise NotOpenError("this integration is closed; make a new Leapfrog()")


class DirectGravity(_Gravity):
    """The direct sum of a session."""

    def __init__(
        self, session: Grape6, eps: float, arrays: HostArrays | DeviceArrays, ranks: Ranks
    ) -> None:
        self.arrays, self._session, self._eps, self.ranks = arrays, session, eps, ranks
        self.backend, self.precision = session.backend, session.precision
        self._threads = session.threads

    def close(self) -> None:
        super().close()
        self._session.close()

    def forces(self, of: Sources, rows: DeviceArray = None) -> tuple[Floats, Floats]:
        self._check_open()
        mass, pos, first, *_ = of
        heavy = mass != 0
        with self.ranks.agreement("a sum") as agreement:
            some_are_light = agreement.maximum(not heavy.all())
        which: Attributes = {} if rows is None else {"pos": pos[rows], "index": first + rows}
        if not some_are_light.value:
            self._session.set_particles(mass, pos)
        else:  # bodies without mass do not act
            xp = self.arrays.xp
            acting = xp.flatnonzero(heavy).astype(np.int32)
            self._session.set_particles(mass[acting], pos[acting], index=first + acting)
            which = which or {"pos": pos, "index": first + xp.arange(len(mass), dtype=np.int32)}
        found = self._session.forces(eps=self._eps, **which)
        return found.acc, found.pot


def _are_few(walk: Attributes, n: int, *, on_device: bool = False) -> bool:
    """Whether the forces on n bodies, or some of them, are summed pair by pair."""
    may_be = walk.get("accuracy") is not None or "few_bodies" in walk
    return may_be and are_few(n, on_device=on_device)


class Trees(_Gravity):
    """Trees of libgrape6.so or, on a `device`, of that. There nothing comes to the host but what
    their making and their walks need, and bodies of which there are so few that they are summed on
    the host, or that no one box resolves. `walk` says how trees are walked."""

    precision = "single"  # of the pairs

    def __init__(
        self, device: Device | None, threads: int | None, eps: float, walk: Attributes
    ) -> None:
        self.device, self._walk, self._eps, self._warned = device, walk, eps, False
        self._setting = Setting.of(walk, eps2=eps**2, spline=walk.get("softening") == "spline")
        self.arrays: HostArrays | DeviceArrays
        if device is None:
            with Grape6(backend="cpu-tree") as session:
                self.arrays, self.backend = HostArrays(), session.backend
            self._threads = threads
        else:
            self.arrays = DeviceArrays(*device)
            self.backend = f"cuda-tree {self.arrays.name}"
        self._options = tree_backends.options_of(self._threads, None)

    def _targets(self, of: Sources, rows: DeviceArray) -> Targets:
        """All bodies or some, and for an accuracy the absolute values of their accelerations."""
        last = None if self._walk.get("accuracy") is None else of.last
        if last is not None:
            last = lengths(last if rows is None else last[rows])
        return Targets(None if rows is None else of.pos[rows], number=rows, last_acc=last)

    def forces(self, of: Sources, rows: DeviceArray = None) -> tuple[DeviceArray, DeviceArray]:
        self._check_open()
        n, setting = len(of.mass), self._setting.replaced(momentum=rows is None)
        if self.device is not None and not n:
            return of.pos, of.mass
        targets = self._targets(of, rows)
        if self.device is not None and not _are_few(self._walk, _THERE_AND_BACK * n):
            of_tree, on = by_bound(setting), targets
            if _are_few(self._walk, n, on_device=True):
                of_tree, on = setting.pair_by_pair(order=0), targets._replace(last_acc=None)
            tree = DeviceTree(*self.device, of_host=True)
            with contextlib.suppress(Unresolved), device_tree.lock:
                tree.build(None, of.pos, of.mass, None, eps=of.eps)
                return self._warned_of(tree.sum(of_tree, on))
        if _are_few(self._walk, n):
            setting = setting.replaced(theta=0.0, accuracy=_ANY_ACCURACY)
        given = self._options, of.pos, of.mass, None
        with contextlib.closing(Replica(self.arrays.xp, *given, eps=of.eps)) as replica:
            return self._warned_of(replica.ask("forces", setting, targets))

    def _warned_of(self, found: Found) -> tuple[DeviceArray, DeviceArray]:
        """The forces; the first ones that there is something to say of warn."""
        if found.warning and not self._warned:
            self._warned = True
            warnings.warn(found.warning, Grape6Warning, stacklevel=3)
        return found.acc, found.pot


class SharedTrees(Trees):
    """Trees of the bodies of all ranks: no rank has all of them.

    By the work of the sum before, on all bodies, they are shared out for the next one.
    """

    def __init__(
        self, ranks: Ranks, device: Device | None, threads: int | None, eps: float, walk: Attributes
    ) -> None:
        super().__init__(device, threads, eps, walk)
        self.ranks, self._threads = ranks, threads
        kind = "cpu" if device is None else "cuda"
        self._where: Attributes = {"backend": kind, "threads": threads, "comm": ranks.comm}
        self._work: DeviceArray = None
        self.seconds: dict[str, float] = {}  # of the stages of all sums: ranks/stages.py

    def forces(self, of: Sources, rows: DeviceArray = None) -> tuple[Floats, Floats]:
        self._check_open()
        targets = self._targets(of, rows)
        which: Attributes = {"last_acc": targets.last_acc}
        walk = {k: value for k, value in self._walk.items() if k != "few_bodies"}
        work = self._work
        if work is not None and len(work) != len(of.mass):  # bodies have come or gone
            work = self.arrays.xp.full(len(of.mass), float(work.mean()) if len(work) else 1.0)
        with Tree(of.mass, of.pos, work=work, **self._where) as tree:
            if _are_few(self._walk, len(tree)):
                walk |= {"accuracy": _ANY_ACCURACY, "theta": None}
            if rows is not None:
                which |= {"targets": targets.pos, "self_index": of.first + rows}
            found = tree.forces(**which, **walk, eps=self._eps, momentum=rows is None)
            for stage, taken in tree.seconds.items():
                self.seconds[stage] = self.seconds.get(stage, 0.0) + taken
            if rows is None:
                # One group of targets with a gap in it may have a quarter of a rank's pairs, and in
                # the next tree there is none: the mean of old and new does not follow that.
                new, old = tree.work, self._work
                self._work = (old + new) / 2 if old is not None and len(old) == len(new) else new
        return found.acc, found.pot

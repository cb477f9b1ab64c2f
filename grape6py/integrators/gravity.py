"""Forces for bodies that move: a tree made anew each time, on the host or a GPU, or the direct sum.

Each of the `ranks` gives bodies of its own and gets their forces.

Each kind has `arrays`, where the bodies are (:class:`~.leapfrog_arrays.HostArrays` or
:class:`~.leapfrog_device.DeviceArrays`); `backend` and `precision`, as :class:`Grape6`;
`is_open`, :meth:`close`; and `forces(mass, pos, rows=None, last=None)`: accelerations of and
potentials at all bodies, or those of some rows. A tree's forces on all bodies add up to zero, so
that these do not drift. One that is to have some accuracy goes by `last`, the last accelerations of
all bodies, if they are known. With ranks all of them make each call, with rows or without.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from grape6py._arrays.modules import lengths
from grape6py._lib import memory_space
from grape6py._lib.tree import HostTree, Replica, are_few, by_bound
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

if TYPE_CHECKING:
    from grape6py._arrays.kinds import Attributes, CuPy, DeviceArray, Floats
    from grape6py.ranks.ranks import Ranks

Gravity: TypeAlias = "DirectGravity | HostTrees | DeviceTrees | SharedTrees"

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
        is_small = n > 0 and _Trees(walk)._are_few(_THERE_AND_BACK * n)
        is_on_host = ranks.comm is None and is_small and backend != "cuda-tree"
        return _trees(ranks, None if is_on_host else device, threads, eps, walk)


def _trees(
    ranks: Ranks, device: tuple[CuPy, int] | None, threads: int | None, eps: float, walk: Attributes
) -> HostTrees | DeviceTrees | SharedTrees:
    """Trees on a device, or on the host."""
    if ranks.comm is not None:
        arrays = HostArrays() if device is None else DeviceArrays(*device)
        return SharedTrees(ranks, arrays, threads, eps, walk)
    if device is not None:
        return DeviceTrees(*device, eps, walk)
    with Grape6(backend="cpu-tree") as session:
        return HostTrees(session.backend, threads, eps, walk)


def _device_under(name: str, array: DeviceArray) -> tuple[CuPy, int]:
    """CuPy and the number of the device that an argument of this name lies on."""
    cupy = memory_space.import_cupy(name)
    return cupy, memory_space.take(cupy, name, array).device.id


def _device_of(session: Grape6) -> tuple[CuPy, int] | None:
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
        self,
        session: Grape6,
        eps: float,
        arrays: HostArrays | DeviceArrays,
        ranks: Ranks,
    ) -> None:
        self.arrays, self._session, self._eps, self.ranks = arrays, session, eps, ranks
        self.backend, self.precision = session.backend, session.precision
        self._threads = session.threads

    def close(self) -> None:
        super().close()
        self._session.close()

    def forces(
        self, mass: DeviceArray, pos: DeviceArray, rows: DeviceArray = None, _: DeviceArray = None
    ) -> tuple[Floats, Floats]:
        self._check_open()
        heavy = mass != 0
        with self.ranks.agreement("a sum") as agreement:
            some_are_light = agreement.maximum(not heavy.all())
        all_act = not some_are_light.value
        first = 0 if rows is None and all_act else self.ranks.numbered(len(mass))[0]
        which: Attributes = {} if rows is None else {"pos": pos[rows], "index": first + rows}
        if all_act:
            self._session.set_particles(mass, pos)
        else:  # bodies without mass do not act
            xp = self.arrays.xp
            acting = xp.flatnonzero(heavy).astype(np.int32)
            self._session.set_particles(mass[acting], pos[acting], index=first + acting)
            which = which or {"pos": pos, "index": first + xp.arange(len(mass), dtype=np.int32)}
        found = self._session.forces(eps=self._eps, **which)
        return found.acc, found.pot


class _Trees(_Gravity):
    """What all trees share: `walk` says how they are walked, or few bodies taken pair by pair."""

    precision = "single"  # of the pairs

    def __init__(self, walk: Attributes, eps: float = 0.0) -> None:
        self._walk, self._accuracy, self._warned = walk, walk.get("accuracy"), False
        self._setting = Setting.of(walk, eps2=eps**2)

    def _are_few(self, n: int, *, on_device: bool = False) -> bool:
        """Whether the forces on n bodies, or some of them, are summed pair by pair."""
        may_be = self._accuracy is not None or "few_bodies" in self._walk
        return may_be and are_few(n, on_device=on_device)

    def _last_acc(self, last: DeviceArray, rows: DeviceArray) -> DeviceArray:
        """Absolute values of the last accelerations of the targets, for an accuracy."""
        if last is None or self._accuracy is None:
            return None
        return lengths(last if rows is None else last[rows])

    def _targets(self, pos: DeviceArray, rows: DeviceArray, last: DeviceArray) -> Targets:
        at = None if rows is None else pos[rows]
        return Targets(at, number=rows, last_acc=self._last_acc(last, rows))

    def _on_host(self, n: int, rows: DeviceArray) -> Setting:
        """The setting of a sum of n bodies by the library."""
        setting = self._setting.replaced(momentum=rows is None)
        if self._are_few(n):
            setting = setting.replaced(theta=0.0, accuracy=_ANY_ACCURACY)
        return setting

    def _warned_of(self, found: Found) -> tuple[DeviceArray, DeviceArray]:
        """The forces; the first ones that there is something to say of warn."""
        if found.warning and not self._warned:
            self._warned = True
            warnings.warn(found.warning, Grape6Warning, stacklevel=3)
        return found.acc, found.pot


class HostTrees(_Trees):
    """Trees of libgrape6.so."""

    def __init__(self, backend: str, threads: int | None, eps: float, walk: Attributes) -> None:
        super().__init__(walk, eps)
        self.arrays: HostArrays | DeviceArrays = HostArrays()
        self.backend, self._threads, self._eps = backend, threads, eps
        self._options = tree_backends.options_of(threads, None)

    def forces(
        self,
        mass: DeviceArray,
        pos: DeviceArray,
        rows: DeviceArray = None,
        last: DeviceArray = None,
    ) -> tuple[Floats, Floats]:
        self._check_open()
        setting = self._on_host(len(mass), rows)
        with contextlib.closing(HostTree(self._options)) as tree:
            tree.build(None, pos, mass, None)
            return self._warned_of(tree.forces(setting, self._targets(pos, rows, last)))


class SharedTrees(HostTrees):
    """Trees of the bodies of all ranks: no rank has all of them.

    By the work of the sum before, on all bodies, they are shared out for the next one.
    """

    def __init__(
        self,
        ranks: Ranks,
        arrays: HostArrays | DeviceArrays,
        threads: int | None,
        eps: float,
        walk: Attributes,
    ) -> None:
        with Grape6(backend="cpu-tree") as session:
            super().__init__(session.backend, threads, eps, walk)
        self.arrays, self.ranks = arrays, ranks
        self._where: Attributes = {"backend": "cpu", "threads": threads, "comm": ranks.comm}
        if isinstance(arrays, DeviceArrays):
            self.backend = f"cuda-tree {arrays.name}"
            self._where["backend"] = "cuda"
        self._work: DeviceArray = None
        self.seconds: dict[str, float] = {}  # of the stages of all sums: ranks/stages.py

    def _tree(self, mass: DeviceArray, pos: DeviceArray) -> Tree:
        work = self._work
        if work is not None and len(work) != len(mass):  # bodies have come or gone
            mean = float(work.mean()) if len(work) else 1.0
            work = self.arrays.xp.full(len(mass), mean)
        return Tree(mass, pos, work=work, **self._where)

    def forces(
        self,
        mass: DeviceArray,
        pos: DeviceArray,
        rows: DeviceArray = None,
        last: DeviceArray = None,
    ) -> tuple[Floats, Floats]:
        self._check_open()
        which, walk = {}, {k: value for k, value in self._walk.items() if k != "few_bodies"}
        with self._tree(mass, pos) as tree:
            if self._are_few(len(tree)):
                walk |= {"accuracy": _ANY_ACCURACY, "theta": None}
            which["last_acc"] = self._last_acc(last, rows)
            if rows is not None:
                which |= {"targets": pos[rows], "self_index": tree.first + rows}
            found = tree.forces(**which, **walk, eps=self._eps, momentum=rows is None)
            self._learn(tree, rows is None)
        return found.acc, found.pot

    def _learn(self, tree: Tree, is_of_all: bool) -> None:
        """What a tree has to say when it has given forces, on all bodies or on some."""
        for stage, taken in tree.seconds.items():
            self.seconds[stage] = self.seconds.get(stage, 0.0) + taken
        if not is_of_all:
            return
        # One group of targets with a gap in it may have a quarter of a rank's pairs, and in the
        # next tree there is none: the mean of old and new does not follow that.
        work, old = tree.work, self._work
        is_known = old is not None and len(old) == len(work)
        self._work = (old + work) / 2 if is_known else work


class DeviceTrees(_Trees):
    """Trees on a gpu. Nothing comes to the host but what their making and their walks need, and
    bodies of which there are so few that they are summed there, or that no one box resolves."""

    def __init__(self, cupy: CuPy, device: int, eps: float, walk: Attributes) -> None:
        super().__init__(walk, eps)
        self.arrays = DeviceArrays(cupy, device)
        self.backend = f"cuda-tree {self.arrays.name}"
        self._place = cupy, device

    def forces(
        self,
        mass: DeviceArray,
        pos: DeviceArray,
        rows: DeviceArray = None,
        last: DeviceArray = None,
    ) -> tuple[DeviceArray, DeviceArray]:
        self._check_open()
        n = len(mass)
        if not n:
            return pos, mass
        targets = self._targets(pos, rows, last)
        if not self._are_few(_THERE_AND_BACK * n):
            setting, on = by_bound(self._setting.replaced(momentum=rows is None)), targets
            if self._are_few(n, on_device=True):
                setting, on = setting.pair_by_pair(order=0), targets._replace(last_acc=None)
            tree = DeviceTree(*self._place, of_host=True)
            with contextlib.suppress(Unresolved), device_tree.turn:
                tree.build(None, pos, mass, None)
                return self._warned_of(tree.sum(setting, on))
        with contextlib.closing(Replica(self.arrays.xp, {}, pos, mass, None)) as replica:
            return self._warned_of(replica.ask("forces", self._on_host(n, rows), targets))

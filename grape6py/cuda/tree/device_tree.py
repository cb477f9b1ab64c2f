"""The tree of ``Tree`` for arrays on a CUDA device: its kernels are in grape6py/cuda."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from grape6py import errors
from grape6py._arrays.kinds import AnyArray, CuPy, DeviceArray, Floats, Untyped
from grape6py._lib import codes, memory_space
from grape6py._lib.declarations import constants
from grape6py._lib.device_place import DevicePlace, ThroughDevice
from grape6py._lib.tree import OwnTree, Replica, are_few, by_bound
from grape6py._lib.tree_setting import Found, Setting, Targets
from grape6py.cuda import errors as cuda_errors
from grape6py.cuda.tree.build import Unresolved
from grape6py.cuda.tree.octree import Octree
from grape6py.cuda.tree.search import Search
from grape6py.cuda.tree.share import extent_of, keys_of, regions_in
from grape6py.cuda.tree.softened import softened_job
from grape6py.errors import NotFiniteError

if TYPE_CHECKING:
    from grape6py._lib.memory_space import Place
    from grape6py.cuda.launcher import TreeLauncher

# Of whoever uses trees: the state of a call lies in its tree, that of compilation and the lengths
# of lists in the GPU.
lock = threading.RLock()


class DeviceTree(OwnTree):
    """A tree on a `device`, which gives NumPy's arrays if it was made `of_host` arrays."""

    def __init__(self, cupy: CuPy, device: int, of_host: bool) -> None:
        self._tree: Untyped = None  # an Octree, if there are particles, here or on other ranks
        self._replica: Replica | None = None
        self._copies: list[DeviceArray] = []
        self._cupy, self._number, self.of_host, self._n = cupy, device, of_host, 0
        self.device = device
        self._made: CuPy = None  # an event
        self._of_ranks = False
        self.is_open = True

    def __len__(self) -> int:
        return self._n

    @contextlib.contextmanager
    def using(self, given: Mapping[str, object]) -> Iterator[DevicePlace]:
        """The place for arguments of these names: their checks, and where results go.

        When it is left the results are there, and no kernel reads the tree any more: any stream
        may go on. A tree that was made of CuPy's arrays need not be there yet: later calls wait.
        """
        of_tree = given.get("targets") is None and not self.of_host
        there = of_tree or memory_space.first_on_device(given)
        kind = DevicePlace if there else ThroughDevice
        place = kind(None, self._cupy, self._number, "the tree lies on")
        makes = not self._copies and self.is_open
        with lock, place, explained(self._cupy):
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
        place: Place | None,
        pos: DeviceArray,
        mass: DeviceArray,
        vel: DeviceArray,
        whole: Floats | None = None,
        eps: DeviceArray = None,
    ) -> None:
        """Make the tree. Arrays here and below are contiguous, and checked if `place` is.

        `whole` and `eps`: as in Octree; arrays are then kept as they are. Raises RangeError if that
        box does not resolve the particles.
        """
        self._n, self._of_ranks = len(pos), whole is not None
        is_own = self.of_host or self._of_ranks
        self._copies = [a if a is None or is_own else a.copy() for a in (pos, mass, vel)]
        self._eps = eps
        try:
            if self._n or self._of_ranks:
                pos, mass, vel = self._copies
                self._tree = Octree(gpu_of(self._number), pos, mass, vel, whole, eps)
        except NotFiniteError:
            if place is not None:
                place.check()  # which has the same words for all arrays
            raise
        if self._of_ranks and self._tree is not None and self._tree.unresolved:
            self._tree = None
            raise _of_no_use()

    @property
    def order(self) -> DeviceArray:
        """Numbers of the particles in the order of their keys."""
        return self._tree.order

    def keys(self, pos: DeviceArray, whole: Floats) -> DeviceArray:
        """Hilbert keys, uint64, of positions in the box of all ranks' particles."""
        return keys_of(gpu_of(self._number), pos, whole)

    def extent(self, pos: DeviceArray, mass: DeviceArray) -> Floats:
        """Corners of the box of some particles, and their largest |mass|: shape (7,)."""
        return extent_of(gpu_of(self._number), pos, mass)

    def regions(self, _: DeviceArray, last_acc: DeviceArray) -> DeviceArray:
        """Where the tree's own particles are, and their least last accelerations: shape (m, 7)."""
        return regions_in(self._tree, last_acc)

    def parts(self, setting: Setting, regions: Sequence[DeviceArray]) -> list[DeviceArray]:
        """What other ranks need of this tree: as in Octree."""
        found: list[DeviceArray] = self._tree.parts(setting, regions)
        return found

    def particles(self) -> list[DeviceArray]:
        """Positions, masses, and velocities or None, as they were given."""
        with lock, self._cupy.cuda.Device(self._number):
            return [
                self._cupy.asnumpy(array) if self.of_host and array is not None else array
                for array in self._copies
            ]

    def close(self) -> None:
        with lock:
            self.is_open, self._tree, self._copies = False, None, []
            self._replica = None

    def forces(
        self, setting: Setting, targets: Targets, parts: Sequence[AnyArray] | None = None
    ) -> Found:
        """Forces on targets; `parts`: of other ranks' trees, without an accuracy."""
        ni = len(self) if targets.pos is None else len(targets.pos)
        resolved = by_bound(setting)
        if setting.accuracy and are_few(len(self), ni, on_device=True):
            resolved, targets = setting.pair_by_pair(order=0), targets._replace(last_acc=None)
        try:
            return self.sum(resolved, targets, parts or ())
        except Unresolved:
            if self._of_ranks:
                raise _of_no_use() from None
            found: Found = self._on_host("forces", setting, targets)
            return found

    def sum(self, setting: Setting, targets: Targets, parts: Sequence[AnyArray] = ()) -> Found:
        """Forces by an opening angle or a bound. Raises Unresolved."""
        if self._tree is None:
            raise Unresolved
        acc, pot, jerk, counts = self._tree.forces(setting, targets, parts)
        if counts.too_large is not None:
            text = f"the force on target {counts.too_large} of a tree does not fit a double"
            raise codes.from_code("RANGE", text)
        zeros = counts.zero_distances
        warning = f"{zeros} pairs of a tree at one place with eps = 0: they add nothing"
        done = counts.pairs, counts.points, counts.locals
        return Found(acc, pot, jerk, warning if zeros else None, done)

    def within(self, targets: Targets, h2: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
        """Neighbours: where rows start, and the rows."""
        if self._tree is None or not self._tree.is_whole or not len(self):
            found: tuple[DeviceArray, DeviceArray] = self._on_host("within", targets, h2)
            return found
        return Search(self._tree, targets.pos, targets.number).within(h2)

    def nearest(self, targets: Targets, k: int) -> tuple[DeviceArray, DeviceArray]:
        """Numbers of the k nearest, and how far they are."""
        if self._tree is None or not self._tree.is_whole or not len(self):
            found: tuple[DeviceArray, DeviceArray] = self._on_host("nearest", targets, k)
            return found
        number, r2 = Search(self._tree, targets.pos, targets.number).nearest(k)
        return number, self._cupy.sqrt(r2)

    def _on_host(self, call: str, *arguments: Untyped) -> Untyped:
        """What a tree of the library gives, which divides particles that no one box resolves, and
        knows what no particles are."""
        if self._replica is None:
            self._replica = Replica(self._cupy, {}, *self._copies, eps=self._eps)
        return self._replica.ask(call, *arguments)


def _of_no_use() -> errors.Grape6Error:
    return codes.from_code(
        "RANGE",
        "the box of all ranks' particles does not resolve those of this tree: some stand too close "
        "together",
    )


def gpu_of(device: int) -> TreeLauncher:
    from grape6py.cuda.device import tree_gpu  # which needs CuPy

    return tree_gpu(device)


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
            raise codes.from_code("DEVICE_MEMORY", text) from error
        known = cuda_errors.explain(error, cupy.cuda.runtime.runtimeGetVersion() // 1000)
        if known is None:
            raise
        raise codes.from_code(*known) from error


def direct_sums(
    device: int, targets: Sequence[Untyped], sources: Sequence[Untyped], *, spline: bool
) -> tuple[Untyped, Untyped, Untyped, int]:
    """acc, jerk and pot, in arrays of the kind that the targets are, and how many pairs without
    distance or softening were left out.

    Sources are pos, vel, mass and eps, or None; targets are pos, vel, eps and the number of the
    source that each is, or -1.
    """
    cupy = memory_space.import_cupy("pos")
    with lock, cupy.cuda.Device(device), explained(cupy):
        gpu = gpu_of(device)
        is_host = isinstance(targets[0], np.ndarray) and cupy.ndarray is not np.ndarray
        given: list[Untyped] = [
            None if a is None else cupy.ascontiguousarray(cupy.asarray(a))
            for a in (*sources, *targets)
        ]
        x, v, m, eps, at, at_v, at_eps, number = given
        out = [cupy.empty((len(at), 3)), cupy.empty((len(at), 3)), cupy.empty(len(at))]
        kind = constants.PAIR_SPLINE if spline else constants.PAIR_OWN
        job = softened_job(gpu, n=len(x), term=int(kind | constants.PAIR_JERK))
        job.set(x=x, v=v, m=m, eps=eps, at=at, at_v=at_v, at_eps=at_eps, self=number)
        left_out = cupy.zeros(1, np.uint64)
        job.set(acc=out[0], jerk=out[1], pot=out[2], zero_distances=left_out)
        job.launch("tree_softened_rows", 256 * len(at), 256)
        acc, jerk, pot = (cupy.asnumpy(array) if is_host else array for array in out)
        return acc, jerk, pot, int(left_out[0])

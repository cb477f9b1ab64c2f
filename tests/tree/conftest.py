"""`where` a tree is of which the contract holds: on the host, on a device (the stand-in for a GPU;
each group of targets has a warp, or on "blocks" a CUDA block), or on three ranks, threads of this
process in the place of MPI's, which all compute on the host, or "mixed". All take and give NumPy's
arrays."""

import inspect

import numpy as np
import pytest

from grape6py import Leapfrog, Tree
from grape6py._arrays.modules import on_host
from grape6py._lib.neighbours import Neighbours
from grape6py.ranks.one_rank import ONE
from thread_ranks import Crew

RANKS = 3


@pytest.fixture(params=["fmm", "bh"])
def method(request):
    return request.param


class Host:
    """Trees of NumPy's arrays; `n`: more particles than are summed pair by pair."""

    n, name = 5000, "host"

    def tree(self, mass, pos, vel=None, **options):
        return Tree(mass, pos, vel, **{"backend": "cpu"} | options)

    def leapfrog(self, *bodies, **options):
        return Leapfrog(*bodies, backend="cpu-tree", **options)

    of = tree  # wherever it is, with just these arguments

    def never_few(self, monkeypatch):
        """Has an accuracy be had by the tree for any number of particles of `n` and more."""

    def text(self, text):
        """What an error says: of threads that fail at once, as here ranks do, one knows it."""
        return text if self.name != "ranks" else None


class Device(Host):
    n, name = 1728, "device"

    def __init__(self, put):
        self._put = lambda value: put(value) if isinstance(value, np.ndarray) else value

    def tree(self, *arrays, **options):
        return Moved(Tree(*map(self._put, arrays), **options), self._put)

    def leapfrog(self, *bodies, **options):
        return Leapfrog(*map(self._put, bodies), **options)

    def of(self, **given):
        return Moved(Tree(**{key: self._put(value) for key, value in given.items()}), self._put)

    def never_few(self, monkeypatch):
        for module in "ranks.tree", "cuda.tree.device_tree":
            monkeypatch.setattr(f"grape6py.{module}.are_few", lambda *_, **__: False)


class Moved:
    """A tree of a device's arrays, the calls of which take and give NumPy's."""

    def __init__(self, tree, put):
        self.tree, self._put = tree, put

    def __getattr__(self, name):
        def call(*given, **more):
            more = {key: self._put(value) for key, value in more.items()}
            return to_host(getattr(self.tree, name)(*map(self._put, given), **more))

        return call


def to_host(found):
    if isinstance(found, Neighbours):
        return found.on(on_host)
    if isinstance(found, (tuple, list)):
        made = getattr(type(found), "_make", type(found))
        return made(None if array is None else on_host(array) for array in found)
    return found


class Ranks(Device):
    n, name = 1500, "ranks"

    def __init__(self, puts):
        self.crew, self._puts = Crew(RANKS), puts

    def tree(self, mass, pos, vel=None, **options):
        """Of three quarters of the particles on one rank, and none on another."""
        n = len(pos)
        given = {"mass": np.broadcast_to(mass, n), "pos": np.asarray(pos), "vel": vel}
        return Shared(self.crew, self._puts, given, [0, n // 4, n, n], options)

    def of(self, **given):
        return Shared(self.crew, self._puts, given, None, {})


class Shared:
    """The tree of a crew's ranks: each has its share of the particles, and of targets those that
    are among these, or if there is no `first` all that is given."""

    def __init__(self, crew, puts, given, first, options):
        self._crew, self._puts, self._first = crew, puts, first
        rows = [slice(None)] * RANKS if first is None else [*map(slice, first, first[1:])]
        self._rows = rows
        self.trees = crew.call(lambda rank: Tree(**self._of(rank, given, rows),
                                                 comm=crew.ranks[rank], **options))  # fmt: skip

    def _of(self, rank, given, rows):
        return {key: self._puts[rank](value[rows[rank]]) if np.ndim(value) else value
                for key, value in given.items()}  # fmt: skip

    def _rows_of(self, given):
        if self._first is None or given.get("targets") is None:
            return self._rows
        count = len(given["targets"])
        number = np.asarray(given.get("self_index", np.full(count, -1)))
        owner = np.searchsorted(self._first, number, side="right") - 1
        owner = np.where(number < 0, np.arange(count) % RANKS, owner)
        return [np.flatnonzero(owner == rank) for rank in range(RANKS)]

    def __getattr__(self, name):
        def call(*given, **more):
            given = inspect.signature(getattr(Tree, name)).bind(None, *given, **more).arguments
            del given["self"]
            rows = self._rows_of(given)
            found = self._crew.call(lambda rank: to_host(
                getattr(self.trees[rank], name)(**self._of(rank, given, rows))))  # fmt: skip
            return self._joined(found, rows)

        return call

    def _joined(self, found, rows):
        first = found[0]
        if self._first is None or not isinstance(first, (tuple, list, Neighbours)):
            return first
        count = self._first[-1] if isinstance(rows[0], slice) else sum(map(len, rows))
        back = np.argsort(np.concatenate([np.arange(count)[mine] for mine in rows]))
        if isinstance(first, tuple):
            columns = zip(*found, strict=True)
            return type(first)(*(None if column[0] is None else np.concatenate(column)[back]
                                 for column in columns))  # fmt: skip
        lists = [row for theirs in found for row in theirs]
        return [lists[i] for i in back]


@pytest.fixture(params=["host", "device", "ranks"])
def where(request, monkeypatch):
    """The name may also be "blocks" or "mixed"."""
    name = request.param
    if name == "host":
        return Host()
    monkeypatch.setattr("grape6py.forces.tree.ranks_of", lambda comm: comm or ONE)
    put = np.asarray if name == "ranks" else request.getfixturevalue("put")
    if name == "ranks" or name == "mixed":
        return Ranks([np.asarray, put, np.asarray])
    if name == "blocks":
        monkeypatch.setattr("grape6py.cuda.tree.octree.BLOCKS", 8192)
    return Device(put)

"""The octree on a graphics card: its memory, and the order of its kernels (tree.cu).

Nothing is computed here. Sorting and running sums are CuPy's, which are CUB's. `CardTree` works on
a machine that has arrays (CuPy, or NumPy in tests) and launches kernels by name.
"""

import ctypes
import functools
from dataclasses import dataclass

import numpy as np

from grape6py import errors
from grape6py.cuda import source

GROUP, SUPER, HYPER = 32, 16, 8  # targets, groups, supers: as in csrc/tree.h
IN_SUPER, IN_HYPER = GROUP * SUPER, GROUP * SUPER * HYPER
CELL_BLOCK, CELL_LEVELS, TERMS = 1024, 22, 64
FMM, BARNES_HUT = 0, 1
NO_MEMORY = -29

# Bytes of struct tree_cell, tree_moments, tree_far, tree_place, tree_group, tree_box.
CELL, MOMENTS, FAR, PLACE, GROUP_BYTES, BOX = 16, 224, 80, 16, 60, 104

_pointer, _int, _float, _double = ctypes.c_void_p, ctypes.c_int32, ctypes.c_float, ctypes.c_double


def _structure(name, *fields):
    return type(name, (ctypes.Structure,), {"_fields_": list(fields)})


def _pointers(names):
    return [(name, _pointer) for name in names.split()]


Status = _structure(
    "Status",
    ("low", ctypes.c_uint64 * 3),
    ("high", ctypes.c_uint64 * 3),
    ("mass", ctypes.c_uint64),
    ("bad", _int),
    ("cells", _int),
    ("level_first", _int * 24),
    ("need", _int * 4),
    ("redo", _int),
    ("close", _int),
    *((name, ctypes.c_uint64) for name in "pairs points locals coincidences".split()),
)
LevelJob = _structure(
    "LevelJob", *_pointers("group local lists count"), ("room", _int * 3), ("padding", _int)
)
Opening = _structure(
    "Opening",
    ("by_theta_point", _float),
    ("by_theta_local", _float * 3),
    *((name, _float) for name in "bound_point bound_local size_weight".split()),
    *((name, _float) for name in "least_distance2 passed_on guard".split()),
    ("least_count", _int),
)
Job = _structure(
    "Job",
    *_pointers("x m targets self status box eps2 key sorted order high low levels counts summed"),
    *_pointers("cell parent ready moments far place target_order target_high target_low"),
    *_pointers("target_self rank last_acc"),
    ("level", LevelJob * 3),
    *_pointers("chosen redo far_sum close acc pot last"),
    ("opening", Opening),
    ("eps2_given", _double),
    *((name, _int) for name in "n target_count blocks cell_room hypers supers groups".split()),
    *((name, _int) for name in "first_group redo_room order_of_expansion".split()),
)


class Card:
    """CuPy on the current device."""

    def __init__(self):
        import cupy

        self.xp = cupy

    @functools.cached_property
    def _module(self):
        options = source.options("single")
        return self.xp.RawModule(code=source.read("tree.cu"), options=options)

    @functools.cache  # noqa: B019: a card lives as long as the process
    def _kernel(self, name):
        return self._module.get_function(name)

    def launch(self, name, blocks, threads, job):
        """Start a kernel on CuPy's current stream; the job is copied."""
        by_value = np.frombuffer(bytes(job), np.dtype((np.void, ctypes.sizeof(job))))
        self._kernel(name)((blocks,), (threads,), (by_value,))

    def address(self, array):
        return array.data.ptr

    def sort(self, keys):
        """Numbers of the keys in ascending order, equal ones in their own."""
        return self.xp.argsort(keys)


@dataclass
class Counts:
    """What a sum has done: pairs, cells on targets, cells on groups; and pairs left out."""

    pairs: int
    points: int
    locals: int
    coincidences: int


def _pieces(n, size):
    return -(-n // size)


class CardTree:
    """An octree of particles in a card's memory.

    Parameters
    ----------
    card : Card
    pos : array of float64, shape (n, 3)
    mass : array of float64, shape (n,)
    """

    def __init__(self, card, pos, mass):
        self._card, self._xp = card, card.xp
        self._pos, self._mass = pos, mass
        self.n = len(mass)
        self._cell_room = self.n // 6 + 4096
        self._rooms = [4096, 4096], [768, 384, 128]  # of hypers and supers; of groups
        self._build()

    def _new(self, shape, dtype=np.uint8):
        return self._xp.empty(shape, dtype)

    def _bytes(self, count, size):
        return self._new(max(count, 1) * size)

    def _set(self, job, **arrays):
        """Point fields of a job to arrays, which are kept."""
        for name, array in arrays.items():
            setattr(job, name, None if array is None else self._card.address(array))
            self._kept[name] = array

    def _read_status(self):
        words = self._kept["status"]
        return Status.from_buffer_copy(bytes(words.get() if hasattr(words, "get") else words))

    def _build(self):
        xp, card, n = self._xp, self._card, self.n
        self._kept = {}
        self._job = job = Job(n=n, blocks=n // CELL_BLOCK + 1, redo_room=65536)
        status = Status(low=(2**64 - 1,) * 3)
        self._set(
            job,
            x=self._pos,
            m=self._mass,
            status=xp.array(np.frombuffer(bytes(status), np.uint8)),
            box=self._new(BOX),
            eps2=self._new(1, np.float32),
            key=self._new(n, np.uint64),
            sorted=self._new(n, np.uint64),
            high=self._new((n, 4), np.float32),
            low=self._new((n, 4), np.float32),
            levels=self._new(n, np.uint16),
            counts=self._new(CELL_LEVELS * job.blocks, np.int32),
        )
        card.launch("tree_extent", min(1024, _pieces(n, 256)), 256, job)
        card.launch("tree_make_box", 1, 32, job)
        card.launch("tree_keys", _pieces(n, 256), 256, job)
        self._set(job, order=card.sort(self._kept["key"]))
        card.launch("tree_gather", _pieces(n, 256), 256, job)
        card.launch("tree_count", job.blocks, CELL_BLOCK, job)
        self._set(job, summed=xp.cumsum(self._kept["counts"], dtype=np.int32))
        self._make_cells()

    def _make_cells(self):
        job, room = self._job, self._cell_room
        job.cell_room = room
        self._set(
            job,
            cell=self._bytes(room, CELL),
            parent=self._new(room, np.int32),
            ready=self._new(room, np.int32),
            moments=self._bytes(room, MOMENTS),
            far=self._bytes(room, FAR),
            place=self._bytes(room, PLACE),
        )
        self._card.launch("tree_cells", job.blocks, CELL_BLOCK, job)
        self._card.launch("tree_moments_up", min(4096, _pieces(room, 128)), 128, job)

    def forces(self, *, opening, order, eps2=0.0):
        """Acc and pot of the particles themselves, in their order.

        Returns
        -------
        acc, pot : arrays of float64
        Counts
        """
        while True:
            found = self._sum(opening, order, eps2)
            status = self._read_status()
            if status.bad:
                raise errors.from_code(-6, f"particle {self.n - status.bad} is not finite")
            if status.cells > self._cell_room:
                self._cell_room = status.cells + status.cells // 16
                self._build()
            elif status.need[0] > self._rooms[0][0]:
                self._rooms = [status.need[0] * 5 // 4] * 2, self._rooms[1]
                self._reset()
            else:
                break
        if status.redo:
            self._again(status)
        names = "pairs points locals coincidences".split()
        return *found, Counts(*(getattr(status, name) for name in names))

    def _reset(self):
        status = Status.from_buffer_copy(bytes(self._read_status()))
        for name in "redo close pairs points locals coincidences".split():
            setattr(status, name, 0)
        status.need[:] = 0, 0, 0, 0
        self._kept["status"][:] = self._xp.array(np.frombuffer(bytes(status), np.uint8))

    def _sum(self, opening, order, eps2):
        job, n = self._job, self.n
        job.opening, job.order_of_expansion, job.eps2_given = opening, order, eps2
        job.target_count = n
        sizes = [_pieces(n, IN_HYPER), _pieces(n, IN_SUPER), _pieces(n, GROUP)]
        job.hypers, job.supers, job.groups = sizes
        self._set(job, far_sum=self._new((n, 4), np.float32), acc=self._new((n, 3), np.float64))
        self._set(job, pot=self._new(n, np.float64), redo=self._new(job.redo_room, np.int32))
        self._set(job, close=self._new(job.redo_room, np.int32))
        for level, count in enumerate(sizes):
            self._level(level, count)
        self._card.launch("tree_make_box", 1, 32, job)  # for eps2
        self._card.launch("tree_groups", sizes[0], 256, job)
        if order:
            for name, count in (("hypers", sizes[0]), ("supers", sizes[1])):
                blocks = _pieces(count, 4)
                self._card.launch(f"tree_walk_{name}", blocks, 128, job)
                self._card.launch(f"tree_expand_{name}_{order}", count, 128, job)
        batch = self._batch(sizes[2])
        for first in range(0, sizes[2], batch):
            job.first_group, job.groups = first, min(batch, sizes[2] - first)
            self._groups(order, eps2)
        return self._kept["acc"], self._kept["pot"]

    def _groups(self, order, eps2):
        """Walk, far and near terms of the groups that the job names."""
        job = self._job
        blocks = _pieces(job.groups, 4)
        self._card.launch("tree_walk_groups", blocks, 128, job)
        if order:
            self._card.launch(f"tree_expand_groups_{order}", blocks, 128, job)
        near = "tree_near" if order else "tree_near_bh"
        self._card.launch(near if eps2 > 1e-20 else near + "_bare", blocks, 128, job)

    def _batch(self, groups):
        """Groups whose lists are kept at once: memory for about 96 bytes a particle."""
        room = 4 * sum(self._rooms[1])
        return min(groups, max(96 * self.n // room, 4096))

    def _level(self, level, count):
        job = self._job.level[level]
        if level < 2:
            rooms = [self._rooms[0][0], 0, self._rooms[0][1]]
            lists = count
        else:
            rooms = self._rooms[1]
            lists = self._batch(count)
        job.room[:] = rooms
        kept = {
            "group": self._bytes(count, GROUP_BYTES),
            "local": self._new((count if level < 2 else 1, TERMS), np.float32),
            "lists": self._new((lists, sum(rooms)), np.int32),
            "count": self._new((lists, 4), np.int32),
        }
        for name, array in kept.items():
            setattr(job, name, self._card.address(array))
        self._kept[f"level {level}"] = kept

    def _again(self, status):
        """Groups whose lists did not fit, with lists as long as the longest of them."""
        job = self._job
        if status.redo > job.redo_room:
            raise errors.from_code(NO_MEMORY, "too many groups have long lists")
        self._rooms = self._rooms[0], [max(need, 32) for need in status.need[1:]]
        self._set(job, chosen=self._kept["redo"].copy())
        self._level_lists(min(status.redo, 4096))
        order, eps2 = job.order_of_expansion, job.eps2_given
        chosen = job.chosen
        for first in range(0, status.redo, 4096):
            job.chosen = chosen + 4 * first
            job.groups = min(4096, status.redo - first)
            self._groups(order, eps2)
        job.chosen = None

    def _level_lists(self, count):
        job, rooms = self._job.level[2], self._rooms[1]
        job.room[:] = rooms
        kept = self._kept["level 2"]
        kept["lists"] = self._new((count, sum(rooms)), np.int32)
        kept["count"] = self._new((count, 4), np.int32)
        job.lists, job.count = (self._card.address(kept[name]) for name in ("lists", "count"))
